//! Measures the cost of the engine: `cargo bench --no-default-features --features agent --bench engine`.
//!
//! The bench runs the release program. Arguments select measurements by name. Without arguments, all but the last are
//! made:
//!
//! - `binary`: the size of the program;
//! - `chain`: 3,000 chained `discovery.relabel` blocks (start to ready, reload, resident memory);
//! - `regex`: the same number of blocks, each with its own regular expression;
//! - `idle`: an idle collector with one component;
//! - `scrape` and `many`: collectors that scrape a hundred targets and two thousand targets;
//! - `pods`: a collector that discovers five thousand pods, while pods are created and deleted.
//!
//! Every result is a line of JSON on stdout; the bounds are in `benches/tables.py`. The environment variable `ALLUVIUM`
//! may name a different program to measure.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a bench prints its results, and a failure ends it"
)]

mod collector;
mod pods;
mod scrape;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use collector::Collector;
use pods::Cluster;
use scrape::Targets;

const LINKS: usize = 3000;
/// The first block. In [`regex`], all remaining blocks refer to it. In [`chain`], each block refers
/// to the previous block.
const FIRST: &str =
    "discovery.relabel \"r0\" {\n\ttargets = [{\"__address__\" = \"localhost:1\", \"job\" = \"a\"}]\n}\n";
/// Time to wait after the configuration was loaded. In this time, the collector releases memory that only loading
/// needs.
const SETTLED: Duration = Duration::from_secs(2);
/// Time for which the idle collector is observed.
const IDLE: Duration = Duration::from_secs(30);
/// Time for which the scraping collector runs before the measurement, and duration of the measurement. Each target is
/// scraped four times in each of the two periods.
const SCRAPING: Duration = Duration::from_mins(1);

/// Number of targets of the small fleet and of the large fleet.
const FEW: usize = 100;
const MANY: usize = 2000;

/// Measures one property of a program.
type Measure = fn(&Path);

fn main() {
    // `cargo bench` passes `--bench`; the other arguments select measurements.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let program = std::env::var_os("ALLUVIUM").map_or_else(|| env!("CARGO_BIN_EXE_alluvium").into(), PathBuf::from);
    let all: [(&str, Measure); 6] = [
        ("binary", binary),
        ("chain", chain),
        ("regex", regex),
        ("idle", idle),
        ("scrape", scrape),
        ("many", many),
    ];
    for (name, measure) in all {
        if chosen.is_empty() || chosen.iter().any(|word| word == name) {
            measure(&program);
        }
    }
    // `make bench-pods` is a bench of its own.
    if chosen.iter().any(|word| word == "pods") {
        pods(&program);
    }
}

/// Prints the values of a result.
fn figure(name: &str, values: &[f64]) {
    println!("{}", serde_json::json!({"mode": "engine", name: values}));
}

fn memory(name: &str, collector: &Collector) {
    let resident = collector.resident();
    figure(&format!("{name}_resident_mb"), &[resident.all]);
    figure(&format!("{name}_anon_mb"), &[resident.anon]);
    figure(&format!("{name}_file_mb"), &[resident.file]);
}

fn binary(program: &Path) {
    let megabytes = std::fs::metadata(program).unwrap().len() as f64 / 1e6;
    figure("binary_mb", &[megabytes]);
}

fn chain(program: &Path) {
    let mut text = FIRST.to_owned();
    for link in 1..LINKS {
        let _ = write!(
            text,
            "\ndiscovery.relabel \"r{link}\" {{\n\ttargets = discovery.relabel.r{}.output\n\n\trule {{\
             \n\t\tsource_labels = [\"job\"]\n\t\ttarget_label  = \"copy\"\n\t}}\n}}\n",
            link - 1
        );
    }
    let collector = started("chain", program, &text);
    let reloads: Vec<f64> = (0..11).map(|_| collector.reload()).collect();
    figure("chain_reload_seconds", &reloads);
    std::thread::sleep(SETTLED);
    memory("chain_reloaded", &collector);
    // In each of these reloads, one block in the middle differs, so the collector reads all blocks again.
    let changed = |turn| {
        let (before, after) = text.split_at(text.len() / 2);
        let other = format!("target_label  = \"turn{turn}\"");
        collector.write(&format!(
            "{before}{}",
            after.replacen("target_label  = \"copy\"", &other, 1)
        ));
        collector.reload()
    };
    figure(
        "chain_reload_one_changed_seconds",
        &(0..6).map(changed).collect::<Vec<_>>(),
    );
    std::thread::sleep(SETTLED);
    memory("chain_changed", &collector);
}

/// Measures the start and the memory with as many blocks as in [`chain`], each with its own regular expression.
fn regex(program: &Path) {
    let mut text = FIRST.to_owned();
    for link in 1..LINKS {
        let _ = write!(
            text,
            "\ndiscovery.relabel \"r{link}\" {{\n\ttargets = discovery.relabel.r0.output\n\n\trule {{\
             \n\t\tsource_labels = [\"job\"]\n\t\tregex         = \"(team-{link}|shop-[a-z]+)-(.+)-v[0-9]+\"\
             \n\t\ttarget_label  = \"team\"\n\t\treplacement   = \"$2\"\n\t}}\n}}\n"
        );
    }
    let collector = started("regex", program, &text);
    drop(collector);
}

/// Starts a collector five times. Prints the time of each start and the memory of the last collector, which continues
/// to run.
fn started(name: &str, program: &Path, text: &str) -> Collector {
    let ready: Vec<f64> = (0..4).map(|_| Collector::start(program, text).ready_after).collect();
    let collector = Collector::start(program, text);
    figure(
        &format!("{name}_ready_seconds"),
        &[ready, vec![collector.ready_after]].concat(),
    );
    std::thread::sleep(SETTLED);
    memory(name, &collector);
    collector
}

fn idle(program: &Path) {
    let text = "pyroscope.write \"a\" {\n\tendpoint {\n\t\turl = \"http://127.0.0.1:1\"\n\t}\n}\n";
    let collector = Collector::start(program, text);
    std::thread::sleep(SETTLED);
    figure("idle_cpu_percent", &[collector.cpu_percent(IDLE)]);
    memory("idle", &collector);
}

fn scrape(program: &Path) {
    let targets = Targets::start(FEW);
    let collector = Collector::start(program, &targets.config());
    std::thread::sleep(SCRAPING);
    let (scraped, pushed) = (targets.scraped(), targets.pushed());
    let mut percent = Vec::new();
    for _ in 0..4 {
        percent.push(collector.cpu_percent(SCRAPING / 4));
    }
    figure("scrape_cpu_percent", &percent);
    memory("scrape", &collector);
    figure("scrape_profiles_per_minute", &[(targets.scraped() - scraped) as f64]);
    figure(
        "scrape_pushed_mb_per_minute",
        &[(targets.pushed() - pushed) as f64 / 1e6],
    );
}

/// Scrapes two thousand targets. Measures CPU use, memory, and how far the intervals between scrapes deviate from the
/// configured interval.
fn many(program: &Path) {
    let targets = Targets::start(MANY);
    let collector = Collector::start(program, &targets.config());
    std::thread::sleep(SCRAPING);
    figure("many_cpu_percent", &[collector.cpu_percent(SCRAPING)]);
    memory("many", &collector);
    let jitter = targets.jitter();
    let at = |share: f64| jitter[((jitter.len() - 1) as f64 * share) as usize];
    figure("many_jitter_p50_seconds", &[at(0.5)]);
    figure("many_jitter_p99_seconds", &[at(0.99)]);
    figure("many_jitter_max_seconds", &[at(1.0)]);
    figure("many_scrapes", &[jitter.len() as f64]);
}

/// Discovers five thousand pods with the ten rules of the shipped configuration, and with two rules that keep all
/// targets. Fifty pods per second are created or deleted. Measures CPU use and memory.
fn pods(program: &Path) {
    let cluster = Cluster::start();
    let collector = Collector::start(program, &cluster.config());
    // After this time, the collector has read the first list, and the first pods have been created and deleted.
    std::thread::sleep(SCRAPING / 4);
    let changed = cluster.changed();
    let percent: Vec<f64> = (0..4).map(|_| collector.cpu_percent(SCRAPING / 4)).collect();
    figure("pods_cpu_percent", &percent);
    figure(
        "pods_changes_per_second",
        &[(cluster.changed() - changed) as f64 / SCRAPING.as_secs_f64()],
    );
    memory("pods", &collector);
    figure("pods_peak_mb", &[collector.resident().peak]);
    let metrics = collector.get("/metrics");
    let lines = metrics
        .lines()
        .filter(|line| !line.starts_with('#') && line.contains("discovery_targets"));
    let targets = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    figure("pods_targets", &[targets.sum()]);
}
