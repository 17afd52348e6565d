//! Sends queries about the newest `--minutes` of profiles to two servers in turn. The tables of the first server
//! contain only these profiles, the tables of the second ten times as long a history. The files of each server are
//! merged before the queries.

use std::process::Command;

use anyhow::bail;
use serde_json::json;

use crate::launch::Launch;
use crate::work::Plan;
use crate::{Servers, ask, report, send};

pub(crate) async fn measure(given: &Servers) -> anyhow::Result<()> {
    // By default, a server refuses profiles that are more than an hour old.
    let config = given.folder.join("growth.yaml");
    let ten = Launch::ours(given, "ten")?.with(&["--config", &config.display().to_string()]);
    std::fs::write(&config, "limits:\n  reject_older_than: 0s\n")?;
    let one = ten.beside(&given.folder.join("one"))?;
    let newest = given.common.plan();
    let before = Plan {
        start_ms: newest.start_ms - (newest.end_ms() - newest.start_ms) * 9,
        ticks: newest.ticks * 9,
        ..newest
    };
    for plan in [newest, before] {
        let running = ten.start().await?;
        let filled = send::fill(&running.common, &plan, &running.server).await?;
        report("fill", &running, filled);
        running.stop().await?;
        ten.merge()?;
        if !one.data().exists() {
            let copied = Command::new("cp").arg("-a").arg(ten.data()).arg(one.data()).status()?;
            if !copied.success() {
                bail!("cannot copy {}: {copied}", ten.data().display());
            }
        }
    }
    let (one, ten) = (one.start().await?, ten.start().await?);
    let answers = ask::in_turn(&one.common, &ten.common, &newest).await?;
    report("growth", &ten, json!({"question": answers}));
    one.stop().await?;
    ten.stop().await
}
