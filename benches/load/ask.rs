//! The asking side: the questions of a page of flame graphs, in JSON over HTTP as a browser asks them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::process::Server;
use crate::work::Plan;
use crate::{Common, client, quantiles, rounded};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const INUSE: &str = "memory:inuse_space:bytes:space:bytes";
const SERVICE: &str = r#"{service_name="checkout"}"#;

struct Question {
    name: &'static str,
    call: &'static str,
    body: Value,
}

/// The questions about the profiles of a plan. "All" is its last hour, "5 min" its last five minutes.
fn questions(plan: &Plan) -> Vec<Question> {
    let end = plan.end_ms();
    let hour = (end - 3_600_000).max(plan.start_ms);
    let last = end - 300_000;
    let merge = |kind: &str, selector: &str, from: i64, to: i64| json!({"profileTypeID": kind, "labelSelector": selector, "start": from, "end": to});
    let question = |name, call, body| Question { name, call, body };
    let middle = hour + (end - hour) / 2;
    vec![
        question("flame_all_1h", "SelectMergeStacktraces", merge(CPU, "{}", hour, end)),
        question(
            "flame_service_1h",
            "SelectMergeStacktraces",
            merge(CPU, SERVICE, hour, end),
        ),
        question(
            "flame_service_5m",
            "SelectMergeStacktraces",
            merge(CPU, SERVICE, last, end),
        ),
        question(
            "flame_namespace_heap_1h",
            "SelectMergeStacktraces",
            merge(INUSE, r#"{namespace="shop"}"#, hour, end),
        ),
        question(
            "series_by_service",
            "SelectSeries",
            json!({"profileTypeID": CPU, "labelSelector": "{}", "start": hour, "end": end, "step": 15.0, "groupBy": ["service_name"]}),
        ),
        question(
            "series_by_pod",
            "SelectSeries",
            json!({"profileTypeID": CPU, "labelSelector": SERVICE, "start": hour, "end": end, "step": 15.0, "groupBy": ["pod"]}),
        ),
        question(
            "merged_pprof_service",
            "SelectMergeProfile",
            merge(CPU, SERVICE, hour, end),
        ),
        question(
            "diff_service_halves",
            "Diff",
            json!({"left": merge(CPU, SERVICE, hour, middle), "right": merge(CPU, SERVICE, middle, end)}),
        ),
        question("label_names", "LabelNames", json!({"start": hour, "end": end})),
        question(
            "label_values",
            "LabelValues",
            json!({"name": "service_name", "start": hour, "end": end}),
        ),
        question("profile_types", "ProfileTypes", json!({"start": hour, "end": end})),
        question(
            "series",
            "Series",
            json!({"labelNames": ["service_name", "__profile_type__"], "start": hour, "end": end}),
        ),
    ]
}

struct Asker {
    client: reqwest::Client,
    base: String,
}

impl Asker {
    fn new(common: &Common) -> anyhow::Result<Self> {
        Ok(Self {
            client: client()?,
            base: format!("{}/querier.v1.QuerierService", common.url.trim_end_matches('/')),
        })
    }

    /// Milliseconds and bytes of one answer.
    async fn ask(&self, question: &Question) -> anyhow::Result<(f64, usize)> {
        let start = Instant::now();
        let url = format!("{}/{}", self.base, question.call);
        let request = self.client.post(&url).header("content-type", "application/json");
        let answer = request
            .body(question.body.to_string())
            .send()
            .await
            .context(question.name)?;
        let status = answer.status();
        let body = answer.bytes().await.context(question.name)?;
        if !status.is_success() {
            bail!(
                "{} was answered {status}: {}",
                question.name,
                String::from_utf8_lossy(&body)
            );
        }
        Ok((start.elapsed().as_secs_f64() * 1e3, body.len()))
    }
}

/// Asks everything several times in a row.
pub async fn all(common: &Common, plan: &Plan, server: &Server) -> anyhow::Result<Value> {
    let asker = Asker::new(common)?;
    // The connection is not part of a question.
    let _ = asker
        .client
        .get(format!("{}/ready", common.url.trim_end_matches('/')))
        .send()
        .await;
    let mut answers = serde_json::Map::new();
    for question in questions(plan) {
        if !question.name.contains(&common.only) {
            continue;
        }
        let (first, bytes) = asker.ask(&question).await?;
        let before = server.cpu_seconds();
        let mut times = Vec::with_capacity(common.repeat);
        for _ in 0..common.repeat {
            tokio::time::sleep(Duration::from_millis(common.pause)).await;
            times.push(asker.ask(&question).await?.0);
        }
        let cpu = server.cpu_seconds().zip(before).map(|(after, before)| after - before);
        let quantiles = quantiles(&mut times);
        answers.insert(
            question.name.to_owned(),
            json!({
                "first_ms": rounded(first, 2),
                "median_ms": quantiles["p50"],
                "best_ms": times.first().map(|best| rounded(*best, 2)),
                "max_ms": quantiles["max"],
                "cpu_ms": cpu.map(|cpu| rounded(cpu * 1e3 / common.repeat as f64, 1)),
                "answer_bytes": bytes,
            }),
        );
    }
    Ok(json!({"repeat": common.repeat, "start_ms": plan.start_ms, "end_ms": plan.end_ms(), "questions": answers}))
}

/// Asks two servers everything in turn, so that what the machine does meanwhile meets both; how much longer the second one takes, by the median of all turns.
pub async fn in_turn(first: &Common, second: &Common, plan: &Plan) -> anyhow::Result<Value> {
    let askers = [Asker::new(first)?, Asker::new(second)?];
    let mut answers = serde_json::Map::new();
    for question in questions(plan) {
        if !question.name.contains(&first.only) {
            continue;
        }
        let mut times = [Vec::new(), Vec::new()];
        // The first time files are read.
        for round in 0..=first.repeat {
            for which in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
                tokio::time::sleep(Duration::from_millis(first.pause)).await;
                let (time, _) = askers[which].ask(&question).await?;
                if round > 0 {
                    times[which].push(time);
                }
            }
        }
        let mut ratios: Vec<f64> = std::iter::zip(&times[0], &times[1])
            .map(|(one, ten)| ten / one)
            .collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let [one, ten] = times.map(|mut times| quantiles(&mut times)["p50"].clone());
        answers.insert(
            question.name.to_owned(),
            json!({"one_ms": one, "ten_ms": ten, "ratio": rounded(ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN), 2)}),
        );
    }
    Ok(Value::Object(answers))
}

/// Asks for one service's flame graph for so long, ten times a second.
pub async fn steady(common: &Common, plan: &Plan, length: Duration) -> anyhow::Result<Value> {
    let asker = Asker::new(common)?;
    let Some(question) = questions(plan).into_iter().nth(1) else {
        bail!("no question");
    };
    let start = Instant::now();
    let mut times = Vec::new();
    while start.elapsed() < length {
        times.push(asker.ask(&question).await?.0);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(quantiles(&mut times))
}

/// Asks for one service's flame graph of the last hour once a second.
pub async fn each_second(common: Common, times: Arc<Mutex<Vec<f64>>>, length: Duration) -> anyhow::Result<()> {
    let asker = Asker::new(&common)?;
    let start = Instant::now();
    while start.elapsed() < length {
        let plan = Plan {
            seed: common.seed,
            start_ms: chrono::Utc::now().timestamp_millis() - common.minutes as i64 * 60_000,
            ticks: common.minutes * 4,
        };
        let Some(question) = questions(&plan).into_iter().nth(1) else {
            bail!("no question");
        };
        let (time, _) = asker.ask(&question).await?;
        times.lock().push(time);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}
