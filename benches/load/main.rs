//! A load driver for any server that supports Pyroscope's protocols: `cargo bench --bench load -- run --url
//! http://127.0.0.1:4040`.
//!
//! The driver pushes the profiles of a synthetic fleet ([`alluvium_testing::fleet`]) over push.v1 as Protobuf, and
//! sends queries over querier.v1 as JSON. Both use HTTP. It reads the server's CPU time and memory from /proc. It
//! prints one JSON document for each step of a mode; `soak` also prints one for every ten seconds. Only `POST /flush`
//! is specific to Alluvium, and other servers may refuse it. `docs/benchmarks.md` lists the command for each figure.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a bench prints its results, and its requests need no client of ours"
)]

mod ask;
mod growth;
mod launch;
mod own;
mod peer;
mod process;
mod send;
mod shapes;
mod soak;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use alluvium_testing::fleet::FleetShape;
use clap::{Args, Parser, Subcommand};
use serde_json::{Value, json};

use launch::Running;
use work::Plan;

/// Measures a Pyroscope-compatible server.
#[derive(Debug, Parser)]
#[command(name = "load", about = "Drives a Pyroscope-compatible server and measures it")]
struct Arguments {
    #[command(subcommand)]
    mode: Option<Mode>,
    /// `cargo bench` passes this flag; it has no effect here.
    #[arg(long, global = true, hide = true)]
    bench: bool,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Against a running server: push as fast as the server accepts, wait until it is idle, then query.
    Run(Common),
    /// Against a running server: push at a fixed rate regardless of the server. Latency counts from the moment at which
    /// a push was due.
    Rate(Common),
    /// Start Alluvium, push into an empty folder, stop the server and merge the files. The driver keeps the folder for
    /// later queries.
    Fill(Servers),
    /// Start Alluvium in an empty folder and measure fill, queries, merges, starts, a fixed rate, and a kill.
    Server(Servers),
    /// Start two Alluvium servers and send both the same queries about the newest `--minutes` of profiles. The tables
    /// of the first server contain only these profiles. The tables of the second contain ten times as long a history.
    Growth(Servers),
    /// Start Alluvium, push at a fixed rate and query once a second; prints one line of JSON every ten seconds.
    Soak(Servers),
    /// Start Alluvium and another server in turn, and measure both with the same load.
    Peer {
        #[command(flatten)]
        servers: Servers,
        /// Command line of the other server, in which the driver replaces `{port}` and `{folder}`.
        #[arg(long)]
        peer: String,
        /// Number of measurements of each server.
        #[arg(long, default_value_t = 3)]
        rounds: usize,
    },
    /// Start Alluvium and push profiles of half the usual size as fast as it accepts them.
    Small(Servers),
    /// Start Alluvium and push at a fixed rate while flushes and merges write to the same disk.
    Disk(Servers),
    /// Start Alluvium and push the profiles of a thousand services.
    Wide(Servers),
}

/// Instructions for starting servers.
#[derive(Debug, Args)]
pub struct Servers {
    #[command(flatten)]
    common: Common,
    /// Program of the server; by default, the program that cargo built with this driver.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_alluvium"))]
    program: PathBuf,
    /// Folder on the disk to measure. The servers' folders are created in it.
    #[arg(long)]
    folder: PathBuf,
    /// Additional arguments of `alluvium serve`, after `--`.
    #[arg(last = true)]
    arguments: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Base URL of the server.
    #[arg(long, default_value = "http://127.0.0.1:4040")]
    url: String,
    /// Process id of the server; by default, the process that listens on the port of the URL.
    #[arg(long)]
    pid: Option<u32>,
    /// Data folder of the server. Its size is measured after a fill: all files, and the Parquet files alone.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Seed of the fleet. With the same seed, the driver creates the same profiles.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Minutes of profiles, with one profile of each kind every 15 seconds for each pod. For `soak`, the length of the
    /// time range of its query in minutes.
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// Unix time in milliseconds of the first profile. By default, the profiles end one minute after
    /// the current time.
    #[arg(long)]
    start: Option<i64>,
    /// Number of connections that push concurrently.
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Profiles per second in modes with a fixed rate.
    #[arg(long, default_value_t = 500.0)]
    rate: f64,
    /// Number of seconds for which the driver pushes at a fixed rate.
    #[arg(long, default_value_t = 50)]
    seconds: u64,
    /// Number of repetitions of each query.
    #[arg(long, default_value_t = 21)]
    repeat: usize,
    /// Seconds without work after which the driver considers the server idle.
    #[arg(long, default_value_t = 4)]
    rest: u64,
    /// Send only queries whose name contains this text.
    #[arg(long, default_value = "")]
    only: String,
    /// Milliseconds between two queries.
    #[arg(long, default_value_t = 5)]
    pause: u64,
}

impl Common {
    fn plan(&self) -> Plan {
        let start_ms = self.start.unwrap_or_else(|| {
            let now = chrono::Utc::now().timestamp_millis();
            // The start is a multiple of 15 s, so that steps of 15 s contain whole ticks.
            (now + 60_000 - self.minutes as i64 * 60_000).div_euclid(15_000) * 15_000
        });
        Plan {
            seed: self.seed,
            shape: FleetShape::default(),
            start_ms,
            ticks: self.minutes * 4,
        }
    }

    /// Returns the URL without a trailing slash.
    fn base(&self) -> &str {
        self.url.trim_end_matches('/')
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let Some(mode) = arguments.mode else {
        // `cargo bench` without arguments runs every target, also this one.
        println!(r#"{{"name":"load","skipped":"needs a mode, see --help"}}"#);
        return Ok(());
    };
    // The driver is built with only one cryptography provider. An error means that it is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(mode))
}

async fn run(mode: Mode) -> anyhow::Result<()> {
    match mode {
        Mode::Run(common) => {
            let (plan, running) = (common.plan(), Running::elsewhere(common)?);
            let Running { common, server, .. } = &running;
            report("fill", &running, send::fill(common, &plan, server).await?);
            report("query", &running, ask::warm(common, &plan, server).await?);
            Ok(())
        }
        Mode::Rate(common) => {
            let (plan, running) = (common.plan(), Running::elsewhere(common)?);
            let Running { common, server, .. } = &running;
            report("rate", &running, send::rate(common, &plan, server, None).await?);
            Ok(())
        }
        Mode::Fill(given) => shapes::fill(&given).await,
        Mode::Server(given) => own::measure(&given).await,
        Mode::Growth(given) => growth::measure(&given).await,
        Mode::Soak(given) => soak::measure(&given).await,
        Mode::Peer { servers, peer, rounds } => peer::measure(&servers, &peer, rounds).await,
        Mode::Small(given) => shapes::small(&given).await,
        Mode::Disk(given) => shapes::disk(&given).await,
        Mode::Wide(given) => shapes::wide(&given).await,
    }
}

/// Prints a result with the seed, the memory of the server and the load average of the machine.
fn report(mode: &str, running: &Running, result: Value) {
    let facts = json!({"seed": running.common.seed, "memory": running.server.memory()});
    print(mode, merged(facts, result));
}

/// Prints a result with the load average of the machine.
fn print(mode: &str, result: Value) {
    let facts = json!({"mode": mode, "load_average": process::load_average()});
    println!("{}", merged(facts, result));
}

fn merged(mut left: Value, right: Value) -> Value {
    if let (Some(left), Value::Object(right)) = (left.as_object_mut(), right) {
        left.extend(right);
    }
    left
}

/// Sorts the values and returns their number, their quantiles and their maximum in the unit of the values.
fn quantiles(values: &mut [f64]) -> Value {
    values.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| {
        let index = ((values.len() as f64 * part) as usize).min(values.len().saturating_sub(1));
        values.get(index).map_or(Value::Null, |value| rounded(*value, 2))
    };
    json!({"count": values.len(), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1.0)})
}

/// Rounds a number to this many decimal places.
fn rounded(value: f64, digits: i32) -> Value {
    let unit = 10f64.powi(digits);
    json!((value * unit).round() / unit)
}

/// Returns an HTTP client that keeps up to 1,024 idle connections open.
fn client() -> anyhow::Result<reqwest::Client> {
    Ok(reqwest::Client::builder()
        .pool_max_idle_per_host(1024)
        .tcp_nodelay(true)
        // Like most scripts, the driver does not request compressed responses. So the measured time contains no
        // compression.
        .no_gzip()
        .timeout(Duration::from_mins(2))
        .build()?)
}
