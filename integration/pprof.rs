//! Alluvium's decoder, encoder and tables against Go's: for the same profile, both must report the same numbers for
//! every function.
//!
//! In: the profiles under `fixtures/pprof`, and the recorded output of `go tool pprof -top`. If `go` is on the path,
//! a test also runs the tool on these and other profiles after Alluvium has encoded them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use alluvium_profile::delta::{Delta, cumulative_types};
use alluvium_profile::flamegraph::Tree;
use alluvium_profile::pprof::{self, Profile};
use alluvium_profile::top::TopTable;
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use bytes::Bytes;

use crate::program::other;

/// Profile, sample type, and unit in the spelling of `go tool pprof`.
const CASES: [(&str, &str, &str); 5] = [
    ("go-cpu", "cpu", "ns"),
    ("go-allocs", "alloc_space", "B"),
    ("go-mutex", "delay", "ns"),
    ("go-block", "contentions", "count"),
    ("go-goroutine", "goroutine", "count"),
];

/// Flat and cumulative value by function.
pub(crate) type Table = BTreeMap<String, (i64, i64)>;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("integration/fixtures/pprof")
        .join(name)
}

fn open(name: &str) -> Bytes {
    let packed = std::fs::read(fixture(&format!("{name}.pb.gz"))).unwrap();
    pprof::gunzip(&packed.into(), 1 << 20).unwrap()
}

pub(crate) fn ours(profile: &Profile<'_>, sample_type: &str) -> Table {
    let is_wanted = |kind: &pprof::ValueType<'_>| kind.kind == sample_type;
    let index = profile.sample_types.iter().position(is_wanted).unwrap();
    let mut tree = Tree::by_name();
    tree.insert_profile(profile, index);
    TopTable::from_tree(&tree)
        .rows
        .into_iter()
        .map(|row| (row.name, (row.flat, row.cum)))
        .collect()
}

/// Parses the lines `flat flat% sum% cum cum% name` of `go tool pprof -top`. The tool adds ` (inline)` or
/// ` (partial-inline)` to the names of functions that were inlined everywhere or in some places.
fn theirs(text: &str) -> Table {
    let lines = text.lines().skip_while(|line| !line.trim_start().starts_with("flat "));
    let number = |cell: &str| -> i64 {
        let digits = cell.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        digits.parse().unwrap()
    };
    lines
        .skip(1)
        .map(|line| {
            let mut cells = line.split_whitespace();
            let mut cell = || cells.next().unwrap();
            let (flat, _, _, cum, _) = (cell(), cell(), cell(), cell(), cell());
            let name: Vec<&str> = cells.collect();
            let name = name.join(" ");
            let name = name.trim_end_matches(" (inline)").trim_end_matches(" (partial-inline)");
            (name.to_owned(), (number(flat), number(cum)))
        })
        .filter(|(_, values)| *values != (0, 0))
        .collect()
}

/// Returns the table of functions that `go tool pprof` prints for a profile.
pub(crate) fn run_tool(path: &Path, sample_type: &str, unit: &str) -> Table {
    let sample_index = format!("-sample_index={sample_type}");
    let unit = format!("-unit={unit}");
    let output = Command::new("go")
        .args(["tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0"])
        .args(["-edgefraction=0", "-symbolize=none", &sample_index, &unit])
        .arg(path)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    theirs(&String::from_utf8(output.stdout).unwrap())
}

#[test]
fn our_tables_are_those_that_go_printed() {
    for (name, sample_type, _) in CASES {
        let bytes = open(name);
        let captured = std::fs::read_to_string(fixture(&format!("{name}.{sample_type}.top.txt"))).unwrap();
        let captured = theirs(&captured);
        assert!(!captured.is_empty());
        assert_eq!(ours(&pprof::decode(&bytes).unwrap(), sample_type), captured, "{name}");
    }
}

#[test]
fn go_reads_what_we_write_and_finds_the_same() {
    if other("go", &["version"], "golang-go").is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("ours.pb.gz");
    let names = Names::new(500);
    let shape = Shape {
        functions: 500,
        samples: 300,
        ..Shape::default()
    };
    let synthetic = pprof::encode(&cpu_profile(&names, shape, 42));
    let mut profiles = vec![(Bytes::from(synthetic), "cpu", "ns")];
    for (name, sample_type, unit) in CASES {
        let bytes = open(name);
        let encoded = pprof::encode(&pprof::decode(&bytes).unwrap());
        profiles.push((encoded.into(), sample_type, unit));
    }
    profiles.push((difference().into(), "alloc_space", "B"));
    for (bytes, sample_type, unit) in profiles {
        std::fs::write(&path, pprof::gzip(&bytes)).unwrap();
        let table = run_tool(&path, sample_type, unit);
        assert_eq!(
            ours(&pprof::decode(&bytes).unwrap(), sample_type),
            table,
            "{sample_type}"
        );
    }
}

#[test]
fn the_difference_of_two_heap_profiles_is_what_was_allocated_between() {
    let total = |bytes: &[u8]| {
        let profile = pprof::decode(bytes).unwrap();
        let width = profile.sample_types.len();
        let sum = |index: usize| profile.values.chunks(width).map(|row| row[index]).sum::<i64>();
        [sum(0), sum(1), sum(2), sum(3)]
    };
    let (before, after) = (total(&open("go-allocs")), total(&open("go-allocs-later")));
    let difference = total(&difference());
    // The values of the two cumulative types are the differences. The values of the other types are those of the later
    // profile.
    assert_eq!(difference[..2], [after[0] - before[0], after[1] - before[1]]);
    assert_eq!(difference[2..], after[2..]);
    assert!(difference[1] > 0);
}

fn difference() -> Vec<u8> {
    let (before, after) = (open("go-allocs"), open("go-allocs-later"));
    let (before, after) = (pprof::decode(&before).unwrap(), pprof::decode(&after).unwrap());
    let cumulative = cumulative_types("memory", &before.sample_types);
    let mut delta = Delta::new();
    assert_eq!(delta.next(&before, &cumulative), None);
    delta.next(&after, &cumulative).unwrap()
}
