//! The relabel rules of a tenant in a real server. The server applies the rules of the overrides file. After a crash
//! and a start with another file, the stored profiles are the same. The server refuses invalid rules and names their
//! position.

use std::path::Path;
use std::time::{Duration, Instant};

use alluvium_profile::pprof::{self, Builder, Profile, SampleLabel, ValueType};
use alluvium_profile::{Labels, RawProfile};
use alluvium_wire::call::Caller;
use alluvium_wire::push::PushClient;

use crate::harness::client;
use crate::http_store::now_ms;
use crate::program::{Address, PATIENCE, Program};

const RULES: &str = r"
overrides:
  shop:
    ingestion_relabeling_rules:
      - {action: drop, source_labels: [environment], regex: secret}
      - {action: labeldrop, regex: pod}
      - {target_label: team, replacement: checkout}
    sample_type_relabeling_rules:
      - {action: drop, source_labels: [__type__], regex: alloc_.*}
";

/// Returns a profile of allocated bytes and bytes in use, with three stacks of `work` and `idle`.
fn heap(labels: &[(&str, &str)]) -> RawProfile {
    let of = |kind, unit| ValueType { kind, unit };
    let mut builder = Builder::new(Profile {
        sample_types: vec![of("alloc_space", "bytes"), of("inuse_space", "bytes")],
        time_nanos: now_ms() * 1_000_000,
        ..Profile::default()
    });
    let (work, idle) = (builder.named("work"), builder.named("idle"));
    builder.sample([work], [SampleLabel::Text("pod", "one")], &[1, 10]);
    builder.sample([work, idle], [SampleLabel::Text("environment", "secret")], &[2, 20]);
    builder.sample([idle], [], &[4, 40]);
    let named = [("__name__", "memory"), ("service_name", "cart")];
    RawProfile {
        labels: Labels::from_pairs(named.iter().chain(labels).copied()),
        id: "".into(),
        pprof: pprof::gzip(&pprof::encode(&builder.finish())).into(),
    }
}

struct Site {
    folder: tempfile::TempDir,
    address: Address,
    http: reqwest::Client,
}

impl Site {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            address: Address::keep(),
            http: client(),
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn start(&self, rules: &str) -> Program {
        std::fs::write(self.path("overrides.yaml"), rules).unwrap();
        let overrides = self.path("overrides.yaml");
        let text = format!("multitenancy_enabled: true\nruntime_config:\n  file: {overrides}\n  period: 50ms\n");
        std::fs::write(self.path("server.yaml"), text).unwrap();
        let (data, config) = (self.path("data"), self.path("server.yaml"));
        let arguments = ["serve", "--listen", &self.address, "--data", &data, "--config", &config];
        Program::alluvium(&arguments, Path::new(&self.path("serve.log")))
    }

    async fn ready(&self, server: &mut Program) {
        server.ready(&self.http, &format!("{}/ready", self.url())).await;
    }

    async fn push(&self, tenant: &str, profile: RawProfile) {
        let caller = Caller::new(self.http.clone(), self.url().parse().unwrap()).with_tenant(tenant);
        PushClient::new(caller).push(&[profile]).await.unwrap();
    }

    /// Returns the rows of an SQL query as CSV.
    async fn rows(&self, tenant: &str, query: &str) -> String {
        let request = self
            .http
            .post(format!("{}/api/v1/sql?format=csv", self.url()))
            .header("x-scope-orgid", tenant)
            .header("content-type", "text/plain")
            .body(query.to_owned());
        request
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
            .replace("\r\n", "\n")
    }

    async fn metric(&self, name: &str) -> String {
        let answer = self.http.get(format!("{}/metrics", self.url())).send().await.unwrap();
        let text = answer.text().await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim().to_owned()
    }

    /// Checks the stored profiles of `shop` and of a tenant without rules.
    async fn check(&self) {
        let all = "SELECT profile_type, labels['team'] AS team, labels['pod'] AS pod, sum(value) AS value FROM flat \
                   GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";
        assert_eq!(
            self.rows("shop", all).await,
            "profile_type,team,pod,value\nmemory:inuse_space:bytes::,checkout,,50\n"
        );
        let others = "SELECT count(*) AS n, sum(value) AS value FROM flat";
        assert_eq!(self.rows("other", others).await, "n,value\n6,77\n");
        let types = "SELECT count(*) AS n FROM profiles";
        assert_eq!(
            self.rows("shop", types).await,
            "n\n1\n",
            "one row for each series and profile"
        );
        let names = "SELECT count(*) AS n FROM stacks";
        assert_eq!(
            self.rows("shop", names).await,
            "n\n2\n",
            "no stack of a dropped profile"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_of_a_tenant_shape_what_is_stored_and_a_crash_under_other_rules_changes_nothing() {
    let site = Site::new();
    let mut server = site.start(RULES);
    site.ready(&mut server).await;
    site.push("shop", heap(&[])).await;
    site.push("shop", heap(&[("environment", "secret")])).await;
    site.push("other", heap(&[])).await;
    site.check().await;
    let refused = "alluvium_store_rejected_profiles_total{reason=\"dropped_by_relabel_rules\"}";
    assert_eq!(site.metric(refused).await, "1");
    let dropped = "alluvium_store_dropped_values_total{reason=\"dropped_by_relabel_rules\"}";
    assert_eq!(
        site.metric(dropped).await,
        "4",
        "three values of alloc_space, and one of inuse_space in the environment `secret`"
    );
    let limits = site
        .http
        .get(format!("{}/api/v1/tenant_limits", site.url()))
        .header("x-scope-orgid", "shop");
    let limits: serde_json::Value = serde_json::from_str(&limits.send().await.unwrap().text().await.unwrap()).unwrap();
    assert_eq!(limits["ingestion_relabeling_rules"][0]["regex"], "secret");
    assert_eq!(limits["ingestion_relabeling_default_rules_position"], "first");

    server.kill();
    let mut server = site.start("overrides: {}\n");
    site.ready(&mut server).await;
    site.check().await;
    let flush = site.http.post(format!("{}/flush", site.url()));
    assert!(flush.send().await.unwrap().status().is_success());
    site.check().await;
    assert!(server.terminate().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_a_series_are_limited_by_tenant_also_after_a_crash_without_the_limit() {
    const SESSIONS: &str = "
overrides:
  shop:
    max_sessions_per_series: 2
    ingestion_relabeling_rules:
      - {source_labels: [__session_id__], target_label: session}
  cart:
    ingestion_relabeling_rules:
      - {source_labels: [__session_id__], target_label: session}
";
    let site = Site::new();
    let mut server = site.start(SESSIONS);
    site.ready(&mut server).await;
    for session in ["0400000000000000", "0700000000000000", "0900000000000000", "none"] {
        for tenant in ["shop", "cart", "other"] {
            site.push(tenant, heap(&[("__session_id__", session)])).await;
        }
    }
    let check = async || {
        let sessions = "SELECT labels['__session_id__'] AS id, labels['session'] AS session, count(*) AS series \
                        FROM series GROUP BY 1, 2 ORDER BY 1 NULLS FIRST";
        let header = "id,session,series\n";
        assert_eq!(
            site.rows("shop", sessions).await,
            format!("{header},,3\n0000000000000000,0000000000000000,3\n0100000000000000,0100000000000000,3\n")
        );
        for tenant in ["cart", "other"] {
            assert_eq!(site.rows(tenant, sessions).await, format!("{header},,3\n"), "{tenant}");
        }
    };
    check().await;
    let limits = site.http.get(format!("{}/api/v1/tenant_limits", site.url()));
    let limits = limits.header("x-scope-orgid", "shop").send().await.unwrap();
    let limits: serde_json::Value = serde_json::from_str(&limits.text().await.unwrap()).unwrap();
    assert_eq!(limits["max_sessions_per_series"], 2);
    server.kill();
    let mut server = site.start("overrides: {}\n");
    site.ready(&mut server).await;
    check().await;
    assert!(server.terminate().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_change_while_the_server_runs_and_wrong_ones_stop_a_start_with_their_place() {
    let site = Site::new();
    let mut server = site.start("overrides: {}\n");
    site.ready(&mut server).await;
    let drop_all =
        "overrides:\n  shop:\n    ingestion_relabeling_rules: [{action: drop, source_labels: [service_name]}]\n";
    std::fs::write(site.path("overrides.yaml"), drop_all).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let refused = "alluvium_store_rejected_profiles_total{reason=\"dropped_by_relabel_rules\"}";
    while site.metric(refused).await.is_empty() {
        site.push("shop", heap(&[])).await;
        server.check();
        assert!(Instant::now() < deadline, "{}", server.tail());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(server.terminate().success());

    let wrong =
        "overrides:\n  shop:\n    ingestion_relabeling_rules: [{action: drop, source_labels: [a], regex: '('}]\n";
    let server = site.start(wrong);
    while !server.tail().contains("limits.ingestion_relabeling_rules[0].regex") {
        assert!(Instant::now() < deadline, "{}", server.tail());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(server.tail().contains("overrides of `shop`"), "{}", server.tail());
}

/// Returns a profile with the id `threads`. Its samples have texts, numbers and the id of a span as labels.
fn threads() -> RawProfile {
    let cpu = ValueType {
        kind: "cpu",
        unit: "nanoseconds",
    };
    let mut builder = Builder::new(Profile {
        sample_types: vec![cpu],
        period_type: cpu,
        time_nanos: now_ms() * 1_000_000,
        ..Profile::default()
    });
    let (work, idle) = (builder.named("work"), builder.named("idle"));
    let (route, span) = (
        SampleLabel::Text("route", "/"),
        SampleLabel::Text("span_id", "00000000000000aa"),
    );
    builder.sample([work, idle], [route, SampleLabel::Number("thread_id", 7, "")], &[1]);
    builder.sample([work, idle], [route, SampleLabel::Number("thread_id", 8, "")], &[2]);
    builder.sample([work], [SampleLabel::Number("bytes", 512, "bytes"), span], &[4]);
    builder.sample([idle], [], &[8]);
    RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", "cart")]),
        id: "threads".into(),
        pprof: pprof::encode(&builder.finish()).into(),
    }
}

/// Returns the samples of the profile `threads` of a tenant: function at the leaf, labels and value.
async fn samples_of_threads(site: &Site, tenant: &str) -> Vec<String> {
    let request = site.http.get(format!("{}/api/0/profiles/threads", site.url()));
    let response = request.header("x-scope-orgid", tenant).send().await.unwrap();
    let plain = pprof::gunzip(&response.bytes().await.unwrap(), 1 << 20).unwrap();
    let profile = pprof::decode(&plain).unwrap();
    let sample = |sample: usize| {
        let leaf = &profile.locations[profile.stack(sample)[0] as usize];
        let function = profile.functions[profile.lines_of(leaf)[0].function as usize].name;
        let labels = profile.labels_of(sample).iter().map(|label| match label {
            SampleLabel::Text(name, value) => format!(" {name}={value:?}"),
            SampleLabel::Number(name, number, unit) => format!(" {name}={number}{unit}"),
        });
        format!(
            "{function}{} {}",
            labels.collect::<String>(),
            profile.values_of(sample)[0]
        )
    };
    let mut samples: Vec<String> = (0..profile.sample_count()).map(sample).collect();
    samples.sort();
    samples
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_profile_has_the_labels_of_its_samples_when_it_is_read_by_its_id() {
    let site = Site::new();
    let mut server = site.start("overrides:\n  shop:\n    numeric_sample_labels: [thread_id]\n");
    site.ready(&mut server).await;
    for tenant in ["shop", "other"] {
        site.push(tenant, threads()).await;
    }
    let span = "work span_id=\"00000000000000aa\" 4";
    let (of_7, of_8) = ("work route=\"/\" thread_id=7 1", "work route=\"/\" thread_id=8 2");
    assert_eq!(samples_of_threads(&site, "shop").await, ["idle 8", of_7, of_8, span]);
    let without_numbers = ["idle 8", "work route=\"/\" 3", span];
    assert_eq!(samples_of_threads(&site, "other").await, without_numbers);
    let threads = "SELECT labels['thread_id'] AS id, sum(value) AS value FROM flat GROUP BY 1 ORDER BY 1 NULLS FIRST";
    let rows = site.rows("shop", threads).await;
    assert_eq!(rows, "id,value\n,12\n7,1\n8,2\n");
    // The start replays the log with the rules of the push. The export follows the rules of today.
    server.kill();
    let mut server = site.start("overrides: {}\n");
    site.ready(&mut server).await;
    assert_eq!(site.rows("shop", threads).await, rows);
    let texts = [of_7, of_8].map(|line| line.replace("=7 ", "=\"7\" ").replace("=8 ", "=\"8\" "));
    assert_eq!(
        samples_of_threads(&site, "shop").await,
        ["idle 8", &texts[0], &texts[1], span]
    );
    assert!(server.terminate().success());
}
