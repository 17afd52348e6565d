//! The dashboard and the alerts. Every panel has data when a real Prometheus scrapes a server and a collector. Every
//! named metric exists, and every alert fires in a test of `promtool`.
//!
//! Scenario: three processes. The second endpoint of the collector refuses every profile. Metrics that need a bucket or
//! the kernel are not scraped here; the test only searches the sources for their names.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::client;
use crate::program::{Address, PATIENCE, Program, other};
use crate::tidy::{Findings, root, tracked_files};

const DASHBOARD: &str = "deploy/grafana/alluvium.json";
const ALERTS: &str = "deploy/prometheus/alerts.yaml";

/// Rows of the dashboard that have data only with object storage or with kernel permissions.
const ELSEWHERE: [&str; 2] = ["Server: bucket", "Collector: eBPF"];

/// Prefixes of metrics that exist only with a bucket, after a failure, or with kernel permissions.
const RARE: [&str; 3] = [
    "alluvium_store_object_",
    "alluvium_store_job_failures_total",
    "pyroscope_ebpf_",
];

/// A query of a dashboard panel.
struct Question {
    row: String,
    panel: String,
    expression: String,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn questions() -> Vec<Question> {
    let dashboard: Value = serde_json::from_slice(&std::fs::read(root().join(DASHBOARD)).unwrap()).unwrap();
    let (mut row, mut questions) = (String::new(), Vec::new());
    for panel in list(&dashboard["panels"]) {
        let panel_title = text(&panel["title"]);
        if panel["type"] == "row" {
            row = panel_title;
            continue;
        }
        assert!(!list(&panel["targets"]).is_empty(), "{panel_title}");
        questions.extend(list(&panel["targets"]).iter().map(|target| Question {
            row: row.clone(),
            panel: panel_title.clone(),
            expression: text(&target["expr"]),
        }));
    }
    questions
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&std::fs::read_to_string(root().join(path)).unwrap()).unwrap()
}

/// Returns name and expression of every alert.
fn alerts() -> Vec<(String, String)> {
    let file = yaml(ALERTS);
    let rules = list(&file["groups"]).iter().flat_map(|group| list(&group["rules"]));
    rules.map(|rule| (text(&rule["alert"]), text(&rule["expr"]))).collect()
}

/// Returns the names of Alluvium's metrics in an expression.
fn metrics(expression: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let words = expression.split(move |c| !is_name(c));
    words.filter(|word| {
        ["alluvium_", "alloy_", "discovery_", "process_", "pyroscope_"]
            .iter()
            .any(|ours| word.starts_with(ours))
    })
}

/// Starts server, collector and Prometheus, each on its address.
fn start(folder: &Path, addresses: &[Address; 3]) -> [Program; 3] {
    let [server, collector, prometheus] = addresses;
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    std::fs::write(path("server.yaml"), "maintenance:\n  interval: 100ms\n").unwrap();
    let arguments = [
        "serve",
        "--listen",
        server,
        "--data",
        &path("data"),
        "--config",
        &path("server.yaml"),
    ];
    let serve = Program::alluvium(&arguments, &folder.join("serve.log"));

    let long = "x".repeat(4096);
    let text = format!(
        r#"
pyroscope.scrape "self" {{
	targets         = [{{"__address__" = "alloy.internal:12345", "service_name" = "self"}}]
	forward_to      = [pyroscope.write.good.receiver, pyroscope.write.refused.receiver]
	scrape_interval = "1s"

	profiling_config {{
		profile.process_cpu {{
			enabled = false
		}}
	}}
}}
pyroscope.write "good" {{
	endpoint {{ url = "http://{server}" }}
}}
pyroscope.write "refused" {{
	endpoint {{ url = "http://{server}" }}
	external_labels = {{"long" = "{long}"}}
}}
"#
    );
    std::fs::write(path("own.alloy"), text).unwrap();
    let arguments = [
        "run",
        &path("own.alloy"),
        "--server.http.listen-addr",
        collector,
        "--storage.path",
        &path("queue"),
    ];
    let run = Program::alluvium(&arguments, &folder.join("run.log"));

    let job =
        |name: &str, address: &str| format!("- job_name: {name}\n  static_configs:\n  - targets: ['{address}']\n");
    let text = format!(
        "global:\n  scrape_interval: 1s\nrule_files: ['{}']\nscrape_configs:\n{}{}",
        root().join(ALERTS).display(),
        job("alluvium-server", server),
        job("alluvium-collector", collector)
    );
    std::fs::write(path("prometheus.yml"), text).unwrap();
    let mut command = Command::new("prometheus");
    command
        .arg(format!("--config.file={}", path("prometheus.yml")))
        .arg(format!("--storage.tsdb.path={}", path("tsdb")))
        .arg(format!("--web.listen-address={prometheus}"));
    [serve, run, Program::start(command, &folder.join("prometheus.log"))]
}

async fn ask(http: &reqwest::Client, url: &str, parameters: &[(&str, &str)]) -> Value {
    let url = url::Url::parse_with_params(url, parameters).unwrap();
    let answer = http.get(url).send().await.unwrap();
    let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!(answer["status"], "success", "{parameters:?}: {answer}");
    answer["data"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_panel_has_data_and_every_metric_of_the_alerts_is_there() {
    if other("prometheus", &["--version"], "the Debian package prometheus").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let addresses = [Address::keep(), Address::keep(), Address::keep()];
    let mut programs = start(folder.path(), &addresses);
    let [server, collector, prometheus] = addresses.each_ref().map(|address| format!("http://{address}"));
    let http = client();
    programs[0].ready(&http, &format!("{server}/ready")).await;
    programs[1].ready(&http, &format!("{collector}/-/ready")).await;
    programs[2].ready(&http, &format!("{prometheus}/-/ready")).await;

    let (here, elsewhere): (Vec<_>, Vec<_>) = questions()
        .into_iter()
        .partition(|question| !ELSEWHERE.contains(&question.row.as_str()));
    assert!(here.len() >= 30 && elsewhere.len() >= 5);
    let deadline = Instant::now() + PATIENCE;
    loop {
        // Eight flushes are merged, which produces the maintenance metrics.
        let _ = http.post(format!("{server}/flush")).send().await.unwrap();
        let mut without = Vec::new();
        for question in &here {
            let expression = question
                .expression
                .replace("$__rate_interval", "15s")
                .replace("$instance", ".*");
            let data = ask(&http, &format!("{prometheus}/api/v1/query"), &[("query", &expression)]).await;
            let is_number = |row: &Value| row["value"][1].as_str().is_some_and(|number| number != "NaN");
            if !list(&data["result"]).iter().any(is_number) {
                without.push(format!("{}: {expression}", question.panel));
            }
        }
        if without.is_empty() {
            break;
        }
        programs.iter_mut().for_each(Program::check);
        assert!(
            Instant::now() < deadline,
            "panels without data:\n{}",
            without.join("\n")
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    let names = ask(&http, &format!("{prometheus}/api/v1/label/__name__/values"), &[]).await;
    let names: BTreeSet<&str> = list(&names).iter().filter_map(Value::as_str).collect();
    let sources: String = tracked_files()
        .iter()
        .filter(|path| path.starts_with("src/") && path.ends_with(".rs"))
        .map(|path| std::fs::read_to_string(root().join(path)).unwrap())
        .collect();
    let literals: BTreeSet<&str> = sources.split('"').collect();
    let mut found = Findings::default();
    let of_alerts = alerts().into_iter().map(|(_, expression)| (ALERTS, expression));
    let of_panels = elsewhere.into_iter().map(|question| (DASHBOARD, question.expression));
    for (file, expression) in of_alerts.chain(of_panels) {
        for name in metrics(&expression) {
            let is_rare = RARE.iter().any(|rare| name.starts_with(rare));
            let is_written = literals.contains(name) || literals.contains(name.trim_end_matches("_total"));
            let is_known = names.contains(name) || (is_rare && is_written);
            if !is_known {
                found.add(file, 1, "there is no such metric", name);
            }
        }
    }
    found.none();
}

#[test]
fn every_alert_fires_in_a_test_and_none_when_all_is_well() {
    if other("promtool", &["--version"], "the Debian package prometheus").is_none() {
        return;
    }
    let output = Command::new("promtool")
        .args(["test", "rules", "alerts_test.yaml"])
        .current_dir(root().join("deploy/prometheus"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");

    let tests = yaml("deploy/prometheus/alerts_test.yaml");
    let (mut firing, mut silent) = (BTreeSet::new(), BTreeSet::new());
    for test in list(&tests["tests"])
        .iter()
        .flat_map(|test| list(&test["alert_rule_test"]))
    {
        let names = if list(&test["exp_alerts"]).is_empty() {
            &mut silent
        } else {
            &mut firing
        };
        names.insert(text(&test["alertname"]));
    }
    let all: BTreeSet<String> = alerts().into_iter().map(|(name, _)| name).collect();
    assert!(all.len() >= 15);
    assert_eq!(firing, all);
    assert_eq!(silent, all);
}
