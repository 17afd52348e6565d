//! The pushing side: as fast as the server takes it, or at a fixed rate, or for an hour.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::process::{Server, folder_bytes};
use crate::work::{self, Plan, Push};
use crate::{Common, ask, client, process, quantiles, rounded};

/// What was sent and what became of it.
#[derive(Default)]
struct Sent {
    profiles: u64,
    raw_bytes: u64,
    gzip_bytes: u64,
    values: u64,
    errors: u64,
    first_error: Option<String>,
    /// Milliseconds until the acknowledgement.
    latencies: Vec<f64>,
}

impl Sent {
    fn add(&mut self, push: &Push, latency: Duration, result: Result<(), String>) {
        match result {
            Ok(()) => {
                self.profiles += 1;
                self.raw_bytes += push.raw_bytes as u64;
                self.gzip_bytes += push.gzip_bytes as u64;
                self.values += push.values as u64;
                self.latencies.push(latency.as_secs_f64() * 1e3);
            }
            Err(error) => {
                self.errors += 1;
                self.first_error.get_or_insert(error);
            }
        }
    }

    fn json(&mut self, seconds: f64) -> Value {
        json!({
            "profiles": self.profiles,
            "raw_mb": rounded(self.raw_bytes as f64 / 1e6, 1),
            "gzip_mb": rounded(self.gzip_bytes as f64 / 1e6, 1),
            "values": self.values,
            "errors": self.errors,
            "first_error": self.first_error,
            "seconds": rounded(seconds, 2),
            "profiles_per_s": rounded(self.profiles as f64 / seconds, 1),
            "ack_ms": quantiles(&mut self.latencies),
        })
    }
}

#[derive(Clone)]
struct Sender {
    client: reqwest::Client,
    url: String,
}

impl Sender {
    fn new(common: &Common) -> anyhow::Result<Self> {
        Ok(Self {
            client: client()?,
            url: format!("{}/push.v1.PusherService/Push", common.url.trim_end_matches('/')),
        })
    }

    async fn send(&self, push: &Push) -> Result<(), String> {
        let request = self.client.post(&self.url).header("content-type", "application/proto");
        let answer = request.body(push.body.clone()).send().await;
        let answer = answer.map_err(|error| format!("{error:?}"))?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(|error| format!("{error:?}"))?;
        match status.is_success() {
            true => Ok(()),
            false => Err(format!("{status}: {}", String::from_utf8_lossy(&body))),
        }
    }
}

/// Pushes everything with so many clients, each of which waits for its acknowledgement; then waits for the server to be at rest.
pub async fn fill(common: &Common, plan: &Plan, server: &Server) -> anyhow::Result<Value> {
    let pushes = Arc::new(tokio::sync::Mutex::new((
        work::prepare(*plan).await,
        Vec::<Push>::new(),
    )));
    let sender = Sender::new(common)?;
    let sent = Arc::new(Mutex::new(Sent::default()));
    let cpu_before = server.cpu_seconds();
    let start = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..common.clients {
        let (pushes, sender, sent) = (pushes.clone(), sender.clone(), sent.clone());
        clients.spawn(async move {
            loop {
                let push = {
                    let mut source = pushes.lock().await;
                    if source.1.is_empty() {
                        let Some(mut tick) = source.0.recv().await else {
                            return;
                        };
                        tick.reverse();
                        source.1 = tick;
                    }
                    let Some(push) = source.1.pop() else { return };
                    push
                };
                let start = Instant::now();
                let result = sender.send(&push).await;
                sent.lock().add(&push, start.elapsed(), result);
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.context("a client failed")?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let cpu_acknowledged = server.cpu_seconds();
    let flush = client()?
        .post(format!("{}/flush", common.url.trim_end_matches('/')))
        .send()
        .await;
    let flushed = flush.is_ok_and(|answer| answer.status().is_success());
    server.rest(common.rest).await;
    let cpu_after = server.cpu_seconds();
    let mut sent = sent.lock();
    let mut answer = sent.json(seconds);
    let used = |until: Option<f64>| until.zip(cpu_before).map(|(until, before)| until - before);
    let cpu = used(cpu_after);
    let sizes = common.data.as_deref().map(folder_bytes);
    let more = json!({
        "clients": common.clients,
        "start_ms": plan.start_ms,
        "end_ms": plan.end_ms(),
        "flush_asked": flushed,
        "cpu_s_until_acknowledged": used(cpu_acknowledged).map(|cpu| rounded(cpu, 2)),
        "cpu_s": cpu.map(|cpu| rounded(cpu, 2)),
        "raw_mb_per_cpu_s": cpu.map(|cpu| rounded(sent.raw_bytes as f64 / 1e6 / cpu, 2)),
        "parquet_mb": sizes.map(|(parquet, _)| rounded(parquet as f64 / 1e6, 2)),
        "folder_mb": sizes.map(|(_, all)| rounded(all as f64 / 1e6, 2)),
        "parquet_bytes_per_value": sizes.map(|(parquet, _)| rounded(parquet as f64 / sent.values.max(1) as f64, 3)),
    });
    if let (Some(answer), Value::Object(more)) = (answer.as_object_mut(), more) {
        answer.extend(more);
    }
    Ok(answer)
}

/// Sends at `common.rate` until `until`, calling `each` with every push and its end. Pushes are never held back by those before.
async fn open_loop(
    common: &Common,
    mut pushes: tokio::sync::mpsc::Receiver<Vec<Push>>,
    length: Duration,
    each: impl Fn(&Push, Duration, Result<(), String>) + Send + Sync + 'static,
) -> anyhow::Result<f64> {
    let sender = Sender::new(common)?;
    let each = Arc::new(each);
    let runtime = tokio::runtime::Handle::current();
    let interval = Duration::from_secs_f64(1.0 / common.rate);
    // A thread that sleeps wakes at the microsecond; the runtime's timer at the millisecond.
    let pacing = tokio::task::spawn_blocking(move || {
        let start = Instant::now();
        let (mut due, mut tasks) = (Duration::ZERO, tokio::task::JoinSet::new());
        while let Some(tick) = pushes.blocking_recv() {
            for push in tick {
                if due >= length {
                    return (start, tasks);
                }
                if let Some(wait) = due.checked_sub(start.elapsed()) {
                    std::thread::sleep(wait);
                }
                let (sender, each, at) = (sender.clone(), each.clone(), start + due);
                tasks.spawn_on(
                    async move {
                        let result = sender.send(&push).await;
                        each(&push, at.elapsed(), result);
                    },
                    &runtime,
                );
                while tasks.try_join_next().is_some() {}
                due += interval;
            }
        }
        (start, tasks)
    });
    let (start, mut tasks) = pacing.await.context("pacing")?;
    while tasks.join_next().await.is_some() {}
    Ok(start.elapsed().as_secs_f64())
}

/// Pushes at a fixed rate. With `asking`, asks for flame graphs meanwhile and tells how long they took.
pub async fn rate(common: &Common, plan: &Plan, server: &Server, asking: bool) -> anyhow::Result<Value> {
    let pushes = work::prepare(*plan).await;
    let sent = Arc::new(Mutex::new(Sent::default()));
    let target = sent.clone();
    let before = server.cpu_seconds();
    let length = Duration::from_secs(common.seconds);
    let asked = asking.then(|| {
        let (common, plan) = (common.clone(), *plan);
        tokio::spawn(async move { ask::steady(&common, &plan, length).await })
    });
    let seconds = open_loop(common, pushes, length, move |push, latency, result| {
        target.lock().add(push, latency, result);
    })
    .await?;
    let cpu = server.cpu_seconds().zip(before).map(|(after, before)| after - before);
    let mut answer = sent.lock().json(seconds);
    let raw = sent.lock().raw_bytes as f64 / 1e6;
    let asked = match asked {
        Some(asked) => Some(asked.await.context("asking")??),
        None => None,
    };
    if let Some(answer) = answer.as_object_mut() {
        answer.extend(asked.map(|asked| ("flame_graph_meanwhile_ms".to_owned(), asked)));
        answer.insert("offered_per_s".to_owned(), json!(common.rate));
        answer.insert("cpu_s".to_owned(), json!(cpu.map(|cpu| rounded(cpu, 2))));
        answer.insert(
            "raw_mb_per_cpu_s".to_owned(),
            json!(cpu.map(|cpu| rounded(raw / cpu, 2))),
        );
    }
    Ok(answer)
}

/// Pushes at a fixed rate for `common.seconds`, asks for a flame graph every second, and prints a line every ten seconds.
pub async fn soak(common: &Common, plan: &Plan, server: &Server) -> anyhow::Result<Value> {
    let pushes = work::endless(plan.seed).await;
    let window = Arc::new(Mutex::new(Sent::default()));
    let (target, length) = (window.clone(), Duration::from_secs(common.seconds));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let questions = tokio::spawn(ask::each_second(common.clone(), asked.clone(), length));
    let pushing = open_loop(common, pushes, length, move |push, latency, result| {
        target.lock().add(push, latency, result);
    });
    let watching = async {
        let start = Instant::now();
        let (mut all, mut cpu) = (Sent::default(), server.cpu_seconds().unwrap_or_default());
        while start.elapsed() < length {
            tokio::time::sleep(Duration::from_secs(10)).await;
            let mut part = std::mem::take(&mut *window.lock());
            let now = server.cpu_seconds().unwrap_or_default();
            let mut asked = std::mem::take(&mut *asked.lock());
            println!(
                "{}",
                json!({
                    "mode": "soak-window", "at_s": start.elapsed().as_secs(), "profiles": part.profiles, "errors": part.errors,
                    "resident_mb": server.resident_mb(), "cpu_s": rounded(now - cpu, 2), "ack_ms": quantiles(&mut part.latencies),
                    "flame_graph_ms": quantiles(&mut asked), "load_average": process::load_average(),
                })
            );
            cpu = now;
            all.profiles += part.profiles;
            all.errors += part.errors;
            all.raw_bytes += part.raw_bytes;
            all.gzip_bytes += part.gzip_bytes;
            all.values += part.values;
            all.latencies.append(&mut part.latencies);
            all.first_error = all.first_error.or(part.first_error);
        }
        all
    };
    let (seconds, mut all) = tokio::join!(pushing, watching);
    questions.await.context("asking")??;
    Ok(all.json(seconds?))
}
