//! Queries about several tenants at once (`X-Scope-OrgID: a|b`), over HTTP and a real store. Each response is the sum
//! or union of the single tenants' responses, regardless of earlier queries. If a request can only concern one tenant,
//! the server refuses it for several.
//!
//! Expected values come from the pushed profiles.

use std::collections::{BTreeMap, BTreeSet};

use alluvium::server::ServerOptions;
use alluvium_profile::flamegraph::Tree;
use alluvium_profile::pprof;
use alluvium_wire::querier::{QuerierClient, Selection};
use serde_json::{Value, json};

use crate::http_store::{CPU, Site, now_ms};

/// A tick at 100 Hz in nanoseconds.
const TICK: i64 = 10_000_000;
/// Pushes of three tenants: tenant, series, and stacks with their ticks. Two tenants have a series with the same
/// labels. Only the stack `main;work` occurs in two tenants.
const PUSHES: [(&str, &str, &str); 5] = [
    ("a", "shop{region=eu}", "main;work 5\nmain;idle 2\n"),
    ("b", "shop{region=eu}", "main;work 7\nmain;wait 3\n"),
    ("b", "desk{floor=2}", "main;print 11\n"),
    ("c", "shop{region=us}", "main;secret 1000\n"),
    ("a", "shop{region=eu}", "main;work 13\n"),
];

/// Responses to the queries about a set of tenants.
#[derive(Debug, Default, PartialEq)]
struct Answers {
    stacks: BTreeMap<String, i64>,
    /// Labels and time in milliseconds, mapped to the value.
    lines: BTreeMap<(String, i64), i64>,
    types: BTreeSet<String>,
    names: BTreeSet<String>,
    services: BTreeSet<String>,
    series: BTreeSet<String>,
}

impl Answers {
    /// Returns the sums and unions of these and the other responses.
    fn with(mut self, other: Self) -> Self {
        for (stack, value) in other.stacks {
            *self.stacks.entry(stack).or_default() += value;
        }
        for (point, value) in other.lines {
            *self.lines.entry(point).or_default() += value;
        }
        self.types.extend(other.types);
        self.names.extend(other.names);
        self.services.extend(other.services);
        self.series.extend(other.series);
        self
    }

    fn total(&self) -> i64 {
        self.stacks.values().sum()
    }
}

/// A server of several tenants, and the profiles that were pushed to it.
struct Shared {
    site: Site,
    /// Time of the profiles in Unix milliseconds.
    time_ms: i64,
    pushed: Vec<(&'static str, &'static str)>,
}

impl Shared {
    async fn new() -> Self {
        let options = ServerOptions {
            multi_tenant: true,
            ..ServerOptions::default()
        };
        Self {
            site: Site::new(options).await,
            time_ms: now_ms() / 1000 * 1000 - 60_000,
            pushed: Vec::new(),
        }
    }

    async fn push(&mut self, (tenant, name, text): (&'static str, &str, &'static str)) {
        let (name, from) = (
            name.replace('{', "%7B").replace('}', "%7D").replace('=', "%3D"),
            self.time_ms / 1000,
        );
        let path = format!("/ingest?name={name}&from={from}&until={}", from + 10);
        let request = self.site.server.post(&path).header("x-scope-orgid", tenant);
        assert_eq!(request.body(text).send().await.unwrap().status(), 200);
        self.pushed.push((tenant, text));
    }

    /// Returns start and end of a range that contains all profiles, in Unix milliseconds.
    fn range(&self) -> (i64, i64) {
        (self.time_ms - 60_000, self.time_ms + 60_000)
    }

    fn selection(&self) -> Selection {
        let (start_ms, end_ms) = self.range();
        Selection {
            profile_type: CPU.to_owned(),
            selector: "{}".to_owned(),
            start_ms,
            end_ms,
        }
    }

    /// Returns the stacks that were pushed for these tenants.
    fn expected(&self, tenants: &[&str]) -> BTreeMap<String, i64> {
        let mut stacks = BTreeMap::new();
        for (_, text) in self.pushed.iter().filter(|(tenant, _)| tenants.contains(tenant)) {
            for line in text.lines() {
                let (stack, value) = line.rsplit_once(' ').unwrap();
                *stacks.entry(stack.to_owned()).or_insert(0) += value.parse::<i64>().unwrap() * TICK;
            }
        }
        stacks
    }

    fn querier(&self, tenants: &str) -> QuerierClient {
        QuerierClient::new(self.site.server.caller("").with_tenant(tenants))
    }

    /// Returns the responses of querier.v1 about some tenants.
    async fn answers(&self, tenants: &str) -> Answers {
        let (client, selection, (start, end)) = (self.querier(tenants), self.selection(), self.range());
        let mut answers = Answers::default();
        let bytes = client.merge_profile(selection.clone()).await.unwrap();
        let mut tree = Tree::by_name();
        tree.insert_profile(&pprof::decode(&bytes).unwrap(), 0);
        tree.for_each_stack(|frames, value| {
            let names: Vec<&str> = frames.iter().map(|frame| frame.function).collect();
            answers.stacks.insert(names.join(";"), value);
        });
        let graph = client.merge_stacktraces(selection.clone(), 0).await.unwrap();
        assert_eq!(graph.total, answers.total(), "{tenants}");
        let by = vec!["region".to_owned()];
        for line in client.select_series(selection, by, 15.0).await.unwrap() {
            for (time, value) in line.points.iter().filter(|(_, value)| *value != 0.0) {
                answers.lines.insert((line.labels.to_string(), *time), *value as i64);
            }
        }
        let types = client.profile_types(start, end).await.unwrap();
        answers.types = types.iter().map(ToString::to_string).collect();
        answers.names = sorted(client.label_names(Vec::new(), start, end).await.unwrap());
        let services = client.label_values("service_name", Vec::new(), start, end);
        answers.services = sorted(services.await.unwrap());
        let labels = vec!["service_name".to_owned(), "region".to_owned(), "floor".to_owned()];
        let series = client.series(Vec::new(), labels, start, end).await.unwrap();
        answers.series = series.iter().map(ToString::to_string).collect();
        answers
    }

    /// Returns status and JSON of a request about some tenants.
    async fn ask(&self, path: &str, body: Option<String>, tenants: &str) -> (u16, Value) {
        let server = &self.site.server;
        let request = match body {
            Some(body) if path.ends_with("/sql") => server.post(path).header("content-type", "text/plain").body(body),
            Some(body) => server.post(path).header("content-type", "application/json").body(body),
            None => server.client.get(format!("{}{path}", server.url)),
        };
        let response = request.header("x-scope-orgid", tenants).send().await.unwrap();
        let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Returns the number that an SQL query yields.
    async fn number(&self, sql: &str, tenants: &str) -> i64 {
        let (status, rows) = self.ask("/api/v1/sql", Some(sql.to_owned()), tenants).await;
        assert_eq!(status, 200, "{rows}");
        rows[0]["n"].as_i64().unwrap_or_default()
    }

    /// Compares every response about several tenants with the responses about each tenant and with the pushed profiles.
    async fn check(&self) {
        for (asked, each) in [
            ("a|b", ["a", "b"].as_slice()),
            ("a", &["a"]),
            ("b|a|b", &["a", "b"]),
            ("b", &["b"]),
            ("a|nobody", &["a"]),
            ("c|b|a", &["a", "b", "c"]),
            ("a|b", &["a", "b"]),
        ] {
            let found = self.answers(asked).await;
            assert_eq!(found.stacks, self.expected(each), "{asked}");
            let mut single = Answers::default();
            for tenant in each {
                single = single.with(self.answers(tenant).await);
            }
            assert_eq!(found, single, "{asked}");
            self.check_plain(asked, &found).await;
        }
    }

    /// Compares the responses of `/pyroscope/...`, of the call `Diff` and of SQL with the expected ones.
    async fn check_plain(&self, asked: &str, expected: &Answers) {
        let (start, end) = self.range();
        let side = |name: &str| format!("{name}={CPU}%7B%7D");
        let span = |start: &str, end: &str| format!("{start}={}&{end}={}", self.range().0, self.range().1);
        let path = format!("/pyroscope/render?{}&{}", side("query"), span("from", "until"));
        let (status, answer) = self.ask(&path, None, asked).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["flamebearer"]["numTicks"], json!(expected.total()), "{asked}");
        let path = format!(
            "/pyroscope/render-diff?{}&{}&{}&{}",
            side("leftQuery"),
            span("leftFrom", "leftUntil"),
            side("rightQuery"),
            span("rightFrom", "rightUntil")
        );
        let (status, answer) = self.ask(&path, None, asked).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["leftTicks"], json!(expected.total()), "{asked}");
        let (_, values) = self
            .ask("/pyroscope/label-values?label=service_name", None, asked)
            .await;
        assert_eq!(values, json!(expected.services), "{asked}");
        let ask = json!({"profileTypeID": CPU, "labelSelector": "{}", "start": start, "end": end});
        let diff = json!({"left": ask, "right": ask}).to_string();
        let (status, answer) = self.ask("/querier.v1.QuerierService/Diff", Some(diff), asked).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["flamegraph"]["rightTicks"], json!(expected.total().to_string()));
        // If two tenants have the same stack, a join does not count it twice.
        for from in [
            "samples",
            "samples JOIN stacks USING (stack)",
            "samples JOIN series USING (series)",
            "flat",
        ] {
            let sql = format!("SELECT sum(value) AS n FROM {from} WHERE profile_type = '{CPU}'");
            assert_eq!(self.number(&sql, asked).await, expected.total(), "{asked}: {from}");
        }
        let sql = "SELECT count(DISTINCT tenant) AS n FROM samples";
        let tenants = asked.split('|').filter(|tenant| *tenant != "nobody");
        let tenants = tenants.collect::<BTreeSet<_>>().len() as i64;
        assert_eq!(self.number(sql, asked).await, tenants, "{asked}");
    }
}

fn sorted(texts: Vec<String>) -> BTreeSet<String> {
    assert!(texts.is_sorted(), "{texts:?}");
    let set: BTreeSet<String> = texts.iter().cloned().collect();
    assert_eq!(set.len(), texts.len(), "a text occurs twice: {texts:?}");
    set
}

#[tokio::test(flavor = "multi_thread")]
async fn several_tenants_answer_the_sum_of_their_answers_in_memory_in_files_and_in_both() {
    let mut shared = Shared::new().await;
    for push in &PUSHES[..4] {
        shared.push(*push).await;
    }
    shared.check().await;
    shared.site.flush().await;
    shared.check().await;
    shared.push(PUSHES[4]).await;
    shared.check().await;
    shared.site.flush().await;
    shared.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_about_one_tenant_refuses_several() {
    let mut shared = Shared::new().await;
    shared.push(PUSHES[0]).await;
    let push = "/push.v1.PusherService/Push";
    for (path, body) in [
        ("/ingest?name=shop", Some("main;work 1\n")),
        (push, Some("{}")),
        ("/v1development/profiles", Some("{}")),
        ("/settings.v1.SettingsService/Get", Some("{}")),
        ("/adhocprofiles.v1.AdHocProfileService/List", Some("{}")),
        ("/api/v1/adhoc", Some("main;work 1\n")),
        ("/api/v1/tenant_limits", None),
    ] {
        let (status, answer) = shared.ask(path, body.map(str::to_owned), "a|b").await;
        assert_eq!(status, 401, "{path}: {answer}");
        let text = answer["message"].as_str().unwrap();
        assert!(text.starts_with("multiple org IDs present"), "{path}: {text}");
    }
    assert_eq!(shared.answers("a|b").await.stacks, shared.expected(&["a"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_may_be_about_64_tenants_and_names_each_as_it_must_be() {
    let mut shared = Shared::new().await;
    shared.push(PUSHES[0]).await;
    let joined = |count: usize| (0..count).map(|id| format!("t{id}")).collect::<Vec<_>>().join("|");
    let types = "/querier.v1.QuerierService/ProfileTypes";
    for (tenants, status, text) in [
        (format!("a|{}", joined(63)), 200, "process_cpu"),
        (format!("a|{}", joined(64)), 400, "65 tenants are named"),
        ("a||b".to_owned(), 400, "empty"),
        ("|".to_owned(), 400, "empty"),
        ("a|b/c".to_owned(), 400, "`/`"),
        (String::new(), 401, "no org id"),
    ] {
        let (found, answer) = shared.ask(types, Some("{}".to_owned()), &tenants).await;
        assert_eq!(found, status, "{tenants}: {answer}");
        assert!(answer.to_string().contains(text), "{tenants}: {answer}");
    }
}
