//! A load driver for any server that speaks Pyroscope's protocols: `cargo bench --bench load -- run --url http://127.0.0.1:4040`.
//!
//! It pushes the profiles of a made-up fleet ([`alluvium::profile::fleet`]) over push.v1 and asks over querier.v1, in JSON over HTTP; it reads the server's CPU
//! time and peak memory from /proc, and prints one JSON document a mode. Nothing in it is particular to our server but `POST /flush`, which others may refuse.
//! `docs/benchmarks.md` says which command makes which figure.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints its results")]

mod ask;
mod own;
mod process;
mod send;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use serde_json::{Value, json};

use process::Server;
use work::Plan;

/// Measures a Pyroscope-compatible server.
#[derive(Debug, Parser)]
#[command(name = "load", about = "Drives a Pyroscope-compatible server and measures it")]
struct Arguments {
    #[command(subcommand)]
    mode: Option<Mode>,
    /// `cargo bench` passes it; it means nothing here.
    #[arg(long, global = true, hide = true)]
    bench: bool,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Push as fast as the server takes it, wait until it is at rest, then ask.
    Run(Common),
    /// Push as fast as the server takes it and wait until it is at rest.
    Fill(Common),
    /// Push at a fixed rate, whatever the server does; latency counts from the moment at which a push was due.
    Rate(Common),
    /// Ask every question several times.
    Query(Common),
    /// Ask for flame graphs first at rest, then while profiles come at a fixed rate.
    Both(Common),
    /// Start our own server in an empty folder and measure everything.
    Server(ServerArguments),
    /// Start our own server in an empty folder and ask about an hour, with that hour in the tables and with ten.
    Growth(ServerArguments),
    /// Push at a fixed rate and ask once a second; one line of JSON every ten seconds.
    Soak(Common),
}

#[derive(Debug, Args)]
struct ServerArguments {
    #[command(flatten)]
    common: Common,
    /// The program; without it the one that cargo built with this driver.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_alluvium"))]
    program: PathBuf,
    /// An empty folder, on the disk that is to be measured.
    #[arg(long)]
    folder: PathBuf,
    /// Further arguments of `alluvium serve`, after `--`.
    #[arg(last = true)]
    arguments: Vec<String>,
}

impl ServerArguments {
    /// The further arguments, without cargo's own flag, which lands among them.
    fn further(&self) -> Vec<String> {
        let further = self.arguments.iter().filter(|argument| *argument != "--bench");
        further.cloned().collect()
    }
}

/// What all modes share.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Address of the server.
    #[arg(long, default_value = "http://127.0.0.1:4040")]
    url: String,
    /// Process of the server; without it the one that listens on the port of the URL.
    #[arg(long)]
    pid: Option<u32>,
    /// Folder whose Parquet files and other data are counted at the end.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Seed of the fleet.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Minutes of profiles, one of each kind every 15 seconds for each pod; for `soak` how far back its question goes.
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// First millisecond of the profiles; without it so that they end in a minute.
    #[arg(long)]
    start: Option<i64>,
    /// Connections that push at the same time.
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Profiles a second in `rate`, `both` and `soak`.
    #[arg(long, default_value_t = 500.0)]
    rate: f64,
    /// Length of `rate`, `both` and `soak` in seconds.
    #[arg(long, default_value_t = 50)]
    seconds: u64,
    /// How often each question is asked.
    #[arg(long, default_value_t = 21)]
    repeat: usize,
    /// Seconds without work of the server that count as rest.
    #[arg(long, default_value_t = 4)]
    rest: u64,
    /// Only questions whose name holds this.
    #[arg(long, default_value = "")]
    only: String,
    /// Milliseconds between two questions.
    #[arg(long, default_value_t = 5)]
    pause: u64,
}

impl Common {
    fn plan(&self) -> Plan {
        let start_ms = self.start.unwrap_or_else(|| {
            let now = chrono::Utc::now().timestamp_millis();
            // On a whole tick, so that steps of 15 s hold whole ticks.
            (now + 60_000 - self.minutes as i64 * 60_000).div_euclid(15_000) * 15_000
        });
        Plan {
            seed: self.seed,
            start_ms,
            ticks: self.minutes * 4,
        }
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let Some(mode) = arguments.mode else {
        // A bare `cargo bench` runs every target.
        println!(r#"{{"name":"load","skipped":"needs a mode and --url, see --help"}}"#);
        return Ok(());
    };
    // The one provider that the program is built with; an error would say that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(mode))
}

async fn run(mode: Mode) -> anyhow::Result<()> {
    match mode {
        Mode::Run(common) => {
            let plan = common.plan();
            let server = Server::find(&common)?;
            report("fill", &common, &server, send::fill(&common, &plan, &server).await?);
            report("query", &common, &server, ask::all(&common, &plan, &server).await?);
        }
        Mode::Fill(common) => {
            let server = Server::find(&common)?;
            let filled = send::fill(&common, &common.plan(), &server).await?;
            report("fill", &common, &server, filled);
        }
        Mode::Rate(common) => {
            let server = Server::find(&common)?;
            let sent = send::rate(&common, &common.plan(), &server, false).await?;
            report("rate", &common, &server, sent);
        }
        Mode::Query(common) => {
            let server = Server::find(&common)?;
            let asked = ask::all(&common, &common.plan(), &server).await?;
            report("query", &common, &server, asked);
        }
        Mode::Both(common) => {
            let (server, plan) = (Server::find(&common)?, common.plan());
            let idle = ask::steady(&common, &plan, Duration::from_secs(10)).await?;
            let sent = send::rate(&common, &plan, &server, true).await?;
            report(
                "both",
                &common,
                &server,
                json!({"push": sent, "flame_graph_idle_ms": idle}),
            );
        }
        Mode::Server(given) => own::measure(&given.common, &given.program, &given.folder, &given.further()).await?,
        Mode::Growth(given) => own::growth(&given.common, &given.program, &given.folder, &given.further()).await?,
        Mode::Soak(common) => {
            let server = Server::find(&common)?;
            let soaked = send::soak(&common, &common.plan(), &server).await?;
            report("soak", &common, &server, soaked);
        }
    }
    Ok(())
}

/// Prints a result with what is needed to judge it.
fn report(mode: &str, common: &Common, server: &Server, result: Value) {
    let mut document = json!({
        "mode": mode,
        "url": common.url,
        "seed": common.seed,
        "load_average": process::load_average(),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "peak_mb": server.peak_mb(),
    });
    if let (Some(document), Value::Object(result)) = (document.as_object_mut(), result) {
        document.extend(result);
    }
    println!("{document}");
}

/// Milliseconds at parts of all values: sorts them.
fn quantiles(values: &mut [f64]) -> Value {
    values.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| {
        let index = ((values.len() as f64 * part) as usize).min(values.len().saturating_sub(1));
        values.get(index).map_or(Value::Null, |value| rounded(*value, 2))
    };
    json!({"count": values.len(), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1.0)})
}

/// A number with so many digits after the point.
fn rounded(value: f64, digits: i32) -> Value {
    let unit = 10f64.powi(digits);
    json!((value * unit).round() / unit)
}

/// A client with room for many connections.
fn client() -> anyhow::Result<reqwest::Client> {
    Ok(reqwest::Client::builder()
        .pool_max_idle_per_host(1024)
        .tcp_nodelay(true)
        // As most scripts ask, so that compression is not part of a question.
        .no_gzip()
        .timeout(Duration::from_secs(120))
        .build()?)
}
