//! Tests of live debugging under the real engine, while profiles flow through the components.

use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use serde_json::Value as Json;

use crate::ALL;
use crate::common::testing::{eventually, serve};
use alluvium_base::Shutdown;
use alluvium_pipeline::component::live::{TimedEntry, Watch};
use alluvium_pipeline::run::live::WatchError;
use alluvium_pipeline::{Controller, Options};

/// Reads entries until `matches` accepts one, and returns it. All earlier entries are dropped.
async fn read_until(watch: &mut Watch, subject: &str, matches: impl Fn(&Json) -> bool) -> Json {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let batch = tokio::time::timeout(left, watch.next()).await;
        let batch = batch
            .unwrap_or_else(|_| panic!("waited for {subject}"))
            .expect("the watch goes on");
        if let Some(entry) = batch.entries.iter().map(TimedEntry::json).find(&matches) {
            return entry;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_component_shows_what_passes_through_it() {
    let router = Router::new()
        .route("/push.v1.PusherService/Push", post(|_: Bytes| async {}))
        .route(
            "/debug/pprof/goroutine",
            get(|| async { Bytes::from_static(&[0x0a, 4, 8, 1, 16, 2, 0x12, 0]) }),
        );
    let (url, _server) = serve(router).await;
    let address = url.trim_start_matches("http://");
    let folder = tempfile::tempdir().unwrap();
    let targets = folder.path().join("targets.json");
    let file = format!(
        r#"[
            {{"targets": ["{address}"], "labels": {{"app": "shop"}}}},
            {{"targets": ["gone:1"], "labels": {{"app": "old"}}}}
        ]"#
    );
    std::fs::write(&targets, file).unwrap();
    let config = format!(
        r#"
discovery.file "all" {{ files = ["{}"] }}
discovery.relabel "all" {{
  targets = discovery.file.all.targets
  rule {{
    source_labels = ["app"]
    target_label  = "service_name"
  }}
  rule {{
    source_labels = ["app"]
    regex         = "old"
    action        = "drop"
  }}
}}
pyroscope.scrape "all" {{
  targets         = discovery.relabel.all.output
  forward_to      = [pyroscope.relabel.all.receiver]
  scrape_interval = "200ms"
  scrape_timeout  = "10s"
  profiling_config {{
    profile.block {{ enabled = false }}
    profile.memory {{ enabled = false }}
    profile.mutex {{ enabled = false }}
    profile.process_cpu {{ enabled = false }}
  }}
}}
pyroscope.relabel "all" {{
  forward_to = [pyroscope.write.all.receiver]
  rule {{
    regex  = "app"
    action = "labeldrop"
  }}
}}
pyroscope.write "all" {{
  endpoint {{
    url = "{url}"
  }}
}}
"#,
        targets.display()
    );
    let controller = Controller::new(ALL, Options::new(folder.path().join("data")));
    controller.load(vec![("test".to_owned(), config)]).await.unwrap();
    let shutdown = Shutdown::new();
    let running = tokio::spawn({
        let (controller, shutdown) = (controller.clone(), shutdown.clone());
        async move { controller.run(shutdown).await }
    });

    let refused = controller.watch("discovery.file.all", 1.0).err();
    assert_eq!(refused, Some(WatchError::Disabled), "live debugging is disabled");
    controller.live().enable();
    let refused = controller.watch("discovery.file.none", 1.0).err();
    assert_eq!(refused, Some(WatchError::Unknown("discovery.file.none".to_owned())));

    // A new watcher also receives the current values, even if they do not change.
    let mut file = controller.watch("discovery.file.all", 1.0).unwrap();
    let entry = read_until(&mut file, "a target", |entry| entry["labels"]["app"] == "shop").await;
    assert_eq!(
        (&entry["kind"], &entry["component"]),
        (&"target".into(), &"discovery.file.all".into())
    );
    let mut relabel = controller.watch("discovery.relabel.all", 1.0).unwrap();
    let entry = read_until(&mut relabel, "a dropped target", |entry| entry["after"].is_null()).await;
    assert_eq!(entry["before"]["app"], "old");
    assert_eq!(entry["steps"][0]["set"]["service_name"], "old");
    assert_eq!(
        (&entry["steps"][1]["rule"], &entry["steps"][1]["dropped"]),
        (&1.into(), &true.into())
    );

    let mut scrape = controller.watch("pyroscope.scrape.all", 1.0).unwrap();
    let entry = read_until(&mut scrape, "a scrape", |entry| entry["kind"] == "scrape").await;
    assert_eq!((&entry["outcome"], &entry["bytes"]), (&"forwarded".into(), &8.into()));
    let entry = read_until(&mut scrape, "a profile", |entry| entry["kind"] == "profile").await;
    assert_eq!(
        (&entry["samples"], &entry["profileType"]),
        (&1.into(), &"goroutine".into())
    );
    let mut changed = controller.watch("pyroscope.relabel.all", 1.0).unwrap();
    let entry = read_until(&mut changed, "a relabeled profile", |entry| entry["kind"] == "relabel").await;
    assert_eq!(
        (&entry["of"], &entry["steps"][0]["removed"][0]),
        (&"profile".into(), &"app".into())
    );
    let mut write = controller.watch("pyroscope.write.all", 1.0).unwrap();
    let entry = read_until(&mut write, "a write", |entry| entry["kind"] == "write").await;
    assert_eq!((&entry["ok"], &entry["endpoint"]), (&true.into(), &url.as_str().into()));

    // Flows are counted even if no watcher exists.
    drop((scrape, changed, write));
    controller.live().disable();
    // Disabling ends all watches. A watch still returns the entries that it received before.
    while file.next().await.is_some() {}
    let mut flow = controller.flow("");
    let started = Instant::now();
    eventually("profiles on both edges, targets on the others", || {
        let rates = flow.next(Duration::from_secs(1));
        let rate = |from: &str, to: &str| {
            let edge = rates
                .iter()
                .find(|rate| rate.component_id == from && rate.target_component_ids == [to]);
            edge.map_or(0.0, |edge| edge.rate.min(edge.bytes_rate.unwrap_or_default()))
        };
        let targets = |from: &str| {
            rates
                .iter()
                .find(|rate| rate.component_id == from)
                .and_then(|rate| rate.current)
        };
        rate("pyroscope.scrape.all", "pyroscope.relabel.all") > 0.0
            && rate("pyroscope.relabel.all", "pyroscope.write.all") > 0.0
            && targets("discovery.file.all") == Some(2)
            && targets("discovery.relabel.all") == Some(1)
    })
    .await;
    assert!(started.elapsed() < Duration::from_mins(1));

    shutdown.cancel();
    running.await.unwrap();
}
