//! What the engine costs: `cargo bench --no-default-features --features agent --bench engine`.
//!
//! Runs the release program itself: 3,000 chained `discovery.relabel` blocks (start to ready, reload without a change, resident memory), and an idle collector with one component
//! (resident memory, CPU over half a minute). Every result is one line of JSON on stdout with the bound that it must keep; beyond a bound the exit code is 1. Words on the
//! command line choose: `chain`, `idle`, `binary`. `ALLUVIUM` names another program to measure.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a bench prints its results, and a failure ends it"
)]

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Links of the chain.
const LINKS: usize = 3000;
/// How long the idle collector is watched.
const IDLE: Duration = Duration::from_secs(30);
/// Clock ticks a second in `/proc`, on every Linux.
const TICKS: f64 = 100.0;

fn main() -> ExitCode {
    // `cargo bench` passes `--bench`; what is left are choices.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| chosen.is_empty() || chosen.iter().any(|word| word == name);
    let program = std::env::var_os("ALLUVIUM").map_or_else(|| env!("CARGO_BIN_EXE_alluvium").into(), PathBuf::from);
    let mut bounds = Bounds(true);
    if wanted("binary") {
        let megabytes = std::fs::metadata(&program).unwrap().len() as f64 / 1e6;
        bounds.result("binary_mb", megabytes, 30.0);
    }
    if wanted("chain") {
        chain(&program, &mut bounds);
    }
    if wanted("idle") {
        idle(&program, &mut bounds);
    }
    if bounds.0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// True while all bounds were kept.
struct Bounds(bool);

impl Bounds {
    /// A figure without a bound.
    fn figure(&self, name: &str, value: f64) {
        println!(r#"{{"name":"{name}","value":{value:.4}}}"#);
    }

    fn result(&mut self, name: &str, value: f64, most: f64) {
        self.0 &= value <= most;
        println!(
            r#"{{"name":"{name}","value":{value:.4},"most":{most},"kept":{}}}"#,
            value <= most
        );
    }
}

fn chain(program: &Path, bounds: &mut Bounds) {
    let mut text =
        "discovery.relabel \"r0\" {\n\ttargets = [{\"__address__\" = \"localhost:1\", \"job\" = \"a\"}]\n}\n"
            .to_owned();
    for link in 1..LINKS {
        let _ = write!(
            text,
            "\ndiscovery.relabel \"r{link}\" {{\n\ttargets = discovery.relabel.r{}.output\n\n\trule {{\n\t\tsource_labels = [\"job\"]\n\t\ttarget_label  = \"copy\"\n\t}}\n}}\n",
            link - 1
        );
    }
    let mut ready = Vec::new();
    for _ in 0..5 {
        let collector = Collector::start(program, &text);
        ready.push(collector.ready_after);
    }
    bounds.result("chain_ready_seconds", median(ready), 0.2);
    let collector = Collector::start(program, &text);
    std::thread::sleep(Duration::from_secs(2));
    bounds.result("chain_resident_mb", collector.resident_mb(), 25.0);
    let reload = || {
        let started = Instant::now();
        assert!(
            collector.get("/-/reload").ends_with("config reloaded\n"),
            "{}",
            collector.log()
        );
        started.elapsed().as_secs_f64()
    };
    bounds.result(
        "chain_reload_seconds",
        median((0..11).map(|_| reload()).collect()),
        0.05,
    );
    std::thread::sleep(Duration::from_secs(2));
    bounds.result("chain_resident_after_reloads_mb", collector.resident_mb(), 25.0);
    // What is asked for is bounded above; these are for the record: a reload that has to read everything again, because one block in the middle is another.
    let mut changed = Vec::new();
    for turn in 0..6 {
        let other = format!("target_label  = \"turn{turn}\"");
        let middle = text.len() / 2;
        let place = middle + text[middle..].find("target_label  = \"copy\"").unwrap();
        let text = format!(
            "{}{}",
            &text[..place],
            text[place..].replacen("target_label  = \"copy\"", &other, 1)
        );
        std::fs::write(collector.folder.join("bench.alloy"), text).unwrap();
        changed.push(reload());
    }
    bounds.figure("chain_reload_one_changed_seconds", median(changed));
    std::thread::sleep(Duration::from_secs(2));
    bounds.figure("chain_resident_after_changes_mb", collector.resident_mb());
}

fn idle(program: &Path, bounds: &mut Bounds) {
    let text = "pyroscope.write \"a\" {\n\tendpoint {\n\t\turl = \"http://127.0.0.1:1\"\n\t}\n}\n";
    let collector = Collector::start(program, text);
    std::thread::sleep(Duration::from_secs(2));
    let before = collector.cpu_seconds();
    std::thread::sleep(IDLE);
    let percent = (collector.cpu_seconds() - before) / IDLE.as_secs_f64() * 100.0;
    bounds.result("idle_resident_mb", collector.resident_mb(), 15.0);
    bounds.result("idle_cpu_percent", percent, 0.1);
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The program as it runs, with a folder of its own.
struct Collector {
    child: Child,
    folder: PathBuf,
    address: String,
    /// Seconds from its start to the first good answer of `/-/ready`.
    ready_after: f64,
}

impl Collector {
    fn start(program: &Path, text: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let folder = std::env::temp_dir().join(format!("alluvium-bench-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let config = folder.join("bench.alloy");
        std::fs::write(&config, text).unwrap();
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let started = Instant::now();
        let child = Command::new(program)
            .arg("run")
            .arg(&config)
            .arg("--server.http.listen-addr")
            .arg(&address)
            .arg("--storage.path")
            .arg(folder.join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut collector = Self {
            child,
            folder,
            address,
            ready_after: 0.0,
        };
        while !collector.get("/-/ready").starts_with("HTTP/1.1 200") {
            assert!(started.elapsed() < Duration::from_secs(60), "{}", collector.log());
            std::thread::sleep(Duration::from_millis(1));
        }
        collector.ready_after = started.elapsed().as_secs_f64();
        collector
    }

    /// The whole answer; empty when there is none.
    fn get(&self, path: &str) -> String {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(&self.address)?;
            stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().unwrap_or_default()
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap()
    }

    fn resident_mb(&self) -> f64 {
        let status = self.proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kib: f64 = line.split_whitespace().next().unwrap().parse().unwrap();
        kib * 1024.0 / 1e6
    }

    fn cpu_seconds(&self) -> f64 {
        let stat = self.proc("stat");
        // Behind the name, which may have spaces: utime and stime are the 12th and 13th.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / TICKS
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
