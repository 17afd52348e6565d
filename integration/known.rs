//! A small profile with known numbers: `main` calls `alpha` and `beta`.
//!
//! Out: the bytes and totals of the profile, and functions that push it to a server. Tests use it to compare the
//! results of several readers.

use std::time::{SystemTime, UNIX_EPOCH};

use alluvium_profile::pprof::{self, Function, Line, Location, Profile, ValueType};
use alluvium_profile::{Labels, RawProfile};
use alluvium_wire::call::Caller;
use alluvium_wire::push::PushClient;

use crate::harness::client;

/// Leaf functions and their values, sorted by name.
pub(crate) const LEAVES: [(&str, i64); 2] = [("alpha", 70_000_000), ("beta", 30_000_000)];
pub(crate) const TOTAL: i64 = 100_000_000;
/// Line at which each function of the profile starts.
pub(crate) const START_LINE: i64 = 9;

fn bytes_of(kind: &'static str) -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let cpu = ValueType {
        kind,
        unit: "nanoseconds",
    };
    let function = |name| Function {
        name,
        system_name: name,
        file: "known.go",
        start_line: START_LINE,
    };
    let names = ["main", LEAVES[0].0, LEAVES[1].0];
    let line = |function: u32| Line {
        function,
        line: i64::from(function) + 10,
    };
    let location = |at: u32| Location {
        mapping: Location::NO_MAPPING,
        address: 0,
        lines_start: at,
        lines_end: at + 1,
        is_folded: false,
    };
    let profile = Profile {
        sample_types: vec![cpu],
        period_type: cpu,
        period: 10_000_000,
        time_nanos: i64::try_from(now.as_nanos()).unwrap(),
        duration_nanos: 1_000_000_000,
        functions: names.map(function).to_vec(),
        lines: (0..3).map(line).collect(),
        locations: (0..3).map(location).collect(),
        sample_locations: vec![1, 0, 2, 0],
        sample_starts: vec![0, 2, 4],
        values: vec![LEAVES[0].1, LEAVES[1].1],
        label_starts: vec![0, 0, 0],
        ..Profile::default()
    };
    pprof::gzip(&pprof::encode(&profile))
}

/// Returns the profile as gzip pprof, with the current time.
pub(crate) fn bytes() -> Vec<u8> {
    bytes_of("cpu")
}

/// Pushes the profile as `process_cpu` with these labels.
pub(crate) async fn push(url: &str, labels: &[(&str, &str)]) {
    push_bytes(url, "process_cpu", bytes(), labels).await;
}

/// Pushes the profile under another name, which is also its sample type.
pub(crate) async fn push_as(url: &str, kind: &'static str, labels: &[(&str, &str)]) {
    push_bytes(url, kind, bytes_of(kind), labels).await;
}

async fn push_bytes(url: &str, name: &str, bytes: Vec<u8>, labels: &[(&str, &str)]) {
    let labels = labels.iter().copied().chain([("__name__", name)]);
    let profile = RawProfile {
        labels: Labels::from_pairs(labels),
        id: "".into(),
        pprof: bytes.into(),
    };
    let pusher = PushClient::new(Caller::new(client(), url.parse().unwrap()));
    pusher.push(&[profile]).await.unwrap();
}
