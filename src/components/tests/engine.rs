//! Tests of the components together under the real engine, with a configuration, a target and a server on this machine.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::{get, post};
use parking_lot::Mutex;
use prost::Message as _;

use crate::ALL;
use crate::common::testing::{eventually, serve};
use alluvium_base::Shutdown;
use alluvium_pipeline::component::own_http::OwnHttp;
use alluvium_pipeline::{Controller, Options};
use alluvium_wire::proto::push::PushRequest;

type Taken = Arc<Mutex<Vec<Vec<(String, String)>>>>;

async fn push(State(received): State<Taken>, body: Bytes) -> &'static str {
    for series in PushRequest::decode(body).unwrap().series {
        let labels = series.labels.into_iter().map(|pair| (pair.name, pair.value)).collect();
        received.lock().push(labels);
    }
    ""
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_flows_from_a_file_of_targets_to_a_server() {
    let received = Taken::default();
    let router = Router::new()
        .route("/push.v1.PusherService/Push", post(push))
        .route(
            "/debug/pprof/goroutine",
            get(|| async { Bytes::from_static(&[0x0a, 4, 8, 1, 16, 2]) }),
        )
        .with_state(received.clone());
    let (url, _server) = serve(router).await;
    let address = url.trim_start_matches("http://");
    let folder = tempfile::tempdir().unwrap();
    let targets = folder.path().join("targets.json");
    std::fs::write(
        &targets,
        format!(r#"[{{"targets": ["{address}"], "labels": {{"__meta_app": "shop"}}}}]"#),
    )
    .unwrap();
    let config = |stage: &str| {
        let files = targets.display();
        let text = format!(
            r#"
discovery.file "all" {{ files = ["{files}"] }}
discovery.relabel "all" {{
  targets = discovery.file.all.targets
  rule {{
    regex  = "__meta_(.+)"
    action = "labelmap"
  }}
  rule {{
    source_labels = ["app"]
    target_label  = "service_name"
  }}
}}
pyroscope.scrape "all" {{
  targets         = discovery.relabel.all.output
  forward_to      = [pyroscope.relabel.all.receiver]
  scrape_interval = "2s"
  profiling_config {{
    profile.memory      {{ enabled = false }}
    profile.mutex       {{ enabled = false }}
    profile.block       {{ enabled = false }}
    profile.process_cpu {{ enabled = false }}
  }}
}}
pyroscope.relabel "all" {{
  forward_to = [pyroscope.write.all.receiver]
  rule {{
    target_label = "stage"
    replacement  = "{stage}"
  }}
}}
pyroscope.write "all" {{
  endpoint {{
    url = "{url}"
    queue {{ max_bytes = "64MiB" }}
  }}
}}
"#
        );
        vec![("config.alloy".to_owned(), text)]
    };
    let controller = Controller::new(ALL, Options::new(folder.path().join("storage")));
    if let Err(diagnostics) = controller.load(config("one")).await {
        panic!("{diagnostics:?}");
    }
    let shutdown = Shutdown::new();
    let running = tokio::spawn({
        let (controller, shutdown) = (controller.clone(), shutdown.clone());
        async move { controller.run(shutdown).await }
    });
    let has = |name: &str, value: &str| {
        let expected = (name.to_owned(), value.to_owned());
        received.lock().iter().any(|labels| labels.contains(&expected))
    };
    eventually("a profile", || has("stage", "one")).await;
    for (name, value) in [
        ("service_name", "shop"),
        ("app", "shop"),
        ("__name__", "goroutine"),
        ("instance", address),
    ] {
        assert!(has(name, value), "{name}={value} in {:?}", received.lock());
    }
    assert!(
        received
            .lock()
            .iter()
            .flatten()
            .all(|(name, _)| !name.starts_with("__meta_"))
    );
    controller.load(config("two")).await.unwrap();
    eventually("a profile after the reload", || has("stage", "two")).await;
    assert_eq!(controller.unhealthy(), Vec::<String>::new());

    std::fs::write(&targets, "[").unwrap();
    eventually("the broken file to show", || {
        controller.unhealthy() == ["discovery.file.all"]
    })
    .await;
    shutdown.cancel();
    running.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_profiles_itself_without_a_socket() {
    let received = Taken::default();
    let router = Router::new()
        .route("/push.v1.PusherService/Push", post(push))
        .with_state(received.clone());
    let (url, _server) = serve(router).await;
    let folder = tempfile::tempdir().unwrap();
    let own_http = OwnHttp::new("alloy.internal:12345");
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = requests.clone();
    own_http.set(Arc::new(move |request: http::Request<Bytes>| {
        noted.lock().push(request.uri().to_string());
        Box::pin(async { http::Response::new(Bytes::from_static(&[0x0a, 4, 8, 1, 16, 2])) })
    }));
    let options = Options {
        own_http,
        ..Options::new(folder.path().join("storage"))
    };
    let controller = Controller::new(ALL, options);
    let text = format!(
        r#"
pyroscope.scrape "self" {{
  targets         = [{{"__address__" = "alloy.internal:12345", "service_name" = "collector"}}]
  forward_to      = [pyroscope.write.all.receiver]
  scrape_interval = "2s"
  profiling_config {{
    profile.memory      {{ enabled = false }}
    profile.mutex       {{ enabled = false }}
    profile.block       {{ enabled = false }}
    profile.process_cpu {{ enabled = false }}
  }}
}}
pyroscope.write "all" {{
  endpoint {{
    url = "{url}"
  }}
}}
"#
    );
    controller.load(vec![("config.alloy", text)]).await.unwrap();
    let shutdown = Shutdown::new();
    let running = tokio::spawn({
        let (controller, shutdown) = (controller.clone(), shutdown.clone());
        async move { controller.run(shutdown).await }
    });
    let service = ("service_name".to_owned(), "collector".to_owned());
    eventually("a profile of the collector", || {
        received.lock().iter().any(|labels| labels.contains(&service))
    })
    .await;
    assert_eq!(
        requests.lock().first().map(String::as_str),
        Some("/debug/pprof/goroutine")
    );
    shutdown.cancel();
    running.await.unwrap();
}
