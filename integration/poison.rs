//! Profiles of a few kilobytes that expand to gigabytes, pushed over HTTP to the real program under a memory limit,
//! beside an honest client. These profiles must not end the server, prevent flushes or restarts, or cause errors for
//! the honest client.
//!
//! Each case has a function that creates its profile. The name of the function says which part of the profile
//! multiplies. The server refuses a profile that exceeds a bound, with a message that contains a number. It stores all
//! other profiles.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alluvium_profile::pprof::{self, Function, Line, Location, Mapping, Profile, SampleLabel, ValueType};
use alluvium_wire::call::Caller;
use alluvium_wire::proto::push::{PushRequest, RawProfileSeries, RawSample};
use alluvium_wire::proto::types::LabelPair;
use alluvium_wire::push::PushClient;
use bytes::Bytes;
use prost::Message;

use crate::harness::client;
use crate::kill::numbered;
use crate::program::{Address, Program, sql};

/// Maximum memory of the server in bytes, including the page cache of its files.
const LIMIT_BYTES: u64 = 512 << 20;
/// Number of clients that send the profiles of the cases concurrently.
const CLIENTS: usize = 64;

const CPU: ValueType<'static> = ValueType {
    kind: "cpu",
    unit: "nanoseconds",
};

/// A push and its expected outcome.
struct Case {
    name: &'static str,
    body: Vec<u8>,
    /// Words of the refusal; `None` when the push must be accepted.
    refused: Option<&'static str>,
}

fn now_nanos() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_nanos()).unwrap()
}

/// A profile written field by field. The encoder would be slow, because it looks up a long text once for each
/// reference. The profiles of this test are made to cause such costs.
struct Raw(Vec<u8>);

impl Raw {
    /// Starts a profile with one sample type. `strings` follow `cpu` and `nanoseconds` in the string table, with the
    /// numbers 3, 4 and so on. The name of function 1 is string 1, and location 1 is in function 1.
    fn new(strings: &[&str]) -> Self {
        let mut raw = Self(Vec::new());
        raw.message(1, &[1 << 3, 1, 2 << 3, 2]);
        for text in ["", "cpu", "nanoseconds"].iter().chain(strings) {
            raw.message(6, text.as_bytes());
        }
        raw.message(5, &[1 << 3, 1, 2 << 3, 1]);
        raw.message(4, &[1 << 3, 1, 4 << 3 | 2, 2, 1 << 3, 1]);
        raw.0.push(9 << 3);
        prost::encoding::encode_varint(now_nanos() as u64, &mut raw.0);
        raw
    }

    fn message(&mut self, field: u8, bytes: &[u8]) {
        self.0.push(field << 3 | 2);
        prost::encoding::encode_varint(bytes.len() as u64, &mut self.0);
        self.0.extend_from_slice(bytes);
    }

    /// Adds 16,000 samples with the same stack and the same label: string 3 is its key, and string 4 is its value.
    /// Returns the encoded profile.
    fn labelled(mut self) -> Vec<u8> {
        for _ in 0..16_000 {
            self.message(2, &[1 << 3, 1, 2 << 3, 1, 3 << 3 | 2, 4, 1 << 3, 3, 2 << 3, 4]);
        }
        self.0
    }
}

/// Returns a profile without samples.
fn empty<'a>() -> Profile<'a> {
    Profile {
        sample_types: vec![CPU],
        period_type: CPU,
        period: 10_000_000,
        time_nanos: now_nanos(),
        sample_starts: vec![0],
        label_starts: vec![0],
        ..Profile::default()
    }
}

fn push_function<'a>(profile: &mut Profile<'a>, name: &'a str) -> u32 {
    profile.functions.push(Function {
        name,
        ..Function::default()
    });
    u32::try_from(profile.functions.len() - 1).unwrap()
}

/// Adds a location with one `Line` for each of these functions. Returns the index of the location.
fn push_location(profile: &mut Profile<'_>, mapping: u32, functions: impl Iterator<Item = u32>) -> u32 {
    let lines_start = u32::try_from(profile.lines.len()).unwrap();
    profile
        .lines
        .extend(functions.map(|function| Line { function, line: 1 }));
    profile.locations.push(Location {
        mapping,
        lines_start,
        lines_end: u32::try_from(profile.lines.len()).unwrap(),
        ..Location::default()
    });
    u32::try_from(profile.locations.len() - 1).unwrap()
}

fn push_sample<'a>(profile: &mut Profile<'a>, stack: impl Iterator<Item = u32>, labels: &[SampleLabel<'a>]) {
    profile.sample_locations.extend(stack);
    profile
        .sample_starts
        .push(u32::try_from(profile.sample_locations.len()).unwrap());
    profile.labels.extend_from_slice(labels);
    profile.label_starts.push(u32::try_from(profile.labels.len()).unwrap());
    let types = profile.sample_types.len();
    profile.values.extend(std::iter::repeat_n(1, types));
}

/// Adds samples with stacks of `depth` frames that differ only in their leaf.
fn distinct_stacks(profile: &mut Profile<'_>, count: u32, depth: usize, location: u32, leaves: u32) {
    for stack in 0..count {
        let rest = std::iter::repeat_n(location, depth - 1);
        push_sample(profile, std::iter::once(leaves + stack).chain(rest), &[]);
    }
}

fn lines_of_a_location() -> Vec<u8> {
    let mut profile = empty();
    let function = push_function(&mut profile, "work");
    let wide = push_location(
        &mut profile,
        Location::NO_MAPPING,
        std::iter::repeat_n(function, 100_000),
    );
    let leaves = wide + 1;
    for _ in 0..100 {
        let leaf = push_function(&mut profile, "leaf");
        push_location(&mut profile, Location::NO_MAPPING, std::iter::once(leaf));
    }
    distinct_stacks(&mut profile, 100, 1_000, wide, leaves);
    pprof::encode(&profile)
}

fn long_names_in_deep_stacks() -> Vec<u8> {
    let long = "n".repeat(65_000);
    let mut profile = empty();
    let function = push_function(&mut profile, &long);
    let location = push_location(&mut profile, Location::NO_MAPPING, std::iter::once(function));
    let leaf = push_function(&mut profile, "leaf");
    for _ in 0..40 {
        push_location(&mut profile, Location::NO_MAPPING, std::iter::repeat_n(leaf, 2));
    }
    distinct_stacks(&mut profile, 40, 1_000, location, location + 1);
    pprof::encode(&profile)
}

fn long_files_of_mappings() -> Vec<u8> {
    let long = "m".repeat(65_000);
    let mut profile = empty();
    profile.mappings.push(Mapping {
        file: &long,
        build_id: &long,
        ..Mapping::default()
    });
    let function = push_function(&mut profile, "work");
    let location = push_location(&mut profile, 0, std::iter::once(function));
    for _ in 0..40 {
        push_location(&mut profile, 0, std::iter::repeat_n(function, 2));
    }
    distinct_stacks(&mut profile, 40, 1_000, location, location + 1);
    pprof::encode(&profile)
}

/// Adds 16,000 samples with one stack, each with the labels that `labels` returns for its number. Returns the encoded
/// profile.
fn labelled<'a>(mut profile: Profile<'a>, labels: impl Fn(usize) -> Vec<SampleLabel<'a>>) -> Vec<u8> {
    let function = push_function(&mut profile, "work");
    let location = push_location(&mut profile, Location::NO_MAPPING, std::iter::once(function));
    for sample in 0..16_000 {
        push_sample(&mut profile, std::iter::once(location), &labels(sample));
    }
    pprof::encode(&profile)
}

fn one_long_span_id() -> Vec<u8> {
    Raw::new(&["span_id", &"a".repeat(135_000)]).labelled()
}

fn long_labels() -> Vec<u8> {
    Raw::new(&["label", &"l".repeat(1 << 20)]).labelled()
}

fn a_series_for_each_sample(types: usize) -> Vec<u8> {
    let values: Vec<String> = (0..16_000).map(|number| format!("request-{number}")).collect();
    let mut profile = empty();
    profile.sample_types = vec![CPU; types];
    labelled(profile, |sample| vec![SampleLabel::Text("request", &values[sample])])
}

fn many_sample_types() -> Vec<u8> {
    let mut profile = empty();
    profile.sample_types = vec![CPU; 100_000];
    pprof::encode(&profile)
}

fn a_long_period_type() -> Vec<u8> {
    let long = "p".repeat(1 << 20);
    let mut profile = empty();
    profile.sample_types = vec![CPU; 60];
    profile.period_type = ValueType {
        kind: &long,
        unit: &long,
    };
    pprof::encode(&profile)
}

fn comments() -> Vec<u8> {
    let mut body = pprof::encode(&empty());
    // Field 13, packed: string 0 two million times.
    let count = 2_000_000u32;
    body.push(13 << 3 | 2);
    prost::encoding::encode_varint(u64::from(count), &mut body);
    body.resize(body.len() + count as usize, 0);
    body
}

fn empty_messages(field: u8) -> Vec<u8> {
    let mut body = pprof::encode(&empty());
    for _ in 0..1_900_000 {
        body.extend_from_slice(&[field << 3 | 2, 0]);
    }
    body
}

fn empty_sample_labels() -> Vec<u8> {
    let mut body = pprof::encode(&empty());
    let labels = [3u8 << 3 | 2, 0].repeat(1_900_000);
    body.push(2 << 3 | 2);
    prost::encoding::encode_varint(labels.len() as u64 + 3, &mut body);
    body.extend_from_slice(&labels);
    body.extend_from_slice(&[2 << 3 | 2, 1, 1]);
    body
}

/// Returns a profile with a hundred thousand functions. All of them have the same name, which is a megabyte long and
/// ends with Go's type parameters.
fn go_names() -> Vec<u8> {
    let mut raw = Raw::new(&[&format!("{}[go.shape.int]", "g".repeat(1 << 20))]);
    for id in 2..100_000u64 {
        let mut function = vec![1 << 3];
        prost::encoding::encode_varint(id, &mut function);
        function.extend_from_slice(&[2 << 3, 3]);
        raw.message(5, &function);
    }
    raw.0
}

/// Returns a profile with four megabytes of names that no frame uses.
fn names_of_nothing() -> Vec<u8> {
    let names: Vec<String> = (0..60)
        .map(|number| format!("{number}{}", "x".repeat(65_000)))
        .collect();
    let mut profile = empty();
    for name in &names {
        push_function(&mut profile, name);
    }
    let location = push_location(&mut profile, Location::NO_MAPPING, std::iter::once(0));
    push_sample(&mut profile, std::iter::once(location), &[]);
    pprof::encode(&profile)
}

/// Returns the uncompressed profiles of the cases, with their names.
pub(crate) fn profiles() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("lines", lines_of_a_location()),
        ("names", long_names_in_deep_stacks()),
        ("mappings", long_files_of_mappings()),
        ("span", one_long_span_id()),
        ("series", a_series_for_each_sample(1)),
        ("series-of-types", a_series_for_each_sample(10)),
        ("types", many_sample_types()),
        ("period", a_long_period_type()),
        ("comments", comments()),
        ("functions", empty_messages(5)),
        ("empty-mappings", empty_messages(3)),
        ("labels", empty_sample_labels()),
        ("go", go_names()),
        ("long-labels", long_labels()),
        ("nothing", names_of_nothing()),
    ]
}

/// Returns small profiles of the same kinds, which the module `fuzzing` changes at random.
pub(crate) fn small() -> Vec<Vec<u8>> {
    let mut profile = empty();
    let leaf = push_function(&mut profile, "leaf[go.shape.int]");
    let wide = push_location(&mut profile, Location::NO_MAPPING, std::iter::repeat_n(leaf, 20));
    let span = "0123456789abcdef";
    for number in 0..20 {
        let value = if number % 2 == 0 { "even" } else { "odd" };
        let labels = [SampleLabel::Text("span_id", span), SampleLabel::Text("request", value)];
        push_sample(&mut profile, std::iter::repeat_n(wide, 20), &labels);
    }
    profile.comments = vec![span; 5];
    let mut types = empty();
    types.sample_types = vec![CPU; 20];
    push_sample(&mut types, std::iter::empty(), &[]);
    vec![pprof::encode(&profile), pprof::encode(&types)]
}

/// Writes the profiles as seeds of the fuzz target `store_flush` to the folder that `ALLUVIUM_SEEDS` names.
#[test]
fn the_cases_are_seeds_of_the_fuzz_target() {
    let Some(folder) = std::env::var_os("ALLUVIUM_SEEDS").map(std::path::PathBuf::from) else {
        return;
    };
    for (name, profile) in profiles() {
        std::fs::write(folder.join(name), profile).unwrap();
    }
    for (number, profile) in small().iter().enumerate() {
        std::fs::write(folder.join(format!("small-{number}")), profile).unwrap();
    }
}

fn push_of(labels: &[(&str, &str)], samples: Vec<(String, Bytes)>) -> Vec<u8> {
    let labels = labels
        .iter()
        .map(|(name, value)| LabelPair {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        })
        .collect();
    let samples = samples
        .into_iter()
        .map(|(id, raw_profile)| RawSample { raw_profile, id })
        .collect();
    PushRequest {
        series: vec![RawProfileSeries {
            labels,
            samples,
            annotations: Vec::new(),
        }],
    }
    .encode_to_vec()
}

const LABELS: [(&str, &str); 2] = [("__name__", "process_cpu"), ("service_name", "poison")];

fn one(profile: &[u8]) -> Vec<u8> {
    push_of(&LABELS, vec![(String::new(), pprof::gzip(profile).into())])
}

fn cases() -> Vec<Case> {
    let accepted = |name, body| Case {
        name,
        body,
        refused: None,
    };
    let refused = |name, body, words| Case {
        name,
        body,
        refused: Some(words),
    };
    let long = "v".repeat(2_000);
    let names: Vec<String> = (0..26).map(|number| format!("label_{number}")).collect();
    let mut wide: Vec<(&str, &str)> = LABELS.to_vec();
    wide.extend(names.iter().map(|name| (name.as_str(), long.as_str())));
    let compressed: Bytes = pprof::gzip(&names_of_nothing()).into();
    // The body has two gzip members. The trailer at its end gives the size of only the last member: four bytes.
    let lying: Bytes = [compressed.as_ref(), &pprof::gzip(&[0x48, 0, 0x50, 0])].concat().into();
    vec![
        refused(
            "a location of 100,000 lines",
            one(&lines_of_a_location()),
            "frames, including inlined ones",
        ),
        refused(
            "names of 65,000 bytes",
            one(&long_names_in_deep_stacks()),
            "the names in the stack",
        ),
        refused(
            "mappings of 65,000 bytes",
            one(&long_files_of_mappings()),
            "the names in the stack",
        ),
        refused("a span id of 135,000 bytes", one(&one_long_span_id()), "bytes of texts"),
        accepted("a series for each sample", one(&a_series_for_each_sample(1))),
        refused(
            "16,000 series of 10 types",
            one(&a_series_for_each_sample(10)),
            "series of 10 sample types",
        ),
        refused(
            "16,000 series with long labels",
            push_of(
                &wide,
                vec![(String::new(), pprof::gzip(&a_series_for_each_sample(1)).into())],
            ),
            "labels of the first",
        ),
        refused("100,000 sample types", one(&many_sample_types()), "100000 sample types"),
        refused(
            "a period type of 2 MiB",
            one(&a_long_period_type()),
            "the profile type of sample type",
        ),
        refused("2,000,000 comments", one(&comments()), "more than 4096 comments"),
        refused(
            "1,900,000 empty functions",
            one(&empty_messages(5)),
            "messages would take",
        ),
        refused(
            "1,900,000 empty mappings",
            one(&empty_messages(3)),
            "messages would take",
        ),
        refused(
            "1,900,000 empty labels",
            one(&empty_sample_labels()),
            "messages would take",
        ),
        refused(
            "a Go name of 1 MiB in 100,000 functions",
            one(&go_names()),
            "bytes of texts",
        ),
        refused(
            "16,000 samples with a label of 1 MiB",
            one(&long_labels()),
            "bytes of texts",
        ),
        accepted(
            "200 profiles of 4 MiB",
            push_of(&LABELS, vec![(String::new(), compressed); 200]),
        ),
        accepted(
            "50 profiles larger than they say",
            push_of(&LABELS, vec![(String::new(), lying); 50]),
        ),
        refused(
            "a profile id of 1 MiB",
            push_of(
                &LABELS,
                vec![("i".repeat(1 << 20), pprof::gzip(&names_of_nothing()).into())],
            ),
            "profile id",
        ),
        refused(
            "errors with long labels",
            push_of(&wide, vec![(String::new(), Bytes::from_static(b"no")); 5_000]),
            "malformed profile",
        ),
    ]
}

/// Alluvium with at most [`LIMIT_BYTES`] of memory. A control group limits its memory if possible; otherwise
/// `ulimit -d` limits its data segment.
struct Limited {
    program: Program,
    group: Option<std::path::PathBuf>,
}

impl Limited {
    fn start(arguments: &[&str], log: &std::path::Path) -> Self {
        let program = env!("CARGO_BIN_EXE_alluvium");
        let name = format!("alluvium-poison-{}", std::process::id());
        let groups = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        let group = groups.iter().find_map(|(root, file)| {
            let folder = std::path::Path::new(root).join(&name);
            let made = folder.is_dir() || std::fs::create_dir(&folder).is_ok();
            (made && std::fs::write(folder.join(file), LIMIT_BYTES.to_string()).is_ok()).then_some(folder)
        });
        let script = match &group {
            Some(folder) => format!("echo $$ > '{}/cgroup.procs' && exec \"$@\"", folder.display()),
            None => format!("ulimit -d {} && exec \"$@\"", LIMIT_BYTES / 1024),
        };
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", program]).args(arguments);
        Self {
            program: Program::start(command, log),
            group,
        }
    }

    /// Returns the peak resident memory of the process in bytes.
    fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.program.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        self.program.kill();
        if let Some(folder) = &self.group {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

async fn send(http: &reqwest::Client, url: &str, body: Vec<u8>) -> (u16, String) {
    let request = http.post(format!("{url}/push.v1.PusherService/Push"));
    let response = request
        .header("content-type", "application/proto")
        .body(body)
        .send()
        .await
        .unwrap();
    let status = response.status().as_u16();
    (status, response.text().await.unwrap())
}

async fn flush(http: &reqwest::Client, url: &str) {
    let status = http.post(format!("{url}/flush")).send().await.unwrap().status();
    assert_eq!(status, 204, "flush");
}

/// Returns the number of stored profiles of honest clients.
async fn stored(http: &reqwest::Client, url: &str) -> u64 {
    let honest = "SELECT series FROM series WHERE service_name LIKE 'client-%'";
    let rows = sql(
        http,
        url,
        &format!("SELECT count(*) FROM profiles WHERE series IN ({honest})"),
    )
    .await;
    rows[0][0].parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_small_profile_stops_the_server_or_its_honest_clients() {
    let folder = tempfile::tempdir().unwrap();
    let (log, data) = (folder.path().join("log"), folder.path().join("data"));
    let data = data.to_string_lossy().into_owned();
    let address = Address::keep();
    let url = format!("http://{address}");
    let http = client();
    let arguments = ["serve", "--listen", &address, "--data", &data, "--log.level", "error"];

    let mut server = Limited::start(&arguments, &log);
    server.program.ready(&http, &format!("{url}/ready")).await;
    // Each case is pushed alone, followed by SIGKILL and a start. Every second case is flushed before the kill. In the
    // other cases, the start finds all profiles of the case in the log.
    let next = AtomicU64::new(1);
    let mut honest = 0u64;
    let all = cases();
    for (index, case) in all.iter().enumerate() {
        let (status, text) = send(&http, &url, case.body.clone()).await;
        let shown: String = text.chars().take(300).collect();
        if let Some(words) = case.refused {
            assert!([400, 413].contains(&status), "{}: {status} {shown}", case.name);
            assert!(text.contains(words), "{}: {shown}", case.name);
            assert!(text.contains(|c: char| c.is_ascii_digit()), "{}: {shown}", case.name);
            assert!(text.len() < 4 << 20, "{}: an answer of {} bytes", case.name, text.len());
        } else {
            assert_eq!(status, 200, "{}: {shown}", case.name);
        }
        let pusher = PushClient::new(Caller::new(http.clone(), url.parse().unwrap()));
        pusher
            .push(&[numbered(next.fetch_add(1, Ordering::Relaxed), 0)])
            .await
            .unwrap();
        honest += 1;
        if index.is_multiple_of(2) {
            flush(&http, &url).await;
        }
        let peak = server.peak();
        assert!(peak < LIMIT_BYTES, "{}: peak memory {peak} bytes", case.name);
        drop(server);
        server = Limited::start(&arguments, &log);
        server.program.ready(&http, &format!("{url}/ready")).await;
        assert_eq!(stored(&http, &url).await, honest, "honest profiles after {}", case.name);
    }
    // All cases are pushed at once, many times, beside a client that pushes one profile after the other.
    let all = Arc::new(all);
    let stop = Arc::new(AtomicBool::new(false));
    let mut poisoners = tokio::task::JoinSet::new();
    for client_number in 0..CLIENTS {
        let (http, url, all) = (http.clone(), url.clone(), all.clone());
        poisoners.spawn(async move {
            for round in 0..3 {
                let case = &all[(client_number + round * 7) % all.len()];
                let (status, text) = send(&http, &url, case.body.clone()).await;
                let shown: String = text.chars().take(300).collect();
                // If many profiles arrive at the same time, the server may temporarily refuse any of them.
                let fine = if case.refused.is_none() {
                    [200, 503, 429]
                } else {
                    [400, 413, 503]
                };
                assert!(fine.contains(&status), "{}: {status} {shown}", case.name);
            }
        });
    }
    let pusher = PushClient::new(Caller::new(http.clone(), url.parse().unwrap()).with_timeout(Duration::from_mins(2)));
    let honest_client = {
        let stop = stop.clone();
        tokio::spawn(async move {
            let mut pushed = 0u64;
            while !stop.load(Ordering::Relaxed) || pushed < 10 {
                pusher.push(&[numbered(100_000 + pushed, 0)]).await.unwrap();
                pushed += 1;
            }
            pushed
        })
    };
    while let Some(ended) = poisoners.join_next().await {
        ended.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    honest += honest_client.await.unwrap();
    let peak = server.peak();
    assert!(peak < LIMIT_BYTES, "all at once: peak memory {peak} bytes");
    println!("peak of {CLIENTS} clients at once: {} MiB", peak >> 20);
    // Kills the server while the log contains everything.
    drop(server);

    let mut server = Limited::start(&arguments, &log);
    server.program.ready(&http, &format!("{url}/ready")).await;
    flush(&http, &url).await;
    assert_eq!(stored(&http, &url).await, honest, "honest profiles");
    assert_eq!(server.program.terminate().code(), Some(0));
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "", "errors in the log");
}
