//! Live debugging over real HTTP: which requests are refused, what streams contain, what a slow reader loses, and when
//! streams end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::app::live::{push_json, state};
use alluvium_admin::live::SEPARATOR;
use alluvium_base::Shutdown;
use alluvium_pipeline::component::live::Entry;
use alluvium_pipeline::{Controller, Options};
use alluvium_testing::http::{Server, serve};
use alluvium_wire::client::{ClientOptions, HttpClient};

struct Served {
    controller: Controller,
    shutdown: Shutdown,
    url: String,
    _server: Server,
    _folder: tempfile::TempDir,
}

impl Served {
    async fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let controller = Controller::new(alluvium_components::ALL, Options::new(folder.path()));
        load(&controller, config).await;
        let shutdown = Shutdown::new();
        let (url, server) = serve(alluvium_admin::live::router(state(
            &controller.clone().into(),
            &shutdown,
        )))
        .await;
        Self {
            controller,
            shutdown,
            url,
            _server: server,
            _folder: folder,
        }
    }

    async fn get(&self, path: &str) -> reqwest::Response {
        let client = HttpClient::new(&ClientOptions::new("alluvium-test".into())).unwrap();
        let url = format!("{}/api/v0/web/{path}", self.url).parse().unwrap();
        client.get(url).await.unwrap().send().await.unwrap()
    }

    async fn overview(&self) -> Json {
        serde_json::from_slice(&self.get("controller").await.bytes().await.unwrap()).unwrap()
    }

    async fn refused(&self, path: &str) -> (u16, String) {
        let response = self.get(path).await;
        (response.status().as_u16(), response.text().await.unwrap())
    }
}

async fn load(controller: &Controller, config: &str) {
    let loaded = controller.load(vec![("test".to_owned(), config.to_owned())]).await;
    loaded.unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render()));
}

/// Reads a stream entry by entry.
struct Entries(reqwest::Response, String);

impl Entries {
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((entry, rest)) = self.1.split_once(SEPARATOR) {
                let entry = entry.to_owned();
                self.1 = rest.to_owned();
                return Some(entry);
            }
            let chunk = tokio::time::timeout(Duration::from_mins(1), self.0.chunk()).await;
            let chunk = chunk.expect("no data for a minute").unwrap()?;
            self.1.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    async fn json(&mut self) -> Option<Json> {
        Some(serde_json::from_str(&self.next().await?).unwrap())
    }
}

const RELABEL: &str = r#"
livedebugging {
  enabled = true
}
discovery.relabel "a" {
  targets = [{"__address__" = "h:1", "app" = "x|;|y"}, {"__address__" = "h:2", "app" = "old"}]
  rule {
    source_labels = ["app"]
    regex         = "old"
    action        = "drop"
  }
}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_watched_is_refused_with_the_reason() {
    let served = Served::start("discovery.relabel \"a\" {\n  targets = []\n}\n").await;
    let (status, text) = served.refused("debug/discovery.relabel.a").await;
    assert_eq!(status, 500, "as Alloy answers");
    assert!(text.contains("livedebugging { enabled = true }"), "{text}");
    let overview = served.overview().await;
    assert_eq!(overview["liveDebugging"]["enabled"], json!(false));
    assert_eq!(overview["lastLoad"]["success"], json!(true));

    load(&served.controller, RELABEL).await;
    let overview = served.overview().await;
    assert_eq!(overview["liveDebugging"], json!({ "enabled": true, "message": "" }));
    let unknown = served.refused("debug/m.x/discovery.relabel.none").await;
    assert_eq!(
        unknown,
        (404, "there is no component `m.x/discovery.relabel.none`\n".to_owned())
    );
    for probability in ["2", "-0.1", "NaN", "x"] {
        let (status, text) = served
            .refused(&format!("debug/discovery.relabel.a?sampleProb={probability}"))
            .await;
        assert_eq!(
            (status, text.as_str()),
            (400, "sampleProb must be a number between 0 and 1\n"),
            "{probability}"
        );
    }
    assert_eq!(served.refused("debug/discovery.relabel.a?format=xml").await.0, 400);
    for window in ["0", "61", "1.5", "x"] {
        let (status, text) = served.refused(&format!("graph?window={window}")).await;
        assert_eq!(status, 400, "{window}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_come_as_text_or_json_and_the_stream_ends_with_the_component() {
    let served = Served::start(RELABEL).await;
    let mut text = Entries(served.get("debug/discovery.relabel.a").await, String::new());
    let kept = text.next().await.unwrap();
    assert_eq!(
        kept,
        r#"{__address__="h:1", app="x|\x3b|y"} => {__address__="h:1", app="x|\x3b|y"}"#
    );
    let dropped = text.next().await.unwrap();
    assert_eq!(
        dropped,
        r#"{__address__="h:2", app="old"} => dropped; rule 1 (drop) dropped it"#
    );
    let mut json = Entries(served.get("debug/discovery.relabel.a?format=json").await, String::new());
    let (kept, dropped) = (json.json().await.unwrap(), json.json().await.unwrap());
    assert_eq!(kept["after"]["app"], "x|;|y", "a text with the separator is whole");
    assert_eq!(
        (&dropped["after"], &dropped["steps"][0]["dropped"]),
        (&Json::Null, &json!(true))
    );

    // After an update, the component reports the targets that its rules produce from the new input.
    load(&served.controller, &RELABEL.replace("h:2", "h:3")).await;
    let entries = [json.json().await.unwrap(), json.json().await.unwrap()];
    assert!(entries.iter().any(|entry| entry["before"]["__address__"] == "h:3"));
    load(&served.controller, "livedebugging {\n  enabled = true\n}\n").await;
    assert_eq!(json.next().await, None, "the component has gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_is_told_how_many_entries_it_lost() {
    let served = Served::start(RELABEL).await;
    let live = served.controller.live().handle(&Arc::from("a.component"));
    let mut entries = Entries(served.get("debug/a.component?format=json").await, String::new());
    // The test sends more entries than the queue and all buffers on the path can hold together.
    let value: Arc<str> = "x".repeat(16 << 10).into();
    let sent = 4000;
    for _ in 0..sent {
        live.tell(|| Entry::Target(BTreeMap::from([(Arc::from("label"), value.clone())])));
    }
    drop(live);
    let (mut read, mut lost) = (0, 0);
    while let Some(entry) = entries.json().await {
        match entry["kind"].as_str() {
            Some("target") => read += 1,
            Some("lost") => lost += entry["count"].as_u64().unwrap(),
            other => panic!("{other:?}"),
        }
    }
    assert!(lost > 0 && read >= 1000, "{read} read, {lost} lost");
    assert_eq!(read + lost, sent, "every entry is read or counted as lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn flow_counts_come_by_window_and_end_with_the_program() {
    let served = Served::start("").await;
    let mut empty = Entries(served.get("graph?window=1").await, String::new());
    assert_eq!(
        empty.next().await.as_deref(),
        Some(""),
        "nothing flows, the stream is open"
    );

    let live = served.controller.live().handle(&Arc::from("a.b"));
    let inner = served.controller.live().handle(&Arc::from("m.x/a.b"));
    let (edge, inside) = (live.edge("c.d"), inner.edge("m.x/c.d"));
    live.exported_targets(3);
    let mut root = Entries(served.get("graph?window=1").await, String::new());
    let mut module = Entries(served.get("graph/m.x?window=1").await, String::new());
    let started = Instant::now();
    edge.count(10, 1000);
    inside.count(4, 8);
    let profiles = root.json().await.unwrap();
    let seconds = 10.0 / profiles["rate"].as_f64().unwrap();
    assert!(
        seconds > 0.9 && seconds < started.elapsed().as_secs_f64() + 0.5,
        "{profiles}"
    );
    assert_eq!(
        profiles["bytesRate"].as_f64().unwrap().round(),
        (1000.0 / seconds).round()
    );
    assert_eq!(
        (
            &profiles["componentID"],
            &profiles["targetComponentIDs"],
            &profiles["type"]
        ),
        (&json!("a.b"), &json!(["c.d"]), &json!("profile"))
    );
    let targets = root.json().await.unwrap();
    assert_eq!((&targets["type"], &targets["current"]), (&json!("target"), &json!(3)));
    let inside = module.json().await.unwrap();
    assert_eq!(inside["targetComponentIDs"], json!(["m.x/c.d"]));

    served.shutdown.cancel();
    while root.next().await.is_some() {}
}

#[test]
fn an_entry_cannot_hold_the_separator() {
    let value = json!({ "label": "a|;|b" });
    let mut text = String::new();
    push_json(&mut text, &value);
    assert!(!text.contains(SEPARATOR));
    assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), value);
}
