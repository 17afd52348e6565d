//! Retention by tenant and type, downsampling and deletion over HTTP, starting from the text of a configuration file.
//! The tests set the clock, and so cover weeks.
//!
//! Scenario: a whole server configured from YAML; the test pushes profiles of two types for three tenants over HTTP.
//! Guarantee: at each moment exactly those profiles are left whose retention has not ended, and a token deletes only
//! profiles of its own tenants.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use serde_json::{Value, json};

use crate::app::server::{RunningServer, process_metrics};
use crate::cli::services::serve::{ServeArgs, options};
use crate::store::common::clock::Clock;
use alluvium_base::Shutdown;
use alluvium_profile::{Labels, RawProfile, pprof};
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use alluvium_wire::call::Caller;
use alluvium_wire::push::PushClient;

const YAML: &str = "\
multitenancy_enabled: true
limits:
  retention_period: 20d
  reject_older_than: 0s
maintenance:
  interval: 20ms
  vacuum_interval: 20ms
  cpu_share: 1
  deletion_delay: 0s
  tenant_retention:
    short: 5d
    mixed:
      default: 40d
      'process_cpu:samples:count:cpu:nanoseconds': 2d
  type_retention:
    'process_cpu:cpu:nanoseconds:cpu:nanoseconds': 10d
  downsample_5m_after: 1d
admin:
  tokens:
    - name: ops
      token: 0123456789abcdef-ops
      tenants: [short, mixed]
    - name: other
      token: 0123456789abcdef-other
      tenants: [plain]
";
const TENANTS: [&str; 3] = ["plain", "short", "mixed"];
const SHAPE: Shape = Shape {
    functions: 20,
    samples: 10,
    depth: 5,
    labelled_every: 0,
};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    serve: ServeArgs,
}

/// A server whose clock the test moves.
struct Site {
    url: String,
    client: reqwest::Client,
    now: Arc<AtomicU64>,
    shutdown: Shutdown,
    task: tokio::task::JoinHandle<anyhow::Result<()>>,
    _folder: tempfile::TempDir,
}

impl Site {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("server.yaml");
        std::fs::write(&file, YAML).unwrap();
        let data = folder.path().join("data");
        let line = Line::parse_from([
            "serve".as_ref(),
            "--config".as_ref(),
            file.as_os_str(),
            "--listen".as_ref(),
            "127.0.0.1:0".as_ref(),
            "--data".as_ref(),
            data.as_os_str(),
        ]);
        let mut options = options(line.serve).unwrap();
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let now = Arc::new(AtomicU64::new(started));
        let clock = now.clone();
        options.clock = Clock::new(move || UNIX_EPOCH + Duration::from_secs(clock.load(Ordering::SeqCst)));
        let shutdown = Shutdown::new();
        let server = RunningServer::start(options, &process_metrics(), &shutdown)
            .await
            .unwrap();
        let url = format!("http://{}", server.local_addr());
        let task = tokio::spawn(server.run(shutdown.clone()));
        // Only the first call in the process installs the crypto provider; later calls fail without harm.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            url,
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            now,
            shutdown,
            task,
            _folder: folder,
        }
    }

    fn pass(&self, days: f64) {
        self.now.fetch_add((days * 86_400.0) as u64, Ordering::SeqCst);
    }

    /// Pushes a profile of each type for every tenant, with the current time.
    async fn push(&self, service: &str) {
        let names = Names::new(SHAPE.functions);
        for tenant in TENANTS {
            let mut profile = cpu_profile(&names, SHAPE, 1);
            profile.time_nanos = self.now.load(Ordering::SeqCst) as i64 * 1_000_000_000;
            let raw = RawProfile {
                labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", service)]),
                id: "".into(),
                pprof: pprof::gzip(&pprof::encode(&profile)).into(),
            };
            let caller = Caller::new(self.client.clone(), self.url.parse().unwrap()).with_tenant(tenant);
            PushClient::new(caller).push(&[raw]).await.unwrap();
        }
        let answer = self.client.post(format!("{}/flush", self.url)).send().await.unwrap();
        assert_eq!(answer.status(), 204);
    }

    async fn sql(&self, tenant: &str, query: &str) -> String {
        let request = self.client.post(format!("{}/api/v1/sql?format=csv", self.url));
        let request = request
            .header("content-type", "text/plain")
            .header("x-scope-orgid", tenant);
        let answer = request.body(query.to_owned()).send().await.unwrap();
        let text = answer.text().await.unwrap();
        text.lines().skip(1).collect::<Vec<_>>().join(" ")
    }

    /// Returns two numbers for each tenant: the number of profiles with CPU time, and the number of profiles with
    /// counts of samples. A number is -1 if the table `profiles` and the table `samples` yield different numbers.
    async fn left(&self) -> Vec<(i64, i64)> {
        let mut left = Vec::new();
        for tenant in TENANTS {
            let count = |table: &str, kind: &str| {
                format!(
                    "SELECT count(DISTINCT time) FROM {table} WHERE profile_type = 'process_cpu:{kind}:cpu:nanoseconds'"
                )
            };
            let mut counts = Vec::new();
            for kind in ["cpu:nanoseconds", "samples:count"] {
                let profiles = self.sql(tenant, &count("profiles", kind)).await;
                let samples = self.sql(tenant, &count("samples", kind)).await;
                // In the middle of a maintenance round one table may be ahead of the other.
                counts.push(if profiles == samples {
                    profiles.parse().unwrap()
                } else {
                    -1
                });
            }
            left.push((counts[0], counts[1]));
        }
        left
    }

    async fn becomes(&self, expected: [(i64, i64); 3]) {
        let deadline = Instant::now() + Duration::from_mins(2);
        loop {
            let left = self.left().await;
            if left == expected {
                return;
            }
            assert!(Instant::now() < deadline, "{left:?} are left, not {expected:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn delete(&self, tenant: &str, token: Option<&str>, body: &Value) -> (u16, Value) {
        let mut request = self
            .client
            .post(format!("{}/api/v1/admin/delete", self.url))
            .header("x-scope-orgid", tenant)
            .body(body.to_string());
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn periods_of_tenants_and_types_end_when_the_configuration_says() {
    let site = Site::new().await;
    site.push("shop").await;
    site.becomes([(1, 1), (1, 1), (1, 1)]).await;
    // A file is deleted when its last profile is too old. The stacks and series of the file's day are deleted one day
    // later.
    site.pass(1.5);
    site.push("shop").await;
    site.becomes([(2, 2), (2, 2), (2, 2)]).await;
    // The samples of the first push are downsampled.
    let coarse = "SELECT bool_and(CAST(date_part('epoch', time) AS BIGINT) % 300 = 0) FROM samples WHERE time < \
        (SELECT max(time) FROM profiles) - INTERVAL '1 day'";
    let deadline = Instant::now() + Duration::from_mins(2);
    while site.sql("plain", coarse).await != "true" {
        assert!(Instant::now() < deadline, "the samples are not downsampled");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // `mixed` keeps counts of samples for 2 days: the first are deleted after 2.25 days, the second after 4 days.
    site.pass(0.75);
    site.becomes([(2, 2), (2, 2), (2, 1)]).await;
    site.pass(1.75);
    site.becomes([(2, 2), (2, 2), (2, 0)]).await;
    // After 5.25 days `short` loses its first counts of samples, which it keeps for 5 days. Its profiles with CPU time
    // are kept for 10 days, the period of the type.
    site.pass(1.25);
    site.becomes([(2, 2), (2, 1), (2, 0)]).await;
    site.pass(5.0);
    site.becomes([(1, 2), (1, 0), (1, 0)]).await;
    site.pass(10.0);
    site.becomes([(0, 1), (0, 0), (0, 0)]).await;
    site.pass(3.0);
    site.becomes([(0, 0), (0, 0), (0, 0)]).await;
    site.shutdown.cancel();
    site.task.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_deletes_what_it_selects_of_its_tenants_and_nothing_else() {
    let site = Site::new().await;
    site.push("shop").await;
    site.pass(0.01);
    site.push("cart").await;
    site.becomes([(2, 2), (2, 2), (2, 2)]).await;
    let ops = Some("0123456789abcdef-ops");
    let shop = json!({ "selector": "{service_name=\"shop\"}", "to": i64::MAX });
    for (tenant, token, body, status, word) in [
        ("short", None, &shop, 401, "token"),
        ("short", Some("0123456789abcdef-no"), &shop, 401, "token"),
        ("plain", ops, &shop, 403, "plain"),
        ("short", Some("0123456789abcdef-other"), &shop, 403, "short"),
        ("a/b", ops, &shop, 400, "tenant"),
        ("short", ops, &json!({ "selector": "{shop" }), 400, "selector"),
        (
            "short",
            ops,
            &json!({ "selector": "{__name__=\"x\"}" }),
            400,
            "__name__",
        ),
        ("short", ops, &json!({ "to": 5 }), 400, "selector"),
        ("short", ops, &json!({ "selector": "{}", "until": 5 }), 400, "until"),
        (
            "short",
            ops,
            &json!({ "selector": "{}", "from": 5, "to": 5 }),
            400,
            "from",
        ),
        ("short", ops, &json!("{}"), 400, "JSON"),
    ] {
        let (answer_status, answer) = site.delete(tenant, token, body).await;
        assert_eq!(answer_status, status, "{tenant} {body}: {answer}");
        assert!(answer["message"].as_str().unwrap().contains(word), "{answer}");
    }
    assert_eq!(site.left().await, [(2, 2), (2, 2), (2, 2)]);
    let (status, answer) = site.delete("short", ops, &shop).await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer["rows_deleted"].as_u64().unwrap() > 2, "{answer}");
    // When the response arrives, the deletion is done, for this tenant only.
    assert_eq!(site.left().await, [(2, 2), (1, 1), (2, 2)]);
    assert_eq!(
        site.sql(
            "short",
            "SELECT DISTINCT service_name FROM profiles JOIN series USING (series)"
        )
        .await,
        "cart"
    );
    // A time range without profiles deletes nothing. A selector may also be a type alone.
    let nothing = json!({ "selector": "{}", "from": 0, "to": 1000 });
    let (status, answer) = site.delete("mixed", ops, &nothing).await;
    assert_eq!((status, &answer["rows_deleted"]), (200, &json!(0)));
    let kind = json!({ "selector": "process_cpu:cpu:nanoseconds:cpu:nanoseconds{}", "to": i64::MAX });
    assert_eq!(site.delete("mixed", ops, &kind).await.0, 200);
    assert_eq!(site.left().await, [(2, 2), (1, 1), (0, 2)]);
    site.shutdown.cancel();
    site.task.await.unwrap().unwrap();
}
