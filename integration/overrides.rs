//! Limits of single tenants in a real server: put in force when their file changes, without a restart.

use std::time::{Duration, Instant};

use crate::harness::client;
use crate::program::{Address, PATIENCE, Program};

/// Pushes a profile of text; the status of the answer.
async fn push(http: &reqwest::Client, url: &str, tenant: &str) -> u16 {
    let request = http
        .post(format!("{url}/ingest?name=shop"))
        .header("x-scope-orgid", tenant)
        .body("main;work 5\n");
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_limits_change_while_the_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let in_folder = |name: &str| folder.path().join(name).display().to_string();
    let (overrides, config) = (in_folder("overrides.yaml"), in_folder("server.yaml"));
    let one_series = "overrides:\n  shop:\n    max_label_names_per_series: 1\n";
    std::fs::write(&overrides, one_series).unwrap();
    let text = format!("multitenancy_enabled: true\nruntime_config:\n  file: {overrides}\n  period: 50ms\n");
    std::fs::write(&config, text).unwrap();
    let (address, http) = (Address::keep(), client());
    let url = format!("http://{address}");
    let arguments = [
        "serve",
        "--listen",
        &address,
        "--data",
        &in_folder("data"),
        "--config",
        &config,
    ];
    let mut server = Program::alluvium(&arguments, &folder.path().join("serve.log"));
    server.ready(&http, &format!("{url}/ready")).await;

    assert_eq!(push(&http, &url, "shop").await, 400, "too many labels for it");
    assert_eq!(push(&http, &url, "other").await, 200);

    let slow = "overrides:\n  shop:\n    ingestion_rate_mb: 0.000001\n    ingestion_burst_size_mb: 0.000001\n";
    for (text, wanted) in [(slow, 429), ("overrides: nonsense\n", 429), ("overrides: {}\n", 200)] {
        std::fs::write(&overrides, text).unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            // What is in force was seen: this text, or for the wrong one the metric.
            let metrics = http
                .get(format!("{url}/metrics"))
                .send()
                .await
                .unwrap()
                .text()
                .await
                .unwrap();
            let failed = metrics.contains("alluvium_runtime_config_last_reload_successful 0");
            let status = push(&http, &url, "shop").await;
            if status == wanted && failed == text.contains("nonsense") {
                break;
            }
            server.check();
            assert!(
                Instant::now() < deadline,
                "{status} and not {wanted} for {text}\n{}",
                server.tail()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(push(&http, &url, "other").await, 200);
    }
    assert!(server.terminate().success());

    std::fs::write(&overrides, "overrides:\n  shop:\n    reject_older_than: soon\n").unwrap();
    let refused = Program::alluvium(&arguments, &folder.path().join("refused.log"));
    let deadline = Instant::now() + PATIENCE;
    while !refused.tail().contains("reject_older_than") {
        assert!(Instant::now() < deadline, "{}", refused.tail());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(
        refused.tail().contains("cannot use the overrides"),
        "{}",
        refused.tail()
    );
}
