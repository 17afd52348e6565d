//! Metrics beside profiles: the server forwards queries to a real Prometheus. Fake servers send redirects and responses
//! that are too long; the server neither follows the redirects nor forwards these responses.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use alluvium::server::{Prometheus, ServerOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::go_target::prometheus;
use crate::harness::{Nowhere, TestServer, client};
use crate::program::{Address, PATIENCE, Program, other};

const ROUTE: &str = "/api/v1/prometheus/query_range";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_query_is_answered_by_the_prometheus_of_the_configuration() {
    if other("prometheus", &["--version"], "the Debian package prometheus").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let http = client();
    let (target, address) = (Address::keep(), Address::keep());
    let url = format!("http://{address}");
    let mut metrics = prometheus(folder.path(), &target);
    let data = folder.path().join("data");
    let metrics_url = format!("http://{target}");
    let mut server = Program::alluvium(
        &[
            "serve",
            "--listen",
            &address,
            "--data",
            &data.to_string_lossy(),
            "--prometheus-url",
            &metrics_url,
        ],
        &folder.path().join("serve.log"),
    );
    metrics.ready(&http, &format!("{metrics_url}/-/ready")).await;
    server.ready(&http, &format!("{url}/ready")).await;

    let ask = async |prefix: &str, query: &str| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let (start, end) = ((now - 600).to_string(), now.to_string());
        let parameters = [
            ("query", query),
            ("start", start.as_str()),
            ("end", end.as_str()),
            ("step", "15"),
        ];
        let query: String = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(parameters)
            .finish();
        let response = http.get(format!("{url}{prefix}{ROUTE}?{query}")).send().await.unwrap();
        let status = response.status().as_u16();
        let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        (status, answer)
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (status, answer) = ask("", "up{job=\"self\"}").await;
        assert_eq!((status, &answer["status"]), (200, &json!("success")), "{answer}");
        let lines = answer["data"]["result"].as_array().unwrap();
        if let Some(line) = lines.first() {
            assert_eq!(line["metric"]["__name__"], "up");
            assert_eq!(line["values"][0][1], "1");
            break;
        }
        assert!(Instant::now() < deadline, "{answer}\n{}", metrics.tail());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(ask("/profile", "up").await.0, 200);
    let (status, answer) = ask("", "rate(").await;
    let message = answer["message"].as_str().unwrap();
    assert!(status == 400 && message.contains("parse error"), "{answer}");

    let route = format!("{url}/capabilities.v1.FeatureFlagsService/GetFeatureFlags");
    let request = http.post(route).header("content-type", "application/json");
    let flags = request.body("{}").send().await.unwrap().text().await.unwrap();
    let flags: Value = serde_json::from_str(&flags).unwrap();
    let flags = flags["featureFlags"].as_array().unwrap();
    let own = flags.iter().find(|flag| flag["name"] == "alluviumPrometheus").unwrap();
    assert_eq!(own["enabled"], true);
    let shown = http.get(format!("{url}/api/v1/status/config")).send().await.unwrap();
    assert!(shown.text().await.unwrap().contains(&metrics_url));
}

/// Starts a server that reads requests and sends the same bytes for each. Returns its address.
async fn answering(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = connection.read(&mut request).await;
            let _ = connection.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}")
}

/// Returns status and message of the server when its Prometheus is at `address`.
async fn asked(address: &str) -> (u16, String) {
    let options = ServerOptions {
        prometheus: Some(Prometheus::new(address).unwrap()),
        ..ServerOptions::default()
    };
    let server = TestServer::start(Arc::new(Nowhere), options).await;
    let (status, text) = server.get(&format!("{ROUTE}?query=up&start=1&end=2&step=1")).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    (status, answer["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn nobody_makes_the_server_ask_elsewhere_or_read_without_end() {
    let elsewhere = answering("HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{\"secret\":\"x\"}".to_owned()).await;
    let redirect = format!("HTTP/1.1 302 Found\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n");
    let (status, message) = asked(&answering(redirect).await).await;
    assert_eq!(
        (status, message.as_str()),
        (503, "Prometheus responded with status 302")
    );

    let length = (8 << 20) + 1;
    let endless = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{}",
        " ".repeat(length)
    );
    let (status, message) = asked(&answering(endless).await).await;
    assert!(
        status == 429 && message.contains("longer than 8 MiB"),
        "{status} {message}"
    );

    // No server listens at this port.
    let (status, message) = asked(&format!("http://ada:hidden@{}", &*Address::keep())).await;
    assert!(status == 503 && !message.contains("hidden"), "{status} {message}");

    let server = TestServer::start(Arc::new(Nowhere), ServerOptions::default()).await;
    let (status, text) = server.get(&format!("{ROUTE}?query=up&start=1&end=2&step=1")).await;
    assert!(status == 501 && text.contains("--prometheus-url"), "{text}");
}
