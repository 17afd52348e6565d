//! Tests of speedscope files: generated files with samples and with events, and invalid files.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::ingest::testing::{self, Stacks};
use alluvium_profile::{RawProfile, pprof};

/// Returns the distinct frames of some stacks, and the stacks as indices.
fn indexed(stacks: &Stacks) -> (Vec<Value>, Vec<Vec<usize>>) {
    let mut names: Vec<&str> = Vec::new();
    let lists = stacks.keys().map(|stack| {
        let index = |name| {
            names.iter().position(|other| *other == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            })
        };
        stack.split(';').map(index).collect()
    });
    let lists: Vec<Vec<usize>> = lists.collect();
    (names.iter().map(|name| json!({"name": name})).collect(), lists)
}

fn file(frames: &[Value], profiles: &[Value]) -> Vec<u8> {
    let file = json!({"$schema": SCHEMA, "shared": {"frames": frames}, "profiles": profiles, "exporter": "us"});
    file.to_string().into_bytes()
}

fn profile(kind: &str, name: &str, unit: &str, fields: &Value) -> Value {
    let mut profile = json!({"type": kind, "name": name, "unit": unit, "startValue": 0, "endValue": 0});
    for (key, value) in fields.as_object().unwrap() {
        profile[key] = value.clone();
    }
    profile
}

fn sampled(stacks: &Stacks, unit: &str) -> Vec<u8> {
    let (frames, lists) = indexed(stacks);
    let weights: Vec<i64> = stacks.values().copied().collect();
    file(
        &frames,
        &[profile(
            "sampled",
            "p",
            unit,
            &json!({"samples": lists, "weights": weights}),
        )],
    )
}

fn evented(stacks: &Stacks, unit: &str) -> Vec<u8> {
    let (frames, lists) = indexed(stacks);
    let mut time = 1_700_000_000_000_000_000_i64;
    let start = time;
    let mut events = Vec::new();
    for (stack, value) in lists.iter().zip(stacks.values()) {
        events.extend(
            stack
                .iter()
                .map(|frame| json!({"type": "O", "frame": frame, "at": time})),
        );
        time += value;
        events.extend(
            stack
                .iter()
                .rev()
                .map(|frame| json!({"type": "C", "frame": frame, "at": time})),
        );
    }
    let fields = json!({"events": events, "startValue": start, "endValue": time});
    file(&frames, &[profile("evented", "p", unit, &fields)])
}

fn read_as(name: &str, body: Vec<u8>) -> Result<Vec<RawProfile>, ConnectError> {
    crate::ingest::read(&format!("name={name}&format=speedscope"), "", body.into(), 2 << 20)
}

/// Returns service, profile name, profile type and sum of the values for each profile.
fn describe(profiles: &[RawProfile]) -> String {
    let mut text = String::new();
    for raw in profiles {
        let decoded = pprof::decode(&raw.pprof).unwrap();
        let label = |name| raw.labels.get(name).unwrap_or("-");
        let (sample_type, period) = (decoded.sample_types[0], decoded.period_type);
        writeln!(
            text,
            "{} {} {}:{}:{}:{}:{} {}",
            label("service_name"),
            label("profile_name"),
            label("__name__"),
            sample_type.kind,
            sample_type.unit,
            period.kind,
            period.unit,
            decoded.values.iter().sum::<i64>()
        )
        .unwrap();
    }
    text
}

#[test]
fn times_are_nanoseconds_whatever_their_unit_and_bytes_are_bytes() {
    let cpu = "shop - process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    let wall = "shop - wall:wall:nanoseconds:cpu:nanoseconds";
    for (app, unit, expected) in [
        ("shop", "nanoseconds", format!("{cpu} 2")),
        ("shop", "microseconds", format!("{cpu} 1500")),
        ("shop", "milliseconds", format!("{cpu} 1500000")),
        ("shop", "seconds", format!("{cpu} 1500000000")),
        ("shop.wall", "seconds", format!("{wall} 1500000000")),
        (
            "shop.mutex_duration",
            "microseconds",
            "shop - mutex:delay:nanoseconds:: 1500".to_owned(),
        ),
        ("shop.cpu&sampleRate=0", "seconds", format!("{cpu} 1500000000")),
        ("shop", "none", format!("{cpu} 15000000")),
        ("shop&sampleRate=10", "none", format!("{cpu} 150000000")),
        (
            "shop.alloc_objects",
            "none",
            "shop - memory:alloc_objects:count:: 2".to_owned(),
        ),
        ("shop", "bytes", "shop - memory:samples:bytes:: 2".to_owned()),
        (
            "shop.alloc_space",
            "bytes",
            "shop - memory:alloc_space:bytes:: 2".to_owned(),
        ),
    ] {
        let one = profile("sampled", "p", unit, &json!({"samples": [[0]], "weights": [1.5]}));
        let raw_profiles = read_as(app, file(&[json!({"name": "f"})], &[one])).unwrap();
        assert_eq!(describe(&raw_profiles).trim(), expected, "{app} {unit}");
        // The same profile as events. If an event opens a frame, Pyroscope does not convert the time since the
        // previous event from the unit of the file. Alluvium converts all times to nanoseconds.
        let events = json!([
            {"type": "O", "frame": 0, "at": 10.25}, {"type": "O", "frame": 0, "at": 10.75},
            {"type": "C", "frame": 0, "at": 11}, {"type": "C", "frame": 0, "at": 11.75},
        ]);
        let one = profile("evented", "p", unit, &json!({"events": events, "startValue": 10}));
        let raw_profiles = read_as(app, file(&[json!({"name": "f"})], &[one])).unwrap();
        assert_eq!(describe(&raw_profiles).trim(), expected, "{app} {unit}");
    }
    for (app, unit) in [
        ("shop.cpu", "bytes"),
        ("shop.alloc_space", "seconds"),
        ("shop", "furlongs"),
    ] {
        let one = profile("sampled", "p", unit, &json!({"samples": [[0]], "weights": [1]}));
        let error = read_as(app, file(&[json!({"name": "f"})], &[one])).unwrap_err();
        assert_eq!(error.status, 422);
        assert!(
            error.message.contains(&format!("`{unit}` does not match `{app}`")),
            "{error}"
        );
    }
}

#[test]
fn several_profiles_are_told_apart_by_name_and_unit() {
    let one = |name: &str, unit: &str, weight: i64| {
        profile(
            "sampled",
            name,
            unit,
            &json!({"samples": [[0, 1], []], "weights": [weight, 9]}),
        )
    };
    let profiles = [
        one("thread 1", "seconds", 1),
        one("thread 2", "seconds", 2),
        one("heap", "bytes", 4),
        one("thread 1", "seconds", 8),
        one("idle", "seconds", 0),
        one("calls", "none", 16),
    ];
    let frames = [
        json!({"name": "a"}),
        json!({"name": "b", "file": "b.rs", "line": 7, "col": 1}),
    ];
    let raw_profiles = read_as("shop", file(&frames, &profiles)).unwrap();
    assert_eq!(
        describe(&raw_profiles),
        "shop calls process_cpu:cpu:nanoseconds:cpu:nanoseconds 160000000\n\
         shop heap memory:samples:bytes:: 4\n\
         shop thread 1 wall:wall:nanoseconds:cpu:nanoseconds 9000000000\n\
         shop thread 2 wall:wall:nanoseconds:cpu:nanoseconds 2000000000\n"
    );
    assert_eq!(
        testing::listed(&raw_profiles[2]),
        [(vec!["a".to_owned(), "b".to_owned()], 9_000_000_000)]
    );
    let decoded = pprof::decode(&raw_profiles[0].pprof).unwrap();
    let leaf = decoded.lines_of(&decoded.locations[decoded.stack(0)[0] as usize])[0];
    assert_eq!((decoded.functions[leaf.function as usize].file, leaf.line), ("b.rs", 7));
}

#[test]
fn what_is_open_at_the_end_lasted_until_then_and_a_file_knows_its_length() {
    let events = json!([{"type": "O", "frame": 0, "at": 5}, {"type": "O", "frame": 1, "at": 7}]);
    let one = profile(
        "evented",
        "p",
        "milliseconds",
        &json!({"events": events, "startValue": 2, "endValue": 10}),
    );
    let raw_profiles = read_as("shop", file(&[json!({"name": "a"}), json!({"name": "b"})], &[one])).unwrap();
    let sample = |names: &[&str], value| (names.iter().map(|name| (*name).to_owned()).collect(), value);
    assert_eq!(
        testing::listed(&raw_profiles[0]),
        [sample(&["a"], 2_000_000), sample(&["a", "b"], 3_000_000)]
    );
    assert_eq!(pprof::decode(&raw_profiles[0].pprof).unwrap().duration_nanos, 8_000_000);
}

/// A file as dotnet-trace wrote it until 2021: `SpeedScopeStackSourceWriter` of
/// <https://github.com/microsoft/perfview>.
const DOTNET_TRACE: &str = r#"{"exporter": "speedscope@1.3.2", "name": "shop", "activeProfileIndex": 0,
    "$schema": "https://www.speedscope.app/file-format-schema.json", "shared": { "frames": [
    { "name": "Process64 shop (17) (17) Args: " }, { "name": "Thread (18)" },
    { "name": "Shop!Shop.Cart.Total(int32)" }, { "name": "CPU_TIME" }] }, "profiles": [ { "type": "evented",
    "name": "Thread (18)", "unit": "milliseconds", "startValue": "1.5", "endValue": "4", "events": [
    { "type": "O", "frame": 0, "at": 1.5 }, { "type": "O", "frame": 1, "at": 1.5 },
    { "type": "O", "frame": 2, "at": 1.5 }, { "type": "O", "frame": 3, "at": 1.5 },
    { "type": "C", "frame": 3, "at": 3.5 }, { "type": "C", "frame": 2, "at": 3.5 },
    { "type": "C", "frame": 1, "at": 4 }, { "type": "C", "frame": 0, "at": 4 }]}] }"#;

#[test]
fn dotnet_trace_wrote_start_and_end_as_text() {
    let raw_profiles = read_as("shop", DOTNET_TRACE.into()).unwrap();
    assert_eq!(
        describe(&raw_profiles),
        "shop - process_cpu:cpu:nanoseconds:cpu:nanoseconds 2500000\n"
    );
    let sample = |names: &[&str], value| (names.iter().map(|name| (*name).to_owned()).collect(), value);
    let names = [
        "Process64 shop (17) (17) Args: ",
        "Thread (18)",
        "Shop!Shop.Cart.Total(int32)",
        "CPU_TIME",
    ];
    assert_eq!(
        testing::listed(&raw_profiles[0]),
        [sample(&names[..2], 500_000), sample(&names, 2_000_000)]
    );
    assert_eq!(pprof::decode(&raw_profiles[0].pprof).unwrap().duration_nanos, 2_500_000);
    let numbers = DOTNET_TRACE.replace("\"1.5\"", "1.5").replace("\"4\"", "4");
    assert_eq!(
        describe(&read_as("shop", numbers.into()).unwrap()),
        describe(&raw_profiles)
    );
    let error = read_as("shop", DOTNET_TRACE.replace("\"4\"", "\"four\"").into()).unwrap_err();
    assert!(
        error.message.contains("`four`") || error.message.contains("\"four\""),
        "{}",
        error.message
    );
}

#[test]
fn a_file_is_known_without_its_format() {
    let body = sampled(&[("a;b".to_owned(), 5)].into(), "bytes");
    let raw_profiles = crate::ingest::read("name=shop", "application/json", body.into(), 1 << 20).unwrap();
    assert_eq!(describe(&raw_profiles), "shop - memory:samples:bytes:: 5\n");
}

#[test]
fn what_is_wrong_is_told_with_its_path() {
    let frames = [json!({"name": "a"})];
    let build = |kind: &str, fields: Value| file(&frames, &[profile(kind, "p", "seconds", &fields)]);
    let event = |kind: &str, frame: i64, time: f64| json!({"type": kind, "frame": frame, "at": time});
    let events = |list: &[Value]| build("evented", json!({"events": list}));
    for (body, reason) in [
        (b"{".to_vec(), "EOF while parsing an object at line 1 column 1"),
        (
            b"{\"shared\":{\"frames\":[]},\"profiles\":[]}".to_vec(),
            "$schema: `` is not `https",
        ),
        (build("traced", json!({})), "profiles[0].type: `traced` is neither"),
        (
            build("sampled", json!({"samples": [[0]]})),
            "profiles[0].weights: there are 0 weights for 1 samples",
        ),
        (
            build("sampled", json!({"samples": [[], [0, 1]], "weights": [1, 1]})),
            "profiles[0].samples[1]: there is no frame 1, `shared.frames` has 1",
        ),
        (
            build("sampled", json!({"samples": [[0]], "weights": [-1]})),
            "profiles[0].weights[0]: is negative",
        ),
        (
            build("sampled", json!({"samples": [[0]], "weights": [1e12]})),
            "profiles[0].weights[0]: is negative, or does not fit",
        ),
        (
            build("sampled", json!({"samples": [["a"]], "weights": [1]})),
            "expected u32 at line 1 column",
        ),
        (
            events(&[event("O", 1, 1.0)]),
            "profiles[0].events[0].frame: there is no frame 1",
        ),
        (
            events(&[event("O", 0, 2.0), event("C", 0, 1.0)]),
            "profiles[0].events[1].at: is before",
        ),
        (
            events(&[event("C", 0, 1.0)]),
            "profiles[0].events[0]: closes frame 0 while none is open",
        ),
        (
            events(&[event("O", 0, 1.0), event("C", 1, 1.0)]),
            "profiles[0].events[1]: closes frame 1 while frame 0 is open",
        ),
        (events(&[event("X", 0, 1.0)]), "unknown variant `X`"),
        (
            events(&[event("O", 0, 1e300)]),
            "profiles[0].events[0].at: is too far from the start",
        ),
    ] {
        let error = read_as("shop", body).unwrap_err();
        assert_eq!(error.status, 422, "{error}");
        assert!(error.message.contains(reason), "{reason}: {error}");
    }
}

#[test]
fn depth_times_events_and_frames_times_profiles_are_bounded() {
    // Time passes after each event, so each depth is a separate stack: 3,000 stacks of up to 3,000 frames,
    // in a small file.
    let mut events: Vec<Value> = (0..3000)
        .map(|time| json!({"type": "O", "frame": 0, "at": time}))
        .collect();
    events.extend((0..3000).map(|time| json!({"type": "C", "frame": 0, "at": 3000 + time})));
    let deep = file(
        &[json!({"name": "f"})],
        &[profile("evented", "p", "seconds", &json!({"events": events}))],
    );
    let error = read_as("shop", deep).unwrap_err();
    assert_eq!(error.status, 413);
    assert!(error.message.contains("frames in its stacks"), "{error}");

    let name = "n".repeat(100_000);
    let one = |index: usize| {
        profile(
            "sampled",
            &index.to_string(),
            "none",
            &json!({"samples": [[0]], "weights": [1]}),
        )
    };
    let profiles: Vec<Value> = (0..900).map(one).collect();
    let error = read_as("shop", file(&[json!({"name": name})], &profiles)).unwrap_err();
    assert!(error.message.contains("bytes of names"), "{error}");
    let profiles: Vec<Value> = (0..=MAX_PROFILES).map(one).collect();
    let error = read_as("shop", file(&[json!({"name": "f"})], &profiles)).unwrap_err();
    assert_eq!(
        (error.status, error.message.as_str()),
        (413, "the file has 1001 profiles, the limit is 1000")
    );
}

proptest! {
    #[test]
    fn samples_and_events_are_read_as_they_were_written(stacks in testing::stacks()) {
        for body in [sampled(&stacks, "nanoseconds"), evented(&stacks, "nanoseconds")] {
            prop_assert_eq!(testing::sums(&read_as("shop", body).unwrap()), stacks.clone());
        }
        let bytes = read_as("shop", sampled(&stacks, "bytes")).unwrap();
        prop_assert_eq!(testing::sums(&bytes), stacks);
    }

    #[test]
    fn changed_files_are_a_profile_or_an_error(
        stacks in testing::stacks(), as_events in any::<bool>(), changes in testing::changes(),
    ) {
        let body = if as_events { evented(&stacks, "seconds") } else { sampled(&stacks, "none") };
        testing::survives("name=app&format=speedscope", testing::changed(body, &changes));
    }
}

#[test]
fn a_long_name_in_many_stacks_is_looked_up_once() {
    // If each stack added the name, the names would exceed their limit.
    let frames = [json!({"name": "long ".repeat(200_000)})];
    let fields = json!({"samples": vec![[0]; 3000], "weights": vec![1; 3000]});
    let body = file(&frames, &[profile("sampled", "p", "none", &fields)]);
    let profiles = read_as("app", body).unwrap();
    let plain = pprof::decode(&profiles[0].pprof).unwrap();
    assert_eq!((plain.sample_count(), plain.functions[0].name.len()), (1, 1_000_000));
}
