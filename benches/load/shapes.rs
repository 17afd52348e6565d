//! Loads of unusual shapes, each on Alluvium with an empty folder: small profiles, a disk that is busy with flushes and
//! merges, and a wide fleet.

use alluvium_testing::fleet::FleetShape;
use serde_json::{Map, Value, json};

use crate::launch::{Launch, Running};
use crate::work::{Plan, SMALL, WIDE};
use crate::{Servers, ask, client, merged, own, print, process, report, send};

/// Fills an empty folder with the usual load and merges its files. The folder remains for later queries.
pub(crate) async fn fill(given: &Servers) -> anyhow::Result<()> {
    let launch = Launch::ours(given, "data")?;
    let (running, filled) = filled(&launch, &given.common.plan()).await?;
    running.stop().await?;
    print("merge", own::merge(&launch, &filled)?);
    Ok(())
}

/// Pushes profiles of about half the usual size as fast as the clients can.
pub(crate) async fn small(given: &Servers) -> anyhow::Result<()> {
    asked(given, SMALL).await
}

/// Pushes profiles of a thousand services with three pods each. Every service has its own functions.
pub(crate) async fn wide(given: &Servers) -> anyhow::Result<()> {
    asked(given, WIDE).await
}

async fn asked(given: &Servers, shape: FleetShape) -> anyhow::Result<()> {
    let launch = Launch::ours(given, "data")?;
    let plan = Plan {
        shape,
        ..given.common.plan()
    };
    let (running, filled) = filled(&launch, &plan).await?;
    let asked = ask::warm(&running.common, &plan, &running.server).await?;
    report("query", &running, asked);
    running.stop().await?;
    print("merge", own::merge(&launch, &filled)?);
    print("first", ask::first(&launch, &plan).await?);
    Ok(())
}

async fn filled(launch: &Launch, plan: &Plan) -> anyhow::Result<(Running, Value)> {
    let running = launch.start().await?;
    let filled = send::fill(&running.common, plan, &running.server).await?;
    report("fill", &running, filled.clone());
    Ok((running, filled))
}

/// Pushes at a fixed rate for so long that flushes and merges write to the same disk during the pushes. The report
/// contains the numbers of flushes and merges, which the server counts.
pub(crate) async fn disk(given: &Servers) -> anyhow::Result<()> {
    let launch = Launch::ours(given, "data")?;
    let running = launch.start().await?;
    let Running { common, server, .. } = &running;
    let sent = send::rate(common, &common.plan(), server, None).await?;
    let facts = json!({"file_system": process::file_system(&given.folder), "jobs": jobs(common.base()).await?});
    report("disk", &running, merged(sent, facts));
    running.stop().await
}

/// Returns the number of runs of each store job, from the server's metrics.
async fn jobs(base: &str) -> anyhow::Result<Value> {
    let text = client()?.get(format!("{base}/metrics")).send().await?.text().await?;
    let mut jobs = Map::new();
    for line in text.lines() {
        let Some((name, count)) = line.rsplit_once(' ') else {
            continue;
        };
        let job = name
            .strip_prefix("alluvium_store_jobs_total{")
            .and_then(|labels| labels.split('"').nth(1));
        if let Some(job) = job {
            jobs.insert(job.to_owned(), json!(count.parse::<f64>().ok()));
        } else if name == "alluvium_store_flushes_total" {
            jobs.insert("flush".to_owned(), json!(count.parse::<f64>().ok()));
        }
    }
    Ok(Value::Object(jobs))
}
