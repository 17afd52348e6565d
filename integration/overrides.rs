//! Limits of single tenants in a real server. They take effect when their file changes, without a restart. A second
//! test limits which tenants may push, and how many.

use std::time::{Duration, Instant};

use crate::harness::client;
use crate::program::{Address, PATIENCE, Program};

/// Pushes a text profile and returns the status of the response.
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

    assert_eq!(push(&http, &url, "shop").await, 400, "too many labels for `shop`");
    assert_eq!(push(&http, &url, "other").await, 200);

    let slow = "overrides:\n  shop:\n    ingestion_rate_mb: 0.000001\n    ingestion_burst_size_mb: 0.000001\n";
    for (text, wanted) in [(slow, 429), ("overrides: nonsense\n", 429), ("overrides: {}\n", 200)] {
        // The file is replaced atomically: the server must not read an empty file, which sets no limits.
        std::fs::write(in_folder("next.yaml"), text).unwrap();
        std::fs::rename(in_folder("next.yaml"), &overrides).unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            // The server has read the file if the status and the metric are the expected ones.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_are_those_of_a_list_and_no_more_than_a_number() {
    let folder = tempfile::tempdir().unwrap();
    let in_folder = |name: &str| folder.path().join(name).display().to_string();
    let config = in_folder("server.yaml");
    let (address, http) = (Address::keep(), client());
    let url = format!("http://{address}");
    let log = folder.path().join("serve.log");
    let start = |rules: &str| {
        std::fs::write(&config, format!("multitenancy_enabled: true\ntenants: {rules}\n")).unwrap();
        let data = in_folder("data");
        let arguments = ["serve", "--listen", &address, "--data", &data, "--config", &config];
        Program::alluvium(&arguments, &log)
    };

    let mut server = start("{max: 2}");
    server.ready(&http, &format!("{url}/ready")).await;
    let nothing = http
        .post(format!("{url}/ingest?name=shop"))
        .header("x-scope-orgid", "c")
        .body("");
    assert!(!nothing.send().await.unwrap().status().is_success());
    for (tenant, status) in [("a", 200), ("b", 200), ("c", 429), ("a", 200)] {
        assert_eq!(
            push(&http, &url, tenant).await,
            status,
            "{tenant}: a refused push does not add its tenant"
        );
    }
    let answer = http.get(format!("{url}/metrics")).send().await.unwrap();
    let metrics = answer.text().await.unwrap();
    assert!(
        metrics.contains("alluvium_store_rejected_profiles_total{reason=\"tenant_limit\"} 1"),
        "{metrics}"
    );
    assert!(server.terminate().success());
    let of_tenant = |tenant: &str| folder.path().join(format!("data/tables/samples/tenant={tenant}"));
    assert!(of_tenant("a").is_dir() && !of_tenant("c").exists());

    // The tenants `a` and `b` from before the start still count. So the new tenant `c` exceeds `max`, although the list
    // allows it.
    let mut server = start("{max: 2, allowed: [b, c]}");
    server.ready(&http, &format!("{url}/ready")).await;
    for (tenant, status) in [("b", 200), ("c", 429), ("a", 400), ("d", 400)] {
        assert_eq!(push(&http, &url, tenant).await, status, "{tenant}");
    }
    assert!(server.terminate().success());

    // The number of new tenants per minute is also limited. The response names the key of this limit.
    let mut server = start("{new_per_minute: 1}");
    server.ready(&http, &format!("{url}/ready")).await;
    for (tenant, status) in [("a", 200), ("b", 200), ("e", 200), ("f", 429), ("e", 200)] {
        assert_eq!(push(&http, &url, tenant).await, status, "{tenant}");
    }
    let refused = http
        .post(format!("{url}/ingest?name=shop"))
        .header("x-scope-orgid", "f")
        .body("main;work 5\n");
    let text = refused.send().await.unwrap().text().await.unwrap();
    assert!(text.contains("tenants.new_per_minute"), "{text}");
    assert!(server.terminate().success());
}
