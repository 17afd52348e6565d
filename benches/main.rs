//! Measures the functions that process profiles, and the parser of configurations: `cargo bench --no-default-features
//! --features agent`.
//!
//! Rates are MB (10^6 bytes) per second: of uncompressed pprof, or of the text or file that the function reads instead.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

mod lang;
mod measure;

use std::hint::black_box;

use alluvium_profile::delta::{Delta, cumulative_types};
use alluvium_profile::flamegraph::{SvgOptions, Tree, svg};
use alluvium_profile::jfr::{Recording, RecordingFacts};
use alluvium_profile::pprof::{self, Profile, SampleLabel};
use alluvium_profile::selector;
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};

use crate::measure::Bench;

/// Reads the recording that `ALLUVIUM_BENCH_JFR` names. By default, builds a recording of many small chunks, which
/// contain mostly metadata.
fn recording() -> Vec<u8> {
    let named = std::env::var_os("ALLUVIUM_BENCH_JFR").and_then(|path| std::fs::read(path).ok());
    named.unwrap_or_else(|| include_bytes!("../integration/fixtures/jfr/small.jfr").repeat(200))
}

fn main() {
    let bench = Bench::of_arguments();
    lang::run(&bench);
    let shape = Shape::default();
    let names = Names::new(shape.functions);
    let profile = cpu_profile(&names, shape, 1);
    let bytes = pprof::encode(&profile);
    let packed = bytes::Bytes::from(pprof::gzip(&bytes));
    let megabytes = bytes.len() as f64 / 1e6;

    bench.run("pprof_gunzip", megabytes, || {
        black_box(pprof::gunzip(&packed, bytes.len()).is_ok());
    });
    bench.run("pprof_decode", megabytes, || {
        black_box(pprof::decode(&bytes).is_ok());
    });
    bench.run("pprof_stack_ids", megabytes, || {
        black_box(pprof::stack_ids(&profile));
    });
    bench.run("pprof_gunzip_decode_stack_ids", megabytes, || {
        black_box(ingest(&packed, bytes.len()));
    });
    bench.run("pprof_encode", megabytes, || {
        black_box(pprof::encode(&profile));
    });
    bench.run("pprof_gzip", megabytes, || {
        black_box(pprof::gzip(&bytes));
    });
    let recording = recording();
    bench.run("jfr_profiles", recording.len() as f64 / 1e6, || {
        let about = RecordingFacts {
            time_nanos: 0,
            duration_nanos: 0,
            period_nanos: 10_000_000,
        };
        let read = Recording::read(&recording, &[]);
        black_box(read.is_ok_and(|recording| !recording.profiles(&about).is_empty()));
    });
    bench.run("tree_insert_profile", megabytes, || {
        let mut tree = Tree::by_file();
        tree.insert_profile(&profile, 1);
        black_box(tree.total());
    });
    let mut tree = Tree::by_file();
    tree.insert_profile(&profile, 1);
    bench.run("tree_to_flamegraph", megabytes, || {
        black_box(tree.to_flamegraph(8192));
    });
    let graph = tree.to_flamegraph(8192);
    bench.run("flamegraph_svg", megabytes, || {
        black_box(svg(&graph, &SvgOptions::default()).len());
    });
    let heap = heap(&profile);
    let cumulative = cumulative_types("memory", &heap.sample_types);
    let mut delta = Delta::new();
    bench.run("delta_next", megabytes, || {
        black_box(delta.next(&heap, &cumulative));
    });
    let text = r#"{service_name="shop", region=~"eu-.*", pod!~"canary|test"}"#;
    bench.run("selector_parse", text.len() as f64 / 1e6, || {
        black_box(selector::parse(text).is_ok());
    });
}

/// Does everything that an ingest does before the store: decompress, decode, identify stacks.
fn ingest(packed: &bytes::Bytes, limit: usize) -> Option<u64> {
    let plain = pprof::gunzip(packed, limit).ok()?;
    let profile = pprof::decode(&plain).ok()?;
    pprof::stack_ids(&profile).last().copied()
}

/// Returns the profile with the sample types and labels of a heap profile.
fn heap<'a>(profile: &Profile<'a>) -> Profile<'a> {
    let mut heap = profile.clone();
    for (value_type, kind) in heap.sample_types.iter_mut().zip(["alloc_objects", "alloc_space"]) {
        value_type.kind = kind;
    }
    for (index, label) in heap.labels.iter_mut().enumerate() {
        *label = SampleLabel::Number("bytes", (index as i64 % 7) * 16, "bytes");
    }
    heap
}
