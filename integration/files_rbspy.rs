//! Files of rbspy: one recording of a Ruby program, in each format that rbspy reports.
//!
//! Guarantee: an imported file has the stacks, lines and totals of rbspy's raw file of the recording, and the shares
//! that rbspy prints. If a format is not supported, the error names it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use alluvium_profile::pprof;
use alluvium_wire::files::{self, FileFormat};
use serde_json::Value;

use crate::files_tools::{Told, fixture, only, read, said, sum_of_lines, uploaded};
use crate::program::{file_of, other};

/// Contents of the raw file, which has a line of JSON for each sample.
#[derive(Debug, Default)]
struct Raw {
    samples: i64,
    /// Nanoseconds from the first sample to the last one.
    nanos: i64,
    /// Number of samples by the function of the leaf.
    flat: BTreeMap<String, i64>,
    /// `function file:line` of all frames that have a line, where `file` is the last part of the path.
    places: BTreeSet<String>,
    /// The entries of `places`, except those that occur only in the first sample, whose duration is zero.
    timed: BTreeSet<String>,
    /// Like `places`, but made from absolute paths, as in folded stacks. Ruby's own functions have no absolute path.
    absolute: BTreeSet<String>,
}

impl Raw {
    fn read(path: &Path) -> Self {
        let plain = pprof::gunzip(&std::fs::read(path).unwrap().into(), 64 << 20).unwrap();
        let text = std::str::from_utf8(&plain).unwrap();
        let (mut raw, mut times) = (Self::default(), Vec::new());
        assert!(text.starts_with("rbspy02\n"), "{text:.40}");
        for line in text.lines().skip(2) {
            let sample: Value = serde_json::from_str(line).unwrap();
            let time = |part: &str| sample["time"][part].as_i64().unwrap();
            times.push(time("secs_since_epoch") * 1_000_000_000 + time("nanos_since_epoch"));
            let frames = sample["trace"].as_array().unwrap();
            raw.samples += 1;
            *raw.flat.entry(text_of(&frames[0]["name"])).or_default() += 1;
            for frame in frames {
                let Some(line) = frame["lineno"].as_i64() else { continue };
                let place = |path: &str| {
                    let file = path.rsplit('/').next().unwrap();
                    format!("{} {file}:{line}", text_of(&frame["name"]))
                };
                let relative = text_of(&frame["relative_path"]);
                raw.places.insert(place(&relative));
                if raw.samples > 1 {
                    raw.timed.insert(place(&relative));
                }
                raw.absolute
                    .insert(place(frame["absolute_path"].as_str().unwrap_or(&relative)));
            }
        }
        raw.nanos = times.last().unwrap() - times[0];
        raw
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Returns the places of a profile that have a line.
fn with_lines(told: &Told) -> BTreeSet<String> {
    let places = told.places.iter().filter(|place| !place.ends_with(":0"));
    places.cloned().collect()
}

#[test]
fn rbspy_reports_one_recording_in_formats_that_say_the_same() {
    let Some(rbspy) = file_of("ALLUVIUM_RBSPY", "rbspy") else {
        return;
    };
    let Some(ruby) = other("ruby", &["--version"], "Debian's package ruby") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut record = Command::new(&rbspy);
    record.args([
        "record",
        "--silent",
        "--no-drop-root",
        "--rate",
        "100",
        "--format",
        "collapsed",
    ]);
    record
        .arg("--raw-file")
        .arg(at("raw"))
        .arg("--file")
        .arg(at("recorded"));
    said(record.arg("--").arg(ruby).arg(fixture("burn.rb")));
    let raw = Raw::read(&at("raw"));
    assert!(raw.samples > 20, "{raw:?}");
    assert!(2 * raw.flat["work"] > raw.samples, "{raw:?}");
    let report = |format: &str| {
        let mut report = Command::new(&rbspy);
        report.args(["report", "--format", format, "--input"]).arg(at("raw"));
        said(report.arg("--output").arg(at(format)));
        at(format)
    };

    let path = report("collapsed");
    let collapsed = only(read(&path, FileFormat::Collapsed));
    assert_eq!(collapsed.kind, "process_cpu:samples:count");
    assert_eq!(collapsed.total, raw.samples);
    assert_eq!(collapsed.total, sum_of_lines(&std::fs::read_to_string(&path).unwrap()));
    assert_eq!(collapsed.flat, raw.flat);
    assert_eq!(with_lines(&collapsed), raw.absolute);

    let scopes = report("speedscope");
    let speedscope = only(read(&scopes, FileFormat::Speedscope));
    assert_eq!(speedscope.kind, "process_cpu:cpu:nanoseconds");
    // Each weight is rounded.
    let off = (speedscope.total - raw.nanos).abs();
    assert!(off <= raw.samples, "{} of {raw:?}", speedscope.total);
    assert_eq!(with_lines(&speedscope), raw.timed);

    let profile = report("pprof");
    let binary = only(read(&profile, FileFormat::Pprof));
    assert_eq!((binary.kind.as_str(), binary.total), (":wall:nanoseconds", raw.nanos));
    assert_eq!(with_lines(&binary), raw.places);
    uploaded(&[
        (&path, &collapsed.kind, collapsed.table()),
        (&scopes, &speedscope.kind, speedscope.table()),
        (&profile, &binary.kind, binary.table()),
    ]);

    // rbspy prints the own and total share of each line of a function, in percent with two digits.
    let summary = std::fs::read_to_string(report("summary")).unwrap();
    let work = summary.lines().filter(|line| line.contains("  work - "));
    let in_all = work.map(|line| line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap());
    let ours = 100.0 * collapsed.share("work");
    assert!((in_all.sum::<f64>() - ours).abs() < 0.1, "{ours}\n{summary}");

    for (path, expected) in [
        (
            report("callgrind"),
            "this is a file of callgrind, which is not supported",
        ),
        (at("raw"), "this is a raw file of rbspy, which is not supported"),
    ] {
        let error = files::read(&std::fs::read(path).unwrap().into(), 64 << 20).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
