//! Starts and stops a server of ours in a folder of its own, so that one command measures everything from an empty disk.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use crate::process::{Server, children_cpu_seconds, folder_bytes, load_average};
use crate::work::Plan;
use crate::{Common, ask, client, report, rounded, send};

/// Longest time until a server is ready, and until it has stopped.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server.
struct Own {
    child: Child,
    ready: Duration,
}

impl Own {
    /// Starts the server and waits until `/ready` says yes.
    async fn start(program: &Path, arguments: &[String], data: &Path, common: &Common) -> anyhow::Result<Self> {
        let url = reqwest::Url::parse(&common.url).context("--url")?;
        let port = url.port_or_known_default().unwrap_or(4040);
        let log = std::fs::File::create(data.with_extension("log"))?;
        let start = Instant::now();
        let client = client()?;
        let child = Command::new(program)
            .arg("serve")
            .arg("--listen")
            .arg(format!("127.0.0.1:{port}"))
            .arg("--data")
            .arg(data)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        // From here on it is stopped whatever happens.
        let mut own = Self {
            child,
            ready: Duration::ZERO,
        };
        let ready = format!("{}/ready", common.url.trim_end_matches('/'));
        while start.elapsed() < PATIENCE {
            if let Some(status) = own.child.try_wait()? {
                bail!(
                    "the server ended at once, {status}, see {}",
                    data.with_extension("log").display()
                );
            }
            let answer = client.get(&ready).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                own.ready = start.elapsed();
                return Ok(own);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        bail!("the server was not ready within {} s", PATIENCE.as_secs());
    }

    fn common(&self, common: &Common, data: &Path) -> Common {
        Common {
            pid: Some(self.child.id()),
            data: Some(data.to_owned()),
            ..common.clone()
        }
    }

    /// Ends the server as an init system would, or at once.
    async fn stop(mut self, kill: bool) -> anyhow::Result<ExitStatus> {
        if kill {
            self.child.kill()?;
        } else {
            let told = Command::new("kill")
                .arg("-TERM")
                .arg(self.child.id().to_string())
                .status()?;
            if !told.success() {
                bail!("cannot tell the server to stop");
            }
        }
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.child.kill()?;
        bail!("the server did not stop within {} s", PATIENCE.as_secs());
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Fill, questions, stop, merge, start, questions anew, pushes at a fixed rate with questions between them, kill and start.
pub async fn measure(common: &Common, program: &Path, folder: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let data: PathBuf = folder.join("data");
    std::fs::create_dir_all(folder)?;
    if data.exists() {
        bail!("{} exists, a measurement begins with an empty folder", data.display());
    }
    let plan = common.plan();
    let own = Own::start(program, arguments, &data, common).await?;
    let (server, with) = (Server::find(&own.common(common, &data))?, own.common(common, &data));
    let empty = own.ready;
    let filled = send::fill(&with, &plan, &server).await?;
    report("fill", &with, &server, filled.clone());
    report("query", &with, &server, ask::all(&with, &plan, &server).await?);
    own.stop(false).await?;
    report("compact", &with, &server, compact(program, &data, &filled)?);

    let own = Own::start(program, arguments, &data, common).await?;
    let with = own.common(common, &data);
    let server = Server::find(&with)?;
    report("ready", &with, &server, ready(empty, own.ready, "after a stop"));
    report(
        "query-after-start",
        &with,
        &server,
        ask::all(&with, &plan, &server).await?,
    );
    own.stop(false).await?;

    // On the data of the fill, with fresh processes for the memory's sake.
    let own = Own::start(program, arguments, &data, common).await?;
    let with = own.common(common, &data);
    let server = Server::find(&with)?;
    let sent = send::rate(&with, &common.plan(), &server, false).await?;
    report("rate", &with, &server, sent);
    server.rest(common.rest).await;
    let idle = ask::steady(&with, &plan, Duration::from_secs(10)).await?;
    let sent = send::rate(&with, &common.plan(), &server, true).await?;
    report(
        "both",
        &with,
        &server,
        json!({"push": sent, "flame_graph_idle_ms": idle}),
    );
    let status = own.stop(true).await?;
    let own = Own::start(program, arguments, &data, common).await?;
    let with = own.common(common, &data);
    let server = Server::find(&with)?;
    let killed = format!("after signal {}", status.signal().unwrap_or_default());
    report("ready", &with, &server, ready(empty, own.ready, &killed));
    own.stop(false).await?;
    Ok(())
}

/// The questions about the newest time of two servers in turn: one has only that time in its tables, the other nine more before it, both merged.
pub async fn growth(common: &Common, program: &Path, folder: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let data: PathBuf = folder.join("data");
    std::fs::create_dir_all(folder)?;
    if data.exists() {
        bail!("{} exists, a measurement begins with an empty folder", data.display());
    }
    // A server refuses what is more than an hour old unless told otherwise.
    let config = folder.join("growth.yaml");
    std::fs::write(&config, "limits:\n  reject_older_than: 0s\n")?;
    let mut arguments = arguments.to_vec();
    arguments.extend(["--config".to_owned(), config.display().to_string()]);
    let newest = common.plan();
    let before = Plan {
        start_ms: newest.start_ms - (newest.end_ms() - newest.start_ms) * 9,
        ticks: newest.ticks * 9,
        ..newest
    };
    let only_newest = folder.join("newest");
    for plan in [newest, before] {
        let own = Own::start(program, &arguments, &data, common).await?;
        let with = own.common(common, &data);
        let server = Server::find(&with)?;
        report("fill", &with, &server, send::fill(&with, &plan, &server).await?);
        own.stop(false).await?;
        merge(program, &data)?;
        if !only_newest.exists() {
            copy(&data, &only_newest)?;
        }
    }
    let mut url = reqwest::Url::parse(&common.url).context("--url")?;
    let port = url.port_or_known_default().unwrap_or(4040);
    if url.set_port(Some(port + 1)).is_err() {
        bail!("--url has no place for a port");
    }
    let second = Common {
        url: url.to_string(),
        ..common.clone()
    };
    let one = Own::start(program, &arguments, &only_newest, common).await?;
    let ten = Own::start(program, &arguments, &data, &second).await?;
    let answers = ask::in_turn(common, &second, &newest).await?;
    println!(
        "{}",
        json!({"mode": "growth", "repeat": common.repeat, "one_and_ten_times_the_history": answers, "load_average": load_average()})
    );
    one.stop(false).await?;
    ten.stop(false).await?;
    Ok(())
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    if !status.success() {
        bail!("cannot copy {}: {status}", from.display());
    }
    Ok(())
}

/// Runs `alluvium store ...` on a folder.
fn store(program: &Path, data: &Path, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
    let mut command = Command::new(program);
    command.arg("store").args(arguments).arg("--format").arg("json");
    let output = command.arg(data).stderr(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => bail!("`store {}` ended with {}", arguments.join(" "), output.status),
    }
}

/// Merges as if the hours were over and removes what was merged; the processor seconds of the merging.
fn merge(program: &Path, data: &Path) -> anyhow::Result<f64> {
    let before = children_cpu_seconds();
    store(program, data, &["compact"])?;
    let cpu = children_cpu_seconds() - before;
    store(program, data, &["vacuum", "--grace", "0s"])?;
    Ok(cpu)
}

/// Merges what was filled, and says what everything cost: taking the profiles, committing and merging them.
fn compact(program: &Path, data: &Path, filled: &Value) -> anyhow::Result<Value> {
    let cpu = merge(program, data)?;
    let (parquet, all) = folder_bytes(data);
    let number = |name: &str| filled.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN);
    Ok(json!({
        "cpu_s": rounded(cpu, 2),
        "raw_mb_per_cpu_s_with_fill": rounded(number("raw_mb") / (number("cpu_s") + cpu), 2),
        "parquet_mb": rounded(parquet as f64 / 1e6, 2),
        "folder_mb": rounded(all as f64 / 1e6, 2),
        "parquet_bytes_per_value": rounded(parquet as f64 / number("values"), 3),
        "folder_bytes_per_value": rounded(all as f64 / number("values"), 3),
    }))
}

fn ready(empty: Duration, with_data: Duration, after: &str) -> Value {
    json!({
        "ready_empty_s": rounded(empty.as_secs_f64(), 3),
        "ready_with_data_s": rounded(with_data.as_secs_f64(), 3),
        "after": after,
    })
}
