//! The query side: the queries of a flame graph page, in JSON over HTTP as a browser sends them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::launch::Launch;
use crate::process::{Server, drop_page_cache};
use crate::work::Plan;
use crate::{Common, client, merged, quantiles, rounded};

const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
const INUSE: &str = "memory:inuse_space:bytes:space:bytes";
const SERVICE: &str = r#"{service_name="checkout"}"#;

struct Question {
    name: &'static str,
    call: &'static str,
    body: Value,
}

/// Returns the queries of a plan. They cover the last hour of its profiles, and `flame_service_5m` only the last five
/// minutes.
fn questions(plan: &Plan) -> Vec<Question> {
    let end = plan.end_ms();
    let hour = (end - 3_600_000).max(plan.start_ms);
    let last = end - 300_000;
    let merge = |kind: &str, selector: &str, from: i64, to: i64| {
        json!({
            "profileTypeID": kind, "labelSelector": selector, "start": from, "end": to,
        })
    };
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
            json!({
                "profileTypeID": CPU, "labelSelector": "{}", "start": hour, "end": end,
                "step": 15.0, "groupBy": ["service_name"],
            }),
        ),
        question(
            "series_by_pod",
            "SelectSeries",
            json!({
                "profileTypeID": CPU, "labelSelector": SERVICE, "start": hour, "end": end,
                "step": 15.0, "groupBy": ["pod"],
            }),
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
            base: format!("{}/querier.v1.QuerierService", common.base()),
        })
    }

    /// Sends a query once and returns its duration and its response.
    async fn ask(&self, question: &Question) -> anyhow::Result<Answer> {
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
            let said = String::from_utf8_lossy(&body);
            bail!("the server responded to {} with {status}: {said}", question.name);
        }
        Ok(Answer {
            ms: start.elapsed().as_secs_f64() * 1e3,
            body,
        })
    }
}

struct Answer {
    ms: f64,
    body: Bytes,
}

impl Answer {
    /// Returns the sum of all values of a flame graph, to compare the responses of two servers.
    fn total(&self) -> Value {
        let document: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let total = document.pointer("/flamegraph/total").cloned().unwrap_or_default();
        // In protobuf's JSON, a 64-bit integer may be a text.
        total
            .as_str()
            .and_then(|text| text.parse::<i64>().ok())
            .map_or(total.clone(), |total| json!(total))
    }
}

/// Returns the queries that the arguments select.
fn wanted(common: &Common, plan: &Plan) -> Vec<Question> {
    let mut questions = questions(plan);
    questions.retain(|question| question.name.contains(&common.only));
    questions
}

/// Sends every query several times in a row, after one request that is not measured.
pub(crate) async fn warm(common: &Common, plan: &Plan, server: &Server) -> anyhow::Result<Value> {
    let asker = Asker::new(common)?;
    let mut answers = serde_json::Map::new();
    for question in wanted(common, plan) {
        let first = asker.ask(&question).await?;
        let mark = server.mark();
        let mut times = Vec::with_capacity(common.repeat);
        for _ in 0..common.repeat {
            tokio::time::sleep(Duration::from_millis(common.pause)).await;
            times.push(asker.ask(&question).await?.ms);
        }
        let cpu = server.used_since(&mark);
        let quantiles = quantiles(&mut times);
        answers.insert(
            question.name.to_owned(),
            json!({
                "median_ms": quantiles["p50"],
                "best_ms": times.first().map(|best| rounded(*best, 2)),
                "max_ms": quantiles["max"],
                "cpu_ms": cpu.map(|cpu| rounded(cpu * 1e3 / common.repeat.max(1) as f64, 1)),
                "answer_bytes": first.body.len(),
                "total": first.total(),
            }),
        );
    }
    answers.insert("repeat".to_owned(), json!(common.repeat));
    Ok(Value::Object(answers))
}

/// Sends every query once, each to a process that was just started. If the bench runs as root, it empties the system's
/// page cache before each start.
pub(crate) async fn first(launch: &Launch, plan: &Plan) -> anyhow::Result<Value> {
    let mut answers = serde_json::Map::new();
    let mut dropped = true;
    for question in wanted(&launch.common, plan) {
        dropped &= drop_page_cache();
        let running = launch.start().await?;
        let answer = Asker::new(&running.common)?.ask(&question).await;
        let ms = answer.map_or_else(|error| json!(error.to_string()), |answer| rounded(answer.ms, 2));
        answers.insert(question.name.to_owned(), json!({"first_ms": ms}));
        running.stop().await?;
    }
    answers.insert("page_cache_dropped".to_owned(), json!(dropped));
    Ok(Value::Object(answers))
}

/// Sends every query to two servers in turn, so that other load of the machine affects both. For each query,
/// returns the factor by which the second server is slower: the median of all rounds except the first. In the first
/// round, the servers read files, so the times of that round are returned separately.
pub(crate) async fn in_turn(first: &Common, second: &Common, plan: &Plan) -> anyhow::Result<Value> {
    let askers = [Asker::new(first)?, Asker::new(second)?];
    let mut answers = serde_json::Map::new();
    for question in wanted(first, plan) {
        let (mut times, mut reads) = ([Vec::new(), Vec::new()], [0.0, 0.0]);
        for round in 0..=first.repeat {
            for which in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
                tokio::time::sleep(Duration::from_millis(first.pause)).await;
                let answer = askers[which].ask(&question).await?;
                if round == 0 {
                    reads[which] = answer.ms;
                } else {
                    times[which].push(answer.ms);
                }
            }
        }
        let mut ratios: Vec<f64> = std::iter::zip(&times[0], &times[1])
            .map(|(one, ten)| ten / one)
            .collect();
        let ratios = quantiles(&mut ratios);
        let [one, ten] = times.map(|mut times| quantiles(&mut times)["p50"].clone());
        answers.insert(
            question.name.to_owned(),
            json!({"one_ms": one, "ten_ms": ten, "ratio": ratios["p50"],
                   "first_one_ms": rounded(reads[0], 2), "first_ten_ms": rounded(reads[1], 2),
                   "first_ratio": rounded(reads[1] / reads[0], 2)}),
        );
    }
    answers.insert("repeat".to_owned(), json!(first.repeat));
    Ok(Value::Object(answers))
}

/// Requests one service's flame graph until `length` has passed, with a pause of 100 ms before each repetition. The
/// quantiles of the durations exclude the first response, because the server may have to read files for it.
pub(crate) async fn steady(common: &Common, plan: &Plan, length: Duration) -> anyhow::Result<Value> {
    let asker = Asker::new(common)?;
    let question = of_one_service(plan)?;
    let start = Instant::now();
    let first = asker.ask(&question).await?.ms;
    let mut times = Vec::new();
    while start.elapsed() < length {
        tokio::time::sleep(Duration::from_millis(100)).await;
        times.push(asker.ask(&question).await?.ms);
    }
    Ok(merged(quantiles(&mut times), json!({"first": rounded(first, 2)})))
}

/// Requests one service's flame graph of the last `common.minutes` until `length` has passed, with a pause of one
/// second after each response.
pub(crate) async fn each_second(common: Common, times: Arc<Mutex<Vec<f64>>>, length: Duration) -> anyhow::Result<()> {
    let asker = Asker::new(&common)?;
    let start = Instant::now();
    while start.elapsed() < length {
        let plan = Plan {
            start_ms: chrono::Utc::now().timestamp_millis() - common.minutes as i64 * 60_000,
            ..common.plan()
        };
        let answer = asker.ask(&of_one_service(&plan)?).await?;
        times.lock().push(answer.ms);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

fn of_one_service(plan: &Plan) -> anyhow::Result<Question> {
    let mut questions = questions(plan).into_iter();
    questions
        .find(|question| question.name == "flame_service_1h")
        .context("no question")
}
