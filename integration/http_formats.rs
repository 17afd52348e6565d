//! `/ingest` in formats other than pprof: pushed to a real server, and queried by `querier.v1`.
//!
//! Expected values are exactly those of the pushed stacks.

use std::time::{SystemTime, UNIX_EPOCH};

use alluvium::server::ServerOptions;
use alluvium_profile::pprof;
use serde_json::{Value, json};

use crate::http_store::Site;

/// Appends a node of the format `tree` or `trie`. All numbers must be small enough for one byte.
fn node(bytes: &mut Vec<u8>, name: &str, value: u8, children: u8) {
    bytes.push(name.len() as u8);
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend([value, children]);
}

/// Returns a profile in the format `tree` with the stacks `main` 1, `main;work` 2, `main;worry` 4 and `rest` 8.
fn tree() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value, children) in [
        ("", 0, 2),
        ("rest", 8, 0),
        ("main", 1, 2),
        ("worry", 4, 0),
        ("work", 2, 0),
    ] {
        node(&mut bytes, name, value, children);
    }
    bytes
}

/// Returns the stacks of [`tree`] in the format `trie`, a tree of common prefixes of the names.
fn trie() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value, children) in [
        ("", 0, 2),
        ("main", 1, 1),
        (";wor", 0, 2),
        ("k", 2, 0),
        ("ry", 4, 0),
        ("rest", 8, 0),
    ] {
        node(&mut bytes, name, value, children);
    }
    bytes
}

/// Returns the stacks of [`tree`] in speedscope's format, as samples or as a sequence of calls.
fn speedscope(kind: &str, unit: &str) -> Vec<u8> {
    let frames = ["main", "work", "worry", "rest"].map(|name| json!({"name": name}));
    let stacks = [(vec![0], 1), (vec![0, 1], 2), (vec![0, 2], 4), (vec![3], 8)];
    let mut events: Vec<Value> = Vec::new();
    let mut at = 100;
    for (stack, weight) in &stacks {
        events.extend(stack.iter().map(|frame| json!({"type": "O", "frame": frame, "at": at})));
        at += weight;
        events.extend(
            stack
                .iter()
                .rev()
                .map(|frame| json!({"type": "C", "frame": frame, "at": at})),
        );
    }
    let profile = json!({
        "type": kind, "name": "p", "unit": unit, "startValue": 100, "endValue": at, "events": events,
        "samples": stacks.iter().map(|(stack, _)| stack).collect::<Vec<_>>(),
        "weights": stacks.iter().map(|(_, weight)| weight).collect::<Vec<_>>(),
    });
    let schema = "https://www.speedscope.app/file-format-schema.json";
    json!({"$schema": schema, "shared": {"frames": frames}, "profiles": [profile]})
        .to_string()
        .into_bytes()
}

/// Returns the sorted names of a service's flame graph, and its total.
async fn asked(site: &Site, profile_type: &str, service: &str) -> (Vec<String>, i64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let question = json!({
        "profileTypeID": profile_type, "labelSelector": format!("{{service_name=\"{service}\"}}"),
        "start": now - 600_000, "end": now + 60_000,
    });
    let (status, answer) = site.ask("SelectMergeStacktraces", question).await;
    assert_eq!(status, 200, "{answer}");
    let graph = &answer["flamegraph"];
    let mut names: Vec<String> = serde_json::from_value(graph["names"].clone()).unwrap();
    names.sort();
    (names, graph["total"].as_str().map_or(0, |total| total.parse().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_is_found_again_with_its_total_under_the_name_of_pyroscope() {
    let site = Site::new(ServerOptions::default()).await;
    let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
    let wall = "wall:wall:nanoseconds:cpu:nanoseconds";
    let lines = "main\nmain;work\nmain;work\nrest\nmain;worry\n";
    let groups = "main 1\nmain;work 2\nmain;worry 4\nrest 8\n";
    let (tree, trie) = (tree(), trie());
    let (samples, events) = (
        speedscope("sampled", "milliseconds"),
        speedscope("evented", "microseconds"),
    );
    for (number, (suffix, parameters, body, profile_type, total)) in [
        ("", "", groups.as_bytes(), cpu, 150_000_000),
        (
            ".wall",
            "&format=groups&sampleRate=1000",
            groups.as_bytes(),
            wall,
            15_000_000,
        ),
        (".itimer", "&format=lines", lines.as_bytes(), cpu, 50_000_000),
        (".cpu", "&format=tree", tree.as_slice(), cpu, 150_000_000),
        (".goroutines", "&format=tree", &tree, "goroutine:goroutines:count::", 15),
        (
            ".mutex_duration",
            "&format=trie",
            &trie,
            "mutex:delay:nanoseconds::",
            15,
        ),
        (".block_count", "&format=trie", &trie, "block:contentions:count::", 15),
        (".lock_duration", "&format=tree", &tree, "block:delay:nanoseconds::", 15),
        (
            ".alloc_in_new_tlab_bytes",
            "&format=trie",
            &trie,
            "memory:alloc_in_new_tlab_bytes:bytes::",
            15,
        ),
        (".live", "&format=lines", lines.as_bytes(), "memory:live:count::", 5),
        (".exceptions", "", groups.as_bytes(), "exceptions:samples:count::", 15),
        ("", "&format=speedscope", &samples, cpu, 15_000_000),
        (".wall", "&format=speedscope", &events, wall, 15_000),
        ("", "", &speedscope("evented", "bytes"), "memory:samples:bytes::", 15),
    ]
    .into_iter()
    .enumerate()
    {
        // A body may be gzip although no header says so.
        for (app, body) in [("app", body.to_vec()), ("packed", pprof::gzip(body))] {
            let path = format!("/ingest?name={app}{number}{suffix}{parameters}");
            let response = site.server.post(&path).body(body).send().await.unwrap();
            let (status, text) = (response.status(), response.text().await.unwrap());
            assert!(status == 200 && text.is_empty(), "{path}: {status} {text}");
            let (names, found) = asked(&site, profile_type, &format!("{app}{number}")).await;
            assert_eq!(names, ["main", "rest", "total", "work", "worry"], "{path}");
            assert_eq!(found, total, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_binary_formats_are_known_by_their_content_type_and_wrong_ones_refused() {
    let site = Site::new(ServerOptions::default()).await;
    let post = async |kind: &str, body: Vec<u8>| {
        let request = site
            .server
            .post("/profile/ingest?name=shop.inuse_objects")
            .header("content-type", kind);
        let response = request.body(body).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    for (kind, body) in [("tree", tree()), ("trie", trie())] {
        let kind = format!("binary/octet-stream+{kind}");
        assert_eq!(post(&kind, body.clone()).await, (200, String::new()));
        // The profile of an idle process.
        assert_eq!(post(&kind, vec![0, 0, 0]).await, (200, String::new()));
        let (status, text) = post(&kind, body[..body.len() - 1].to_vec()).await;
        let error: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, &error["code"]), (400, &json!("invalid_argument")));
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains("the bytes end within a number"),
            "{text}"
        );
    }
    let (_, total) = asked(&site, "memory:inuse_objects:count::", "shop").await;
    assert_eq!(total, 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_of_a_file_are_series_of_their_own() {
    let site = Site::new(ServerOptions::default()).await;
    let one = |name: &str, unit: &str, weight: f64| {
        json!({
            "type": "sampled", "name": name, "unit": unit, "startValue": 0, "endValue": weight,
            "samples": [[0, 1]], "weights": [weight],
        })
    };
    let body = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "main"}, {"name": "work"}]},
        "profiles": [one("thread 1", "seconds", 1.5), one("thread 2", "seconds", 2.0), one("heap", "bytes", 77.0)],
    });
    let request = site
        .server
        .post("/ingest?name=shop&format=speedscope")
        .body(body.to_string());
    assert_eq!(request.send().await.unwrap().status(), 200);
    let wall = "wall:wall:nanoseconds:cpu:nanoseconds";
    assert_eq!(asked(&site, wall, "shop").await.1, 3_500_000_000);
    assert_eq!(asked(&site, "memory:samples:bytes::", "shop").await.1, 77);
    let (status, text) = site.server.get("/pyroscope/label-values?label=profile_name").await;
    assert_eq!((status, text.as_str()), (200, "[\"heap\",\"thread 1\",\"thread 2\"]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_of_many_equal_lines_is_within_the_limit_of_samples() {
    let site = Site::new(ServerOptions::default()).await;
    let body = "main;work\n".repeat(50_000);
    let request = site
        .server
        .post("/ingest?name=shop.inuse_objects&format=lines")
        .body(body);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
    assert_eq!(asked(&site, "memory:inuse_objects:count::", "shop").await.1, 50_000);
}
