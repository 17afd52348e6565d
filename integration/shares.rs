//! Programs in many languages, all recorded at once: the share of CPU time that each function has in the recording is
//! its true share, and stacks are complete.
//!
//! In: sources in `fixtures/ebpf`, compiled here. Each program measures the CPU time of its own functions. The
//! claims are statistical: with ten thousand samples per program, three standard deviations of a share of one half are
//! 1.5 points. Shares are compared, never times, so a busy machine only takes longer. The programs work in pieces of
//! varying length, and each piece takes many ticks. If sampling ran in step with the pieces, or if the profiler's own
//! time were added to the wrong function, a share would move by more than chance explains. The tests need the
//! permissions that `alluvium record` needs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::program::{alone, insist, other};

/// Ticks per second of busy time. The number is large, so that few seconds are enough.
const HERTZ: u32 = 3499;
/// CPU seconds of a program with three functions.
const SECONDS: &str = "3.4";
/// Maximum difference between a recorded share and the true share in percentage points.
const POINTS: f64 = 1.5;
/// Like [`POINTS`], for processes that live for 20 and 50 ms. Stacks may be unknown during the first moments of a
/// process, which are a larger part of a shorter life.
const BRIEF_POINTS: f64 = 6.0;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("integration/fixtures/ebpf")
        .join(name)
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn compile(folder: &Path, name: &str, compiler: &str, flags: &[&str], file: &str) {
    run(Command::new(compiler)
        .args(flags)
        .arg("-o")
        .arg(folder.join(name))
        .arg(source(file)));
}

/// Recording of some programs.
struct Recorded {
    /// Stacks, root first, with their nanoseconds.
    stacks: Vec<(Vec<String>, u64)>,
    /// CPU time that the programs report for each of their functions.
    truth: BTreeMap<String, u64>,
    summary: String,
}

/// Shell functions. `rest` waits until the profiler, the parent of the shell, has been idle for a second, but at most a
/// minute. Idle means that its threads ran or waited for a CPU for less than half of the time
/// (`scheduler/sched-stats.rst` of Linux). The script uses only shell built-ins and `sleep`, so that the recording
/// contains few samples of the script.
const REST: &str = r#"
busy() {
    total=0
    for file in /proc/$PPID/task/*/schedstat; do
        read -r ran waited rounds < "$file" && total=$((total + ran + waited))
    done
}
rest() {
    sleep 1
    busy; rests=0; tries=0
    while [ $rests -lt 2 ] && [ $tries -lt 120 ]; do
        before=$total; tries=$((tries + 1)); rests=$((rests + 1))
        sleep 0.5
        busy
        [ $((total - before)) -lt 250000000 ] || rests=0
    done
}
"#;

/// Records two sequences of programs concurrently. Before that, each program of `first` runs for a moment, so that the
/// profiler creates the unwind tables, and the script waits until the profiler is idle. Otherwise, at the rate
/// [`HERTZ`], a debug build would lose stacks that wait for their unwind tables. The programs of `first` run twice:
/// with the tables of the first run, a stack reaches further, and may then need tables of further files.
fn record(folder: &Path, first: &[String], lanes: [&[String]; 2]) -> Recorded {
    let _alone = alone();
    let output = folder.join("out.folded");
    let lane = |programs: &[String]| format!("({}) &\n", programs.join(" && "));
    let warm = format!("({}) >/dev/null\nrest\n", first.join("; "));
    let script = format!(
        "cd '{}'\n{REST}{warm}{warm}{}{}wait\n",
        folder.display(),
        lane(lanes[0]),
        lane(lanes[1])
    );
    let done = Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(["record", "--top", "0", "-F", &HERTZ.to_string(), "-o"])
        .arg(&output)
        .args(["--", "sh", "-c", &script])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let summary = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{summary}");
    let number = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse::<u64>().unwrap())
    };
    let recorded = Recorded {
        stacks: std::fs::read_to_string(output)
            .unwrap()
            .lines()
            .map(number)
            .map(|(stack, value)| (stack.split(';').map(str::to_owned).collect(), value))
            .collect(),
        truth: String::from_utf8_lossy(&done.stdout).lines().map(number).collect(),
        summary,
    };
    println!("{}", recorded.summary.trim());
    recorded
}

impl Recorded {
    /// Returns the nanoseconds of the stacks of a program that contain a function. Both arguments may be parts of
    /// names.
    fn of(&self, program: &str, function: &str) -> u64 {
        self.stacks
            .iter()
            .filter(|(stack, _)| stack.first().is_some_and(|first| first.contains(program)))
            .filter(|(stack, _)| stack.iter().any(|name| name.contains(function)))
            .map(|(_, value)| value)
            .sum()
    }

    /// Compares the recorded shares of a program's functions with the true ones. `program` is a part of the name of the
    /// program, or empty for any program.
    fn check(&self, program: &str, functions: &[&str]) -> Result<(), String> {
        let sampled: u64 = functions.iter().map(|name| self.of(program, name)).sum();
        let truth: u64 = functions.iter().map(|name| self.truth[*name]).sum();
        let samples = sampled / (1_000_000_000 / u64::from(HERTZ));
        if samples < 9_000 {
            return Err(format!(
                "{program} {functions:?}: {samples} samples are too few to compare shares"
            ));
        }
        for name in functions {
            let found = self.of(program, name) as f64 / sampled as f64 * 100.0;
            let true_share = self.truth[*name] as f64 / truth as f64 * 100.0;
            println!("{program} {name}: {found:.2} % of {samples} samples, {true_share:.2} % true");
            let points = if program == "brief" { BRIEF_POINTS } else { POINTS };
            if (found - true_share).abs() > points {
                return Err(format!(
                    "{program} {name}: {found:.2} % sampled, {true_share:.2} % true"
                ));
            }
        }
        Ok(())
    }

    /// Returns the nanoseconds of stacks for which `is_it` is true.
    fn sum(&self, is_it: impl Fn(&[String]) -> bool) -> u64 {
        self.stacks
            .iter()
            .filter(|(stack, _)| is_it(stack))
            .map(|(_, value)| value)
            .sum()
    }

    /// Checks that at least this share of the samples is complete, according to the summary.
    fn check_whole(&self, part: f64) -> Result<(), String> {
        let before = |words: &str| {
            let (before, _) = self.summary.split_once(words).unwrap();
            before
                .rsplit([' ', ',', '\n'])
                .find_map(|word| word.parse::<f64>().ok())
                .unwrap()
        };
        let whole = 1.0 - before(" with an incomplete stack") / before(" samples of");
        if whole >= part {
            return Ok(());
        }
        Err(format!("only {whole:.4} of the stacks are complete"))
    }
}

#[test]
fn functions_of_compiled_programs_have_their_true_shares_and_stacks_are_whole() {
    if other("g++", &["--version"], "g++").is_none()
        || other("go", &["version"], "golang-go").is_none()
        || other("rustc", &["--version"], "Rust").is_none()
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    compile(folder, "framed", "gcc", &["-O2", "-fno-omit-frame-pointer"], "shares.c");
    compile(folder, "deep", "gcc", &["-O1", "-fomit-frame-pointer"], "shares.c");
    compile(
        folder,
        "faults",
        "g++",
        &["-O2", "-g", "-fomit-frame-pointer"],
        "faults.cc",
    );
    compile(folder, "threads", "gcc", &["-O2", "-pthread", "-ldl"], "threads.c");
    compile(folder, "loaded.so", "gcc", &["-O2", "-shared", "-fPIC"], "loaded.c");
    compile(folder, "brief", "gcc", &["-O2"], "brief.c");
    compile(folder, "release", "rustc", &["--edition", "2024", "-O"], "release.rs");
    for (name, flags) in [("gofull", ""), ("gobare", "-s -w")] {
        run(Command::new("go")
            .args(["build", "-buildvcs=false", "-ldflags", flags, "-o"])
            .arg(folder.join(name))
            .arg(".")
            .env("GOFLAGS", "-mod=mod")
            .env("GOTOOLCHAIN", "local")
            .current_dir(source("go")));
    }
    let lanes = [
        vec![
            format!("./framed {SECONDS} | sed 's/^/framed_/'"),
            format!("./faults {SECONDS}"),
            format!("./gobare {SECONDS} | sed 's/^main/gobare/'"),
            "./brief 50".to_owned(),
        ],
        vec![
            format!("./deep {SECONDS} 400 | sed 's/^/deep_/'"),
            format!("./release {SECONDS}"),
            "./threads 1.2 ./loaded.so".to_owned(),
            format!("./gofull {SECONDS} | sed 's/^main/gofull/'"),
        ],
    ];
    let first: Vec<String> = [
        "framed 0.004",
        "deep 0.004 400",
        "faults 0.004",
        "gobare 0.004",
        "gofull 0.004",
        "release 0.004",
        "threads 0.004 ./loaded.so",
    ]
    .map(|program| format!("./{program}"))
    .to_vec();
    insist(
        || record(folder, &first, [&lanes[0], &lanes[1]]),
        |recorded| {
            recorded.check("faults", &["faults_half", "faults_third", "faults_thrown"])?;
            recorded.check("release", &["rust_loop", "rust_map", "rust_sort"])?;
            recorded.check("threads", &["pool_work", "handler_work", "loaded_work"])?;
            recorded.check("brief", &["brief_long", "brief_short"])?;
            for (program, prefix, functions) in [
                ("framed", "framed_", ["half", "third", "fifth"]),
                ("deep", "deep_", ["half", "third", "fifth"]),
                ("gobare", "gobare.", ["goHalf", "goDeep", "goAllocate"]),
                ("gofull", "gofull.", ["goHalf", "goDeep", "goAllocate"]),
            ] {
                for name in functions {
                    let value = recorded.truth[&format!("{prefix}{name}")];
                    recorded.truth.insert(name.to_owned(), value);
                }
                recorded.check(program, &functions)?;
            }
            check_inlined(recorded)?;
            recorded.check_whole(0.995)
        },
    );
}

/// Checks that stacks contain the names of inlined functions, which come from DWARF and from Go's table, and that the
/// stacks of goroutines end at `runtime.goexit`.
fn check_inlined(recorded: &Recorded) -> Result<(), String> {
    let has = |stack: &[String], name: &str| stack.iter().any(|function| function.contains(name));
    let turned = recorded.sum(|stack| has(stack, "faults_half") && has(stack, "::turn"));
    let share = turned as f64 / recorded.of("faults", "faults_half") as f64;
    if share < 0.9 {
        return Err(format!(
            "only {share} of the time in faults_half has the inlined function `turn` on its stacks"
        ));
    }
    for program in ["gobare", "gofull"] {
        let names = [program, "main.goHalf", "main.inlined", "runtime.goexit"];
        let whole = recorded.sum(|stack| names.iter().all(|name| has(stack, name)));
        let share = whole as f64 / recorded.of(program, "main.goHalf") as f64;
        if share < 0.97 {
            return Err(format!(
                "{program}: only {share} of the time in main.goHalf has main.inlined and runtime.goexit on its stacks"
            ));
        }
    }
    Ok(())
}

#[test]
fn functions_that_are_compiled_at_run_time_have_their_true_shares() {
    if other("node", &["--version"], "nodejs").is_none()
        || other("javac", &["-version"], "default-jdk-headless").is_none()
        || other("java", &["-version"], "default-jdk-headless").is_none()
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(Command::new("javac").arg("-d").arg(folder).arg(source("Shares.java")));
    let flags = ["-O2", "-fomit-frame-pointer"];
    compile(folder, "trampolines", "gcc", &flags, "trampolines.c");
    let node = |seconds: &str| {
        format!(
            "node --perf-basic-prof --no-turbo-inlining --always-sparkplug '{}' {seconds}",
            source("script.js").display()
        )
    };
    let java = |seconds: &str| {
        format!(
            "java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit \
             -XX:CompileCommand=quiet \
             '-XX:CompileCommand=dontinline,Shares::*' -XX:+UseSerialGC -cp . Shares {seconds}"
        )
    };
    insist(
        || {
            record(
                folder,
                &[
                    "node -e 0".to_owned(),
                    "java -version 2>&1".to_owned(),
                    "./trampolines 0.004".to_owned(),
                ],
                [&[node(SECONDS), format!("./trampolines {SECONDS}")], &[java(SECONDS)]],
            )
        },
        |recorded| {
            recorded.check("", &["nodeHalf", "nodeThird", "nodeFifth"])?;
            recorded.check("", &["Shares.javaHalf", "Shares.javaThird", "Shares.javaFifth"])?;
            recorded.check("", &["trampolineHalf", "trampolineThird", "trampolineFifth"])?;
            // Pieces of code that create no frame must not end a stack.
            let names = [
                "_start",
                "main",
                "trampolineWork",
                "interpret",
                "trampolineHalf",
                "spin",
            ];
            let whole = recorded.sum(|stack| names.iter().all(|name| stack.iter().any(|function| function == name)));
            let share = whole as f64 / recorded.of("trampolines", "trampolineHalf") as f64;
            if share < 0.98 {
                return Err(format!(
                    "only {share} of the time in trampolineHalf has complete stacks"
                ));
            }
            // The chain of frame pointers breaks where Java calls native code without a frame: in two of a hundred
            // samples here.
            recorded.check_whole(0.95)
        },
    );
}
