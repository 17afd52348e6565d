//! Tests the contract that every component must fulfil.
//!
//! A component starts, accepts new arguments, continues after a refused update, and stops. It leaves nothing behind,
//! at whatever point it is aborted. The test `the_trial` runs in processes of its own, each with a share of the
//! components, so that all counted tasks, threads and files belong to one component. `ALLUVIUM_CONTRACT` restricts
//! `the_trial` to one component.

mod table;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::{Pin, pin};
use std::process::Command;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::runtime::Runtime;

use crate::ALL;
use crate::common::testing::{Collector, Recorder};
use alluvium_base::Shutdown;
use alluvium_lang::ast::Statement;
use alluvium_lang::decode::{Evaluate, decode};
use alluvium_lang::eval::Scope;
use alluvium_lang::schema::RECEIVER;
use alluvium_lang::value::{Capsule, Value};
use alluvium_lang::{Source, parse};
use alluvium_pipeline::component::{AnyComponent, AnyDefinition, ValidArguments};
use alluvium_profile::sink::Receiver;
use alluvium_profile::{Labels, RawProfile};
use table::{ROWS, Row};
use world::{Api, World};

/// Maximum number of points at which a component is aborted: after 0 polls, after 1 poll, and so on. After the first
/// point that the component does not reach, because it waits earlier, no further point is tried.
const MOST_CUTS: usize = 24;
/// A component that is not polled within this time counts as waiting.
const PATIENCE: Duration = Duration::from_millis(20);
/// Timeout for each step that must end by itself.
const LONGEST: Duration = Duration::from_secs(30);

/// Number of processes among which the components are divided. A component mostly waits, so there are more processes
/// than CPUs.
const PROCESSES: usize = 6;
/// Environment variable with the number of the process, from 0. If it is not set, the process tests all components.
const PROCESS: &str = "ALLUVIUM_CONTRACT_PROCESS";

#[test]
fn every_component_has_a_row() {
    let rows: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    let components: Vec<&str> = ALL.iter().map(|definition| definition.name()).collect();
    assert_eq!(rows, components);
    // `the_trial` builds every component.
    assert!(ALL.iter().all(|definition| definition.can_run()));
}

#[test]
fn every_component_keeps_the_contract() {
    std::thread::scope(|scope| {
        for process in 0..PROCESSES {
            scope.spawn(move || run_trial(process));
        }
    });
}

/// Runs `the_trial` for the components of one process.
fn run_trial(process: usize) {
    let temporary = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["tests::contract::the_trial", "--exact", "--ignored", "--nocapture"])
        .env(PROCESS, process.to_string())
        // No other process creates files in this folder.
        .env("TMPDIR", temporary.path())
        // Requests to clouds go to a proxy that does not exist.
        .env("HTTPS_PROXY", "http://127.0.0.1:9")
        .env("HTTP_PROXY", "http://127.0.0.1:9")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}\n{errors}"
    );
}

#[test]
#[ignore = "every_component_keeps_the_contract runs this test in its own process"]
fn the_trial() {
    let world = World::new();
    let chosen_name = std::env::var("ALLUVIUM_CONTRACT").ok();
    let process = std::env::var(PROCESS)
        .ok()
        .map(|number| number.parse::<usize>().unwrap());
    let is_selected = |(number, row): &(usize, &Row)| {
        chosen_name.as_deref().is_none_or(|name| name == row.name)
            && process.is_none_or(|process| number % PROCESSES == process)
    };
    // The first runtime of a process opens files that all later runtimes use. They must not be counted.
    drop(runtime());
    let mut failed = Vec::new();
    for (_, row) in ROWS.iter().enumerate().filter(is_selected) {
        let definition = crate::find(row.name).expect(row.name);
        let is_served = [row.common, row.first].iter().any(|text| text.contains("{api}"));
        let apis = if is_served {
            &[Api::Silent, Api::Refusing][..]
        } else {
            &[Api::Silent]
        };
        for api in apis {
            println!("{} ({api:?})", row.name);
            let trial = AssertUnwindSafe(|| try_one(definition, row, &world, *api));
            if catch_unwind(trial).is_err() {
                failed.push(row.name);
            }
        }
    }
    assert!(
        failed.is_empty(),
        "these components break the contract, for the reasons printed above: {failed:?}"
    );
}

/// Resources that a process holds besides memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Held {
    /// Open files and sockets.
    files: usize,
    threads: usize,
    /// Files and folders in the folder for temporary files.
    temporary: usize,
}

impl Held {
    fn now() -> Self {
        let count = |path: &Path| std::fs::read_dir(path).unwrap().count();
        Self {
            files: count(Path::new("/proc/self/fd")),
            threads: count(Path::new("/proc/self/task")),
            temporary: count(&std::env::temp_dir()),
        }
    }

    fn is_within(self, before: Self) -> bool {
        self.files <= before.files && self.threads <= before.threads && self.temporary <= before.temporary
    }
}

/// The folder of a component. The folder is removed on drop.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Drop for Folder {
    /// Retries the removal for a while. If the component ended a program such as git, the child processes of that
    /// program may still write files.
    fn drop(&mut self) {
        let deadline = Instant::now() + LONGEST;
        while std::fs::remove_dir_all(self.0.path()).is_err() && self.0.path().exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The bodies of a row, validated for its component.
struct Bodies {
    first: ValidArguments,
    other: ValidArguments,
    invalid: Option<ValidArguments>,
}

fn try_one(definition: &'static dyn AnyDefinition, row: &Row, world: &World, api: Api) {
    let before = Held::now();
    let body = |text: &str| arguments(definition, &world.fill(&format!("{}\n{text}", row.common), api));
    let bodies = Bodies {
        first: body(row.first),
        other: body(row.other),
        invalid: Some(row.invalid).filter(|text| !text.is_empty()).map(body),
    };
    let runtime = runtime();
    runtime.block_on(life(definition, &bodies, row));
    for polls in 0..MOST_CUTS {
        let cuts = [Cut::Drop, Cut::Stop];
        let reached = cuts.map(|cut| runtime.block_on(cut_off(definition, &bodies.first, polls, cut)));
        if reached == [false, false] {
            break;
        }
    }
    wait_until(&format!("{}: all tasks end", row.name), || {
        let tasks = runtime.metrics().num_alive_tasks();
        (tasks == 0, format!("{tasks} tasks"))
    });
    drop(runtime);
    wait_until(&format!("{}: nothing is held", row.name), || {
        let now = Held::now();
        (now.is_within(before), format!("{before:?}, then {now:?}"))
    });
}

/// Returns a runtime like the program's runtime, except that idle threads end at once.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_keep_alive(Duration::from_millis(1))
        .enable_all()
        .build()
        .unwrap()
}

/// Runs one component through its life: it starts, accepts arguments, refuses bad arguments, and stops. Then it runs
/// once more and is aborted in the middle of its work.
async fn life(definition: &'static dyn AnyDefinition, bodies: &Bodies, row: &Row) {
    let folder = Folder::new();
    let (component, recorder) = build(definition, &bodies.first, folder.0.path()).await;
    for round in ["first run", "second run"] {
        let stop = Shutdown::new();
        let running = tokio::spawn(component.run(stop.clone()));
        let runs = async || {
            send(&recorder).await;
            tokio::time::sleep(PATIENCE).await;
            assert!(!running.is_finished(), "{}: the {round} ended early", row.name);
        };
        runs().await;
        for arguments in [&bodies.first, &bodies.other, &bodies.first] {
            if let Err(error) = update(&component, arguments).await {
                panic!("{}: a valid update was refused: {error}", row.name);
            }
            runs().await;
        }
        if let Some(invalid) = &bodies.invalid {
            let exports = recorder.exports();
            assert!(
                update(&component, invalid).await.is_err(),
                "{}: a bad update was accepted",
                row.name
            );
            runs().await;
            assert_eq!(
                recorder.exports(),
                exports,
                "{}: a bad update changed exports",
                row.name
            );
        }
        stop.cancel();
        let ended = tokio::time::timeout(LONGEST, running).await;
        let ended = ended.unwrap_or_else(|_| panic!("{}: the {round} did not stop", row.name));
        ended.expect("a panic ended the run").expect("an error ended the run");
    }
    if let Err(error) = update(&component, &bodies.other).await {
        panic!("{}: an update was refused between runs: {error}", row.name);
    }
    let running = tokio::spawn(component.run(Shutdown::new()));
    tokio::time::sleep(PATIENCE).await;
    running.abort();
    assert!(
        running.await.is_err_and(|error| error.is_cancelled()),
        "{} ended early",
        row.name
    );
}

/// The way in which a component is aborted.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// The future of its run is dropped.
    Drop,
    /// It receives the stop signal, and must end.
    Stop,
}

/// Runs a new component until it has been polled `polls` times, and aborts it there. If the component waits earlier, it
/// is aborted at that point, and the result is false.
async fn cut_off(definition: &'static dyn AnyDefinition, arguments: &ValidArguments, polls: usize, cut: Cut) -> bool {
    let folder = Folder::new();
    let (component, recorder) = build(definition, arguments, folder.0.path()).await;
    let stop = Shutdown::new();
    let mut running = component.run(stop.clone());
    let mut left = polls;
    let some_polls = std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        Pin::new(&mut running).poll(context).map(|_| ())
    });
    let work = async {
        tokio::join!(some_polls, send(&recorder));
    };
    let _ = tokio::time::timeout(PATIENCE, pin!(work)).await;
    let is_reached = left == 0;
    match cut {
        Cut::Drop => drop(running),
        Cut::Stop => {
            stop.cancel();
            let ended = tokio::time::timeout(LONGEST, running).await;
            let ended = ended.unwrap_or_else(|_| panic!("{}: does not stop after {polls} polls", definition.name()));
            ended.expect("an error ended the run");
        }
    }
    is_reached
}

/// Sends a profile to a component that exports a receiver. The component may refuse the profile.
async fn send(recorder: &Recorder) {
    if !matches!(recorder.export("receiver"), Value::Capsule(_)) {
        return;
    }
    let profile = RawProfile {
        labels: Labels::from_pairs([(Arc::from("service_name"), Arc::from("a"))]),
        id: "".into(),
        pprof: Bytes::from_static(&[0x0a, 4, 8, 1, 16, 2]),
    };
    let _ = tokio::time::timeout(PATIENCE, recorder.receiver().append(vec![profile])).await;
}

/// Builds a component on a blocking thread, like the engine.
async fn build(
    definition: &'static dyn AnyDefinition,
    arguments: &ValidArguments,
    folder: &Path,
) -> (Arc<dyn AnyComponent>, Recorder) {
    let recorder = Recorder::new(&format!("{}.test", definition.name()), folder);
    let (context, arguments) = (recorder.context.clone(), arguments.clone());
    let built = tokio::task::spawn_blocking(move || definition.build(context, &arguments))
        .await
        .unwrap();
    let component = built.unwrap_or_else(|error| panic!("{} cannot be built: {error}", definition.name()));
    (component, recorder)
}

async fn update(component: &Arc<dyn AnyComponent>, arguments: &ValidArguments) -> Result<(), String> {
    let (component, arguments) = (component.clone(), arguments.clone());
    let updated = tokio::task::spawn_blocking(move || component.update(&arguments))
        .await
        .unwrap();
    updated.map_err(|error| error.to_string())
}

/// The scope in which bodies are evaluated. Its only name is `sink`, a receiver.
struct Names(Value);

impl Scope for Names {
    fn lookup(&self, path: &[&str]) -> Option<(Value, usize)> {
        (path.first() == Some(&"sink")).then(|| (self.0.clone(), 1))
    }
}

fn arguments(definition: &dyn AnyDefinition, text: &str) -> ValidArguments {
    let source = Source::new("row", format!("row {{\n{text}\n}}"));
    let (file, _) = parse(&source);
    let Some(Statement::Block(block)) = file.body.first() else {
        panic!("{}: no body: {text}", definition.name());
    };
    let sink: Receiver = Arc::new(Collector::default());
    let names = Names(Value::Capsule(Capsule::new(RECEIVER, sink)));
    let resolve = Evaluate {
        scope: &names,
        defaults: None,
    };
    let decoded = decode(&source, block.header(), &block.body, definition.arguments(), &resolve);
    let mistakes = decoded.diagnostics.render();
    assert!(!decoded.diagnostics.has_errors(), "{}: {mistakes}", definition.name());
    definition
        .validate(decoded.arguments)
        .unwrap_or_else(|errors| panic!("{}: {errors:?}", definition.name()))
}

/// Waits until `state` is true. After the timeout, panics with the last description of the state.
fn wait_until(subject: &str, state: impl Fn() -> (bool, String)) {
    let deadline = Instant::now() + LONGEST;
    loop {
        let (is_reached, description) = state();
        if is_reached {
            return;
        }
        assert!(Instant::now() < deadline, "{subject}: {description}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
