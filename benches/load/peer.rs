//! Measures Alluvium and another server in turn, from empty folders on, with the same load. The results are the cost of
//! accepting the load, the stored bytes and the durations of queries. A further result is the first offered rate at
//! which the server refuses a push, or at which the 99th percentile of the latency exceeds a second.

use std::time::Duration;

use serde_json::{Value, json};

use crate::launch::Launch;
use crate::process::FolderBytes;
use crate::{Servers, ask, client, merged, own, print, report, rounded, send};

/// First offered rate in profiles per second, and the factor for each next rate.
const LEAST_RATE: f64 = 50.0;
const STEP: f64 = 1.5;
/// Upper bound of the offered rates in profiles per second. On two cores, the driver cannot send more.
const MOST_RATE: f64 = 4000.0;
/// Maximum 99th percentile of the latency of pushes, in milliseconds. A rate with a higher latency counts as refused.
const TOO_LATE: f64 = 1000.0;
/// Time for which an idle server is observed to measure its baseline.
const IDLE: Duration = Duration::from_secs(20);

/// Runs `rounds` rounds with both servers. The first server alternates from round to round.
pub(crate) async fn measure(given: &Servers, peer: &str, rounds: usize) -> anyhow::Result<()> {
    for round in 0..rounds {
        let ours = (Launch::ours(given, &format!("ours-{round}"))?, "ours");
        let theirs = (Launch::other(given, &format!("peer-{round}"), peer)?, "peer");
        let both = if round % 2 == 0 { [theirs, ours] } else { [ours, theirs] };
        for (launch, name) in both {
            let measured = one(given, &launch, name == "ours").await?;
            print(name, measured);
            // The data is deleted, because two hours of data from both servers would fill a small disk.
            std::fs::remove_dir_all(launch.data())?;
        }
    }
    Ok(())
}

async fn one(given: &Servers, launch: &Launch, is_ours: bool) -> anyhow::Result<Value> {
    let plan = given.common.plan();
    let mut running = launch.start().await?;
    let ready = running.ready.as_secs_f64();
    let idle = running.server.watch_idle(IDLE).await;
    let version = version(running.common.base()).await;
    let filled = send::fill(&running.common, &plan, &running.server).await?;
    let asked = ask::warm(&running.common, &plan, &running.server).await?;
    let memory = running.server.memory();
    running.stop().await?;
    let merging = if is_ours {
        own::merge(launch, &filled)?
    } else {
        Value::Null
    };
    let values = filled["values"].as_f64().unwrap_or(f64::NAN);
    let stored = FolderBytes::of(launch.data()).json(values);
    let first = ask::first(launch, &plan).await?;

    let mut running = launch.start().await?;
    let again = running.ready.as_secs_f64();
    running.server.watch_idle(IDLE).await;
    let mut highest = 0.0;
    let mut common = running.common.clone();
    common.rate = LEAST_RATE;
    while common.rate < MOST_RATE {
        let sent = send::rate(&common, &plan, &running.server, None).await?;
        let is_late = sent["ack_ms"]["p99"].as_f64().is_none_or(|p99| p99 > TOO_LATE);
        let is_taken = sent["errors"] == 0 && !is_late;
        report(
            "step",
            &running,
            merged(json!({"server": launch.command(), "taken": is_taken}), sent),
        );
        if !is_taken {
            break;
        }
        highest = common.rate;
        common.rate = (common.rate * STEP).round();
    }
    running.stop().await?;
    Ok(json!({
        "version": version, "command": launch.command(),
        "ready_empty_s": rounded(ready, 3), "ready_with_data_s": rounded(again, 3),
        "idle_cpu_percent": rounded(idle * 100.0, 2),
        "fill": filled, "merge": merging, "stored_at_rest": stored, "memory_after_questions": memory,
        "query": asked, "first": first, "highest_rate_per_s": highest, "refused_at_per_s": common.rate,
    }))
}

/// Returns the version that a server reports.
async fn version(base: &str) -> Value {
    let ask = async || -> anyhow::Result<Value> {
        let answer = client()?.get(format!("{base}/api/v1/status/buildinfo")).send().await?;
        let answer: Value = serde_json::from_str(&answer.text().await?)?;
        Ok(answer.pointer("/data/version").cloned().unwrap_or(answer))
    };
    ask().await.unwrap_or_default()
}
