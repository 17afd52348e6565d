//! A file of samply: perf events record a program that alternately burns CPU and waits.
//!
//! Guarantee: the CPU time is the sum of the values in the file, as a separate JSON reader computes it, and about the
//! time that the program reports. Addresses belong to the program's functions in the symbol table. The test needs root.

use std::path::Path;
use std::process::Command;

use alluvium_profile::pprof;
use alluvium_wire::files::FileFormat;
use serde_json::Value;

use crate::files_tools::{fixture, only, read, said, uploaded};
use crate::program::{alone, file_of, other};

/// Shell script that mounts a file over the setting `perf_event_paranoid`, visible to samply only, and runs samply. The
/// file allows hardware events. Without the file, samply assumes on a machine without such events that the setting
/// forbids them.
const ALLOWED: &str = "mount --bind \"$1\" /proc/sys/kernel/perf_event_paranoid && shift && exec \"$@\"";

/// Returns the CPU time of all samples with a stack, in microseconds.
fn cpu_micros(json: &[u8]) -> i64 {
    let file: Value = serde_json::from_slice(json).unwrap();
    assert_eq!(file["meta"]["sampleUnits"]["threadCPUDelta"], "\u{b5}s");
    let threads = file["threads"].as_array().unwrap().iter();
    let samples = threads.map(|thread| {
        let column = |name: &str| thread["samples"][name].as_array().unwrap();
        let of_stacks = column("stack").iter().zip(column("threadCPUDelta"));
        let deltas = of_stacks.filter(|(stack, _)| !stack.is_null());
        deltas.filter_map(|(_, delta)| delta.as_i64()).sum::<i64>()
    });
    samples.sum()
}

/// Returns the address range of a function, from its first address to the one after its last.
fn addresses(program: &Path, function: &str) -> (u64, u64) {
    let symbols = said(Command::new("nm").arg("-S").arg(program));
    let line = symbols.lines().find(|line| line.ends_with(&format!(" T {function}")));
    let numbers: Vec<u64> = line
        .unwrap()
        .split(' ')
        .take(2)
        .map(|number| u64::from_str_radix(number, 16).unwrap())
        .collect();
    (numbers[0], numbers[0] + numbers[1])
}

#[test]
fn samply_tells_cpu_time_and_the_addresses_of_a_program() {
    let Some(samply) = file_of("ALLUVIUM_SAMPLY", "samply") else {
        return;
    };
    if other("gcc", &["--version"], "gcc").is_none() || other("unshare", &["-m", "true"], "util-linux").is_none() {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut gcc = Command::new("gcc");
    gcc.args(["-O0", "-g", "-fno-omit-frame-pointer", "-o"])
        .arg(at("turns"));
    said(gcc.arg(fixture("turns.c")));
    std::fs::write(at("allowed"), "1\n").unwrap();
    let mut record = Command::new("unshare");
    record
        .args(["-m", "sh", "-c", ALLOWED, "sh"])
        .arg(at("allowed"))
        .arg(samply);
    record.args(["record", "--save-only", "--no-open", "--rate", "500", "--output"]);
    let text = said(record.arg(at("turns.json.gz")).arg("--").arg(at("turns")));
    let (_, micros) = text.split_once("cpu ").unwrap_or_else(|| panic!("{text}"));
    let micros: i64 = micros.lines().next().unwrap().trim().parse().unwrap();

    let path = at("turns.json.gz");
    let told = only(read(&path, FileFormat::Firefox));
    assert_eq!(told.kind, "process_cpu:cpu:nanoseconds");
    let json = pprof::gunzip(&std::fs::read(&path).unwrap().into(), 64 << 20).unwrap();
    assert_eq!(told.total, cpu_micros(&json) * 1000);
    // The CPU time before the events are enabled, and the time after the last sample, are missing.
    assert!(
        told.total > micros * 700 && told.total < micros * 1100,
        "{} ns of {micros} us",
        told.total
    );
    assert_eq!(told.cum["turns"], told.total);
    let sum = |values: &std::collections::BTreeMap<String, i64>, function: &str| {
        let (first, behind) = addresses(&at("turns"), function);
        let of_function = values.iter().filter(|(name, _)| {
            let address = name.strip_prefix("turns+0x");
            let address = address.map(|address| u64::from_str_radix(address, 16).unwrap());
            address.is_some_and(|address| (first..behind).contains(&address))
        });
        of_function.map(|(_, value)| value).sum::<i64>()
    };
    assert!(sum(&told.flat, "work") * 10 > told.total * 9, "{told:?}");
    assert!(sum(&told.cum, "main") * 10 > told.total * 9, "{told:?}");
    uploaded(&[(&path, &told.kind, told.table())]);
}
