//! Tests with a small file of each format: detected format, type, unit, total, names and lines. Each of thousands
//! of mutated files results in a profile or an error.

use bytes::Bytes;

use crate::files::synthetic::files;
use crate::files::synthetic::stacks::TICK_NANOS;
use crate::files::{FileError, FileFormat, Imported, read};
use alluvium_profile::pprof::{self, Builder, Profile, ValueType};
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};

const MAX_BYTES: usize = 1 << 20;

const COLLAPSED: &str = "main;work (app.py:12) 3\nmain;work (app.py:12) 2\nmain 1\n";

const PERF_SCRIPT: &str = "\
# captured on : Mon Nov 23 10:00:00 2026
node 11/12 [001] 5.123456:     250000 cpu-clock:uhppH: 
\t    7f12 work+0x1f (/usr/bin/node)
  app.c:7
\t    7f00 main+0x2 (/usr/bin/node)

node 11/12 [001] 5.223456:     250000 cpu-clock:uhppH: 
\t    7f99 [unknown] (/lib/libc.so)

sh 13 [000] 6.1:     1 page-faults: 
\t  ffff8 do_page+0x1 ([kernel.kallsyms])
";

const CPU_PROFILE: &str = r#"{"nodes": [
    {"id": 1, "callFrame": {"functionName": "(root)", "url": "", "lineNumber": -1}, "children": [2]},
    {"id": 2, "callFrame": {"functionName": "main", "url": "file:///app.js", "lineNumber": 4}, "children": [3]},
    {"id": 3, "callFrame": {"functionName": "", "url": "file:///app.js", "lineNumber": 9}, "hitCount": 1}
], "samples": [2, 3, 3], "timeDeltas": [100, 10, 20], "startTime": 1000, "endTime": 1200}"#;

const TRACE: &str = r#"{"traceEvents": [
    {"name": "thread_name", "ph": "M", "pid": 1, "tid": 2, "args": {"name": "CrRendererMain"}},
    {"name": "other", "ph": "X", "pid": 1, "tid": 2, "args": {"data": "text"}},
    {"name": "Profile", "ph": "P", "id": "0x1", "pid": 1, "tid": 2, "args": {"data": {"startTime": 1000}}},
    {"name": "ProfileChunk", "id": "0x1", "pid": 1, "tid": 3, "args": {"data": {"cpuProfile": {"nodes": [
        {"id": 1, "callFrame": {"functionName": "(root)"}},
        {"id": 2, "parent": 1, "callFrame": {"functionName": "main", "url": "https://x/app.js", "lineNumber": 4}}
    ], "samples": [2, 2]}, "timeDeltas": [5, 10]}}},
    {"name": "ProfileChunk", "id": "0x1", "pid": 1, "tid": 3, "args": {"data": {"cpuProfile": {"nodes": [
        {"id": 3, "parent": 2, "callFrame": {"functionName": "work"}}
    ], "samples": [3, 1]}, "timeDeltas": [20, 40]}}}
], "metadata": {}}"#;

const FIREFOX: &str = r#"{"meta": {"interval": 2, "startTime": 1000}, "threads": [{"name": "shop", "samples":
    {"stack": [1, 0, null], "weight": [3, null, 1], "weightType": "samples", "length": 3},
    "stackTable": {"frame": [0, 1], "prefix": [null, 0], "length": 2},
    "frameTable": {"func": [0, 1], "line": [null, 7], "length": 2},
    "funcTable": {"name": [0, 1], "fileName": [null, 2], "length": 2},
    "stringArray": ["main", "work", "app.rs"]}]}"#;

const SPEEDSCOPE: &str = r#"{"$schema": "https://www.speedscope.app/file-format-schema.json",
    "shared": {"frames": [{"name": "main"}, {"name": "work", "file": "app.rb", "line": 3}]},
    "profiles": [{"type": "sampled", "name": "t", "unit": "milliseconds", "startValue": 0, "endValue": 9,
        "samples": [[0, 1], [0]], "weights": [4, 5]}]}"#;

const GO_TEXT: &str = "goroutine profile: total 3\n3 @ 0x1 0x2\n#\t0x1\tmain.work+0x1\t/src/main.go:12\n";

pub(super) fn read_text(text: &str) -> Result<Imported, FileError> {
    read(&Bytes::copy_from_slice(text.as_bytes()), MAX_BYTES)
}

/// Returns the type of each profile, the sum of its values, and its samples as `root;leaf file:line`. For pprof files,
/// the name in the type is empty.
pub(super) fn describe(imported: &Imported) -> Vec<(String, i64, Vec<String>)> {
    let profiles = imported.profiles.iter().map(|imported| {
        let profile = imported.columns.get();
        let (kind, period) = (profile.sample_types[0], profile.period_type);
        let stacks = (0..profile.sample_count()).map(|sample| {
            let frames = profile.stack(sample).iter().rev().map(|location| {
                let line = profile.lines_of(&profile.locations[*location as usize])[0];
                let function = profile.functions[line.function as usize];
                match function.file {
                    "" => function.name.to_owned(),
                    file => format!("{} {file}:{}", function.name, line.line),
                }
            });
            frames.collect::<Vec<_>>().join(";")
        });
        (
            format!(
                "{}:{}:{}:{}:{}",
                imported.name, kind.kind, kind.unit, period.kind, period.unit
            ),
            profile.values.iter().sum(),
            stacks.collect(),
        )
    });
    profiles.collect()
}

fn one(kind: &str, total: i64, stacks: &[&str]) -> Vec<(String, i64, Vec<String>)> {
    let stacks = stacks.iter().map(|stack| (*stack).to_owned()).collect();
    vec![(kind.to_owned(), total, stacks)]
}

#[test]
fn folded_stacks_have_files_and_lines_where_they_are_written() {
    let imported = read_text(COLLAPSED).unwrap();
    assert_eq!(imported.format, FileFormat::Collapsed);
    let expected = one(
        "process_cpu:samples:count:cpu:nanoseconds",
        6,
        &["main", "main;work app.py:12"],
    );
    let mut actual = describe(&imported);
    actual[0].2.sort();
    assert_eq!(actual, expected);
    // As in py-spy's files: a thread without frames is a line with only a count, and the first frame looks like an HTML
    // tag.
    let imported = read_text("<module> (app.py:3);work (app.py:12) 7\n 1\n").unwrap();
    assert_eq!(imported.format, FileFormat::Collapsed);
    assert_eq!(describe(&imported)[0].1, 8);
    // First frames that look like another format: from async-profiler with threads, `perf`, PHP, Rust, and others.
    for first in [
        "<main> - app.rb:1",
        "[main tid=4711]",
        "[unknown]",
        "{main}",
        "<alloc::boxed::Box<F> as core::ops::FnOnce>::call_once",
        "go 1.21 main",
        "<!-- begin -->",
        "rbspy0",
        "version: 1",
    ] {
        let imported = read_text(&format!("{first};work 30\n{first} 5\n")).unwrap();
        assert_eq!(
            (imported.format, describe(&imported)[0].1),
            (FileFormat::Collapsed, 35),
            "{first}"
        );
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_file() {
    let texts = [COLLAPSED, PERF_SCRIPT, CPU_PROFILE, TRACE, FIREFOX, SPEEDSCOPE, GO_TEXT];
    for text in texts {
        let plain = read_text(text).unwrap();
        let marked = format!("\u{feff}{text}");
        let utf16 = |bytes: fn(u16) -> [u8; 2]| marked.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
        for bytes in [
            marked.clone().into_bytes(),
            utf16(u16::to_le_bytes),
            utf16(u16::to_be_bytes),
        ] {
            for bytes in [pprof::gzip(&bytes), bytes] {
                let imported = read(&bytes.into(), MAX_BYTES).unwrap();
                assert_eq!((imported.format, describe(&imported)), (plain.format, describe(&plain)));
            }
        }
    }
}

#[test]
fn each_event_of_perf_script_is_a_profile() {
    let imported = read_text(PERF_SCRIPT).unwrap();
    assert_eq!(imported.format, FileFormat::PerfScript);
    let clock = ["node;main;work app.c:7", "node;[libc.so]"];
    let mut expected = one("process_cpu:cpu:nanoseconds:cpu:nanoseconds", 500_000, &clock);
    expected.extend(one(
        "page_faults:page-faults:count:page-faults:count",
        1,
        &["sh;do_page"],
    ));
    assert_eq!(describe(&imported), expected);
    let mappings = &imported.profiles[0].columns.get().mappings;
    let files: Vec<&str> = mappings.iter().map(|mapping| mapping.file).collect();
    assert_eq!(files, ["/usr/bin/node", "/lib/libc.so"]);
}

#[test]
fn a_sample_of_v8_lasts_until_the_next() {
    let imported = read_text(CPU_PROFILE).unwrap();
    assert_eq!(imported.format, FileFormat::CpuProfile);
    let stacks = ["main /app.js:5", "main /app.js:5;(anonymous) /app.js:10"];
    assert_eq!(
        describe(&imported),
        one("wall:wall:nanoseconds:wall:nanoseconds", 100_000, &stacks)
    );
    assert_eq!(imported.profiles[0].columns.get().values, [10_000, 90_000]);
}

#[test]
fn the_profiles_of_a_trace_are_put_together_from_their_chunks() {
    let imported = read_text(TRACE).unwrap();
    assert_eq!(imported.format, FileFormat::ChromeTrace);
    let main = "main https://x/app.js:5";
    let stacks = [main, &format!("{main};work")];
    assert_eq!(
        describe(&imported),
        one("wall:wall:nanoseconds:wall:nanoseconds", 70_000, &stacks)
    );
    let list = TRACE
        .replace("{\"traceEvents\": [", "[")
        .replace("], \"metadata\": {}}", "]");
    assert_eq!(describe(&read_text(&list).unwrap()), describe(&imported));
    let error = read_text(r#"{"traceEvents": []}"#).unwrap_err().to_string();
    assert!(error.contains("no CPU profile"), "{error}");
}

#[test]
fn samples_of_firefox_stand_for_the_interval() {
    let imported = read_text(FIREFOX).unwrap();
    assert_eq!(imported.format, FileFormat::Firefox);
    let stacks = ["shop;main", "shop;main;work app.rs:7"];
    assert_eq!(
        describe(&imported),
        one("process_cpu:cpu:nanoseconds:cpu:nanoseconds", 8_000_000, &stacks)
    );
    let gecko = FIREFOX.replace(
        "\"stackTable\": {\"frame\": [0, 1], \"prefix\": [null, 0], \"length\": 2},",
        "",
    );
    let error = read_text(&gecko.replace("app.rs", "stackTable"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("`stackTable` is missing"), "{error}");
}

#[test]
fn threads_of_firefox_that_share_their_tables_have_the_stacks_of_their_samples_alone() {
    // The stacks of all threads together would have more calls than a profile may have.
    let (threads, rows) = (700, 1000);
    let frames = vec![0; rows];
    let prefixes: Vec<Option<usize>> = (0..rows).map(|row| row.checked_sub(1)).collect();
    let shared = serde_json::json!({
        "stackTable": {"frame": frames, "prefix": prefixes},
        "frameTable": {"func": [0]}, "funcTable": {"name": [0]}, "stringArray": ["main"],
    });
    let list = (0..threads).map(|thread| format!(r#"{{"name": "t{thread}", "samples": {{"stack": [1, 0, null]}}}}"#));
    let list = list.collect::<Vec<_>>().join(",");
    let imported = read_text(&format!(r#"{{"meta": {{}}, "threads": [{list}], "shared": {shared}}}"#)).unwrap();
    assert_eq!(imported.format, FileFormat::Firefox);
    let (_, total, stacks) = &describe(&imported)[0];
    assert_eq!((*total, stacks.len()), (2 * threads, 2 * threads as usize));
    assert!(stacks.contains(&"t699;main;main".to_owned()));
    let circle = FIREFOX.replace("\"prefix\": [null, 0]", "\"prefix\": [1, 0]");
    let error = read_text(&circle).unwrap_err().to_string();
    assert!(
        error.ends_with("row 0 of `stackTable` has a prefix that is not before it"),
        "{error}"
    );
}

#[test]
fn formats_of_ingest_are_recognised_and_keep_their_units() {
    let imported = read_text(SPEEDSCOPE).unwrap();
    assert_eq!(imported.format, FileFormat::Speedscope);
    let mut actual = describe(&imported);
    actual[0].2.sort();
    assert_eq!(
        actual,
        one(
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            9_000_000,
            &["main", "main;work app.rb:3"]
        )
    );
    let counts = SPEEDSCOPE.replace("milliseconds", "none");
    assert_eq!(
        describe(&read_text(&counts).unwrap())[0].0,
        "process_cpu:samples:count:cpu:nanoseconds"
    );
    let text = read_text(GO_TEXT).unwrap();
    assert_eq!(text.format, FileFormat::GoText);
    assert_eq!(
        describe(&text),
        one(":goroutine:count:goroutine:count", 3, &["main.work /src/main.go:12"])
    );
}

/// Encodes a profile with one sample as pprof.
fn pprof_bytes() -> Vec<u8> {
    let mut builder = Builder::new(Profile {
        sample_types: vec![ValueType {
            kind: "cpu",
            unit: "nanoseconds",
        }],
        ..Profile::default()
    });
    let stack = ["work", "main"].map(|name| builder.named(name));
    builder.sample(stack, [], &[7]);
    pprof::encode(&builder.finish())
}

#[test]
fn pprof_is_kept_as_it_came() {
    for bytes in [pprof_bytes(), pprof::gzip(&pprof_bytes())] {
        let bytes = Bytes::from(bytes);
        let imported = read(&bytes, MAX_BYTES).unwrap();
        assert_eq!(imported.format, FileFormat::Pprof);
        assert_eq!(imported.profiles[0].pprof.as_ref(), Some(&bytes));
        assert_eq!(describe(&imported), one(":cpu:nanoseconds::", 7, &["main;work"]));
    }
}

#[test]
fn what_is_no_profile_is_said_in_words() {
    for (bytes, expected) in [
        (&b""[..], "the file is empty"),
        (b"PERFILE2\0", "import the output of `perf script -i FILE`"),
        (
            b"Nettrace\0\0\0\0\x06\0\0\0",
            "cannot read the file as nettrace: its version is 6, but only versions 4 and 5 are supported",
        ),
        (
            b"Nettrace\x14",
            "cannot read the file as nettrace: byte 8: 3 bytes are missing",
        ),
        (b"<html></html>", "this is HTML"),
        (
            b"# callgrind format\nversion: 1\n",
            "this is a file of callgrind, which is not supported",
        ),
        (
            b"version: 1\ncreator: rbspy\n",
            "this is a file of callgrind, which is not supported",
        ),
        (b"rbspy02\n{}", "run `rbspy report --input FILE"),
        (b"<!DOCTYPE html><html></html>", "this is HTML"),
        (b" 1\n 2\n", "the format of this file is unknown"),
        (b"Notes of today\n", "(it begins with `Notes of today`)"),
        (b"{\"a\": 1}", "(it begins with `{\"a\": 1}`)"),
        (b"\xff\xfe\0", "the format of this file is unknown"),
        (
            b"\x0a\x04\x08\x01",
            "cannot read the file as pprof: malformed profile at byte",
        ),
        (b"main 1\nmain x\n", "the format of this file is unknown"),
        (b"\x1f\x8b\x08", "corrupt gzip"),
        (b"FLR\0\0", "cannot read the file as JFR"),
    ] {
        let error = read(&Bytes::from_static(bytes), MAX_BYTES).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = read_text(&PERF_SCRIPT.replace("sh 13", "sh x"))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "cannot read the file as perf script: line 10: it is not the first line of a sample"
    );
    let error = read_text(&CPU_PROFILE.replace("\"children\": [3]", "\"children\": [2]")).unwrap_err();
    assert!(error.to_string().ends_with("node 2 is called by itself"), "{error}");
    let bomb = pprof::gzip(&vec![b'a'; MAX_BYTES + 1]);
    let error = read(&bomb.into(), MAX_BYTES).unwrap_err().to_string();
    assert_eq!(error, "profile exceeds 1048576 bytes uncompressed");
}

#[test]
fn calls_of_a_trace_that_begin_and_end_are_wall_time() {
    let trace = r#"[
        {"name": "main", "ph": "B", "pid": 1, "tid": 2, "ts": 10, "args": {"filename": "app.py", "line": 3}},
        {"name": "other", "ph": "B", "pid": 1, "tid": 3, "ts": 10},
        {"name": "work", "ph": "B", "pid": 1, "tid": 2, "ts": 15, "args": {"filename": "app.py", "line": null}},
        {"name": "work", "ph": "E", "pid": 1, "tid": 2, "ts": 40}, {"name": "x", "ph": "X", "ts": 1, "dur": 9},
        {"name": "main", "ph": "E", "pid": 1, "tid": 2, "ts": 41},
        {"name": "main", "ph": "E", "pid": 1, "tid": 2, "ts": 99}]"#;
    let imported = read_text(trace).unwrap();
    assert_eq!(imported.format, FileFormat::ChromeTrace);
    let stacks = ["main app.py:3", "main app.py:3;work app.py:0"];
    let expected = one("wall:wall:nanoseconds:wall:nanoseconds", 31_000, &stacks);
    assert_eq!(describe(&imported), expected);
    // The format guarantees no order of events.
    let events: Vec<serde_json::Value> = serde_json::from_str(trace).unwrap();
    let reversed: Vec<&serde_json::Value> = events.iter().rev().collect();
    let imported = read_text(&serde_json::json!(reversed).to_string()).unwrap();
    assert_eq!(describe(&imported), expected);
}

/// Returns a profile with few stacks as a file of each format.
fn small_files() -> Vec<(&'static str, Vec<u8>)> {
    let shape = Shape {
        functions: 20,
        samples: 12,
        depth: 6,
        labelled_every: 0,
    };
    let names = Names::new(shape.functions);
    files(&cpu_profile(&names, shape, 7))
}

/// Returns the names of each stack with the sum of its values in ticks, without frames that only one format writes.
fn stacks_of(imported: &Imported) -> Vec<(String, i64)> {
    // If a file has several profiles, uses the first. If a sample has several values, as in pprof, uses the first.
    let profile = imported.profiles[0].columns.get();
    let width = profile.sample_types.len();
    let tick = match profile.sample_types[0].unit {
        "nanoseconds" => TICK_NANOS,
        _ => 1,
    };
    let mut sums = std::collections::BTreeMap::new();
    for sample in 0..profile.sample_count() {
        let locations = profile.stack(sample).iter().rev();
        let lines =
            locations.flat_map(|location| profile.lines_of(&profile.locations[*location as usize]).iter().rev());
        let names = lines.map(|line| profile.functions[line.function as usize].name);
        let names = names.map(|name| name.strip_prefix("shop!").unwrap_or(name));
        let names: Vec<&str> = names.map(|name| name.strip_suffix("()").unwrap_or(name)).collect();
        // Removes the name of the command or thread.
        let names = names.strip_prefix(&["shop"]).unwrap_or(&names);
        *sums.entry(names.join(";")).or_insert(0) += profile.values[sample * width] / tick;
    }
    sums.into_iter().collect()
}

#[test]
fn the_same_stacks_are_read_from_a_file_of_each_format() {
    let mut expected: Option<Vec<(String, i64)>> = None;
    for (name, bytes) in small_files() {
        let imported = read(&bytes.into(), MAX_BYTES).unwrap_or_else(|error| panic!("{name}: {error}"));
        let stacks = stacks_of(&imported);
        assert!(stacks.len() > 5, "{name}: {stacks:?}");
        assert_eq!(&stacks, expected.get_or_insert(stacks.clone()), "{name}");
    }
}

/// Returns the next pseudorandom number of a sequence that is the same in every run.
fn next(generator: &mut u64) -> usize {
    *generator = generator
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*generator >> 33) as usize
}

#[test]
fn a_thousand_changed_files_of_each_format_are_profiles_or_errors() {
    let seeds =
        [COLLAPSED, PERF_SCRIPT, CPU_PROFILE, TRACE, FIREFOX, SPEEDSCOPE, GO_TEXT].map(|text| text.as_bytes().to_vec());
    let jfr = concat!(env!("CARGO_MANIFEST_DIR"), "/../../integration/fixtures/jfr/small.jfr");
    let jfr = pprof::gunzip(&std::fs::read(jfr).unwrap().into(), MAX_BYTES).unwrap();
    let seeds = seeds.into_iter().chain([pprof_bytes(), jfr.to_vec()]);
    let seeds: Vec<Vec<u8>> = seeds.chain(small_files().into_iter().map(|(_, bytes)| bytes)).collect();
    let mut generator = 1;
    for (format, seed) in seeds.iter().enumerate() {
        let mut read_well = 0;
        for change in 0..1000 {
            let mut bytes = seed.clone();
            for _ in 0..=next(&mut generator) % 4 {
                let offset = next(&mut generator) % bytes.len().max(1);
                let other = &seeds[next(&mut generator) % seeds.len()];
                match next(&mut generator) % 8 {
                    0 if !bytes.is_empty() => bytes[offset] = next(&mut generator) as u8,
                    1 if bytes.len() > 1 => bytes.truncate(bytes.len() - offset / 8),
                    2 if !bytes.is_empty() => {
                        bytes.remove(offset);
                    }
                    3 => bytes.insert(offset, b"019,:;[]{}\" \n"[next(&mut generator) % 13]),
                    4 if !bytes.is_empty() => bytes[offset] ^= 1 << (next(&mut generator) % 8),
                    // Replaces four bytes that may be a length.
                    5 if offset + 4 <= bytes.len() => {
                        let number = [0, 1, 0x7f, 0xffff, 0x7fff_ffff, u32::MAX][next(&mut generator) % 6];
                        bytes[offset..offset + 4].copy_from_slice(&number.to_le_bytes());
                    }
                    6 => {
                        let start = next(&mut generator) % other.len();
                        let part = other[start..other.len().min(start + 64)].to_vec();
                        bytes.splice(offset..offset, part);
                    }
                    _ => bytes.extend_from_within(offset..),
                }
            }
            let Ok(imported) = read(&bytes.into(), MAX_BYTES) else {
                continue;
            };
            read_well += 1;
            for profile in imported.profiles {
                let columns = profile.columns.get();
                let encoded = pprof::encode(columns);
                assert_eq!(
                    pprof::decode(&encoded).as_ref(),
                    Ok(columns),
                    "change {change} of seed {format}"
                );
                assert!(profile.columns.bytes() < MAX_BYTES, "change {change} of seed {format}");
            }
        }
        assert!(read_well > 0, "no changed file of seed {format} is a profile");
    }
}
