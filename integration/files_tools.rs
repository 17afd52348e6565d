//! Files of real profilers: type, total, names and lines, compared with the profiler's own output or with another
//! reader of the same file. Then `alluvium upload` sends the files to a server, and its flame graphs must have the same
//! values.
//!
//! In: programs of `fixtures/files` and `fixtures/java`, profiled here. The modules `files_rbspy` and `files_samply`
//! test rbspy and samply. If a profiler is missing, the test prints a line and is skipped; if `CI` is set, it fails.
//! Some formats are written only by programs that no registry contains (dotnet-trace, Xcode). `src/wire/files` tests
//! these formats with files made from their descriptions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use alluvium_profile::pprof::{self, Profile};
use alluvium_wire::files::{self, FileFormat};
use serde_json::Value;

#[cfg(feature = "server")]
pub(crate) use crate::flames::uploaded;
use crate::java::busy;
use crate::pprof::{Table, ours, run_tool};
use crate::program::{PATIENCE, Program, alone, file_of, other};
use crate::tidy::root;

const MAX_BYTES: usize = 256 << 20;

/// Contents of a profile for one of its types.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Name, type and unit, separated by colons.
    pub(crate) kind: String,
    pub(crate) total: i64,
    /// Values by the function of the leaf. `cum` has the values by each function of the stack.
    pub(crate) flat: BTreeMap<String, i64>,
    pub(crate) cum: BTreeMap<String, i64>,
    /// `function file:line` of all frames, where `file` is the last part of the path.
    pub(crate) places: BTreeSet<String>,
}

impl Told {
    fn of(name: &str, profile: &Profile<'_>) -> Self {
        let kind = profile.sample_types[0];
        let mut told = Self {
            kind: format!("{name}:{}:{}", kind.kind, kind.unit),
            ..Self::default()
        };
        for sample in 0..profile.sample_count() {
            let value = profile.values_of(sample)[0];
            told.total += value;
            let locations = profile.stack(sample).iter();
            let lines = locations.flat_map(|location| profile.lines_of(&profile.locations[*location as usize]));
            let mut names = BTreeSet::new();
            for (depth, line) in lines.enumerate() {
                let function = profile.functions[line.function as usize];
                if depth == 0 {
                    *told.flat.entry(function.name.to_owned()).or_default() += value;
                }
                names.insert(function.name);
                let file = function.file.rsplit('/').next().unwrap();
                told.places.insert(format!("{} {file}:{}", function.name, line.line));
            }
            for name in names {
                *told.cum.entry(name.to_owned()).or_default() += value;
            }
        }
        told
    }

    /// Returns the values by function.
    pub(crate) fn table(&self) -> Table {
        let of = |name: &String| (self.flat.get(name).copied().unwrap_or_default(), self.cum[name]);
        self.cum.keys().map(|name| (name.clone(), of(name))).collect()
    }

    pub(crate) fn share(&self, function: &str) -> f64 {
        self.cum.get(function).copied().unwrap_or_default() as f64 / self.total as f64
    }
}

/// Uploads nothing, because this build has no server.
#[cfg(not(feature = "server"))]
pub(crate) fn uploaded(_: &[(&Path, &str, Table)]) {}

/// Reads the profiles of a file, which must have this format.
pub(crate) fn read(path: &Path, format: FileFormat) -> Vec<Told> {
    let content = std::fs::read(path).unwrap().into();
    let imported = files::read(&content, MAX_BYTES).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(imported.format, format);
    let profiles = imported.profiles.iter();
    profiles
        .map(|profile| Told::of(&profile.name, profile.columns.get()))
        .collect()
}

pub(crate) fn only(mut profiles: Vec<Told>) -> Told {
    assert_eq!(profiles.len(), 1, "{profiles:?}");
    profiles.remove(0)
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    root().join("integration/fixtures/files").join(name)
}

/// Runs a program that must succeed. Returns the text of both outputs (stdout and stderr).
pub(crate) fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// Returns the number after a word.
fn number_behind(text: &str, word: &str) -> i64 {
    let (_, rest) = text.split_once(word).unwrap_or_else(|| panic!("no `{word}` in {text}"));
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Returns the sum of the last words of all lines.
pub(crate) fn sum_of_lines(text: &str) -> i64 {
    let counts = text.lines().filter_map(|line| line.rsplit_once(' '));
    counts.map(|(_, count)| count.parse::<i64>().unwrap()).sum()
}

#[test]
fn py_spy_writes_three_formats_with_one_total() {
    let Some(program) = file_of("ALLUVIUM_PY_SPY", "py-spy") else {
        return;
    };
    let python = std::env::var("ALLUVIUM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let record = |format: &str| {
        let path = folder.path().join(format);
        let mut command = Command::new(&program);
        command.args(["record", "--rate", "100", "--format", format, "--output"]);
        command.arg(&path).args(["--", &python]).arg(fixture("burn.py"));
        let text = said(&mut command);
        (path, number_behind(&text, "Samples:"))
    };
    let claims = |told: &Told| {
        assert!(told.share("work") > 0.8, "{told:?}");
        let lines = (6..=8).map(|line| format!("work burn.py:{line}"));
        assert!(lines.into_iter().any(|place| told.places.contains(&place)), "{told:?}");
    };

    let (path, samples) = record("raw");
    let raw = only(read(&path, FileFormat::Collapsed));
    assert_eq!(raw.kind, "process_cpu:samples:count");
    assert_eq!(raw.total, sum_of_lines(&std::fs::read_to_string(&path).unwrap()));
    assert!(
        raw.total <= samples && raw.total > samples / 2,
        "{} of {samples}",
        raw.total
    );
    claims(&raw);

    let (path, samples) = record("speedscope");
    let speedscope = only(read(&path, FileFormat::Speedscope));
    assert_eq!(speedscope.kind, "process_cpu:cpu:nanoseconds");
    let written: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let part = |name: &str| written["profiles"][0][name].as_array().unwrap().iter();
    // When a thread begins or ends, the profiler records a sample without frames.
    let with_frames = part("samples").map(|stack| stack.as_array().is_some_and(|stack| !stack.is_empty()));
    let weights = part("weights").zip(with_frames).filter(|(_, is_wanted)| *is_wanted);
    let seconds: f64 = weights.map(|(weight, _)| weight.as_f64().unwrap()).sum();
    assert_eq!(speedscope.total, (seconds * 1e9).round() as i64);
    assert!(speedscope.total <= samples * 10_000_000, "{samples}: {speedscope:?}");
    claims(&speedscope);

    let (path, samples) = record("chrometrace");
    let trace = only(read(&path, FileFormat::ChromeTrace));
    assert_eq!(trace.kind, "wall:wall:nanoseconds");
    assert_eq!(trace.total, outermost_micros(&std::fs::read(&path).unwrap()) * 1000);
    assert!(trace.total > samples * 5_000_000, "{samples}: {trace:?}");
    claims(&trace);

    let files = [("raw", raw), ("speedscope", speedscope), ("chrometrace", trace)];
    let files = files.map(|(name, told)| (folder.path().join(name), told));
    uploaded(
        &files
            .each_ref()
            .map(|(path, told)| (path.as_path(), told.kind.as_str(), told.table())),
    );
}

/// Returns the time during which at least one call of a thread was open, summed over the threads of a trace.
fn outermost_micros(json: &[u8]) -> i64 {
    let events: Vec<Value> = serde_json::from_slice(json).unwrap();
    let mut open: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    let mut sum = 0;
    for event in events {
        let (depth, since) = open.entry(event["tid"].to_string()).or_default();
        let time = event["ts"].as_i64().unwrap_or_default();
        match event["ph"].as_str().unwrap() {
            "B" => {
                if *depth == 0 {
                    *since = time;
                }
                *depth += 1;
            }
            "E" => {
                *depth -= 1;
                if *depth == 0 {
                    sum += time - *since;
                }
            }
            _ => {}
        }
    }
    sum
}

/// Runs a Java virtual machine with async-profiler until the machine has used two seconds of CPU time. Returns the
/// profiler's file.
fn profiled(folder: &Path, options: &str, name: &str) -> Option<PathBuf> {
    let library = file_of("ALLUVIUM_ASYNC_PROFILER", "tools.profiler:async-profiler")?;
    let path = folder.join(name);
    let agent = format!(
        "-agentpath:{}=start,event=itimer,interval=10ms,{options}file={}",
        library.display(),
        path.display()
    );
    let mut java = busy(folder, &[&agent])?;
    until_burnt(&mut java, 200);
    java.terminate();
    Some(path)
}

/// Waits until a process has used this many hundredths of a second of CPU time.
fn until_burnt(program: &mut Program, ticks: u64) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        program.check();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", program.id())).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let used: u64 = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(|field| field.parse::<u64>().unwrap())
            .sum();
        if used >= ticks {
            return;
        }
        assert!(Instant::now() < deadline, "timed out\n{}", program.tail());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn async_profiler_writes_recordings_and_folded_stacks() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = profiled(folder.path(), "", "out.jfr") else {
        return;
    };
    let recording = read(&path, FileFormat::Jfr);
    let cpu = recording
        .iter()
        .find(|told| told.kind == "process_cpu:cpu:nanoseconds")
        .unwrap();
    assert!(cpu.cum["Busy.burn"] > 0 && cpu.share("Busy.main") > 0.5, "{cpu:?}");
    let summary = said(Command::new("jfr").arg("summary").arg(&path));
    let events = number_behind(&summary, "jdk.ExecutionSample");
    assert_eq!(cpu.total, events * 10_000_000);

    let recorded = path;
    let path = profiled(folder.path(), "collapsed,", "out.collapsed").unwrap();
    let folded = only(read(&path, FileFormat::Collapsed));
    assert_eq!(folded.kind, "process_cpu:samples:count");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(folded.total, sum_of_lines(&text));
    let with_burn: String = text
        .lines()
        .filter(|line| line.contains("Busy.burn"))
        .collect::<Vec<_>>()
        .join("\n");
    assert_eq!(folded.cum["Busy.burn"], sum_of_lines(&with_burn));
    uploaded(&[
        (&recorded, &cpu.kind, cpu.table()),
        (&path, &folded.kind, folded.table()),
    ]);
}

#[test]
fn perf_records_what_its_own_report_says() {
    let Some(perf) = other("perf", &["--version"], "linux-perf") else {
        return;
    };
    if other("gcc", &["--version"], "gcc").is_none() {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (program, data) = (folder.path().join("burn"), folder.path().join("perf.data"));
    let mut gcc = Command::new("gcc");
    // The program is compiled without optimisation, because an optimised `work` calls nothing and has no frame.
    gcc.args(["-O0", "-g", "-fno-omit-frame-pointer", "-o"]);
    said(gcc.arg(&program).arg(fixture("burn.c")));
    let mut record = Command::new(&perf);
    record.args([
        "record",
        "--quiet",
        "--event",
        "cpu-clock",
        "--freq",
        "199",
        "--call-graph",
        "fp",
        "--output",
    ]);
    said(record.arg(&data).arg("--").arg(&program));

    // `alluvium profile` runs `perf script` on the file, as `upload` does. The library cannot read `perf.data`.
    let out = folder.path().join("out.pb");
    let mut alluvium = Command::new(env!("CARGO_BIN_EXE_alluvium"));
    said(alluvium.args(["profile", "--file"]).arg(&data).arg("-o").arg(&out));
    let bytes = std::fs::read(&out).unwrap();
    let binary = Told::of("", &pprof::decode(&bytes).unwrap());
    let perf = |words: &[&str]| said(Command::new(&perf).args(words).arg("-i").arg(&data));
    let script = folder.path().join("perf.txt");
    std::fs::write(&script, perf(&["script", "--no-inline"])).unwrap();
    let text = only(read(&script, FileFormat::PerfScript));
    assert_eq!(text.kind, "process_cpu:cpu:nanoseconds");
    assert_eq!((text.total, &text.flat), (binary.total, &binary.flat));

    let report = perf(&[
        "report",
        "--stdio",
        "--no-children",
        "--call-graph",
        "none",
        "--fields",
        "period,sym",
    ]);
    assert_eq!(
        text.total,
        number_behind(&report, "# Event count (approx.):"),
        "{report}"
    );
    let line = report.lines().find(|line| line.trim_end().ends_with("] work")).unwrap();
    assert_eq!(text.flat["work"], number_behind(line, ""), "{report}");
    assert!(text.share("main") > 0.9 && text.share("burn") > 0.999, "{text:?}");
    uploaded(&[(&data, &text.kind, text.table()), (&script, &text.kind, text.table())]);
}

#[test]
fn gos_profiles_and_their_texts_say_what_its_tool_says() {
    let Some(go) = other("go", &["version"], "golang-go") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("burn");
    let mut build = Command::new(go);
    build
        .args(["build", "-buildvcs=false", "-o"])
        .arg(&program)
        .arg(fixture("burn.go"));
    said(&mut build);
    said(Command::new(&program).arg(folder.path()));
    let columns = |name: &str, format: FileFormat| {
        let content = std::fs::read(folder.path().join(name)).unwrap().into();
        let mut imported = files::read(&content, MAX_BYTES).unwrap();
        assert_eq!((imported.format, imported.profiles.len()), (format, 1), "{name}");
        imported.profiles.remove(0).columns
    };
    let mut uploads = Vec::new();
    for (name, kind, unit) in [
        ("cpu", "cpu", "ns"),
        ("heap", "inuse_space", "B"),
        ("heap", "alloc_objects", "count"),
        ("goroutine", "goroutine", "count"),
    ] {
        let file = format!("{name}.pb.gz");
        let binary = columns(&file, FileFormat::Pprof);
        let tool = run_tool(&folder.path().join(&file), kind, unit);
        assert_eq!(ours(binary.get(), kind), tool, "{file}");
        let written = match unit {
            "ns" => "nanoseconds",
            "B" => "bytes",
            other => other,
        };
        uploads.push((folder.path().join(&file), format!(":{kind}:{written}:"), tool.clone()));
        if name == "cpu" {
            assert!(2 * tool["main.work"].1 > tool["main.main"].1, "{tool:?}");
            continue;
        }
        let file = format!("{name}.txt");
        let text = columns(&file, FileFormat::GoText);
        let text = ours(text.get(), kind);
        let total = |table: &Table| table.values().map(|(flat, _)| flat).sum::<i64>();
        let tool = run_tool(&folder.path().join(&file), kind, unit);
        assert_eq!(total(&text), total(&tool), "{file} {kind}");
        let function = if name == "heap" { "main.main" } else { "main.wait" };
        assert!(text[function].1 > 0, "{text:?}");
    }
    let uploads: Vec<_> = uploads
        .iter()
        .map(|(path, kind, table)| (path.as_path(), kind.as_str(), table.clone()))
        .collect();
    uploaded(&uploads);
}

#[test]
fn a_profile_of_node_has_its_time_its_names_and_its_lines() {
    let Some(node) = other("node", &["--version"], "Node.js") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(node);
    command.args(["--cpu-prof", "--cpu-prof-name", "out.cpuprofile", "--cpu-prof-dir"]);
    said(command.arg(folder.path()).arg(fixture("burn.js")));
    let path = folder.path().join("out.cpuprofile");
    let told = only(read(&path, FileFormat::CpuProfile));
    assert_eq!(told.kind, "wall:wall:nanoseconds");
    let file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let number = |value: &Value| value.as_i64().unwrap();
    // The time from the first sample to the end of the profile. The total does not contain samples at the root, which
    // are in no function.
    let micros = number(&file["endTime"]) - number(&file["startTime"]) - number(&file["timeDeltas"][0]);
    let off = (told.total - micros * 1000).abs();
    assert!(off < 20_000_000, "{} of {micros} us", told.total);
    assert!(told.cum["work"] > 500_000_000, "{told:?}");
    assert!(told.places.contains("work burn.js:3"), "{:?}", told.places);
    uploaded(&[(&path, &told.kind, told.table())]);
}

/// Returns the time from the first to the last sample of each profile of a trace, in microseconds, by process and
/// profile id.
fn sampled_micros(json: &[u8]) -> BTreeMap<String, i64> {
    let trace: Value = serde_json::from_slice(json).unwrap();
    let mut deltas: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for event in trace["traceEvents"].as_array().unwrap() {
        if event["name"] == "ProfileChunk" {
            let of_chunk = event["args"]["data"]["timeDeltas"].as_array().into_iter().flatten();
            let key = format!("{} {}", event["pid"], event["id"]);
            deltas
                .entry(key)
                .or_default()
                .extend(of_chunk.filter_map(Value::as_i64));
        }
    }
    let sums = deltas
        .into_iter()
        .map(|(key, deltas)| (key, deltas.iter().skip(1).sum()));
    sums.collect()
}

#[test]
fn a_trace_of_chromium_has_the_profile_of_its_page() {
    let Some(chromium) = other("chromium", &["--version"], "chromium") else {
        return;
    };
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::copy(fixture("burn.js"), at("burn.js")).unwrap();
    std::fs::write(at("page.html"), "<script src=\"burn.js\"></script>").unwrap();
    let mut command = Command::new(chromium);
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--dump-dom",
        "--timeout=5000",
    ]);
    command.args([
        "--trace-startup=-*,disabled-by-default-v8.cpu_profiler",
        "--trace-startup-format=json",
    ]);
    command.arg("--trace-startup-duration=4");
    command.arg(format!("--trace-startup-file={}", at("trace.json")));
    command.arg(format!("--user-data-dir={}", at("profile")));
    said(command.arg(format!("file://{}", at("page.html"))));

    let path = folder.path().join("trace.json");
    let profiles = read(&path, FileFormat::ChromeTrace);
    let page = profiles.iter().find(|told| told.cum.contains_key("work"));
    let page = page.unwrap_or_else(|| panic!("{profiles:?}"));
    assert_eq!(page.kind, "wall:wall:nanoseconds");
    assert!(page.cum["work"] > 500_000_000, "{page:?}");
    assert!(page.places.contains("work burn.js:3"), "{:?}", page.places);
    let written = sampled_micros(&std::fs::read(&path).unwrap());
    let is_that = |micros: &i64| (page.total - micros * 1000).abs() < 50_000_000;
    assert!(written.values().any(is_that), "{} ns, {written:?}", page.total);
}
