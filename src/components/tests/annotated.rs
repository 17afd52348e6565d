//! Tests `config/kubernetes.alloy`, which scrapes annotated pods, under the real engine and against a fake API server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use parking_lot::Mutex;
use prost::Message as _;
use serde_json::{Value, json};

use crate::ALL;
use crate::common::kubernetes::testing::{ApiServer, pod};
use crate::common::testing::{eventually, serve};
use alluvium_base::Shutdown;
use alluvium_pipeline::{Controller, Options};
use alluvium_wire::proto::push::PushRequest;

type Labels = BTreeMap<String, String>;

/// Returns a pod at this address, with these annotations of Pyroscope.
fn annotated(name: &str, ip: &str, annotations: &[(&str, &str)]) -> Value {
    let mut pod = pod("shop", name, ip);
    let annotation = |(name, value): &(&str, &str)| (format!("pyroscope.io/{name}"), json!(value));
    pod["metadata"]["annotations"] = annotations.iter().map(annotation).collect();
    pod["metadata"]["labels"] = json!({"app.kubernetes.io/name": name});
    pod
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ten_rules_of_the_sample_give_alloys_targets() {
    let received: Arc<Mutex<BTreeSet<Labels>>> = Arc::default();
    let noted = received.clone();
    let router = Router::new()
        .route(
            "/profile/push.v1.PusherService/Push",
            post(move |body: Bytes| async move {
                for series in PushRequest::decode(body).unwrap().series {
                    let labels = series.labels.into_iter().map(|pair| (pair.name, pair.value));
                    noted.lock().insert(labels.collect());
                }
            }),
        )
        .route(
            "/debug/pprof/goroutine",
            get(|| async { Bytes::from_static(&[0x0a, 4, 8, 1, 16, 2]) }),
        );
    let (url, _server) = serve(router).await;
    let port = url.rsplit_once(':').unwrap().1;
    let cluster = ApiServer::start().await;
    let scraped = ("scrape", "true");
    let named = [
        scraped,
        ("port", port),
        ("application-name", "cart"),
        ("scheme", "http"),
    ];
    let switched = [("profile-cpu-enabled", "false"), ("spy-name", "gospy")];
    let named: Vec<(&str, &str)> = named.into_iter().chain(switched).collect();
    cluster.put("pods", annotated("named", "127.0.0.1", &named));
    // The container declares the port, and the service gets the name of the container.
    let mut declared = annotated("declared", "127.0.0.1", &[scraped, ("scheme", "gopher")]);
    declared["spec"]["containers"][0]["ports"][0]["containerPort"] = port.parse::<u32>().unwrap().into();
    cluster.put("pods", declared);
    cluster.put(
        "pods",
        annotated("off", "127.0.0.1", &[("scrape", "True"), ("port", port)]),
    );
    let mut done = annotated("done", "127.0.0.1", &[scraped, ("port", port)]);
    done["status"]["phase"] = "Succeeded".into();
    cluster.put("pods", done);

    let text = include_str!("../../../config/kubernetes.alloy");
    let reachable_server = format!("role       = \"pod\"\n\tapi_server = \"{}\"", cluster.url);
    let text = text
        .replace("role = \"pod\"", &reachable_server)
        .replace(
            "coalesce(sys.env(\"ALLUVIUM_SERVER\"), \"http://localhost:4040\")",
            &format!("\"{url}/profile\""),
        )
        .replace("clustering {", "scrape_interval = \"2s\"\n\tclustering {");
    assert!(text.contains(&cluster.url) && text.contains("/profile\"") && text.contains("2s"));
    let folder = tempfile::tempdir().unwrap();
    let controller = Controller::new(ALL, Options::new(folder.path()));
    if let Err(diagnostics) = controller.load(vec![("kubernetes.alloy", text)]).await {
        panic!("{diagnostics:?}");
    }
    let shutdown = Shutdown::new();
    let running = tokio::spawn({
        let (controller, shutdown) = (controller.clone(), shutdown.clone());
        async move { controller.run(shutdown).await }
    });
    let has = |pod: &str| {
        received
            .lock()
            .iter()
            .any(|labels| labels["kubernetes_pod_name"] == pod)
    };
    eventually("profiles of two pods", || has("named") && has("declared")).await;
    shutdown.cancel();
    running.await.unwrap();
    let labels_of = |pod: &str, service: &str| {
        let instance = format!("127.0.0.1:{port}");
        let pairs = [
            ("__name__", "goroutine"),
            ("app_kubernetes_io_name", pod),
            ("instance", &instance),
            ("kubernetes_namespace", "shop"),
            ("kubernetes_pod_name", pod),
            ("service_name", service),
        ];
        Labels::from(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())))
    };
    let expected = BTreeSet::from([labels_of("named", "cart"), labels_of("declared", "shop/main")]);
    assert_eq!(*received.lock(), expected);
}
