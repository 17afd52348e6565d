//! profefe's API against a real store: pushes, lists, single profiles, merges, and `go tool pprof` with the
//! URL of a merge. Expected values come from the pushed profiles, and from `querier.v1` for the same time range.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use alluvium::server::ServerOptions;
use alluvium_profile::pprof::{self, Profile, gunzip};
use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use bytes::Bytes;
use chrono::DateTime;
use serde_json::{Value, json};

use crate::http_store::{CPU, Site};
use crate::program::other;

const SECOND: i64 = 1_000_000_000;

fn now_seconds() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// Formats a time as profefe does.
fn time(seconds: i64) -> String {
    DateTime::from_timestamp(seconds, 0)
        .unwrap()
        .format("%Y-%m-%dT%H:%M:%S")
        .to_string()
}

fn cpu(seed: u64, seconds: i64) -> Vec<u8> {
    let names = Names::new(50);
    let shape = Shape {
        functions: 50,
        samples: 60,
        depth: 12,
        labelled_every: 0,
    };
    let mut profile = cpu_profile(&names, shape, seed);
    profile.time_nanos = seconds * SECOND + 123_456_789;
    profile.duration_nanos = 10 * SECOND;
    pprof::encode(&profile)
}

/// Returns the sum of the values of each sample type.
fn sums(profile: &Profile<'_>) -> Vec<(String, i64)> {
    let sum = |at: usize| -> i64 {
        let samples = 0..profile.sample_count();
        samples.map(|sample| profile.values_of(sample)[at]).sum()
    };
    let types = profile.sample_types.iter().enumerate();
    types.map(|(at, of)| (of.kind.to_owned(), sum(at))).collect()
}

fn sums_of(bytes: &[u8]) -> Vec<(String, i64)> {
    let plain = gunzip(&Bytes::copy_from_slice(bytes), 16 << 20).unwrap();
    sums(&pprof::decode(&plain).unwrap())
}

fn plus(left: &[(String, i64)], right: &[(String, i64)]) -> Vec<(String, i64)> {
    let pairs = left.iter().zip(right);
    pairs
        .map(|((kind, left), (_, right))| (kind.clone(), left + right))
        .collect()
}

async fn post(site: &Site, path: &str, body: Vec<u8>) -> (u16, Value) {
    let response = site.server.post(path).body(body).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

async fn get(site: &Site, path: &str) -> (u16, Value) {
    let (status, text) = site.server.get(path).await;
    (
        status,
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}")),
    )
}

/// Returns content type, file name and bytes of a download.
async fn download(site: &Site, path: &str) -> (String, String, Bytes) {
    let response = site
        .server
        .client
        .get(format!("{}{path}", site.server.url))
        .send()
        .await
        .unwrap();
    let status = response.status();
    let header = |name: &str| {
        response
            .headers()
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
            .to_owned()
    };
    let (kind, name) = (header("content-type"), header("content-disposition"));
    let body = response.bytes().await.unwrap();
    assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
    (kind, name, body)
}

/// Returns the CPU time in nanoseconds that `querier.v1` reports for a selector.
async fn called(site: &Site, selector: &str, from: i64, to: i64) -> i64 {
    let question = json!({
        "profileTypeID": CPU, "labelSelector": selector, "start": from * 1000, "end": (to + 1) * 1000,
    });
    let (status, answer) = site.ask("SelectMergeStacktraces", question).await;
    assert_eq!(status, 200, "{answer}");
    answer["flamegraph"]["total"]
        .as_str()
        .map_or(0, |total| total.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_are_listed_given_back_and_merged_before_and_after_a_flush() {
    let site = Site::new(ServerOptions::default()).await;
    let now = now_seconds();
    let bodies = [cpu(1, now - 30), cpu(2, now - 20), cpu(3, now - 10)];
    let mut ids = Vec::new();
    for (number, body) in bodies.iter().enumerate() {
        let path = format!("/api/0/profiles?service=shop&type=cpu&labels=,version=1.{number},region=eu&instance_id=x");
        let sent = if number == 1 { pprof::gzip(body) } else { body.clone() };
        let (status, answer) = post(&site, &path, sent).await;
        assert_eq!(status, 200, "{answer}");
        let profile = &answer["body"];
        let id = profile["id"].as_str().unwrap().to_owned();
        let expected = json!({
            "id": id, "type": "cpu", "service": "shop", "created_at": time(now - 30 + 10 * number as i64) + "Z",
            "labels": [{"key": "region", "value": "eu"}, {"key": "version", "value": format!("1.{number}")}],
        });
        // Private labels such as `__delta__` are not listed.
        assert_eq!(*profile, expected);
        ids.push(id);
    }
    let all: Vec<_> = bodies.iter().map(|body| sums_of(body)).collect();
    for round in 0..2 {
        check(&site, now, &ids, &all).await;
        if round == 0 {
            assert_eq!(site.server.post("/flush").send().await.unwrap().status(), 204);
        }
    }
}

async fn check(site: &Site, now: i64, ids: &[String], all: &[Vec<(String, i64)>]) {
    let range = format!("service=shop&from={}&to={}", time(now - 60), time(now));
    let listed = async |more: &str| {
        let (status, answer) = get(site, &format!("/api/0/profiles?{range}{more}")).await;
        assert_eq!((status, &answer["code"]), (200, &json!(200)), "{answer}");
        let list = answer["body"].as_array().unwrap().clone();
        list.iter()
            .map(|profile| profile["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed("").await, ids);
    assert_eq!(listed("&type=cpu&labels=region=eu").await, ids);
    assert_eq!(listed("&labels=region=eu,version=1.1").await, ids[1..2]);
    assert_eq!(listed("&limit=2").await, ids[1..]);
    for nothing in ["&type=heap", "&type=other", "&labels=region=us", "&labels=no=thing"] {
        let (status, answer) = get(site, &format!("/api/0/profiles?{range}{nothing}")).await;
        assert_eq!(
            (status, answer),
            (404, json!({"code": 404, "error": "nothing found"})),
            "{nothing}"
        );
    }
    // The range includes the whole second that `to` names, but no later time.
    let narrow = format!("service=shop&type=cpu&from={}&to={}", time(now - 20), time(now - 20));
    let (_, answer) = get(site, &format!("/api/0/profiles?{narrow}")).await;
    assert_eq!(answer["body"].as_array().unwrap().len(), 1);

    let (kind, name, bytes) = download(site, &format!("/api/0/profiles/{}", ids[0])).await;
    assert_eq!(
        (kind.as_str(), name.as_str()),
        ("application/octet-stream", "attachment; filename=\"cpu\"")
    );
    assert_eq!(sums_of(&bytes), all[0]);
    let plain = gunzip(&bytes, 16 << 20).unwrap();
    let one = pprof::decode(&plain).unwrap();
    assert_eq!((one.default_sample_type, one.duration_nanos), ("cpu", 10 * SECOND));
    assert_eq!(one.time_nanos, (now - 30) * SECOND + 123_456_000);
    let (_, _, bytes) = download(site, &format!("/api/0/profiles/{}+{}", ids[2], ids[0])).await;
    assert_eq!(sums_of(&bytes), plus(&all[0], &all[2]));

    let whole = plus(&plus(&all[0], &all[1]), &all[2]);
    let merge = format!("/api/0/profiles/merge?{range}&type=cpu");
    let (_, name, bytes) = download(site, &merge).await;
    assert_eq!(
        (sums_of(&bytes), name.as_str()),
        (whole.clone(), "attachment; filename=\"cpu\"")
    );
    let called = called(site, "{service_name=\"shop\"}", now - 60, now).await;
    assert_eq!(whole.last(), Some(&("cpu".to_owned(), called)));
    let (_, _, bytes) = download(site, &format!("{merge}&labels=version=1.1,region=eu")).await;
    assert_eq!(sums_of(&bytes), all[1]);
    let (_, _, bytes) = download(site, &format!("/api/0/profiles/merge?{narrow}")).await;
    assert_eq!(sums_of(&bytes), all[1]);
    let (status, answer) = get(site, &format!("/api/0/profiles/merge?{range}&type=heap")).await;
    assert_eq!((status, &answer["error"]), (404, &json!("nothing found")));
    assert_eq!(
        get(site, "/api/0/services").await,
        (200, json!({"code": 200, "body": ["shop"]}))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_pushed_with_an_id_is_listed_whoever_sent_it() {
    let site = Site::new(ServerOptions::default()).await;
    let now = now_seconds();
    let profile = |id: &str, seed| alluvium_profile::RawProfile {
        labels: alluvium_profile::Labels::from_pairs([("__name__", "process_cpu"), ("service_name", "pushed")]),
        id: id.into(),
        pprof: cpu(seed, now - 10 + seed as i64).into(),
    };
    site.server
        .pusher()
        .push(&[profile("P0.a/1/x", 1), profile("", 2)])
        .await
        .unwrap();
    let range = format!("service=pushed&from={}&to={}", time(now - 60), time(now));
    let (_, answer) = get(&site, &format!("/api/0/profiles?{range}")).await;
    let list = answer["body"].as_array().unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!((&list[0]["id"], &list[0]["type"]), (&json!("P0.a/1/x"), &json!("cpu")));
    for path in ["/api/0/profiles/P0.a/1/x", "/profile/api/0/profiles/P0.a%2F1%2Fx"] {
        assert_eq!(sums_of(&download(&site, path).await.2), sums_of(&cpu(1, 0)), "{path}");
    }
    // A merge also contains profiles without an id.
    let (_, _, bytes) = download(&site, &format!("/api/0/profiles/merge?{range}&type=cpu")).await;
    assert_eq!(sums_of(&bytes), plus(&sums_of(&cpu(1, 0)), &sums_of(&cpu(2, 0))));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_requests_are_refused_in_profefes_envelope() {
    let site = Site::new(ServerOptions::default()).await;
    let now = now_seconds();
    let range = format!("from={}&to={}", time(now - 60), time(now));
    let new = "/api/0/profiles?service=shop&type=cpu";
    for (path, body, status, reason) in [
        (
            "/api/0/profiles?type=cpu".to_owned(),
            cpu(1, now),
            400,
            "missing \"service\"",
        ),
        (
            "/api/0/profiles?service=shop&type=x".to_owned(),
            cpu(1, now),
            400,
            "unknown profile type",
        ),
        (
            "/api/0/profiles?service=shop&type=trace".to_owned(),
            cpu(1, now),
            400,
            "execution traces",
        ),
        (
            new.to_owned(),
            b"garbage".to_vec(),
            400,
            "malformed profile (could not parse pprof profile: ",
        ),
        (new.to_owned(), Vec::new(), 400, "malformed profile"),
        (format!("{new}&created_at=soon"), cpu(1, 0), 400, "is not a time"),
    ] {
        let (got, answer) = post(&site, &path, body).await;
        assert_eq!((got, &answer["code"]), (status, &json!(status)), "{path}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains(reason), "{path}: {answer}");
    }
    for (path, status, reason) in [
        (format!("/api/0/profiles?{range}"), 400, "missing \"service\""),
        ("/api/0/profiles?service=shop".to_owned(), 400, "missing \"from\""),
        (
            format!("/api/0/profiles?service=shop&{range}&type=x"),
            400,
            "unknown profile type",
        ),
        (
            format!("/api/0/profiles/merge?service=shop&{range}"),
            405,
            "can't merge profiles of unknown type",
        ),
        (
            format!("/api/0/profiles/merge?service=shop&{range}&type=trace"),
            405,
            "can't merge profiles of trace type",
        ),
        ("/api/0/profiles/".to_owned(), 400, "a profile id is missing"),
        ("/api/0/profiles/a++b".to_owned(), 400, "a profile id is missing"),
        ("/api/0/profiles/unknown".to_owned(), 404, "nothing found"),
        ("/api/0/services".to_owned(), 404, "nothing found"),
        ("/api/0/else/where".to_owned(), 404, "nothing found"),
        ("/profile/api/0/else".to_owned(), 404, "nothing found"),
    ] {
        let (got, answer) = get(&site, &path).await;
        assert_eq!((got, &answer["code"]), (status, &json!(status)), "{path}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains(reason), "{path}: {answer}");
    }
    let (status, answer) = get(&site, "/profile/api/0/version").await;
    assert_eq!(
        (status, &answer["body"]["version"]),
        (200, &json!(env!("CARGO_PKG_VERSION")))
    );
    for (path, allowed) in [("/api/0/profiles", "GET, POST"), ("/api/0/services", "GET")] {
        let url = format!("{}{path}", site.server.url);
        for method in ["PUT", "DELETE", "HEAD"] {
            let response = site
                .server
                .client
                .request(method.parse().unwrap(), &url)
                .send()
                .await
                .unwrap();
            assert_eq!(
                (response.status().as_u16(), &response.headers()["allow"]),
                (405, &allowed.parse().unwrap())
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_of_different_types_are_not_merged_and_tenants_see_their_own() {
    let options = ServerOptions {
        multi_tenant: true,
        ..ServerOptions::default()
    };
    let site = Site::new(options).await;
    let now = now_seconds();
    let mut ids = Vec::new();
    for kind in ["cpu", "other"] {
        let request = site.server.post(&format!("/api/0/profiles?service=shop&type={kind}"));
        let request = request.header("x-scope-orgid", "one").body(cpu(1, now));
        let answer: Value = serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap();
        assert_eq!(answer["body"]["type"], json!(kind), "{answer}");
        ids.push(answer["body"]["id"].as_str().unwrap().to_owned());
    }
    let ask = async |tenant: &str, path: &str| {
        let request = site.server.client.get(format!("{}{path}", site.server.url));
        let response = request.header("x-scope-orgid", tenant).send().await.unwrap();
        response.status().as_u16()
    };
    assert_eq!(ask("one", &format!("/api/0/profiles/{}", ids[1])).await, 200);
    assert_eq!(ask("one", &format!("/api/0/profiles/{}", ids.join("+"))).await, 400);
    assert_eq!(ask("two", &format!("/api/0/profiles/{}", ids[1])).await, 404);
    let range = format!("service=shop&from={}&to={}", time(now - 60), time(now + 1));
    assert_eq!(ask("one", &format!("/api/0/profiles?{range}&type=other")).await, 200);
    assert_eq!(ask("two", &format!("/api/0/profiles?{range}")).await, 404);
    let (status, answer) = get(&site, &format!("/api/0/profiles?{range}")).await;
    assert_eq!((status, &answer["code"]), (401, &json!(401)));
}

#[tokio::test(flavor = "multi_thread")]
async fn go_tool_pprof_opens_the_merge_by_its_url() {
    if other("go", &["version"], "the Debian package golang-go").is_none() {
        return;
    }
    let site = Site::new(ServerOptions::default()).await;
    let now = now_seconds();
    let bodies = [cpu(1, now - 30), cpu(2, now - 20)];
    for body in &bodies {
        let (status, answer) = post(
            &site,
            "/api/0/profiles?service=auth&type=cpu&labels=version=1.0.0",
            body.clone(),
        )
        .await;
        assert_eq!(status, 200, "{answer}");
    }
    let nanos = plus(&sums_of(&bodies[0]), &sums_of(&bodies[1]))[1].1;
    let url = format!(
        "{}/api/0/profiles/merge?service=auth&type=cpu&from={}&to={}&labels=version=1.0.0",
        site.server.url,
        time(now - 60),
        time(now)
    );
    let folder = tempfile::tempdir().unwrap();
    let run = move || {
        Command::new("go")
            .args([
                "tool",
                "pprof",
                "-top",
                "-unit=ns",
                "-nodecount=5",
                "-symbolize=none",
                &url,
            ])
            .env("PPROF_TMPDIR", folder.path())
            .output()
            .unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("Type: cpu"), "{text}");
    assert!(text.contains(&format!("of {nanos}ns total")), "{nanos}: {text}");
}
