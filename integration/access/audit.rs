//! The audit log of administrator calls, the metrics of refusals, and the routes that stay protected although
//! `/metrics` is open. The log contains no credential.

use serde_json::json;

use super::with_json;
use crate::harness::client;
use crate::program::{Address, Program, run};

fn token(data: &str, name: &str, role: &str) -> String {
    let (is_well, output, errors) = run(&["token", "new", name, "--role", role, "--data", data]);
    assert!(is_well, "{errors}");
    String::from_utf8(output).unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_administrators_are_logged_with_who_and_how_it_went_and_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let (admin, reader) = (token(&data, "ops", "admin"), token(&data, "page", "read"));
    let config = folder.path().join("server.yaml");
    let deletion = "deletion-token-of-the-desk";
    let text = format!("admin:\n  tokens:\n    - {{name: desk, token: {deletion}}}\nauth:\n  open_metrics: true\n");
    std::fs::write(&config, text).unwrap();
    let (address, http) = (Address::keep(), client());
    let url = format!("http://{address}");
    let log = folder.path().join("serve.log");
    let config = config.display().to_string();
    let arguments = [
        "serve",
        "--listen",
        &address,
        "--data",
        &data,
        "--config",
        &config,
        "--log.level",
        "debug",
    ];
    let mut server = Program::alluvium(&arguments, &log);
    server.ready(&http, &format!("{url}/ready")).await;

    let flush = async |token: &str| {
        let answer = http
            .post(format!("{url}/flush"))
            .bearer_auth(token)
            .send()
            .await
            .unwrap();
        answer.status().as_u16()
    };
    assert_eq!(flush(&admin).await, 204);
    assert_eq!(flush(&reader).await, 403);
    assert_eq!(flush("allu_wrong-token").await, 401);
    let delete = http.post(format!("{url}/api/v1/admin/delete")).bearer_auth(deletion);
    let delete = with_json(delete, &json!({"selector": "{service_name=\"none\"}"}));
    let delete = delete.send().await.unwrap();
    assert_eq!(delete.status(), 200);
    let push = http
        .post(format!("{url}/ingest?name=a"))
        .bearer_auth(deletion)
        .body("main 1\n");
    assert_eq!(push.send().await.unwrap().status(), 403);
    let login = http.post(format!("{url}/api/v1/login"));
    let login = with_json(login, &json!({"user": "a-typed-password", "password": "another"}));
    let login = login.send().await.unwrap();
    assert_eq!(login.status(), 401);

    let metrics = http.get(format!("{url}/metrics")).send().await.unwrap();
    assert_eq!(metrics.status(), 200, "the configuration allows it");
    let metrics = metrics.text().await.unwrap();
    for line in ["{reason=\"right\"} 2", "{reason=\"wrong\"} 2", "{reason=\"missing\"} 0"] {
        assert!(
            metrics.contains(&format!("alluvium_access_refusals_total{line}")),
            "{line}\n{metrics}"
        );
    }
    for path in ["/debug/pprof/cmdline", "/api/v1/status/config"] {
        assert_eq!(
            http.get(format!("{url}{path}")).send().await.unwrap().status(),
            401,
            "{path}"
        );
    }
    assert!(server.terminate().success());

    let text = std::fs::read_to_string(&log).unwrap();
    let line = |words: &[&str]| {
        let found = text.lines().any(|line| words.iter().all(|word| line.contains(word)));
        assert!(found, "{words:?}\n{text}");
    };
    line(&["admin call", "identity=ops", "call=/flush", "status=204"]);
    line(&["admin call refused", "identity=page", "call=/flush", "reason=right"]);
    line(&["admin call refused", "call=/flush", "reason=wrong"]);
    line(&["admin call", "identity=desk", "call=/api/v1/admin/delete", "status=200"]);
    line(&["login refused", "reason=wrong"]);
    for secret in [
        admin.as_str(),
        &reader,
        deletion,
        "allu_wrong-token",
        "a-typed-password",
    ] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
}
