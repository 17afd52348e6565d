//! Tests of recordings: the profiles made from events, and the errors of malformed recordings.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::testing::{
    ALLOC_IN_NEW_TLAB, Bytes, CLASS, Chunk, EXECUTION_SAMPLE, METHOD, MONITOR_ENTER, STACK_TRACE, SYMBOL,
    WALL_CLOCK_SAMPLE,
};
use super::*;
use crate::pprof::{self, Profile, SampleLabel};

const FACTS: RecordingFacts = RecordingFacts {
    time_nanos: 7,
    duration_nanos: 8,
    period_nanos: 10,
};

const RUNS: u64 = 1;
const SLEEPS: u64 = 2;

fn read(chunks: &[Chunk], labels: &[u8]) -> Result<Recording, JfrError> {
    let file: Vec<u8> = chunks.iter().flat_map(Chunk::finish).collect();
    Recording::read(&file, labels)
}

/// Formats samples in short form: `leaf:line;root:line{label=value} value,value`.
fn samples(profile: &Profile<'_>) -> Vec<String> {
    let frame = |location: &u32| {
        let line = profile.lines_of(&profile.locations[*location as usize])[0];
        format!("{}:{}", profile.functions[line.function as usize].name, line.line)
    };
    let label = |label: &SampleLabel<'_>| match label {
        SampleLabel::Text(name, value) => format!("{name}={value}"),
        SampleLabel::Number(name, value, _) => format!("{name}={value}"),
    };
    let sample = |index| {
        let frames: Vec<String> = profile.stack(index).iter().map(frame).collect();
        let labels: Vec<String> = profile.labels_of(index).iter().map(label).collect();
        let values: Vec<String> = profile.values_of(index).iter().map(i64::to_string).collect();
        format!("{}{{{}}} {}", frames.join(";"), labels.join(","), values.join(","))
    };
    (0..profile.sample_count()).map(sample).collect()
}

/// Formats all profiles in short form, by name and first type.
fn samples_by_type(recording: &Recording) -> BTreeMap<String, Vec<String>> {
    let profiles = recording.profiles(&FACTS).into_iter().map(|profile| {
        let columns = profile.columns.get();
        assert_eq!((columns.time_nanos, columns.duration_nanos), (7, 8));
        assert_eq!(pprof::decode(&pprof::encode(columns)).as_ref(), Ok(columns));
        (
            format!("{}:{}", profile.name, columns.sample_types[0].kind),
            samples(columns),
        )
    });
    profiles.collect()
}

fn entry<const N: usize>(name: &str, samples: [&str; N]) -> (String, Vec<String>) {
    (name.to_owned(), samples.map(str::to_owned).to_vec())
}

#[test]
fn events_become_samples_of_their_kinds_and_equal_stacks_are_summed() {
    let chunk = Chunk::new()
        .stack(1, &[("shop/Cart.add", 12), ("shop/Main.main", 3)])
        .stack(2, &[("shop/Main.main", 4)])
        .event(EXECUTION_SAMPLE, &[1, RUNS, 0, 0, 0])
        .event(EXECUTION_SAMPLE, &[1, 0, 0, 0, 0])
        .event(EXECUTION_SAMPLE, &[2, RUNS, 0, 0, 0])
        .event(EXECUTION_SAMPLE, &[2, SLEEPS, 0, 0, 0])
        .event(EXECUTION_SAMPLE, &[2, 77, 0, 0, 0])
        .event(ALLOC_IN_NEW_TLAB, &[1, 5, 16, 4096])
        .event(ALLOC_IN_NEW_TLAB, &[1, 5, 16, 1024])
        .event(MONITOR_ENTER, &[30, 2])
        .event(WALL_CLOCK_SAMPLE, &[2, SLEEPS, 9])
        .event(999, &[1, 2, 3]);
    let recording = read(&[chunk], &[]).unwrap();
    let expected = [
        entry(
            "memory:alloc_in_new_tlab_objects",
            ["shop/Cart.add:12;shop/Main.main:3{} 2,5120"],
        ),
        // 30 ticks of one microsecond.
        entry("mutex:contentions", ["shop/Main.main:4{} 1,30000"]),
        entry(
            "process_cpu:cpu",
            ["shop/Cart.add:12;shop/Main.main:3{} 20", "shop/Main.main:4{} 10"],
        ),
        entry("wall:wall", ["shop/Main.main:4{} 90"]),
    ];
    assert_eq!(samples_by_type(&recording), BTreeMap::from(expected));
    assert_eq!(
        (recording.event(), recording.interval_nanos(), recording.lost()),
        ("", None, 0)
    );
    assert_eq!(
        (recording.start_nanos(), recording.duration_nanos()),
        (1_700_000_000_000_000_000, 10_000_000_000)
    );
}

#[test]
fn a_negative_line_is_unknown() {
    let minus_one = u64::from(u32::MAX);
    let chunk = Chunk::new()
        .stack(1, &[("A.a", minus_one), ("B.b", 2_147_483_647), ("C.c", u64::MAX)])
        .event(EXECUTION_SAMPLE, &[1, RUNS, 0, 0, 0]);
    let recording = read(&[chunk], &[]).unwrap();
    let expected = [entry("process_cpu:cpu", ["A.a:0;B.b:2147483647;C.c:0{} 10"])];
    assert_eq!(samples_by_type(&recording), BTreeMap::from(expected));
}

#[test]
fn by_the_wall_clock_all_threads_count_and_those_that_run_use_the_processor() {
    let chunk = Chunk::new()
        .stack(1, &[("A.a", 1)])
        .stack(2, &[("B.b", 1)])
        .setting(EXECUTION_SAMPLE, "interval", "50000000")
        .setting(EXECUTION_SAMPLE, "event", "wall")
        .event(EXECUTION_SAMPLE, &[1, SLEEPS, 0, 0, 0])
        .event(WALL_CLOCK_SAMPLE, &[1, RUNS, 2])
        .event(WALL_CLOCK_SAMPLE, &[2, SLEEPS, 3]);
    let recording = read(&[chunk], &[]).unwrap();
    let expected = [
        entry("process_cpu:cpu", ["A.a:1{} 20"]),
        entry("wall:wall", ["A.a:1{} 30", "B.b:1{} 30"]),
    ];
    assert_eq!(samples_by_type(&recording), BTreeMap::from(expected));
    assert_eq!(
        (recording.event(), recording.interval_nanos()),
        ("wall", Some(50_000_000))
    );
}

#[test]
fn chunks_have_constants_of_their_own_and_functions_are_one() {
    let chunk_of = |key| {
        Chunk::new()
            .stack(key, &[("A.a", 1), ("A.main", 9)])
            .event(EXECUTION_SAMPLE, &[key, RUNS, 0, 0, 0])
            .event(EXECUTION_SAMPLE, &[3 - key, RUNS, 0, 0, 0])
    };
    let recording = read(&[chunk_of(1), chunk_of(2)], &[]).unwrap();
    assert_eq!(recording.lost(), 2);
    let profiles = recording.profiles(&FACTS);
    let columns = profiles[0].columns.get();
    assert_eq!(samples(columns), ["A.a:1;A.main:9{} 10", "A.a:1;A.main:9{} 10"]);
    assert_eq!(
        (columns.functions.len(), columns.locations.len(), columns.mappings.len()),
        (2, 2, 1)
    );
}

#[test]
fn labels_of_contexts_spans_and_names_of_spans_are_labels_of_samples() {
    let map = |field: u8, key: u8, value: &[u8]| {
        let mut entry = vec![8, key, 0x12, value.len() as u8];
        entry.extend_from_slice(value);
        [&[field << 3 | 2, entry.len() as u8][..], &entry].concat()
    };
    let labels = [
        map(1, 5, &[0x0a, 4, 8, 1, 16, 2, 0x0a, 4, 8, 1, 16, 99]),
        map(2, 1, b"thread_name"),
        map(2, 2, b"pool-1"),
        map(2, 3, b"GET /cart"),
    ]
    .concat();
    let chunk = || {
        Chunk::new()
            .stack(1, &[("A.a", 1)])
            .event(EXECUTION_SAMPLE, &[1, RUNS, 5, 0, 0])
            .event(EXECUTION_SAMPLE, &[1, RUNS, 5, 0xabc, 3])
            .event(EXECUTION_SAMPLE, &[1, RUNS, 0, 0, 0])
            .event(EXECUTION_SAMPLE, &[1, RUNS, 6, 0, 4])
    };
    let samples = samples_by_type(&read(&[chunk()], &labels).unwrap())
        .remove("process_cpu:cpu")
        .unwrap();
    assert_eq!(
        samples,
        [
            "A.a:1{thread_name=pool-1} 10",
            "A.a:1{thread_name=pool-1,profile_id=0000000000000abc,span_name=GET /cart} 10",
            "A.a:1{} 10",
            "A.a:1{} 10",
        ]
    );
    let error = read(&[chunk()], &[0x0a, 99]).err().unwrap();
    assert!(matches!(error.kind, JfrErrorKind::Labels(_)), "{error}");
}

#[test]
fn frames_without_a_method_or_a_class_are_left_out() {
    let stack = Bytes::default().numbers(&[0, 3, 1, 7, 0, 2, 8, 0, 3, 9, 0]);
    let chunk = Chunk::new()
        .constants(SYMBOL, [(1, Bytes::default().text("run"))])
        .constants(CLASS, [(1, Bytes::default().numbers(&[0, 0]))])
        .constants(
            METHOD,
            [
                (1, Bytes::default().numbers(&[1, 1, 0])),
                (2, Bytes::default().numbers(&[9, 1, 0])),
            ],
        )
        .constants(STACK_TRACE, [(1, stack)])
        .event(EXECUTION_SAMPLE, &[1, RUNS, 0, 0, 0]);
    let samples = samples_by_type(&read(&[chunk], &[]).unwrap())
        .remove("process_cpu:cpu")
        .unwrap();
    assert_eq!(samples, [".run:7{} 10"]);
}

#[test]
fn the_fixture_of_other_tests_is_what_is_written_here() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../integration/fixtures/jfr/small.jfr");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, testing::small()).unwrap();
    }
    assert_eq!(std::fs::read(path).unwrap(), testing::small());
}

fn one() -> Vec<u8> {
    Chunk::new()
        .stack(1, &[("A.a", 1), ("A.b", 2)])
        .setting(EXECUTION_SAMPLE, "event", "cpu")
        .event(EXECUTION_SAMPLE, &[1, RUNS, 0, 0, 0])
        .event(ALLOC_IN_NEW_TLAB, &[1, 5, 16, 4096])
        .finish()
}

#[test]
fn a_recording_that_is_cut_anywhere_is_refused() {
    let file = one();
    Recording::read(&file, &[]).unwrap();
    for length in 0..file.len() {
        let error = Recording::read(&file[..length], &[]).err().unwrap();
        assert!(error.offset <= length, "{length}: {error}");
    }
    let extended_file = [&file[..], b"FLR"].concat();
    let error = Recording::read(&extended_file, &[]).err().unwrap();
    assert_eq!(
        error.to_string(),
        format!(
            "malformed recording at byte {}: 4 bytes are needed, 3 are left",
            file.len()
        )
    );
}

#[test]
fn headers_that_say_what_cannot_be_are_refused() {
    let error_with = |offset: usize, bytes: &[u8]| {
        let mut file = one();
        file[offset..offset + bytes.len()].copy_from_slice(bytes);
        Recording::read(&file, &[]).err().unwrap().to_string()
    };
    for (offset, bytes, message) in [
        (0, &b"FLX"[..], "no chunk begins here"),
        (4, &[0, 3], "unsupported format version 3.1"),
        (8, &i64::MAX.to_be_bytes(), "is the recording unfinished?"),
        (8, &67_i64.to_be_bytes(), "chunk has 67 bytes"),
        (8, &(-1_i64).to_be_bytes(), "chunk has -1 bytes"),
        (16, &0_i64.to_be_bytes(), "the offset 0 of the constants is outside"),
        (24, &i64::MAX.to_be_bytes(), "of the metadata is outside"),
        (24, &(-9_i64).to_be_bytes(), "the offset -9 of the metadata is outside"),
        (16, &68_i64.to_be_bytes(), "event has type 0, expected type 1"),
        (67, &[0], "uncompressed numbers"),
    ] {
        let error = error_with(offset, bytes);
        assert!(error.contains(message), "{offset}: {error}");
    }
}

#[test]
fn constants_that_point_to_themselves_or_forward_are_refused() {
    let file = one();
    let constants = i64::from_be_bytes(file[16..24].try_into().unwrap()) as usize;
    // The size field of four bytes, the type, the start and the duration come before the delta.
    let delta = constants + 7;
    for value in [0x7f_u8, 1] {
        let mut file = file.clone();
        // The delta in the file is negative and has nine bytes. This positive number has one byte.
        file[delta] = value;
        Recording::read(&file, &[]).err().unwrap();
    }
    let mut file = file.clone();
    file[delta..delta + 9].copy_from_slice(&[0xff; 9]);
    let error = Recording::read(&file, &[]).err().unwrap();
    assert!(
        matches!(
            error.kind,
            JfrErrorKind::EventType { .. } | JfrErrorKind::Truncated { .. }
        ),
        "{error}"
    );
}

#[test]
fn a_stack_that_many_samples_repeat_takes_no_more_memory_than_a_recording_of_this_size_may() {
    let frames: Vec<(&str, u64)> = (0..900).map(|line| ("A.a", line)).collect();
    let chunk_of = |spans: u64| {
        let chunk = Chunk::new().stack(1, &frames);
        (0..spans).fold(chunk, |chunk, span| {
            chunk.event(EXECUTION_SAMPLE, &[1, RUNS, 0, span, 0])
        })
    };
    assert_eq!(
        samples_by_type(&read(&[chunk_of(20)], &[]).unwrap())["process_cpu:cpu"].len(),
        20
    );
    let error = read(&[chunk_of(2000)], &[]).err().unwrap();
    assert!(matches!(error.kind, JfrErrorKind::Memory { .. }), "{error}");
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        stacks in proptest::collection::vec(proptest::collection::vec(("[a-c]{1,2}", 0..9u64), 1..6), 1..5),
        events in proptest::collection::vec((0..5u64, 0..3u64, 1..100u64), 0..40),
    ) {
        let mut chunk = Chunk::new();
        let mut names = Vec::new();
        for (key, frames) in (0..).zip(&stacks) {
            let named: Vec<(String, u64)> =
                frames.iter().map(|(name, line)| (format!("C{name}.{name}"), *line)).collect();
            let frames: Vec<(&str, u64)> = named.iter().map(|(name, line)| (name.as_str(), *line)).collect();
            chunk = chunk.stack(key, &frames);
            let lines: Vec<String> = named.iter().map(|(name, line)| format!("{name}:{line}")).collect();
            names.push(lines.join(";"));
        }
        let (mut cpu, mut memory) = (BTreeMap::<u64, i64>::new(), BTreeMap::<u64, (i64, i64)>::new());
        for (stack, thread_state, size) in &events {
            let known = (*stack as usize) < stacks.len();
            chunk = chunk.event(EXECUTION_SAMPLE, &[*stack, *thread_state, 0, 0, 0]);
            chunk = chunk.event(ALLOC_IN_NEW_TLAB, &[*stack, 0, 0, *size]);
            if known {
                let memory = memory.entry(*stack).or_default();
                *memory = (memory.0 + 1, memory.1 + *size as i64);
                if *thread_state != SLEEPS {
                    *cpu.entry(*stack).or_default() += 10;
                }
            }
        }
        let recording = read(&[chunk], &[]).unwrap();
        let mut profiles = samples_by_type(&recording);
        let mut expected: Vec<String> =
            cpu.iter().map(|(stack, value)| format!("{}{{}} {value}", names[*stack as usize])).collect();
        let mut samples = profiles.remove("process_cpu:cpu").unwrap_or_default();
        samples.sort();
        expected.sort();
        prop_assert_eq!(samples, expected);
        let mut expected: Vec<String> = memory
            .iter()
            .map(|(stack, (count, bytes))| format!("{}{{}} {count},{bytes}", names[*stack as usize]))
            .collect();
        let mut samples = profiles.remove("memory:alloc_in_new_tlab_objects").unwrap_or_default();
        samples.sort();
        expected.sort();
        prop_assert_eq!(samples, expected);
    }

    #[test]
    fn a_recording_with_any_bytes_changed_never_panics(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut file = one();
        for (position, byte) in changes {
            let length = file.len();
            file[position.index(length)] = byte;
        }
        if let Ok(recording) = Recording::read(&file, &[]) {
            recording.profiles(&FACTS);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Recording::read(&bytes, &bytes);
        let extended_file = [&one()[..68], &bytes].concat();
        let _ = Recording::read(&extended_file, &[]);
    }
}
