//! Alluvium's reports against `go tool pprof`: `top`, `tree`, `peek` and `list` of ten profiles, byte for byte.
//!
//! In: the profiles under `fixtures/pprof`, and synthetic profiles, one of them with drop_frames. If `go` is not on the
//! path, the test prints a line and is skipped; if `CI` is set, it fails.

use std::path::Path;
use std::process::Command;

use alluvium_base::re2::Expression;
use alluvium_profile::pprof::{self, Profile};
use alluvium_profile::report::{Focus, Grouping, Options, Order, Report, Trim};
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};

use crate::program::other;
use crate::tidy::root;

/// Files and sample types of the fixtures.
const FIXTURES: [(&str, &str); 7] = [
    ("go-cpu", "cpu"),
    ("go-cpu", "samples"),
    ("go-allocs", "alloc_space"),
    ("go-allocs-later", "alloc_objects"),
    ("go-mutex", "delay"),
    ("go-block", "contentions"),
    ("go-goroutine", "goroutine"),
];

/// Form of a report of a profile.
#[derive(Clone, Copy)]
enum Form {
    Top,
    Tree,
    Peek(&'static str),
    /// A listing of source lines. The test runs `alluvium list` for it. Contains the arguments after `list`.
    List(&'static [&'static str]),
}

/// A call of `go tool pprof`, and Alluvium's equivalent.
struct Call {
    flags: &'static [&'static str],
    form: Form,
    options: Options,
}

fn call(flags: &'static [&'static str], form: Form, options: Options) -> Call {
    Call { flags, form, options }
}

fn calls() -> Vec<Call> {
    let regex = |text: &str| Some(Expression::search(text).unwrap());
    let options = |trim| Options {
        grouping: Grouping::Functions,
        order: Order::Flat,
        trim,
        focus: Focus::default(),
        unit: None,
    };
    let focus = Focus {
        focus: regex("main|sort"),
        ignore: regex("fib.*i"),
    };
    let few = Trim {
        node_count: Some(7),
        ..Trim::TOP
    };
    vec![
        call(&["-top"], Form::Top, options(Trim::TOP)),
        call(
            &["-top", "-cum", "-lines"],
            Form::Top,
            Options {
                order: Order::Cum,
                grouping: Grouping::Lines,
                ..options(Trim::TOP)
            },
        ),
        call(
            &["-top", "-filefunctions", "-focus=main|sort", "-ignore=fib.*i"],
            Form::Top,
            Options {
                grouping: Grouping::FileFunctions,
                focus: focus.clone(),
                ..options(Trim::TOP)
            },
        ),
        call(
            &["-top", "-addresses", "-nodecount=7", "-unit=us"],
            Form::Top,
            Options {
                grouping: Grouping::Addresses,
                unit: Some("us".to_owned()),
                ..options(few)
            },
        ),
        call(&["-tree"], Form::Tree, options(Trim::TREE)),
        call(
            &["-tree", "-nodecount=7", "-nodefraction=0.02", "-edgefraction=0.05"],
            Form::Tree,
            options(Trim {
                node_count: Some(7),
                node_fraction: 0.02,
                edge_fraction: 0.05,
            }),
        ),
        call(
            &["-tree", "-lines", "-focus=main|sort", "-ignore=fib.*i"],
            Form::Tree,
            Options {
                grouping: Grouping::Lines,
                focus,
                ..options(Trim::TREE)
            },
        ),
        call(&["-peek=main|runtime"], Form::Peek("main|runtime"), options(Trim::NONE)),
        list(&["-list=main\\."], &["main\\."]),
        list(
            &["-list=main|sort", "-source_path=integration/fixtures/pprof/busy"],
            &["main|sort", "--source-path", "integration/fixtures/pprof/busy"],
        ),
        list(
            &[
                "-list=main\\.",
                "-trim_path=/src:example.com/busy",
                "-source_path=/none:integration/fixtures/pprof/busy/none",
                "-unit=ms",
            ],
            &[
                "main\\.",
                "--trim-path",
                "/src:example.com/busy",
                "--source-path",
                "/none:integration/fixtures/pprof/busy/none",
                "--unit",
                "ms",
            ],
        ),
        list(
            &["-list=.", "-source_path=src", "-focus=main|sort", "-ignore=fib.*i"],
            &[
                ".",
                "--source-path",
                "src",
                "--focus",
                "main|sort",
                "--ignore",
                "fib.*i",
            ],
        ),
        list(&["-list=no such function"], &["no such function"]),
    ]
}

fn list(flags: &'static [&'static str], ours: &'static [&'static str]) -> Call {
    let options = Options {
        grouping: Grouping::Lines,
        order: Order::Flat,
        trim: Trim::NONE,
        focus: Focus::default(),
        unit: None,
    };
    call(flags, Form::List(ours), options)
}

/// Returns name, sample type and bytes of each profile.
fn profiles() -> Vec<(String, String, Vec<u8>)> {
    let mut profiles = Vec::new();
    for (name, sample_type) in FIXTURES {
        let path = root().join(format!("integration/fixtures/pprof/{name}.pb.gz"));
        profiles.push((name.to_owned(), sample_type.to_owned(), std::fs::read(path).unwrap()));
    }
    let names = Names::new(400);
    for (seed, samples, depth) in [(1, 40, 5), (2, 300, 30), (3, 900, 60)] {
        let shape = Shape {
            functions: 400,
            samples,
            depth,
            labelled_every: 10,
        };
        let mut profile = cpu_profile(&names, shape, seed);
        if seed == 2 {
            profile.drop_frames = "runtime.*";
            profile.keep_frames = ".*parse.*";
        }
        let bytes = pprof::gzip(&pprof::encode(&profile));
        profiles.push((format!("synthetic {seed}"), "cpu".to_owned(), bytes));
    }
    profiles
}

fn ours(path: &Path, profile: &Profile<'_>, sample_type: &str, call: &Call) -> String {
    let is_wanted = |kind: &pprof::ValueType<'_>| kind.kind == sample_type;
    let value = profile.sample_types.iter().position(is_wanted).unwrap();
    let report = Report::new(profile.clone(), value, &call.options);
    match call.form {
        Form::Top => report.top(),
        Form::Tree => report.tree(),
        Form::Peek(functions) => {
            let found = report.peek(&Expression::search(functions).unwrap());
            found.unwrap_or_else(|error| error.to_string())
        }
        Form::List(words) => listed(path, sample_type, words),
    }
}

/// Returns the output of `alluvium list`, or its error if it fails.
fn listed(path: &Path, sample_type: &str, words: &[&str]) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_alluvium"));
    program.arg("list").args(words).arg(sample_type).arg("--file").arg(path);
    let output = program.output().unwrap();
    if output.status.success() {
        return String::from_utf8(output.stdout).unwrap();
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    // The lines before the last one name the flags that matched nothing.
    let last = errors.trim_end().lines().last().unwrap_or_default();
    last.trim_start_matches("alluvium: error: ").to_owned()
}

/// Returns the output of `go tool pprof`, or its last line if it fails.
fn theirs(path: &Path, sample_type: &str, call: &Call) -> String {
    let output = Command::new("go")
        .args([
            "tool",
            "pprof",
            "-symbolize=none",
            &format!("-sample_index={sample_type}"),
        ])
        .args(call.flags)
        .arg(path)
        .env("TZ", "UTC")
        .output()
        .unwrap();
    if output.status.success() {
        return String::from_utf8(output.stdout).unwrap();
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    errors.trim_end().lines().last().unwrap_or_default().to_owned()
}

#[test]
fn reports_are_those_of_go_tool_pprof_to_the_byte() {
    if other("go", &["version"], "golang-go").is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("profile.pb.gz");
    let (mut different, mut compared) = (Vec::new(), 0);
    for (name, sample_type, bytes) in profiles() {
        std::fs::write(&path, &bytes).unwrap();
        let plain = pprof::gunzip(&bytes.into(), 64 << 20).unwrap();
        let profile = pprof::decode(&plain).unwrap();
        for call in calls() {
            let theirs = theirs(&path, &sample_type, &call);
            let ours = ours(&path, &profile, &sample_type, &call);
            compared += 1;
            if ours != theirs {
                different.push(format!(
                    "{name} {sample_type} {:?}:\n{}",
                    call.flags,
                    unlike(&ours, &theirs)
                ));
            }
        }
    }
    assert!(
        different.is_empty(),
        "{} of {compared}:\n{}",
        different.len(),
        different.join("\n")
    );
    assert_eq!(compared, 130);
}

/// Returns the number of lines of each report, and the first line that differs.
fn unlike(ours: &str, theirs: &str) -> String {
    let mut lines = ours.lines().zip(theirs.lines()).enumerate();
    let counts = format!("{} and {} lines", ours.lines().count(), theirs.lines().count());
    match lines.find(|(_, (ours, theirs))| ours != theirs) {
        Some((number, (ours, theirs))) => {
            format!("{counts}, line {}:\n  ours   `{ours}`\n  theirs `{theirs}`", number + 1)
        }
        None => counts,
    }
}
