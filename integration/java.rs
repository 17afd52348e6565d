//! `pyroscope.java` and recordings of Java Flight Recorder, with real virtual machines.
//!
//! In: a Java program compiled here, and async-profiler's library, which `make tools` installs. The collector finds the
//! virtual machine with `discovery.process`. The test reads the pushes of the collector as a server would. It waits for
//! each condition for at most `PATIENCE` of the module `program`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alluvium_profile::pprof::{self, Profile};
use alluvium_wire::connect::{self, Codec};
use alluvium_wire::proto::push::{PushRequest, PushResponse};
use alluvium_wire::push::PushBatch;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;

use crate::program::{Address, PATIENCE, Program, file_of, other};

/// Maximum size of a decompressed test profile in bytes.
const MAX_PROFILE: usize = 64 << 20;

/// Sums of the received values by profile type and by function on a stack, and the labels of the last profile.
#[derive(Default)]
struct Seen {
    totals: BTreeMap<(String, String), i64>,
    labels: String,
}

type Shared = Arc<Mutex<Seen>>;

async fn push(State(seen): State<Shared>, body: Bytes) -> Response {
    let request: PushRequest = connect::decode(Codec::Proto, body).unwrap();
    let (profiles, _) = PushBatch::from_request(request).unwrap().split();
    let mut seen = seen.lock().unwrap();
    for raw in profiles {
        let plain = pprof::gunzip(&raw.pprof, MAX_PROFILE).unwrap();
        let profile = pprof::decode(&plain).unwrap();
        seen.add(raw.labels.get("__name__").unwrap(), &profile);
        seen.labels = raw.labels.to_string();
    }
    connect::encode(Codec::Proto, &PushResponse::default()).into_response()
}

impl Seen {
    fn add(&mut self, name: &str, profile: &Profile<'_>) {
        for sample in 0..profile.sample_count() {
            for location in profile.stack(sample) {
                let line = profile.lines_of(&profile.locations[*location as usize])[0];
                let function = profile.functions[line.function as usize].name;
                for (kind, value) in profile.sample_types.iter().zip(profile.values_of(sample)) {
                    let key = (format!("{name}:{}", kind.kind), function.to_owned());
                    *self.totals.entry(key).or_default() += value;
                }
            }
        }
    }
}

/// Starts a server that accepts pushes while the test runs. Returns its URL and the received profiles.
async fn sink() -> (String, Shared) {
    let seen = Shared::default();
    let router = Router::new()
        .route("/push.v1.PusherService/Push", post(push))
        .with_state(seen.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, seen)
}

/// Compiles `Busy` and starts a virtual machine that runs it with these flags. The property `whose` distinguishes this
/// virtual machine from others. Returns `None` if there is no JDK.
pub(crate) fn busy(folder: &Path, flags: &[&str]) -> Option<Program> {
    other("javac", &["-version"], "default-jdk-headless")?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("integration/fixtures/java/Busy.java");
    let compiled = Command::new("javac")
        .arg("-d")
        .arg(folder)
        .arg(source)
        .status()
        .unwrap();
    assert!(compiled.success(), "javac failed");
    let mut java = Command::new("java");
    java.args(flags)
        .arg(format!("-Dwhose={}", folder.display()))
        .arg("-cp")
        .arg(folder)
        .arg("Busy");
    Some(Program::start(java, &folder.join("java.log")))
}

/// Starts the collector with `discovery.process`, and with `pyroscope.java` for the virtual machine that [`busy`]
/// starts in the same folder. `dist` is the path of async-profiler's library. If `dist` is empty and no async-profiler
/// is installed, the component uses JDK Flight Recorder.
fn collector(folder: &Path, url: &str, dist: &str) -> Program {
    let text = format!(
        r#"
discovery.process "all" {{
	refresh_interval = "2s"

	discover_config {{
		commandline = true
	}}
}}

discovery.relabel "busy" {{
	targets = discovery.process.all.targets

	rule {{
		source_labels = ["__meta_process_commandline"]
		regex         = ".*-Dwhose={folder} .*"
		action        = "keep"
	}}

	rule {{
		target_label = "service_name"
		replacement  = "busy"
	}}
}}

pyroscope.java "busy" {{
	targets    = discovery.relabel.busy.output
	forward_to = [pyroscope.write.sink.receiver]
	dist       = "{dist}"
	tmp_dir    = "{folder}"

	profiling_config {{
		interval = "3s"
		lock     = "1ms"
	}}
}}

pyroscope.write "sink" {{
	endpoint {{
		url = "{url}"
	}}
}}
"#,
        folder = folder.display()
    );
    let config = folder.join("config.alloy");
    std::fs::write(&config, text).unwrap();
    let data = folder.join("data").display().to_string();
    let address = Address::keep();
    let config = config.display().to_string();
    let arguments = [
        "run",
        &config,
        "--server.http.listen-addr",
        &address,
        "--storage.path",
        &data,
    ];
    Program::alluvium(&arguments, &folder.join("log"))
}

/// Waits until `done` is true for the received profiles.
async fn until(seen: &Shared, programs: &mut [&mut Program], what: &str, done: impl Fn(&Seen) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done(&seen.lock().unwrap()) {
        for program in &mut *programs {
            program.check();
        }
        assert!(
            Instant::now() < deadline,
            "timed out: {what}\n{:?}\n{}",
            seen.lock().unwrap().totals.keys().take(40).collect::<Vec<_>>(),
            programs[0].tail()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn has(seen: &Seen, kind: &str, function: &str) -> bool {
    seen.totals
        .get(&(kind.to_owned(), function.to_owned()))
        .is_some_and(|total| *total > 0)
}

/// Waits until three methods of `Busy` are in the profiles: `burn` in the CPU profile, `allocate` in the allocation
/// profile, and `hold` in the lock profile. `allocations` is the type of the allocation profile.
async fn until_all(seen: &Shared, programs: &mut [&mut Program], allocations: &str) {
    until(seen, programs, "CPU, allocations and locks", |seen| {
        has(seen, "process_cpu:cpu", "Busy.burn")
            && has(seen, allocations, "Busy.allocate")
            && has(seen, "mutex:delay", "Busy.hold")
    })
    .await;
}

/// Returns Alluvium's files in a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("alluvium-"))
        .collect()
}

/// Creates a folder that every user may enter.
fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("alluvium-java-test").tempdir().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_virtual_machine_without_an_agent_is_profiled_with_async_profiler() {
    let Some(library) = file_of("ALLUVIUM_ASYNC_PROFILER", "tools.profiler:async-profiler") else {
        return;
    };
    let folder = folder();
    let Some(mut java) = busy(folder.path(), &[]) else {
        return;
    };
    let (url, seen) = sink().await;
    let mut collector = collector(folder.path(), &url, &library.display().to_string());
    until_all(
        &seen,
        &mut [&mut collector, &mut java],
        "memory:alloc_in_new_tlab_bytes",
    )
    .await;
    let labels = seen.lock().unwrap().labels.clone();
    for label in [
        "service_name=\"busy\"",
        "jfr_event=\"itimer\"",
        "pyroscope_spy=\"alloy.java\"",
        "__delta__=\"false\"",
    ] {
        assert!(labels.contains(label), "{label} is missing in {labels}");
    }
    assert!(collector.terminate().success());
    assert_eq!(files(folder.path()), [] as [PathBuf; 0], "files are left");
    // The first collector has stopped the profiler, so the second one starts it without a takeover. The second one is
    // killed, so the third one takes over a running profiler.
    for _ in 0..2 {
        *seen.lock().unwrap() = Seen::default();
        let mut again = self::collector(folder.path(), &url, &library.display().to_string());
        until(
            &seen,
            &mut [&mut again, &mut java],
            "CPU profiles of another collector",
            |seen| has(seen, "process_cpu:cpu", "Busy.burn"),
        )
        .await;
        again.kill();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_virtual_machine_is_profiled_with_its_own_recorder_where_there_is_no_async_profiler() {
    if Path::new("/opt/async-profiler").exists() {
        println!("skipped: an async-profiler is installed");
        return;
    }
    let folder = folder();
    let Some(mut java) = busy(folder.path(), &[]) else {
        return;
    };
    let (url, seen) = sink().await;
    let mut collector = collector(folder.path(), &url, "");
    until_all(&seen, &mut [&mut collector, &mut java], "memory:alloc_sample_bytes").await;
    assert!(collector.terminate().success());
    assert_eq!(files(folder.path()), [] as [PathBuf; 0], "files are left");
    let checked = Command::new("jcmd")
        .args([&java.id().to_string(), "JFR.check"])
        .output();
    if let Ok(checked) = checked {
        let text = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(!text.contains("alluvium"), "{text}");
    }
}
