//! Pyroscope's published SDKs push profiles to a server, and the flame graphs contain the profiled functions.
//!
//! Scenario: a real server, and for each language a program that uses its SDK (`fixtures/sdk`). Guarantee: each profile
//! type that the SDK sends contains the functions that caused the values, with their true shares, under the name that
//! the SDK uses, with its lines and the labels of the program. Values that the program knows are exact: the server adds
//! the pushes of a type that counts since the last push, and counts none twice.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::flames::{Flames, places};
use crate::harness::client;
use crate::pprof::run_tool;
use crate::program::{Address, PATIENCE, Program, file_of, other};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
/// Share of `slow` in the work of `slow` and `fast`.
const SHARE: f64 = 0.7;
/// Maximum difference of a share from its true value. A program takes 300 samples, for which it is more than four
/// standard deviations.
const POINTS: f64 = 0.12;

fn source(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("integration/fixtures/sdk")
        .join(language)
}

/// Returns the number of the line with this text.
fn line_of(path: &Path, text: &str) -> usize {
    let source = std::fs::read_to_string(path).unwrap();
    1 + source.lines().position(|line| line.contains(text)).unwrap()
}

/// A server that gets the profiles of one service.
struct Site {
    client: reqwest::Client,
    _address: Address,
    url: String,
    server: Program,
    service: &'static str,
}

impl Site {
    async fn start(folder: &Path, service: &'static str) -> Self {
        let client = client();
        let address = Address::keep();
        let url = format!("http://{address}");
        let data = folder.join("data").display().to_string();
        let mut server = Program::alluvium(
            &["serve", "--listen", &address, "--data", &data],
            &folder.join("serve.log"),
        );
        server.ready(&client, &format!("{url}/ready")).await;
        Self {
            client,
            _address: address,
            url,
            server,
            service,
        }
    }

    /// Runs a program to its end, with the URL of the server and a folder as arguments. Returns the end of its output.
    fn run(&mut self, mut program: Command, folder: &Path) -> String {
        program.arg(&self.url).arg(folder);
        let mut program = Program::start(program, &folder.join("program.log"));
        assert!(program.wait().success(), "{}", program.tail());
        self.server.check();
        program.tail()
    }

    /// Returns a selector of the service with further matchers, each after a comma.
    fn selector(&self, more: &str) -> String {
        format!("{{service_name=\"{}\",region=\"eu\"{more}}}", self.service)
    }

    async fn flames(&self, profile_type: &str, more: &str) -> Flames {
        Flames::ask(&self.client, &self.url, profile_type, &self.selector(more)).await
    }

    async fn places(&self, profile_type: &str) -> Vec<String> {
        let places = places(&self.client, &self.url, profile_type, &self.selector("")).await;
        places.into_iter().collect()
    }

    /// Checks the shares of two functions, and that the label `controller` selects their stacks. The program sets this
    /// label while they run and not at its start.
    async fn has_shares(&self, profile_type: &str, expected: f64, slow: &str, fast: &str) -> Flames {
        let all = self.flames(profile_type, "").await;
        let (of_slow, of_fast) = (all.with(slow), all.with(fast));
        let share = of_slow as f64 / (of_slow + of_fast) as f64;
        assert!(
            (share - expected).abs() < POINTS,
            "{profile_type}: {share}, {expected}\n{all:?}"
        );
        for (controller, of_function, function, other) in [("slow", of_slow, slow, fast), ("fast", of_fast, fast, slow)]
        {
            let part = self
                .flames(profile_type, &format!(",controller=\"{controller}\""))
                .await;
            assert!(
                10 * part.with(function) > 9 * of_function && 10 * part.with(other) < of_function,
                "{profile_type} of {controller}\n{part:?}\n{all:?}"
            );
        }
        all
    }

    /// Checks that a profile type has a function. The label `controller` does not apply to it.
    async fn has(&self, profile_type: &str, function: &str, units: &str) -> i64 {
        let all = self.flames(profile_type, "").await;
        assert_eq!(all.units, units, "{profile_type}");
        assert!(all.with(function) > 0, "{profile_type}\n{all:?}");
        let labelled = self.flames(profile_type, ",controller=~\".+\"").await;
        assert_eq!(labelled.with(function), 0, "{profile_type}\n{labelled:?}");
        all.with(function)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_for_python_pushes_cpu_and_memory() {
    let python = std::env::var("ALLUVIUM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if other(&python, &["-c", "import pyroscope"], "pyroscope-io").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut site = Site::start(folder.path(), "busy.python").await;
    let file = source("python").join("busy.py");
    let mut program = Command::new(python);
    program.arg(&file);
    let said = site.run(program, folder.path());
    let share = said.lines().next_back().unwrap().parse().unwrap();

    site.has_shares(CPU, share, "slow", "fast").await;
    let place = format!("slow busy.py:{}", line_of(&file, "burn(70_000)"));
    let places = site.places(CPU).await;
    assert!(places.contains(&place), "{place}: {places:?}");
    site.has("memory:alloc_space:bytes:space:bytes", "keep", "bytes").await;
    site.has("memory:inuse_space:bytes:space:bytes", "keep", "bytes").await;
    site.has("memory:alloc_objects:count:space:bytes", "keep", "objects")
        .await;
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
    let mut site = Site::start(folder.path(), "busy.node").await;
    let file = source("node").join("busy.js");
    let mut program = Command::new("node");
    // `make tools` does not install the package in the folder of the program, so `NODE_PATH` names its folder.
    program.env("NODE_PATH", package.ancestors().nth(3).unwrap()).arg(&file);
    site.run(program, folder.path());

    site.has_shares("process_cpu:cpu:nanoseconds:wall:nanoseconds", SHARE, "slow", "fast")
        .await;
    let wall = site.has_shares("wall:wall:nanoseconds:wall:nanoseconds", SHARE, "slow", "fast");
    assert_eq!(wall.await.units, "nanoseconds");
    // The SDK puts the file before the name, and the line at which the function begins behind it.
    let place = format!(":slow:{0} busy.js:{0}", line_of(&file, "function slow()"));
    let places = site.places("wall:wall:nanoseconds:wall:nanoseconds").await;
    assert!(
        places.iter().any(|found| found.ends_with(&place)),
        "{place}: {places:?}"
    );
    site.has("memory:inuse_space:bytes:inuse_space:bytes", "keep", "bytes")
        .await;
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
    let mut site = Site::start(folder.path(), "busy.go").await;
    site.run(Command::new(built), folder.path());

    site.has_shares(CPU, SHARE, "main.slow", "main.fast").await;
    let place = format!(
        "main.slow main.go:{}",
        line_of(&source("go").join("main.go"), "burn(700_000)")
    );
    let places = site.places(CPU).await;
    assert!(places.contains(&place), "{place}: {places:?}");
    // Go counts these types since the start of the program, and the SDK sends the differences. Their sum is the last
    // count, which the program has written.
    for (profile_type, file, kind, function) in [
        (
            "memory:alloc_space:bytes:space:bytes",
            "allocs",
            "alloc_space",
            "main.keep",
        ),
        (
            "memory:alloc_objects:count:space:bytes",
            "allocs",
            "alloc_objects",
            "main.keep",
        ),
        (
            "block:delay:nanoseconds:contentions:count",
            "block",
            "delay",
            "main.await",
        ),
        (
            "block:contentions:count:contentions:count",
            "block",
            "contentions",
            "main.await",
        ),
        (
            "mutex:delay:nanoseconds:contentions:count",
            "mutex",
            "delay",
            "main.hold",
        ),
        (
            "mutex:contentions:count:contentions:count",
            "mutex",
            "contentions",
            "main.hold",
        ),
    ] {
        let unit = match kind {
            "alloc_space" => "B",
            "delay" => "ns",
            _ => "count",
        };
        let truth = run_tool(&folder.path().join(format!("{file}.pb.gz")), kind, unit);
        let flames = site.flames(profile_type, "").await;
        let (ours, expected) = (flames.with(function), truth[function].1);
        assert!(expected > 0, "{truth:?}");
        // Delays are counted in cycles of the CPU's clock, and each difference is rounded.
        let rounded = if kind == "delay" { expected / 1000 } else { 0 };
        assert!(
            (ours - expected).abs() <= rounded,
            "{profile_type}: {ours} of {expected}\n{flames:?}"
        );
    }
    // The memory in use is a state. Each push has what the garbage collector knew, and the last push has all 16 blocks.
    let in_use = site
        .has("memory:inuse_space:bytes:space:bytes", "main.keep", "bytes")
        .await;
    assert!(in_use >= 16 << 20 && in_use % (1 << 20) == 0, "{in_use}");
    site.has("goroutines:goroutine:count:goroutine:count", "main.hold", "objects")
        .await;
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
    let mut site = Site::start(folder.path(), "busy.rust").await;
    site.run(Command::new(target.join("debug/busy")), folder.path());

    site.has_shares(CPU, SHARE, "busy::slow", "busy::fast").await;
    let line = line_of(&source("rust").join("src/main.rs"), "burn(7_000_000)");
    let place = format!("busy::slow main.rs:{line}");
    let places = site.places(CPU).await;
    assert!(places.contains(&place), "{place}: {places:?}");
}

/// The agent pushes to a collector, which passes the recordings on to the server as it gets them.
#[tokio::test(flavor = "multi_thread")]
async fn the_agent_for_java_pushes_cpu_allocations_and_locks_through_a_collector() {
    let Some(agent) = file_of("ALLUVIUM_PYROSCOPE_AGENT", "io.pyroscope:agent") else {
        return;
    };
    if other("javac", &["-version"], "default-jdk-headless").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let compiled = Command::new("javac")
        .arg("-d")
        .arg(folder.path())
        .arg("-cp")
        .arg(&agent)
        .arg(source("../java").join("Busy.java"))
        .arg(source("java").join("Labelled.java"))
        .status()
        .unwrap();
    assert!(compiled.success(), "javac failed");
    let site = Site::start(folder.path(), "busy.java").await;
    let port = Address::keep();
    let config = format!(
        r#"
pyroscope.receive_http "sdk" {{
	http {{
		listen_address = "127.0.0.1"
		listen_port    = {port}
	}}

	forward_to = [pyroscope.write.server.receiver]
}}

pyroscope.write "server" {{
	endpoint {{
		url = "{url}"
	}}
}}
"#,
        port = port.port(),
        url = site.url,
    );
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("config.alloy"), config).unwrap();
    let status = Address::keep();
    let arguments = [
        "run",
        &at("config.alloy"),
        "--server.http.listen-addr",
        &status,
        "--storage.path",
        &at("collector"),
    ];
    let mut collector = Program::alluvium(&arguments, &folder.path().join("collector.log"));
    collector.ready(&site.client, &format!("http://{status}/-/ready")).await;
    let mut java = Command::new("java");
    java.arg(format!("-javaagent:{}", agent.display()))
        .arg(format!("-Dpyroscope.server.address=http://{port}"))
        .args([
            "-Dpyroscope.application.name=busy.java",
            "-Dpyroscope.labels=region=eu",
            "-Dpyroscope.format=jfr",
            "-Dpyroscope.profiler.event=itimer",
            "-Dpyroscope.profiler.alloc=512k",
            "-Dpyroscope.profiler.lock=1ms",
            "-Dpyroscope.upload.interval=2s",
            "-cp",
        ])
        .arg(folder.path())
        .arg("Labelled");
    let mut java = Program::start(java, &folder.path().join("java.log"));

    let deadline = Instant::now() + PATIENCE;
    loop {
        let cpu = site.flames(CPU, "").await;
        if cpu.with("Busy.burn") > 3_000_000_000 {
            break;
        }
        java.check();
        collector.check();
        assert!(Instant::now() < deadline, "{cpu:?}\n{}", java.tail());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    site.has_shares(CPU, SHARE, "Labelled.slow", "Labelled.fast").await;
    let line = line_of(&source("java").join("Labelled.java"), "Busy.burn()");
    let place = format!("Labelled.slow :{line}");
    let places = site.places(CPU).await;
    assert!(places.contains(&place), "{place}: {places:?}");
    let allocations = "memory:alloc_in_new_tlab_bytes:bytes:space:bytes";
    site.has(allocations, "Busy.allocate", "bytes").await;
    let delays = site
        .has("mutex:delay:nanoseconds:mutex:count", "Busy.hold", "nanoseconds")
        .await;
    let waits = site
        .has("mutex:contentions:count:mutex:count", "Busy.hold", "count")
        .await;
    // A holder keeps the lock for 20 ms.
    assert!(delays / waits > 1_000_000, "{delays} ns of {waits}");
}
