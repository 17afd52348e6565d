//! Distinct pushes at a fixed rate for `--seconds`, and a query every second.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use parking_lot::Mutex;
use serde_json::json;

use crate::launch::{Launch, Running};
use crate::send::{Sent, open_loop};
use crate::work;
use crate::{Servers, ask, merged, process, quantiles, report, rounded};

/// Time that a line of the output covers.
const WINDOW: Duration = Duration::from_secs(10);

/// Sends pushes for `common.seconds` and meanwhile requests a flame graph about once a second. Prints a line for every
/// ten seconds, and a final line for the whole run.
pub(crate) async fn measure(given: &Servers) -> anyhow::Result<()> {
    let running = Launch::ours(given, "data")?.start().await?;
    let Running { common, server, .. } = &running;
    let (plan, length) = (common.plan(), Duration::from_secs(common.seconds));
    let pushes = work::endless(plan).await;
    let window = Arc::new(Mutex::new(Sent::default()));
    let target = window.clone();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let questions = tokio::spawn(ask::each_second(common.clone(), asked.clone(), length));
    let pushing = open_loop(common, pushes, length, move |push, latency, result| {
        target.lock().add(push, latency, result);
    });
    let watching = async {
        let (start, mut all, mut mark) = (Instant::now(), Sent::default(), server.mark());
        while start.elapsed() < length {
            tokio::time::sleep(WINDOW).await;
            let mut part = std::mem::take(&mut *window.lock());
            let mut answers = std::mem::take(&mut *asked.lock());
            let used = server.used_since(&mark).unwrap_or_default();
            mark = server.mark();
            let line = json!({
                "mode": "window", "at_s": start.elapsed().as_secs(), "profiles": part.profiles, "errors": part.errors,
                "cpu_s": rounded(used, 2), "ack_ms": quantiles(&mut part.latencies),
                "flame_graph_ms": quantiles(&mut answers),
                "load_average": process::load_average().get(0),
            });
            println!("{}", merged(line, server.memory()));
            all.append(part);
        }
        all
    };
    let (seconds, mut all) = tokio::join!(pushing, watching);
    all.append(std::mem::take(&mut *window.lock()));
    questions.await.context("asking")??;
    report("soak", &running, all.json(seconds?));
    running.stop().await
}
