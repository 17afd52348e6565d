//! Measures Alluvium, which starts with an empty folder: fill, queries, merges, starts, pushes at a fixed rate with
//! queries between them, and a kill in the middle of pushes.

use std::time::Duration;

use anyhow::bail;
use serde_json::{Value, json};

use crate::launch::{Launch, Running};
use crate::process::FolderBytes;
use crate::send::{self, Clients};
use crate::work::Plan;
use crate::{Servers, ask, merged, print, report, rounded};

/// Time for which clients push as fast as the server accepts, before the server is killed.
const UNTIL_KILLED: Duration = Duration::from_secs(5);

pub(crate) async fn measure(given: &Servers) -> anyhow::Result<()> {
    let launch = Launch::ours(given, "data")?;
    let plan = given.common.plan();
    let running = launch.start().await?;
    let empty = running.ready;
    let filled = send::fill(&running.common, &plan, &running.server).await?;
    report("fill", &running, filled.clone());
    let asked = ask::warm(&running.common, &plan, &running.server).await?;
    report("query", &running, asked);
    running.stop().await?;
    print("merge", merge(&launch, &filled)?);

    let running = launch.start().await?;
    report("start", &running, ready(empty, running.ready));
    let asked = ask::warm(&running.common, &plan, &running.server).await?;
    report("query-merged", &running, asked);
    running.stop().await?;
    print("first", ask::first(&launch, &plan).await?);

    // This part uses the data of the fill and a new process, whose memory does not include the fill.
    let running = launch.start().await?;
    let sent = send::rate(&running.common, &plan, &running.server, None).await?;
    report("rate", &running, sent);
    both(&running, &plan).await?;
    running.stop().await?;
    killed(&launch, &plan, empty).await
}

/// Measures the durations of flame graph queries to an idle server, and while profiles arrive.
async fn both(running: &Running, plan: &Plan) -> anyhow::Result<()> {
    let Running { common, server, .. } = running;
    server.rest(common.rest).await;
    let idle = ask::steady(common, plan, Duration::from_secs(common.seconds)).await?;
    let mut sent = send::rate(common, plan, server, Some(plan)).await?;
    let p99 = |value: &Value| value["p99"].as_f64().unwrap_or(f64::NAN);
    let ratio = p99(&sent["flame_graph_meanwhile_ms"]) / p99(&idle);
    sent["flame_graph_meanwhile_ms"]["p99_times_rest"] = rounded(ratio, 2);
    let result = json!({"push": sent, "flame_graph_idle_ms": idle});
    report("both", running, result);
    Ok(())
}

/// Kills the server while clients wait for responses, and starts it again.
async fn killed(launch: &Launch, plan: &Plan, empty: Duration) -> anyhow::Result<()> {
    let running = launch.start().await?;
    let clients = Clients::start(&running.common, plan).await?;
    tokio::time::sleep(UNTIL_KILLED).await;
    let (acknowledged, under_way) = clients.counts();
    let signal = running.kill()?;
    drop(clients);
    if acknowledged == 0 || under_way == 0 {
        bail!("the server was not in the middle of pushes: {acknowledged} acknowledged, {under_way} under way");
    }
    let running = launch.start().await?;
    let facts = json!({"signal": signal, "acknowledged_before": acknowledged, "under_way": under_way});
    report("killed", &running, merged(ready(empty, running.ready), facts));
    running.stop().await
}

/// Merges the data of a stopped server. Returns the CPU seconds of the merges, the MB of pprof per CPU second of fill
/// and merges together, and the sizes of the folder.
pub(crate) fn merge(launch: &Launch, filled: &Value) -> anyhow::Result<Value> {
    let cpu = launch.merge()?;
    let number = |name: &str| filled.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let rate = number("raw_mb") / (number("cpu_s") + cpu);
    let figures = json!({"cpu_s": rounded(cpu, 2), "raw_mb_per_cpu_s_with_fill": rounded(rate, 2)});
    Ok(merged(figures, FolderBytes::of(launch.data()).json(number("values"))))
}

fn ready(empty: Duration, with_data: Duration) -> Value {
    json!({
        "ready_empty_s": rounded(empty.as_secs_f64(), 3),
        "ready_with_data_s": rounded(with_data.as_secs_f64(), 3),
    })
}
