//! The push side: as fast as the server accepts pushes, or at a fixed rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;

use crate::process::{FolderBytes, Server};
use crate::work::{self, Plan, Push, Stamp};
use crate::{Common, ask, client, merged, quantiles, rounded};

/// Sent pushes and their outcomes.
#[derive(Default)]
pub(crate) struct Sent {
    pub profiles: u64,
    pub raw_bytes: u64,
    pub gzip_bytes: u64,
    pub values: u64,
    pub errors: u64,
    pub first_error: Option<String>,
    /// Milliseconds until each acknowledgement.
    pub latencies: Vec<f64>,
}

impl Sent {
    pub(crate) fn add(&mut self, push: &Push, latency: Duration, result: Result<(), String>) {
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

    /// Adds the pushes of another period.
    pub(crate) fn append(&mut self, mut other: Sent) {
        self.profiles += other.profiles;
        self.raw_bytes += other.raw_bytes;
        self.gzip_bytes += other.gzip_bytes;
        self.values += other.values;
        self.errors += other.errors;
        self.latencies.append(&mut other.latencies);
        self.first_error = self.first_error.take().or(other.first_error);
    }

    pub(crate) fn json(&mut self, seconds: f64) -> Value {
        json!({
            "profiles": self.profiles,
            "raw_mb": rounded(self.raw_bytes as f64 / 1e6, 1),
            "gzip_mb": rounded(self.gzip_bytes as f64 / 1e6, 1),
            "raw_kb_per_profile": rounded(self.raw_bytes as f64 / 1e3 / self.profiles.max(1) as f64, 1),
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
    /// Number of pushes that were sent and have no response yet.
    under_way: Arc<AtomicUsize>,
}

impl Sender {
    fn new(common: &Common) -> anyhow::Result<Self> {
        Ok(Self {
            client: client()?,
            url: format!("{}/push.v1.PusherService/Push", common.base()),
            under_way: Arc::default(),
        })
    }

    async fn send(&self, push: &Push) -> Result<(), String> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let answer = self.ask(push).await;
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        answer
    }

    async fn ask(&self, push: &Push) -> Result<(), String> {
        let request = self.client.post(&self.url).header("content-type", "application/proto");
        let answer = request.body(push.body.clone()).send().await;
        let answer = answer.map_err(|error| format!("{error:?}"))?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(|error| format!("{error:?}"))?;
        if status.is_success() {
            Ok(())
        } else {
            Err(format!("{status}: {}", String::from_utf8_lossy(&body)))
        }
    }
}

/// Clients that push as fast as the server accepts. Each client waits for the response to its push.
pub(crate) struct Clients {
    tasks: JoinSet<()>,
    sent: Arc<Mutex<Sent>>,
    under_way: Arc<AtomicUsize>,
    start: Instant,
}

impl Clients {
    /// Starts `common.clients` clients, which push the profiles of a plan.
    pub(crate) async fn start(common: &Common, plan: &Plan) -> anyhow::Result<Self> {
        let pushes = work::prepare(*plan, Stamp::Planned).await;
        let pushes = Arc::new(tokio::sync::Mutex::new((pushes, Vec::<Push>::new())));
        let sender = Sender::new(common)?;
        let sent = Arc::new(Mutex::new(Sent::default()));
        let (start, mut tasks) = (Instant::now(), JoinSet::new());
        for _ in 0..common.clients {
            let (pushes, sender, sent) = (pushes.clone(), sender.clone(), sent.clone());
            tasks.spawn(async move {
                loop {
                    let push = next(&mut *pushes.lock().await).await;
                    let Some(push) = push else { return };
                    let start = Instant::now();
                    let result = sender.send(&push).await;
                    sent.lock().add(&push, start.elapsed(), result);
                }
            });
        }
        Ok(Self {
            tasks,
            sent,
            under_way: sender.under_way,
            start,
        })
    }

    /// Waits until every push has a response. Returns the outcomes of the pushes and the seconds since the start.
    async fn finish(mut self) -> anyhow::Result<(Sent, f64)> {
        while let Some(ended) = self.tasks.join_next().await {
            ended.context("a client failed")?;
        }
        let seconds = self.start.elapsed().as_secs_f64();
        Ok((std::mem::take(&mut *self.sent.lock()), seconds))
    }

    /// Returns the number of acknowledged profiles, and the number of pushes without a response.
    pub(crate) fn counts(&self) -> (u64, usize) {
        (self.sent.lock().profiles, self.under_way.load(Ordering::Relaxed))
    }
}

/// Returns the next push of the current tick, or the first one of the next tick.
async fn next(source: &mut (Receiver<Vec<Push>>, Vec<Push>)) -> Option<Push> {
    if source.1.is_empty() {
        source.1 = source.0.recv().await?;
        source.1.reverse();
    }
    source.1.pop()
}

/// Pushes everything as fast as the server accepts, requests a flush, and waits until the server is idle.
pub(crate) async fn fill(common: &Common, plan: &Plan, server: &Server) -> anyhow::Result<Value> {
    let clients = Clients::start(common, plan).await?;
    let mark = server.mark();
    let (mut sent, seconds) = clients.finish().await?;
    let until_acknowledged = server.used_since(&mark);
    let flush = client()?.post(format!("{}/flush", common.base())).send().await;
    let flushed = flush.is_ok_and(|answer| answer.status().is_success());
    let came_to_rest = server.rest(common.rest).await;
    let cpu = server.used_since(&mark);
    let raw_mb = sent.raw_bytes as f64 / 1e6;
    let answer = json!({
        "clients": common.clients,
        "start_ms": plan.start_ms,
        "end_ms": plan.end_ms(),
        "flush_asked": flushed,
        "came_to_rest": came_to_rest,
        "cpu_s_until_acknowledged": until_acknowledged.map(|cpu| rounded(cpu, 2)),
        "raw_mb_per_cpu_s_until_acknowledged": until_acknowledged.map(|cpu| rounded(raw_mb / cpu, 2)),
        "cpu_s": cpu.map(|cpu| rounded(cpu, 2)),
        "raw_mb_per_cpu_s": cpu.map(|cpu| rounded(raw_mb / cpu, 2)),
        "stored": common.data.as_deref().map(|folder| FolderBytes::of(folder).json(sent.values.max(1) as f64)),
    });
    Ok(merged(sent.json(seconds), answer))
}

/// Sends pushes at `common.rate` for `length` and calls `each` with every push, its latency and its outcome. Earlier
/// pushes never delay later ones. Returns the seconds until the last response.
pub(crate) async fn open_loop(
    common: &Common,
    mut pushes: Receiver<Vec<Push>>,
    length: Duration,
    each: impl Fn(&Push, Duration, Result<(), String>) + Send + Sync + 'static,
) -> anyhow::Result<f64> {
    let sender = Sender::new(common)?;
    let each = Arc::new(each);
    let runtime = tokio::runtime::Handle::current();
    let interval = Duration::from_secs_f64(1.0 / common.rate);
    // A sleeping thread wakes up with microsecond precision, the runtime's timer with millisecond precision.
    let pacing = tokio::task::spawn_blocking(move || {
        let start = Instant::now();
        let (mut due, mut tasks) = (Duration::ZERO, JoinSet::new());
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

/// Pushes prepared profiles at `common.rate` for `common.seconds`. If `asking` is a plan, this function also requests
/// flame graphs of this plan and returns the durations of these requests.
pub(crate) async fn rate(
    common: &Common,
    plan: &Plan,
    server: &Server,
    asking: Option<&Plan>,
) -> anyhow::Result<Value> {
    let pushes = common.rate * common.seconds as f64;
    let per_tick = (plan.shape.services * plan.shape.pods * 2) as f64;
    let plan = Plan {
        ticks: (pushes / per_tick).ceil() as u64,
        ..*plan
    };
    let pushes = work::prepare(plan, Stamp::OnArrival).await;
    let sent = Arc::new(Mutex::new(Sent::default()));
    let (target, mark) = (sent.clone(), server.mark());
    let length = Duration::from_secs(common.seconds);
    let asked = asking.map(|plan| {
        let (common, plan) = (common.clone(), *plan);
        tokio::spawn(async move { ask::steady(&common, &plan, length).await })
    });
    let seconds = open_loop(common, pushes, length, move |push, latency, result| {
        target.lock().add(push, latency, result);
    })
    .await?;
    let cpu = server.used_since(&mark);
    let mut sent = std::mem::take(&mut *sent.lock());
    let raw_mb = sent.raw_bytes as f64 / 1e6;
    let asked = match asked {
        Some(asked) => Some(asked.await.context("asking")??),
        None => None,
    };
    let answer = json!({
        "offered_per_s": common.rate,
        "cpu_s": cpu.map(|cpu| rounded(cpu, 2)),
        "raw_mb_per_cpu_s": cpu.map(|cpu| rounded(raw_mb / cpu, 2)),
        "flame_graph_meanwhile_ms": asked,
    });
    Ok(merged(sent.json(seconds), answer))
}
