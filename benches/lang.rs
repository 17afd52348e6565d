//! Measures how fast a large configuration is parsed and formatted: 100,000 lines of relabel rules, as a generator
//! would write them.
//!
//! Rates are MB (10^6 bytes) of configuration text per second.

use std::hint::black_box;

use alluvium_lang::{Source, parse, printer};

use super::Bench;

/// Number of blocks, each with eleven lines.
const BLOCKS: usize = 9_091;

pub(crate) fn run(bench: &Bench) {
    let text: String = (0..BLOCKS).map(block).collect();
    let megabytes = text.len() as f64 / 1e6;
    let source = Source::new("large.alloy", text);
    bench.run("lang_parse", megabytes, || {
        black_box(parse(&source).1.has_errors());
    });
    let (file, _) = parse(&source);
    bench.run("lang_print", megabytes, || {
        black_box(printer::print(&file).len());
    });
}

fn block(index: usize) -> String {
    format!(
        "// Rule set {index}.\ndiscovery.relabel \"r{index}\" {{\n\ttargets = discovery.file.local.targets\n\n\trule {{\
         \n\t\taction        = \"replace\"\n\t\tsource_labels = [\"__address__\", \"service_name\"]\
         \n\t\ttarget_label  = \"label_{index}\"\n\t\treplacement   = string.format(\"%s-%d\", \"x\", {index})\n\t}}\
         \n}}\n"
    )
}
