//! Checks the promises of `fuzz/` for the committed seeds, for every input that once broke a promise, and for random
//! changes of both.
//!
//! In: the cases of `integration/lang`, the shipped configurations, `fuzz/found/TARGET/`, the fixtures, and the program
//! `/bin/sh`. Out: the inputs that break a promise, each with the name of its seed and the number of the change, which
//! is 0 for an unchanged seed. The changes are the same in every run. `make fuzz-smoke` runs each real fuzz target for
//! a minute. With `ALLUVIUM_SEEDS=fuzz/corpus`, the tests also write the seeds of each target to that folder.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use alluvium_profile::pprof::gunzip;
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use alluvium_wire::connect::{Codec, decode};
use alluvium_wire::files::synthetic;
use alluvium_wire::otlp::messages::ExportProfilesServiceRequest;
use prost::Message as _;

use crate::tidy::root;

#[path = "../fuzz/promises.rs"]
mod promises;
#[path = "../fuzz/promises_code.rs"]
mod promises_code;
#[cfg(feature = "server")]
#[path = "../fuzz/promises_pgwire.rs"]
mod promises_pgwire;
#[cfg(feature = "server")]
#[path = "../fuzz/promises_store.rs"]
mod promises_store;

/// Number of changes of each seed.
const CHANGES: u64 = 3;

/// Pieces that are meaningful to a parser. A change may replace bytes of a seed by one of them.
const PIECES: [&str; 24] = [
    "//", "/*", "*/", "#", "\n", "\r", "\"", "`", "{", "}", "[", "]", "(", ")", ",", ".", "=", "^", "-", "${", "<<A\n",
    "\u{c}", "\u{feff}", "\0",
];

/// A generator of numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end.max(1) as u64).unwrap()
    }
}

/// Collects name and bytes of every file below a folder.
fn files(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
}

/// Returns the parts of the language's cases (inputs and expectations) and the shipped configurations.
fn texts() -> Vec<(String, Vec<u8>)> {
    let mut whole = Vec::new();
    for folder in ["integration/lang", "config"] {
        files(&root().join(folder), &mut whole);
    }
    let mut texts = Vec::new();
    for (name, bytes) in whole {
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let mut part = String::new();
        let mut number = 0;
        for line in text.split_inclusive('\n').chain(["-- end --\n"]) {
            if line.starts_with("-- ") && line.trim_end().ends_with(" --") {
                if !part.is_empty() {
                    texts.push((format!("{name} part {number}"), std::mem::take(&mut part).into_bytes()));
                }
                number += 1;
            } else {
                part.push_str(line);
            }
        }
    }
    texts
}

/// Returns a seed in which a few bytes are removed, doubled, or replaced by a piece or a part of another seed.
fn changed(seed: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=numbers.below(3) {
        let start = numbers.below(bytes.len() + 1);
        let end = bytes.len().min(start + numbers.below(8));
        let from = numbers.below(other.len() + 1);
        let to = other.len().min(from + numbers.below(24));
        let new = match numbers.below(4) {
            0 => Vec::new(),
            1 => bytes[start..end].repeat(2),
            2 => PIECES[numbers.below(PIECES.len())].as_bytes().to_vec(),
            _ => other[from..to].to_vec(),
        };
        bytes.splice(start..end, new);
    }
    bytes
}

/// Checks a promise for the seeds, for the inputs in `fuzz/found/TARGET/`, and for changes of both.
fn keep(target: &str, seeds: Vec<(String, Vec<u8>)>, promise: impl Fn(&[u8])) {
    let mut inputs = Vec::new();
    files(&root().join("fuzz/found").join(target), &mut inputs);
    inputs.extend(seeds);
    if let Some(folder) = std::env::var_os("ALLUVIUM_SEEDS") {
        let folder = Path::new(&folder).join(target);
        std::fs::create_dir_all(&folder).unwrap();
        for (number, (_, seed)) in inputs.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number}")), seed).unwrap();
        }
    }
    let mut numbers = Numbers(1);
    let mut broken = Vec::new();
    let mut kept = |name: &str, number: u64, bytes: &[u8]| {
        if catch_unwind(AssertUnwindSafe(|| promise(bytes))).is_err() {
            broken.push(format!("{name}, change {number}: {:?}", String::from_utf8_lossy(bytes)));
        }
    };
    for at in 0..inputs.len() {
        let (name, seed) = &inputs[at];
        kept(name, 0, seed);
        // Long seeds are not changed, because the checks of such changes take too much time.
        if seed.len() > 4096 {
            continue;
        }
        for number in 1..=CHANGES {
            let other = &inputs[numbers.below(inputs.len())].1;
            kept(name, number, &changed(seed, other, &mut numbers));
        }
    }
    assert!(inputs.len() > 5, "only {} inputs of {target}", inputs.len());
    assert!(broken.is_empty(), "{} bad inputs:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn any_bytes_are_a_configuration_or_diagnostics() {
    keep("language", texts(), promises::language);
}

#[test]
fn any_text_is_hcl_or_refused_and_converts_back() {
    keep("hcl", texts(), |bytes| {
        if let Ok(text) = std::str::from_utf8(bytes) {
            promises::hcl(text);
        }
    });
}

#[test]
fn any_text_is_a_selector_or_an_error() {
    let seeds = [
        "process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"a\"}",
        "{a=\"b\", c!=\"d\", e=~\"f|g\", h!~\"i.*\"}",
        "{a=\"\\\"\\\\\\n\\u00e9\"}",
        "{}",
        "memory{a.b=\"c\"}",
        "{\"quoted name\"=`raw`}",
    ];
    let seeds = std::iter::repeat_n(seeds, 50).flatten();
    let seeds = seeds.map(|text| (text.to_owned(), text.as_bytes().to_vec()));
    keep("selector", seeds.collect(), |bytes| {
        if let Ok(text) = std::str::from_utf8(bytes) {
            promises::selector(text);
        }
    });
}

/// Returns the uncompressed profiles of the fixtures.
fn profiles() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    files(&root().join("integration/fixtures/pprof"), &mut seeds);
    seeds.retain(|(name, _)| !name.ends_with(".md") && !name.ends_with(".txt"));
    let unpacked = |(name, bytes): (String, Vec<u8>)| {
        let packed = bytes::Bytes::from(bytes);
        (name, gunzip(&packed, 1 << 20).unwrap_or(packed).to_vec())
    };
    seeds.into_iter().map(unpacked).collect()
}

#[test]
fn any_bytes_are_a_profile_or_an_error() {
    keep("pprof_decode", profiles(), promises::pprof_decode);
}

#[test]
fn any_text_is_a_profile_of_go_or_an_error() {
    let seeds = [
        "heap profile: 1: 2 [3: 4] @ heap/1048576\n1: 512 [5: 2560] @ 0x1 0x2\n#\t0x1\tmain.f+0x1\t/a.go:1\n\n# A\n",
        "goroutine profile: total 2\n1 @ 0x1\n# labels: {\"a\":\"b\"}\n#\t0x1\tmain.f+0x1\t\t/a.go:1\n\n1 @\n",
        "--- contention:\ncycles/second=1000\n5 2 @ 0x1 0x2\n",
        "--- mutex:\ncycles/second=1000\nsampling period=5\n5 2 @ 0x1\n#\t0x0\tf\n",
        "threadcreate profile: total 1\n1 @\n",
    ];
    let seeds = std::iter::repeat_n(seeds, 50).flatten();
    let seeds = seeds.map(|text| (text.to_owned(), text.as_bytes().to_vec()));
    keep("legacy", seeds.collect(), promises::legacy);
}

#[test]
fn any_bytes_are_a_recording_or_an_error() {
    let whole = std::fs::read(root().join("integration/fixtures/jfr/small.jfr")).unwrap();
    let cuts = (0..whole.len())
        .step_by(64)
        .map(|cut| whole[..whole.len() - cut].to_vec());
    let seeds = cuts.map(|cut| ("small.jfr, cut".to_owned(), [vec![0], cut].concat()));
    keep("jfr", seeds.collect(), promises::jfr);
}

/// A request of OpenTelemetry with every field that the conversion to profiles reads.
const EXPORT: &str = r#"{
    "resourceProfiles": [{
        "resource": {"attributes": [
            {"key": "service.name", "value": {"stringValue": "a"}},
            {"keyStrindex": 3, "value": {"arrayValue": {"values": [{"intValue": "7"}]}}}
        ]},
        "scopeProfiles": [{"profiles": [{
            "sampleType": {"typeStrindex": 1, "unitStrindex": 2},
            "periodType": {"typeStrindex": 3, "unitStrindex": 4}, "period": "9",
            "timeUnixNano": "1700000000000000000", "durationNano": "5",
            "profileId": "0102030405060708090a0b0c0d0e0f10",
            "samples": [
                {"stackIndex": 1, "values": ["3", "4"], "attributeIndices": [1, 2], "linkIndex": 1},
                {"stackIndex": 2, "timestampsUnixNano": ["1", "2"], "attributeIndices": [2]}
            ]
        }]}]
    }],
    "dictionary": {
        "stringTable": ["", "samples", "count", "cpu", "nanoseconds", "service.name", "main", "thread.id"],
        "mappingTable": [{}, {"memoryStart": "4096", "filenameStrindex": 6, "attributeIndices": [1]}],
        "locationTable": [{}, {"mappingIndex": 1, "address": "4097", "lines": [{"functionIndex": 1, "line": "7"}]}],
        "functionTable": [{}, {"nameStrindex": 6, "filenameStrindex": 6}],
        "stackTable": [{}, {"locationIndices": [1]}, {"locationIndices": [1, 1]}],
        "linkTable": [{}, {"traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "0102030405060708"}],
        "attributeTable": [
            {}, {"keyStrindex": 5, "value": {"stringValueStrindex": 6}}, {"keyStrindex": 7, "value": {"intValue": "-1"}}
        ]
    }
}"#;

#[test]
fn any_bytes_are_profiles_of_opentelemetry_or_an_error() {
    let request: ExportProfilesServiceRequest = decode(Codec::Json, EXPORT.as_bytes().into()).unwrap();
    let seeds = [
        ("protobuf", [&[0][..], &request.encode_to_vec()].concat()),
        ("JSON", [b"\x01", EXPORT.as_bytes()].concat()),
    ];
    let seeds = std::iter::repeat_n(seeds, 200).flatten();
    let seeds = seeds.map(|(name, bytes)| (name.to_owned(), bytes));
    keep("otlp", seeds.collect(), promises::otlp);
}

#[test]
fn any_bytes_are_a_tree_or_a_trie_or_an_error() {
    let seeds = [
        "\0\0\0\x02\x04rest\x08\0\x04main\x01\x02\x05worry\x04\0\x04work\x02\0",
        "\x01\0\0\x02\x04main\x01\x01\x04;wor\0\x02\x01k\x02\0\x02ry\x04\0\x04rest\x08\0",
    ];
    let seeds = std::iter::repeat_n(seeds, 200).flatten();
    let seeds = seeds.map(|text| (text.to_owned(), text.as_bytes().to_vec()));
    keep("trees", seeds.collect(), promises::trees);
}

#[test]
fn any_bytes_are_a_file_of_speedscope_or_an_error() {
    let file = |profile: &str| {
        format!(
            "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\
             \"shared\":{{\"frames\":[{{\"name\":\"a\"}},{{\"name\":\"b\",\"file\":\"b.rs\",\"line\":7}}]}},\
             \"profiles\":[{{\"name\":\"p\",\"unit\":\"seconds\",\
             \"startValue\":0,\"endValue\":9,{profile}}}]}}"
        )
    };
    let seeds = [
        file("\"type\":\"sampled\",\"samples\":[[0,1],[1],[]],\"weights\":[1,2.5,3]"),
        file(
            "\"type\":\"evented\",\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":1},\
             {\"type\":\"O\",\"frame\":1,\"at\":2},{\"type\":\"C\",\"frame\":1,\"at\":3.5}]",
        ),
    ];
    let seeds = std::iter::repeat_n(seeds, 200).flatten();
    let seeds = seeds.map(|text| (text.clone(), text.into_bytes()));
    keep("speedscope", seeds.collect(), promises::speedscope);
}

#[test]
fn any_bytes_are_a_file_of_a_profiler_or_an_error() {
    let seeds = [
        "main;work (a.py:7) 3\nmain 1\n",
        "# perf\nsh 7/8 [001] 5.1:  9 cycles:u: \n\t 7f work+0x1 (/bin/sh)\n  a.c:7\n\t 10 [unknown] (/bin/sh)\n\n",
        r#"{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"},"children":[2]},
            {"id":2,"callFrame":{"functionName":"f","url":"file:///a.js","lineNumber":6},"hitCount":2}],
            "samples":[2,2,1],"timeDeltas":[1,2,3],"startTime":5,"endTime":20}"#,
        r#"{"traceEvents":[{"name":"Profile","id":"1","pid":1,"tid":2,"args":{"data":{"startTime":5}}},
            {"name":"ProfileChunk","id":"1","pid":1,"args":{"data":{"cpuProfile":{"nodes":[
            {"id":1,"callFrame":{"functionName":"(root)"}},{"id":2,"parent":1,"callFrame":{"functionName":"f"}}],
            "samples":[2,1,2]},"timeDeltas":[4,5,6]}}}]}"#,
        r#"{"meta":{"interval":1,"startTime":5},"threads":[{"name":"t","samples":{"stack":[1,null,0],"weight":[2,1,1],
            "weightType":"samples"},"stackTable":{"frame":[0,1],"prefix":[null,0]},"frameTable":{"func":[0,1],
            "line":[null,7]},"funcTable":{"name":[0,1],"fileName":[null,2]},"stringArray":["main","work","a.rs"]}]}"#,
    ];
    let seeds = seeds.map(|text| (text.to_owned(), text.as_bytes().to_vec()));
    // One file of every format, small enough to be changed.
    let small = small_files().into_iter().map(|(name, bytes)| (name.to_owned(), bytes));
    let seeds: Vec<_> = seeds.into_iter().chain(small).collect();
    let seeds = std::iter::repeat_n(seeds, 200).flatten();
    keep("files", seeds.collect(), promises::files);
}

/// Returns a file of every format with the same few stacks.
fn small_files() -> Vec<(&'static str, Vec<u8>)> {
    let shape = Shape {
        functions: 6,
        samples: 4,
        depth: 4,
        labelled_every: 0,
    };
    let names = Names::new(shape.functions);
    let files = synthetic::files(&cpu_profile(&names, shape, 3));
    for (name, bytes) in &files {
        assert!(bytes.len() <= 4096, "{name}: {} bytes", bytes.len());
    }
    files
}

#[test]
fn any_bytes_are_a_trace_of_dotnet_or_an_error() {
    let (_, bytes) = small_files().into_iter().find(|(name, _)| *name == "nettrace").unwrap();
    let behind_the_first = bytes[32..].to_vec();
    let seeds = std::iter::repeat_n(("nettrace".to_owned(), behind_the_first), 400);
    keep("nettrace", seeds.collect(), promises::nettrace);
}

/// `ALLUVIUM_STORE_FUZZ` sets the number of changed profiles to push; `make fuzz-store` pushes a million.
#[cfg(feature = "server")]
#[test]
fn any_profile_is_refused_or_stored_and_flushed() {
    let runs = std::env::var("ALLUVIUM_STORE_FUZZ").map_or(1_000, |runs| runs.parse().unwrap());
    let mut seeds: Vec<Vec<u8>> = profiles().into_iter().map(|(_, bytes)| bytes).collect();
    seeds.retain(|seed| seed.len() <= 64 << 10);
    seeds.extend(crate::poison::small());
    let mut store = promises_store::StoreOfProfiles::new();
    let mut numbers = Numbers(1);
    for run in 0..runs {
        let (seed, other) = (&seeds[numbers.below(seeds.len())], &seeds[numbers.below(seeds.len())]);
        store.take(&changed(seed, other, &mut numbers));
        if run % 100_000 == 99_999 {
            println!("{} changes", run + 1);
        }
    }
    for (_, poison) in crate::poison::profiles() {
        store.take(&poison);
    }
    store.flush();
    store.start_again();
}

/// `ALLUVIUM_PGWIRE_FUZZ` sets the number of changes of each seed.
#[cfg(feature = "server")]
#[test]
fn any_bytes_are_messages_of_postgresql_or_violate_the_protocol() {
    let seeds: [&[u8]; 8] = [
        b"\0\0\0\0\x08\x04\xd2\x16\x2f\0\0\0\x10\0\x03\0\0user\0a\0\0p\0\0\0\x0bsecret\0Q\0\0\0\x0dSELECT 1\0",
        b"\0\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\x02",
        b"\x01p\0\0\0\x18SCRAM-SHA-256\0\0\0\0\x02n,",
        b"\x01P\0\0\0\x19name\0SELECT $1\0\0\x01\0\0\0\x17D\0\0\0\x0aSname\0S\0\0\0\x04",
        b"\x01B\0\0\0\x1d\0name\0\0\x01\0\0\0\x02\0\0\0\x01a\xff\xff\xff\xff\0\x01\0\x01\
            E\0\0\0\x09\0\0\0\0\x05S\0\0\0\x04",
        b"\x01C\0\0\0\x06P\0H\0\0\0\x04X\0\0\0\x04",
        b"\x01d\0\0\0\x07abcc\0\0\0\x04f\0\0\0\x08why\0",
        b"\x01P\0\0\0\x10\0SELECT 1\0\xff\xff",
    ];
    let changes = std::env::var("ALLUVIUM_PGWIRE_FUZZ").map_or(2_000, |changes| changes.parse().unwrap());
    let mut numbers = Numbers(1);
    for seed in seeds {
        promises_pgwire::pgwire(seed);
        for _ in 0..changes {
            let other = seeds[numbers.below(seeds.len())];
            let mut bytes = changed(seed, other, &mut numbers);
            for _ in 0..numbers.below(4) {
                let at = numbers.below(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = numbers.below(256) as u8;
                }
            }
            promises_pgwire::pgwire(&bytes);
        }
    }
}

#[test]
fn any_bytes_are_a_program_or_none() {
    let shell = std::fs::read("/bin/sh").unwrap();
    // The file begins with the ELF header and the program headers, and ends with the section headers.
    let cuts = (0..64).map(|cut| shell[..shell.len() - cut * 61].to_vec());
    let seeds = cuts.chain((1..64).map(|cut| shell[..cut * 60].to_vec()));
    let seeds = seeds.map(|bytes| ("/bin/sh, cut".to_owned(), bytes));
    keep("elf", seeds.collect(), promises_code::elf);
}

#[test]
fn any_bytes_are_call_frames_or_none() {
    // The call frame information of one function: by clang for 64-bit Arm, and by gcc for x86-64.
    let arm = "\x10\0\0\0\0\0\0\0\x01zR\0\x01|\x1e\x01\x1b\x0c\x1f\0 \0\0\0\x18\0\0\0\0\0\0\0$\0\0\0\0D-D\x0e\x10";
    let intel = "\x14\0\0\0\0\0\0\0\x01zR\0\x01x\x10\x01\x1b\x0c\x07\x08\0\0\0\0\x10\0\0\0\
        \x1c\0\0\0$\0\0\0\x26\0\0\0\0D\x07\x10\0\0\0\0";
    let mut seeds = Vec::new();
    for (number, text) in [intel, arm].into_iter().cycle().take(300).enumerate() {
        let mut bytes = vec![number as u8];
        bytes.extend(text.bytes());
        seeds.push((format!("frames {number}"), bytes));
    }
    keep("cfi", seeds, promises_code::cfi);
}

#[test]
fn any_bytes_are_names_or_none() {
    let seeds = [
        "p1000 10 LazyCompile:~work a.js:3\n0x1008 0x8 void A.b(int)\n",
        "kffffffff81000000 T first\n0000000000001000 t second [m]\n",
        "jDTiJ\x01\0\0\0(\0\0\0>\0\0\0\0\0\0\0\x07\0\0\0",
    ];
    let seeds = std::iter::repeat_n(seeds, 100).flatten();
    let seeds = seeds.map(|text| (text.to_owned(), text.as_bytes().to_vec()));
    keep("names", seeds.collect(), promises_code::names);
}
