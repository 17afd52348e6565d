//! The eBPF profiler against programs whose truth is known, and the compiled BPF program against its sources.
//!
//! In: C programs of ours, compiled here by gcc. The claims are statistical: ten thousand samples put three standard deviations of a share of one half at 1.5
//! points. Needs root, or the capabilities that `alluvium record` names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use crate::program::other;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_committed_objects_are_those_of_the_sources() {
    let folder = root().join("bpf");
    let manifest = std::fs::read_to_string(folder.join("out/MANIFEST")).unwrap();
    let mut files = 0;
    for line in manifest.lines() {
        let (expected, path) = line.split_once("  ").unwrap();
        let found: String = Sha256::digest(std::fs::read(folder.join(path)).unwrap())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(found, expected, "{path} changed: run `make -C bpf` and commit bpf/out");
        files += 1;
    }
    assert_eq!(files, 6);
}

#[test]
fn compiling_again_gives_the_same_objects() {
    let Some(_) = other("clang-19", &["--version"], "clang-19") else {
        return;
    };
    let Some(_) = other("llvm-strip-19", &["--version"], "llvm-19") else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let output = Command::new("make")
        .args(["--no-print-directory", "-C"])
        .arg(root().join("bpf"))
        .arg("check")
        .arg(format!("CHECK_OUT={}", scratch.path().display()))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Compiles the program with these flags.
fn shares(folder: &Path, flags: &[&str]) -> PathBuf {
    let program = folder.join("shares");
    let status = Command::new("gcc")
        .args(flags)
        .arg("-o")
        .arg(&program)
        .arg(root().join("integration/fixtures/ebpf/shares.c"))
        .status()
        .unwrap();
    assert!(status.success(), "gcc failed");
    program
}

/// What was recorded of a run of the program.
struct Recorded {
    /// Stacks, root first, with their nanoseconds.
    stacks: Vec<(Vec<String>, u64)>,
    /// What the program says of itself.
    truth: BTreeMap<String, u64>,
    summary: String,
}

fn record(program: &Path, hertz: u32, arguments: &[&str]) -> Recorded {
    let folder = program.parent().unwrap();
    let output = folder.join("out.folded");
    let done = Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(["record", "--top", "0", "-F", &hertz.to_string(), "-o"])
        .arg(&output)
        .arg("--")
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let summary = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{summary}");
    let number = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse::<u64>().unwrap())
    };
    Recorded {
        stacks: std::fs::read_to_string(output)
            .unwrap()
            .lines()
            .map(number)
            .map(|(stack, value)| (stack.split(';').map(str::to_owned).collect(), value))
            .collect(),
        truth: String::from_utf8_lossy(&done.stdout).lines().map(number).collect(),
        summary,
    }
}

impl Recorded {
    /// Nanoseconds of the stacks that a function is in.
    fn of(&self, function: &str) -> u64 {
        self.stacks
            .iter()
            .filter(|(stack, _)| stack.iter().any(|name| name == function))
            .map(|(_, value)| value)
            .sum()
    }

    fn check_shares(&self) {
        let functions = ["half", "third", "fifth"];
        let sampled: u64 = functions.iter().map(|name| self.of(name)).sum();
        let truth: u64 = functions.iter().map(|name| self.truth[*name]).sum();
        for name in functions {
            let found = self.of(name) as f64 / sampled as f64 * 100.0;
            let true_share = self.truth[name] as f64 / truth as f64 * 100.0;
            println!("{name}: {found:.2} % sampled, {true_share:.2} % true");
            assert!(
                (found - true_share).abs() <= 1.5,
                "{name}: {found:.2} % sampled, {true_share:.2} % true\n{}",
                self.summary
            );
        }
        let all: u64 = self.of("main");
        let process = self.truth["process"];
        let ratio = all as f64 / process as f64;
        println!("sampled {:.4} of the CPU time; {}", ratio, self.summary.trim());
        assert!(
            (0.97..1.03).contains(&ratio),
            "{ratio} of the CPU time is there\n{}",
            self.summary
        );
    }
}

#[test]
fn shares_of_a_program_without_frame_pointers_are_true_and_no_time_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let program = shares(folder.path(), &["-O2", "-fomit-frame-pointer"]);
    record(&program, 997, &["10.5"]).check_shares();
}

#[test]
fn a_recursion_of_five_hundred_calls_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let program = shares(folder.path(), &["-O1", "-fomit-frame-pointer"]);
    let recorded = record(&program, 499, &["2", "500"]);
    let whole: u64 = recorded
        .stacks
        .iter()
        .filter(|(stack, _)| {
            stack.iter().any(|name| name == "_start") && stack.iter().filter(|name| *name == "descend").count() == 501
        })
        .map(|(_, value)| value)
        .sum();
    let share = whole as f64 / recorded.of("work") as f64;
    assert!(share > 0.9, "{share} of the stacks are complete\n{}", recorded.summary);
}

#[test]
fn without_a_capability_the_command_says_which_one_and_writes_nothing() {
    let Some(_) = other("setpriv", &["--version"], "util-linux") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.pb.gz");
    let output = Command::new("setpriv")
        .args(["--bounding-set=-bpf,-sys_admin", "--"])
        .arg(env!("CARGO_BIN_EXE_alluvium"))
        .args(["record", "-o"])
        .arg(&file)
        .args(["--", "true"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("missing capability CAP_BPF"), "{text}");
    assert!(!file.exists());
}

#[test]
fn bad_requests_are_refused_in_one_line() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_alluvium"))
            .arg("record")
            .args(arguments)
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(run(&[]).contains("nothing to record"));
    assert!(run(&["--pid", "4194305"]).contains("there is no process 4194305"));
    assert!(run(&["-o", "x.txt", "--", "true"]).contains("cannot tell the format of x.txt"));
    assert!(run(&["--", "/no/such/program"]).contains("cannot start /no/such/program"));
}
