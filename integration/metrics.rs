//! Checks that the page of metrics lists the metrics that the collector exposes.
//!
//! In: `docs/reference/metrics.md`, a controller that runs a pipeline from `discovery.file` to `pyroscope.write`, and
//! the string literals of the sources. Out: metrics that are missing on the page, that only the page has, or that the
//! page lists with another type.

use std::collections::{BTreeMap, BTreeSet};

use alluvium::app::remote::{MODULE, Remote};
use alluvium_base::Shutdown;
use alluvium_components::ALL;
use alluvium_pipeline::{Controller, Options};
use alluvium_telemetry::metrics::Scope;
use alluvium_telemetry::process::{ProcessMetrics, ResourceMetrics};

use crate::tidy::{Findings, root, tracked_files};

const PAGE: &str = "docs/reference/metrics.md";

/// Metrics of the engine that the collector exposes only after a slow operation.
const RARE: [&str; 1] = ["alloy_component_evaluation_slow_seconds"];

/// Returns name, type and line of every row of the page's tables.
fn documented() -> BTreeMap<String, (String, usize)> {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let row = |(at, line): (usize, &str)| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        let name = cells.next()?.trim_end_matches('`').split('{').next()?.to_owned();
        Some((name, (cells.next()?.to_owned(), at + 1)))
    };
    page.lines().enumerate().filter_map(row).collect()
}

async fn printed() -> String {
    let folder = tempfile::tempdir().unwrap();
    let targets = folder.path().join("targets.json");
    std::fs::write(&targets, "[]").unwrap();
    let text = format!(
        r#"
discovery.file "a" {{ files = ["{}"] }}
discovery.relabel "a" {{ targets = discovery.file.a.targets }}
pyroscope.scrape "a" {{
	targets    = discovery.relabel.a.output
	forward_to = [pyroscope.relabel.a.receiver]
}}
pyroscope.relabel "a" {{ forward_to = [pyroscope.write.a.receiver] }}
pyroscope.write "a" {{
	endpoint {{ url = "http://127.0.0.1:1" }}
}}
"#,
        targets.display()
    );
    let metrics = Scope::new();
    metrics.register_collector(ProcessMetrics::new());
    metrics.register_collector(ResourceMetrics::new());
    let options = Options {
        metrics: metrics.clone(),
        ..Options::new(folder.path())
    };
    let remote = Options {
        metrics: Scope::new(),
        module: MODULE.into(),
        ..Options::new(folder.path())
    };
    let _remote = Remote::new(Controller::new(ALL, remote), folder.path(), folder.path(), "", &metrics);
    let controller = Controller::new(ALL, options);
    controller.load(vec![("a.alloy".to_owned(), text)]).await.unwrap();
    let text = metrics.encode();
    let stop = Shutdown::new();
    stop.cancel();
    controller.run(stop).await;
    text
}

#[tokio::test]
async fn the_page_of_metrics_is_what_the_collector_prints() {
    let mut found = Findings::default();
    let documented = documented();
    let text = printed().await;
    let printed: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    for (name, kind) in &printed {
        match documented.get(*name) {
            None => found.add(
                PAGE,
                1,
                "a metric that the page lacks",
                &format!("| `{name}` | {kind} |"),
            ),
            Some((said, line)) if said != kind => found.add(PAGE, *line, &format!("{name} is a {kind}"), said),
            Some(_) => {}
        }
    }
    let sources: String = tracked_files()
        .iter()
        .filter(|path| path.starts_with("src/") && path.ends_with(".rs"))
        .map(|path| std::fs::read_to_string(root().join(path)).unwrap())
        .collect();
    let literals: BTreeSet<&str> = sources.split('"').collect();
    for (name, (_, line)) in &documented {
        let base = name.trim_end_matches("_total").trim_end_matches("_info");
        let of_engine = name.starts_with("alloy_") && !RARE.contains(&name.as_str());
        let is_written = literals.contains(base) || literals.contains(name.as_str());
        if !is_written || (of_engine && !printed.contains_key(name.as_str())) {
            found.add(PAGE, *line, "there is no such metric", name);
        }
    }
    found.none();
}
