//! The eBPF profiler against programs whose behaviour is known, and the compiled BPF program against its sources.
//!
//! In: C programs compiled here by gcc. The claims are statistical: with ten thousand samples, three standard
//! deviations of a share of one half are 1.5 points. A recording with too few samples proves nothing and is repeated.
//! `make test` runs these recordings after all other tests, one at a time. The tests need root, or the capabilities
//! that `alluvium record` names.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use crate::program::{alone, insist, other};

/// Maximum share of the CPU time that may be missing because of missed or lost ticks, even if more ticks were missed.
const EXCUSED: f64 = 0.12;
/// Maximum ratio of sampled to used time. The ratio exceeds 1 if ticks come late and count for a program that did not
/// use the time.
const MOST: f64 = 1.06;
/// Number of samples that a claim about shares requires.
const SAMPLES: u64 = 9_000;

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

/// Compiles `shares.c` with these flags.
fn shares(folder: &Path, flags: &[&str]) -> PathBuf {
    compile(folder, "shares", flags)
}

/// Compiles a program of `fixtures/ebpf` with these flags.
pub(crate) fn compile(folder: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let program = folder.join(name);
    let status = Command::new("gcc")
        .args(flags)
        .arg("-o")
        .arg(&program)
        .arg(root().join(format!("integration/fixtures/ebpf/{name}.c")))
        .status()
        .unwrap();
    assert!(status.success(), "gcc failed");
    program
}

/// Recording of one run of a test program.
struct Recorded {
    /// Stacks, root first, with their nanoseconds.
    stacks: Vec<(Vec<String>, u64)>,
    /// Values that the program reports about itself.
    truth: BTreeMap<String, u64>,
    summary: String,
}

fn record(program: &Path, hertz: u32, arguments: &[&str]) -> Recorded {
    let command: Vec<&str> = std::iter::once(program.to_str().unwrap())
        .chain(arguments.iter().copied())
        .collect();
    record_with(program.parent().unwrap(), &["-F", &hertz.to_string()], &command)
}

/// Records a command with these flags. The values that the command reports are summed by name.
fn record_with(folder: &Path, flags: &[&str], command: &[&str]) -> Recorded {
    let _alone = alone();
    let output = folder.join("out.folded");
    let done = Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(["record", "--top", "0", "-o"])
        .arg(&output)
        .args(flags)
        .arg("--")
        .args(command)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let summary = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{summary}");
    let number = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse::<u64>().unwrap())
    };
    let mut truth = BTreeMap::new();
    for (name, value) in String::from_utf8_lossy(&done.stdout).lines().map(number) {
        *truth.entry(name).or_default() += value;
    }
    Recorded {
        stacks: std::fs::read_to_string(output)
            .unwrap()
            .lines()
            .map(number)
            .map(|(stack, value)| (stack.split(';').map(str::to_owned).collect(), value))
            .collect(),
        truth,
        summary,
    }
}

impl Recorded {
    /// Returns the nanoseconds of the stacks for which `is_so` returns true.
    fn sum(&self, is_so: impl Fn(&[String]) -> bool) -> u64 {
        let chosen = self.stacks.iter().filter(|(stack, _)| is_so(stack));
        chosen.map(|(_, value)| value).sum()
    }

    /// Returns the nanoseconds of the stacks that contain a function.
    fn of(&self, function: &str) -> u64 {
        self.sum(|stack| stack.iter().any(|name| name == function))
    }

    /// Returns the nanoseconds of the processes with this name.
    fn of_process(&self, name: &str) -> u64 {
        self.sum(|stack| stack.first().is_some_and(|root| root == name))
    }

    /// Parses the numbers of ticks in the summary: samples, due, lost, idle, of other processes, missed.
    fn balance(&self) -> [u64; 6] {
        let line = self
            .summary
            .lines()
            .find(|line| line.contains(" samples of "))
            .unwrap_or_else(|| panic!("no account of ticks in\n{}", self.summary));
        let number = |after: &str, before: &str| -> u64 {
            let rest = line.split_once(after).map_or(line, |(_, rest)| rest);
            rest.split_once(before)
                .unwrap()
                .0
                .parse()
                .unwrap_or_else(|_| panic!("{line}"))
        };
        [
            number("\0", " samples of "),
            number(" samples of ", " ticks in "),
            number(" s, ", " lost, "),
            number(" lost, ", " idle, "),
            number(" idle, ", " of other processes, "),
            number(" of other processes, ", " missed; "),
        ]
    }

    /// Returns the missed and lost ticks as a share of the used time. On a busy machine, all of these ticks may belong
    /// to the program. They are not an error.
    fn unseen(&self, hertz: u32, used: u64) -> f64 {
        let [_, _, lost, _, _, missed] = self.balance();
        (lost + missed) as f64 * 1e9 / f64::from(hertz) / used as f64
    }

    /// Checks that `sampled` matches the used CPU time. If no tick was missed or lost, at least the share `least`
    /// must be sampled.
    fn check_time(&self, sampled: u64, used: u64, hertz: u32, least: f64) -> Result<(), String> {
        let ratio = sampled as f64 / used as f64;
        let least = least - self.unseen(hertz, used).min(EXCUSED);
        println!("sampled {ratio:.4} of the CPU time; {}", self.summary.trim());
        if (least..MOST).contains(&ratio) {
            return Ok(());
        }
        Err(format!(
            "{ratio:.4} of the CPU time was sampled, not {least:.4} to {MOST}\n{}",
            self.summary
        ))
    }

    fn check_shares(&self, hertz: u32) -> Result<(), String> {
        let functions = ["half", "third", "fifth"];
        let sampled: u64 = functions.iter().map(|name| self.of(name)).sum();
        let truth: u64 = functions.iter().map(|name| self.truth[*name]).sum();
        let samples = sampled * u64::from(hertz) / 1_000_000_000;
        if samples < SAMPLES {
            return Err(format!("{samples} samples are too few for the claim\n{}", self.summary));
        }
        for name in functions {
            let found = self.of(name) as f64 / sampled as f64 * 100.0;
            let true_share = self.truth[name] as f64 / truth as f64 * 100.0;
            println!("{name}: {found:.2} % sampled, {true_share:.2} % true");
            if (found - true_share).abs() > 1.5 {
                return Err(format!("{name}: {found:.2} % sampled, {true_share:.2} % true"));
            }
        }
        self.check_time(self.of("main"), self.truth["process"], hertz, 0.97)
    }
}

#[test]
fn a_recording_that_missed_most_ticks_shows_nothing() {
    let second = 1_000_000_000;
    let recorded = |seconds: u64, missed: u64| Recorded {
        stacks: [("half", 5), ("third", 3), ("fifth", 2)]
            .map(|(name, tenths)| (vec!["main".to_owned(), name.to_owned()], seconds * tenths * second / 10))
            .to_vec(),
        truth: [("half", 5), ("third", 3), ("fifth", 2), ("process", 10)]
            .map(|(name, seconds)| (name.to_owned(), seconds * second))
            .into(),
        summary: format!(
            "{seconds}000 samples of 20000 ticks in 10.0 s, 0 lost, 10000 idle, 0 of other processes, \
             {missed} missed; 0 with"
        ),
    };
    assert_eq!(recorded(10, 0).check_shares(1000), Ok(()));
    // Missed ticks excuse missing time, but at most the share `EXCUSED` of the used CPU time.
    assert_eq!(recorded(9, 1000).check_shares(1000), Ok(()));
    assert!(recorded(9, 0).check_shares(1000).is_err());
    let few = recorded(7, 3000).check_shares(1000).unwrap_err();
    assert!(few.contains("too few"), "{few}");
    let none = recorded(0, 10_000).check_shares(1000).unwrap_err();
    assert!(none.contains("0 samples are too few"), "{none}");
    let time = recorded(7, 3000)
        .check_time(7 * second, 10 * second, 1000, 0.97)
        .unwrap_err();
    assert!(
        time.contains("0.7000 of the CPU time was sampled, not 0.8500"),
        "{time}"
    );
}

#[test]
fn shares_of_a_program_without_frame_pointers_are_true_and_no_time_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let program = shares(folder.path(), &["-O2", "-fomit-frame-pointer"]);
    insist(
        || record(&program, 997, &["10.5"]),
        |recorded| recorded.check_shares(997),
    );
}

#[test]
fn a_recursion_of_five_hundred_calls_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let program = shares(folder.path(), &["-O1", "-fomit-frame-pointer"]);
    insist(
        || record(&program, 499, &["3", "500"]),
        |recorded| {
            let is_whole = |stack: &[String]| {
                stack.iter().any(|name| name == "_start")
                    && stack.iter().filter(|name| *name == "descend").count() == 501
            };
            let work = recorded.of("work");
            recorded.check_time(work, recorded.truth["process"], 499, 0.95)?;
            let share = recorded.sum(is_whole) as f64 / work as f64;
            println!("{share:.4} of the stacks are complete; {}", recorded.summary.trim());
            // Samples taken before the unwind table exists contain only the part of the stack that is copied.
            if share > 0.8 {
                return Ok(());
            }
            Err(format!("{share} of the stacks are complete"))
        },
    );
}

/// This test is only for x86-64: on 64-bit Arm, no rule describes frames of this size without a frame pointer.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_frame_of_600_000_bytes_is_walked_over() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "frames", &["-O1", "-fomit-frame-pointer", "-DLARGEST"]);
    insist(
        // The frames that `frame_largest` calls take more than 16 KiB: 800 recursive calls of 16 bytes each, and three
        // frames of together 7,000 bytes. Until the unwind tables exist, the profiler copies only the top of the stack,
        // and this copy does not reach the large frame.
        || record(&program, 499, &["6", "800"]),
        |recorded| {
            let large = recorded.of("frame_largest");
            let is_whole = |stack: &[String]| {
                ["frame_largest", "_start"]
                    .iter()
                    .all(|name| stack.contains(&(*name).to_owned()))
            };
            let whole = recorded.sum(is_whole);
            println!("{whole} of {large} ns end at _start; {}", recorded.summary.trim());
            // 100 ms are about fifty ticks.
            if large >= 100_000_000 && whole as f64 >= 0.99 * large as f64 {
                return Ok(());
            }
            Err(format!(
                "{whole} of {large} ns of stacks with the large frame end at _start"
            ))
        },
    );
}

#[test]
fn perf_events_alone_see_the_same_shares() {
    let folder = tempfile::tempdir().unwrap();
    let program = shares(folder.path(), &["-O2", "-fomit-frame-pointer"]);
    let command = [program.to_str().unwrap(), "10.5"];
    insist(
        || record_with(folder.path(), &["-F", "997", "--no-bpf"], &command),
        |recorded| recorded.check_shares(997),
    );
}

#[test]
fn every_due_tick_of_one_and_of_two_busy_threads_is_in_one_account() {
    let folder = tempfile::tempdir().unwrap();
    let program = shares(folder.path(), &["-O2"]);
    let program = program.to_str().unwrap();
    for script in ["$0 10.5", "$0 6 & $0 6; wait"] {
        insist(
            || record_with(folder.path(), &["-F", "997"], &["sh", "-c", script, program]),
            |recorded| {
                let [samples, due, lost, idle, others, missed] = recorded.balance();
                println!("{script}: {}", recorded.summary.trim());
                assert_eq!(samples + lost + idle + others + missed, due, "{}", recorded.summary);
                recorded.check_time(recorded.of_process("shares"), recorded.truth["process"], 997, 0.98)
            },
        );
    }
}

#[test]
fn a_cpu_budget_lowers_the_rate_and_the_weights_stay_true() {
    let folder = tempfile::tempdir().unwrap();
    let program = shares(folder.path(), &["-O2"]);
    let flags = ["-F", "4999", "--cpu-budget", "0.2"];
    let recorded = record_with(folder.path(), &flags, &[program.to_str().unwrap(), "8"]);
    assert!(
        recorded.summary.contains("frequency lowered from 4999"),
        "{}",
        recorded.summary
    );
    let ratio = recorded.of_process("shares") as f64 / recorded.truth["process"] as f64;
    println!("{ratio:.4} of the CPU time; {}", recorded.summary.trim());
    // At the lowered rate, a busy machine yields only about a hundred samples. If each sample had the weight of the
    // original rate, the ratio would be about a tenth.
    assert!((0.4..1.6).contains(&ratio), "{ratio}\n{}", recorded.summary);
}

#[test]
fn the_time_of_programs_that_live_fifty_milliseconds_is_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let program = shares(folder.path(), &["-O2"]);
    for index in 0..20 {
        std::fs::copy(&program, folder.path().join(format!("short{index}"))).unwrap();
    }
    let churn = compile(folder.path(), "churn", &["-O1"]);
    let prefix = folder.path().join("short");
    let command = [
        churn.to_str().unwrap(),
        "10",
        "1",
        prefix.to_str().unwrap(),
        "20",
        "0.05",
    ];
    insist(
        || record_with(folder.path(), &["-F", "997"], &command),
        |recorded| {
            let sum = |is_it: &dyn Fn(&[String]) -> bool| -> u64 {
                let found = recorded.stacks.iter().filter(|(stack, _)| is_it(stack));
                found.map(|(_, value)| value).sum()
            };
            let is_short = |stack: &[String]| stack.first().is_some_and(|root| root.starts_with("short"));
            let short = sum(&is_short);
            let whole =
                sum(&|stack| is_short(stack) && stack.iter().any(|name| name == "_start")) as f64 / short as f64;
            println!("{whole:.4} of the short programs' time has complete stacks");
            recorded.check_time(short, recorded.truth["children"], 997, 0.95)?;
            if whole >= 0.85 {
                return Ok(());
            }
            Err(format!("{whole} of the short programs' time has complete stacks"))
        },
    );
}

#[test]
fn a_process_with_ten_thousand_mappings_is_profiled_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "maps", &["-O2"]);
    insist(
        || record(&program, 499, &["20000", "3"]),
        |recorded| {
            assert_eq!(recorded.truth["made"], 20_000);
            // Outside of `burn`, the program spends its time on making the mappings.
            recorded.check_time(recorded.of("burn"), recorded.truth["process"], 499, 0.8)
        },
    );
}

/// Runs a tool of binutils, which is installed wherever gcc is.
fn tool(name: &str, arguments: &[&str], paths: &[&Path]) {
    let done = Command::new(name).args(arguments).args(paths).status().unwrap();
    assert!(done.success(), "{name} {arguments:?} failed");
}

#[test]
fn names_of_a_stripped_program_come_from_its_debug_file_or_from_what_is_packed_in_it() {
    let folder = tempfile::tempdir().unwrap();
    // Without a build id, the checksum identifies the debug file.
    for (name, flag) in [
        ("by-id", "-Wl,--build-id"),
        ("by-sum", "-Wl,--build-id=none"),
        ("packed", "-Wl,--build-id"),
    ] {
        let folder = folder.path().join(name);
        std::fs::create_dir_all(folder.join(".debug")).unwrap();
        let program = shares(&folder, &["-O2", "-fomit-frame-pointer", flag]);
        let debug = folder.join(".debug/shares.debug");
        tool("objcopy", &["--only-keep-debug"], &[&program, &debug]);
        tool("objcopy", &["--strip-all"], &[&program]);
        if name == "packed" {
            let packed = folder.join("packed.xz");
            let mut bytes = Vec::new();
            liblzma::read::XzEncoder::new(std::fs::File::open(&debug).unwrap(), 6)
                .read_to_end(&mut bytes)
                .unwrap();
            std::fs::write(&packed, bytes).unwrap();
            std::fs::remove_file(&debug).unwrap();
            let section = format!(".gnu_debugdata={}", packed.display());
            tool("objcopy", &["--add-section", &section], &[&program]);
        } else {
            let link = format!("--add-gnu-debuglink={}", debug.display());
            tool("objcopy", &[&link], &[&program]);
        }
        insist(
            || record(&program, 499, &["1"]),
            |recorded| {
                let missing: Vec<&str> = ["half", "third", "fifth", "work", "main"]
                    .into_iter()
                    .filter(|name| recorded.of(name) == 0)
                    .collect();
                if missing.is_empty() {
                    return Ok(());
                }
                Err(format!("{name}: no {missing:?} in {:?}", recorded.stacks))
            },
        );
    }
}
