//! Tests configurations that scrape annotated pods, under the real engine and against a fake API server: two shipped
//! files with the ten relabel rules of Alloy's documentation, and `discovery.profiles`, which needs no rules.

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
use crate::common::testing::{Server, eventually, serve};
use alluvium_base::Shutdown;
use alluvium_pipeline::{Controller, Options};
use alluvium_wire::proto::push::PushRequest;

type Labels = BTreeMap<String, String>;

/// The labels of each series that a server received.
type Received = Arc<Mutex<BTreeSet<Labels>>>;

/// A cluster, and one port that serves the profiles of all pods and accepts the pushes of the collector.
struct Site {
    cluster: ApiServer,
    url: String,
    received: Received,
    _server: Server,
}

impl Site {
    async fn start() -> Self {
        let received = Received::default();
        let noted = received.clone();
        let push = move |body: Bytes| async move {
            for series in PushRequest::decode(body).unwrap().series {
                let labels = series.labels.into_iter().map(|pair| (pair.name, pair.value));
                noted.lock().insert(labels.collect());
            }
        };
        let profile = || async { Bytes::from_static(&[0x0a, 4, 8, 1, 16, 2]) };
        let router = Router::new()
            .route("/profile/push.v1.PusherService/Push", post(push))
            .route("/debug/pprof/goroutine", get(profile))
            .route("/admin/pprof/goroutine", get(profile));
        let (url, server) = serve(router).await;
        Self {
            cluster: ApiServer::start().await,
            url,
            received,
            _server: server,
        }
    }

    fn port(&self) -> &str {
        self.url.rsplit_once(':').unwrap().1
    }

    /// Adds a pod at the address of the port, with these annotations.
    fn annotate(&self, name: &str, annotations: &[(&str, &str)]) {
        self.cluster.put("pods", annotated(name, annotations));
    }

    /// Waits for profiles of each of these pods, whose names are in `label`.
    async fn wait_for(&self, label: &str, pods: &[&str]) {
        let has = |pod: &str| {
            let received = self.received.lock();
            received
                .iter()
                .any(|labels| labels.get(label).is_some_and(|name| name == pod))
        };
        for pod in pods {
            eventually(&format!("a profile of {pod}"), || has(pod)).await;
        }
    }

    /// Returns the labels of a profile of this port.
    fn labels(&self, pairs: &[(&str, &str)]) -> Labels {
        let instance = format!("127.0.0.1:{}", self.port());
        let common = [("__name__", "goroutine"), ("instance", &instance)];
        let pairs = common.iter().chain(pairs);
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    /// Returns the labels of a profile that the ten rules have relabeled.
    fn relabeled(&self, pod: &str, service: &str) -> Labels {
        self.labels(&[
            ("app_kubernetes_io_name", pod),
            ("kubernetes_namespace", "shop"),
            ("kubernetes_pod_name", pod),
            ("service_name", service),
        ])
    }

    /// Runs a shipped file with the ten rules, and checks the labels of the profiles. In the file, `url` is the URL of
    /// the server as it is written there.
    async fn check_sample(&self, file: &str, url: &str) {
        let (scraped, port) = (("pyroscope.io/scrape", "true"), ("pyroscope.io/port", self.port()));
        self.annotate(
            "named",
            &[
                scraped,
                port,
                ("pyroscope.io/application-name", "cart"),
                ("pyroscope.io/scheme", "http"),
                ("pyroscope.io/profile-cpu-enabled", "false"),
                ("pyroscope.io/spy-name", "gospy"),
            ],
        );
        // The container declares the port, and the service gets the name of the container.
        let mut declared = annotated("declared", &[scraped, ("pyroscope.io/scheme", "gopher")]);
        declared["spec"]["containers"][0]["ports"][0]["containerPort"] = self.port().parse::<u32>().unwrap().into();
        self.cluster.put("pods", declared);
        self.annotate("off", &[("pyroscope.io/scrape", "True"), port]);
        let mut ended = annotated("ended", &[scraped, port]);
        ended["status"]["phase"] = "Succeeded".into();
        self.cluster.put("pods", ended);

        let mut text = file.to_owned();
        for (written, reachable) in [
            (
                "role = \"pod\"",
                format!("role       = \"pod\"\n\tapi_server = \"{}\"", self.cluster.url),
            ),
            (url, format!("\"{}/profile\"", self.url)),
            ("clustering {", "scrape_interval = \"2s\"\n\tclustering {".to_owned()),
        ] {
            assert_eq!(text.matches(written).count(), 1, "{written}");
            text = text.replace(written, &reachable);
        }
        let pipeline = Pipeline::start(text).await;
        self.wait_for("kubernetes_pod_name", &["named", "declared"]).await;
        pipeline.stop().await;
        let expected = [self.relabeled("named", "cart"), self.relabeled("declared", "shop/main")];
        assert_eq!(*self.received.lock(), BTreeSet::from(expected));
    }
}

/// Returns a pod with these annotations. Its name is also in one of its labels.
fn annotated(name: &str, annotations: &[(&str, &str)]) -> Value {
    let mut pod = pod("shop", name, "127.0.0.1");
    let annotation = |(name, value): &(&str, &str)| ((*name).to_owned(), json!(value));
    pod["metadata"]["annotations"] = annotations.iter().map(annotation).collect();
    pod["metadata"]["labels"] = json!({"app.kubernetes.io/name": name});
    pod
}

/// A running configuration.
struct Pipeline {
    controller: Controller,
    shutdown: Shutdown,
    running: tokio::task::JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Pipeline {
    async fn start(text: String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let controller = Controller::new(ALL, Options::new(folder.path()));
        if let Err(diagnostics) = controller.load(vec![("test.alloy", text)]).await {
            panic!("{diagnostics:?}");
        }
        let shutdown = Shutdown::new();
        let running = tokio::spawn({
            let (controller, shutdown) = (controller.clone(), shutdown.clone());
            async move { controller.run(shutdown).await }
        });
        Self {
            controller,
            shutdown,
            running,
            _folder: folder,
        }
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.running.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ten_rules_of_the_sample_give_alloys_targets() {
    let file = include_str!("../../../config/kubernetes.alloy");
    let url = "coalesce(sys.env(\"ALLUVIUM_SERVER\"), \"http://localhost:4040\")";
    Site::start().await.check_sample(file, url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_of_published_files_gives_the_same_targets() {
    let file = include_str!("../../../config/alloy-like.river");
    let url = "\"http://localhost:4040/profile\"";
    Site::start().await.check_sample(file, url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_alone_bring_the_profiles_of_pods_and_wrong_ones_disturb_no_other_pod() {
    let site = Site::start().await;
    let port = site.port();
    site.annotate(
        "pyroscope",
        &[
            ("pyroscope.io/scrape", "true"),
            ("pyroscope.io/port", port),
            ("pyroscope.io/application-name", "cart"),
        ],
    );
    site.annotate(
        "grafana",
        &[
            ("profiles.grafana.com/goroutine.scrape", "true"),
            ("profiles.grafana.com/goroutine.port", port),
        ],
    );
    site.annotate(
        "coroot",
        &[("coroot.com/profile-scrape", "true"), ("coroot.com/profile-port", port)],
    );
    site.annotate(
        "profefe",
        &[
            ("profefe.com/enable", "true"),
            ("profefe.com/port", port),
            ("profefe.com/path", "/admin/pprof"),
        ],
    );
    site.annotate("plain", &[]);
    let scrape = ("pyroscope.io/scrape", "true");
    site.annotate("wrong-port", &[scrape, ("pyroscope.io/port", "http")]);
    site.annotate("wrong-scheme", &[scrape, ("pyroscope.io/scheme", "ftp")]);
    site.annotate("no-port", &[("coroot.com/profile-scrape", "true")]);
    site.annotate(
        "no-name",
        &[
            ("profiles.grafana.com/goroutine.scrape", "true"),
            ("profiles.grafana.com/goroutine.port_name", "nowhere"),
        ],
    );
    // The annotations of this pod are valid, but the port does not serve HTTPS.
    site.annotate(
        "no-tls",
        &[scrape, ("pyroscope.io/port", port), ("pyroscope.io/scheme", "https")],
    );
    let text = format!(
        r#"
        discovery.profiles "pods" {{
            api_server = "{}"
        }}
        pyroscope.scrape "pods" {{
            targets         = discovery.profiles.pods.targets
            forward_to      = [pyroscope.write.server.receiver]
            scrape_interval = "2s"
        }}
        pyroscope.write "server" {{
            endpoint {{
                url = "{}/profile"
            }}
        }}
        "#,
        site.cluster.url, site.url
    );
    let pipeline = Pipeline::start(text).await;
    site.wait_for("pod", &["pyroscope", "grafana", "coroot", "profefe"])
        .await;
    let health = pipeline.controller.component("discovery.profiles.pods").unwrap().health;
    assert_eq!(health.state, "healthy", "{}", health.message);
    assert!(
        health.message.contains("of 10 objects, 4 objects lack targets: "),
        "{}",
        health.message
    );
    site.annotate("wrong-port", &[scrape, ("pyroscope.io/port", port)]);
    site.wait_for("pod", &["wrong-port"]).await;
    pipeline.stop().await;
    let labels = |(pod, service): (&str, &str)| {
        site.labels(&[
            ("container", "main"),
            ("namespace", "shop"),
            ("node", "node-1"),
            ("pod", pod),
            ("service_name", service),
        ])
    };
    let expected = [
        ("pyroscope", "cart"),
        ("grafana", "shop/main"),
        ("coroot", "shop/main"),
        ("profefe", "profefe"),
        ("wrong-port", "shop/main"),
    ];
    assert_eq!(*site.received.lock(), BTreeSet::from(expected.map(labels)));
}
