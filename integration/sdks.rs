//! Pyroscope's published SDKs push profiles to a server, and the flame graphs contain the profiled functions.
//!
//! Scenario: a real server, and for each language a program that uses its SDK (`fixtures/sdk`). Guarantee: each profile
//! type that the SDK sends contains the function that caused the values, under the name that the SDK uses, with the
//! labels of the program. The module `java` tests the agent for Java.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::client;
use crate::program::{Address, PATIENCE, Program, file_of, other, sql};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/// Expected profiles of a program: a profile type, a regular expression for a function on its stacks, and the value of
/// the label `controller`. The program sets the label `controller` while it runs and not at its start.
struct Expected(&'static str, &'static str, Option<&'static str>);

fn source(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("integration/fixtures/sdk")
        .join(language)
}

/// Starts a server, and runs `program` with the URL of this server as its last argument until all expected profiles
/// have arrived.
async fn pushes(folder: &Path, service: &str, mut program: Command, expected: &[Expected]) {
    let http = client();
    let address = Address::keep();
    let url = format!("http://{address}");
    let data = folder.join("data").display().to_string();
    let mut server = Program::alluvium(
        &["serve", "--listen", &address, "--data", &data],
        &folder.join("serve.log"),
    );
    server.ready(&http, &format!("{url}/ready")).await;
    program.arg(&url);
    let mut program = Program::start(program, &folder.join("program.log"));

    let deadline = Instant::now() + PATIENCE;
    for Expected(profile_type, function, controller) in expected {
        let controller = controller.map_or_else(|| "IS NULL".to_owned(), |value| format!("= '{value}'"));
        let query = format!(
            "SELECT coalesce(sum(value), 0) FROM flat WHERE service_name = '{service}' AND labels['region'] = 'eu' \
             AND profile_type = '{profile_type}' AND labels['controller'] {controller} \
             AND function_matches(frames, '{function}')"
        );
        while sql(&http, &url, &query).await == [["0"]] {
            program.check();
            server.check();
            let found = "SELECT DISTINCT service_name, profile_type, function, labels['region'] FROM flat";
            assert!(
                Instant::now() < deadline,
                "no `{function}` in {profile_type}\n{}\n{}\n{:?}",
                program.tail(),
                server.tail(),
                sql(&http, &url, found).await
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    assert!(server.terminate().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_for_python_pushes_cpu_and_memory() {
    let python = std::env::var("ALLUVIUM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if other(&python, &["-c", "import pyroscope"], "pyroscope-io").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut program = Command::new(python);
    program.arg(source("python").join("busy.py"));
    let expected = [
        Expected(CPU, "^burn$", Some("slow")),
        Expected("memory:inuse_space:bytes:space:bytes", "^keep$", None),
    ];
    pushes(folder.path(), "busy.python", program, &expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_for_node_pushes_cpu_wall_time_and_memory() {
    let Some(package) = file_of("ALLUVIUM_PYROSCOPE_NODE", "@pyroscope/nodejs") else {
        return;
    };
    if other("node", &["--version"], "nodejs").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut program = Command::new("node");
    // `make tools` does not install the package in the folder of the program, so `NODE_PATH` names its folder.
    program
        .env("NODE_PATH", package.ancestors().nth(3).unwrap())
        .arg(source("node").join("busy.js"));
    let expected = [
        Expected("process_cpu:cpu:nanoseconds:wall:nanoseconds", ":burn:", Some("slow")),
        Expected("wall:wall:nanoseconds:wall:nanoseconds", ":burn:", Some("slow")),
        Expected("memory:inuse_space:bytes:inuse_space:bytes", ":keep:", None),
    ];
    pushes(folder.path(), "busy.node", program, &expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_for_go_pushes_every_type_it_has() {
    if other("go", &["version"], "golang-go").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let built = folder.path().join("busy");
    let status = Command::new("go")
        .args(["build", "-buildvcs=false", "-o"])
        .arg(&built)
        .arg(".")
        .env("GOTOOLCHAIN", "local")
        .current_dir(source("go"))
        .status()
        .unwrap();
    assert!(status.success(), "go build failed");
    let expected = [
        Expected(CPU, "^main.burn$", Some("slow")),
        Expected("memory:inuse_space:bytes:space:bytes", "^main.keep$", None),
        Expected("memory:alloc_space:bytes:space:bytes", "^main.keep$", None),
        Expected("goroutines:goroutine:count:goroutine:count", "^main.hold$", None),
        Expected("mutex:delay:nanoseconds:contentions:count", "^main.hold$", None),
    ];
    pushes(folder.path(), "busy.go", Command::new(built), &expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_for_rust_pushes_cpu() {
    let folder = tempfile::tempdir().unwrap();
    // The build output is stored beside the programs of the tests.
    let target = Path::new(env!("CARGO_BIN_EXE_alluvium")).with_file_name("sdk-rust");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--target-dir"])
        .arg(&target)
        .current_dir(source("rust"))
        .status()
        .unwrap();
    assert!(status.success(), "cargo build failed");
    let program = Command::new(target.join("debug/busy"));
    pushes(
        folder.path(),
        "busy.rust",
        program,
        &[Expected(CPU, "^busy::burn$", None)],
    )
    .await;
}
