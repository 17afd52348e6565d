//! A server that speaks the protocol over real HTTP, and the collector's reaction to its responses.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse as _;
use axum::routing::post;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use prost::Message as _;

use crate::app::remote::{MODULE, Remote};
use alluvium_base::Shutdown;
use alluvium_pipeline::{Controller, Options};
use alluvium_telemetry::metrics::Scope;
use alluvium_testing::http::{Server, serve};
use alluvium_wire::proto::collector::{
    GetConfigRequest, GetConfigResponse, RegisterCollectorRequest, RemoteConfigStatuses, UnregisterCollectorRequest,
};

/// State of the mock server: the configuration that it sends, and the requests that it has received.
#[derive(Default)]
struct Office {
    content: String,
    is_away: bool,
    registered: Vec<RegisterCollectorRequest>,
    unregistered: Vec<String>,
    requests: Vec<GetConfigRequest>,
    authorization: Option<String>,
}

type Shared = Arc<Mutex<Office>>;

/// Returns the hash that the mock server sends with a text: the text backwards. The server may choose any hash.
fn hash(content: &str) -> String {
    content.chars().rev().collect()
}

fn away() -> axum::response::Response {
    (
        StatusCode::SERVICE_UNAVAILABLE,
        r#"{"code":"unavailable","message":"closed today"}"#,
    )
        .into_response()
}

fn proto(message: &impl prost::Message) -> axum::response::Response {
    ([("content-type", "application/proto")], message.encode_to_vec()).into_response()
}

fn routes(office: Shared) -> Router {
    let route = |name: &str| format!("/fleet/collector.v1.CollectorService/{name}");
    Router::new()
        .route(
            &route("RegisterCollector"),
            post(|State(office): State<Shared>, body: Bytes| async move {
                let mut office = office.lock();
                if office.is_away {
                    return away();
                }
                office.registered.push(RegisterCollectorRequest::decode(body).unwrap());
                proto(&())
            }),
        )
        .route(
            &route("UnregisterCollector"),
            post(|State(office): State<Shared>, body: Bytes| async move {
                let request = UnregisterCollectorRequest::decode(body).unwrap();
                office.lock().unregistered.push(request.id);
                proto(&())
            }),
        )
        .route(
            &route("GetConfig"),
            post(
                |State(office): State<Shared>, headers: HeaderMap, body: Bytes| async move {
                    let mut office = office.lock();
                    if office.is_away {
                        return away();
                    }
                    let authorization = headers.get("authorization");
                    office.authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
                    let request = GetConfigRequest::decode(body).unwrap();
                    let not_modified = !request.hash.is_empty() && request.hash == hash(&office.content);
                    office.requests.push(request);
                    let mut answer = GetConfigResponse {
                        not_modified,
                        ..GetConfigResponse::default()
                    };
                    if !not_modified {
                        answer.content = office.content.clone();
                        answer.hash = hash(&office.content);
                    }
                    proto(&answer)
                },
            ),
        )
        .with_state(office)
}

/// A mock server, and the storage folder of the collectors that fetch their configuration from it.
struct Fleet {
    office: Shared,
    url: String,
    _server: Server,
    folder: tempfile::TempDir,
}

impl Fleet {
    async fn start(content: &str) -> Self {
        let office = Shared::default();
        content.clone_into(&mut office.lock().content);
        let (url, server) = serve(routes(office.clone())).await;
        Self {
            office,
            url: format!("{url}/fleet"),
            _server: server,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn collector(&self) -> Collector {
        Collector::start(self.folder.path())
    }

    /// Returns a `remotecfg` block for the mock server, with these additional lines.
    fn block(&self, lines: &str) -> String {
        format!("remotecfg {{\n\turl = \"{}\"\n{lines}\n}}\n", self.url)
    }

    /// Returns the statuses that the server has received, in order.
    fn statuses(&self) -> Vec<(i32, String)> {
        let office = self.office.lock();
        let statuses = office
            .requests
            .iter()
            .filter_map(|request| request.remote_config_status.clone());
        statuses.map(|status| (status.status, status.error_message)).collect()
    }
}

struct Collector {
    own: Controller,
    remote: Remote,
    metrics: Scope,
    shutdown: Shutdown,
    tasks: [tokio::task::JoinHandle<()>; 2],
}

impl Collector {
    fn start(storage: &Path) -> Self {
        let (metrics, shutdown) = (Scope::new(), Shutdown::new());
        let options = Options {
            metrics: metrics.clone(),
            module: MODULE.into(),
            ..Options::new(storage)
        };
        let controller = Controller::new(alluvium_components::ALL, options);
        let remote = Remote::new(controller, &storage.join("config.alloy"), storage, "test", &metrics);
        let remote_handle = remote.clone();
        let options = Options {
            metrics: metrics.clone(),
            on_remote: Some(Arc::new(move |settings| remote_handle.prepare(settings))),
            ..Options::new(storage)
        };
        let own = Controller::new(alluvium_components::ALL, options);
        let running = tokio::spawn({
            let (own, shutdown) = (own.clone(), shutdown.clone());
            async move { own.run(shutdown).await }
        });
        let asking = tokio::spawn(remote.clone().run(shutdown.clone()));
        Self {
            own,
            remote,
            metrics,
            shutdown,
            tasks: [running, asking],
        }
    }

    async fn load(&self, text: &str) {
        let loaded = self.own.load(vec![("config.alloy", text)]).await;
        loaded.unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render()));
    }

    /// Returns the ids of the running components of the remote configuration.
    fn running(&self) -> Vec<String> {
        let views = self.remote.controller().components(MODULE).unwrap_or_default();
        views
            .into_iter()
            .map(|view| format!("{}/{}", view.module_id, view.local_id))
            .collect()
    }

    fn has(&self, line: &str) -> bool {
        self.metrics.encode().lines().any(|other| other == line)
    }

    async fn stop(self) {
        self.shutdown.cancel();
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

async fn wait_until(description: &str, mut is_done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !is_done() {
        assert!(Instant::now() < deadline, "timed out while waiting until {description}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn relabel(label: &str) -> String {
    format!("discovery.relabel \"{label}\" {{\n\ttargets = []\n}}\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_configuration_of_the_server_runs_beside_that_of_the_files() {
    let fleet = Fleet::start(&relabel("a")).await;
    let collector = fleet.collector();
    let block = fleet.block(
        "\tid = \"me\"\n\tname = \"My name\"\n\tattributes = {team = \"x\"}\n\tbasic_auth {\n\t\tusername = \
            \"u\"\n\t\tpassword = \"p\"\n\t}",
    );
    let text = format!("{}{block}", relabel("own"));
    collector.load(&text).await;
    wait_until("component a runs", || {
        collector.running() == ["remotecfg/discovery.relabel.a"]
    })
    .await;
    wait_until("the server has the status `applied`", || {
        fleet.statuses() == [(RemoteConfigStatuses::Applied.into(), String::new())]
    })
    .await;
    assert!(collector.own.has_component("discovery.relabel.own"));
    assert!(!collector.own.has_component("remotecfg/discovery.relabel.a"));
    assert!(
        collector
            .remote
            .controller()
            .has_component("remotecfg/discovery.relabel.a")
    );
    assert!(
        collector
            .metrics
            .encode()
            .contains("controller_id=\"remotecfg\",health_type=")
    );
    {
        let office = fleet.office.lock();
        assert_eq!(office.authorization.as_deref(), Some("Basic dTpw"));
        let registered = &office.registered[0];
        assert_eq!((registered.id.as_str(), registered.name.as_str()), ("me", "My name"));
        let expected = HashMap::from([
            ("team".to_owned(), "x".to_owned()),
            ("collector.os".to_owned(), "linux".to_owned()),
            (
                "collector.version".to_owned(),
                format!("v{}", env!("CARGO_PKG_VERSION")),
            ),
        ]);
        assert_eq!(registered.local_attributes, expected);
        assert_eq!(office.requests[0].local_attributes, expected);
        assert_eq!(office.requests[0].hash, "");
        assert_eq!(office.requests[1].hash, hash(&relabel("a")));
    }
    assert!(
        collector.has("remotecfg_last_load_successful 1"),
        "{}",
        collector.metrics.encode()
    );
    // A reload sends a request at once; an unchanged configuration is not loaded again.
    let first = collector.remote.controller().last_load().unwrap().time;
    collector.load(&text).await;
    wait_until("the server has answered `not modified`", || {
        collector.has("remotecfg_last_load_not_modified 1")
    })
    .await;
    assert_eq!(collector.remote.controller().last_load().unwrap().time, first);
    // A changed configuration is loaded.
    fleet.office.lock().content = relabel("a") + &relabel("b");
    collector.load(&text).await;
    wait_until("both components run", || collector.running().len() == 2).await;
    assert_eq!(fleet.office.lock().registered.len(), 1);
    // Without the block the collector sends no requests and runs no remote components.
    collector.load(&relabel("own")).await;
    wait_until("no component runs", || collector.running().is_empty()).await;
    assert_eq!(fleet.office.lock().unregistered, ["me"]);
    assert!(collector.own.has_component("discovery.relabel.own"));
    collector.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_configuration_changes_nothing_and_the_server_is_told_why() {
    let fleet = Fleet::start(&relabel("good")).await;
    let collector = fleet.collector();
    let block = fleet.block("\tid = \"me\"");
    collector.load(&block).await;
    wait_until("component good runs", || {
        collector.running() == ["remotecfg/discovery.relabel.good"]
    })
    .await;
    wait_until("the server has a status", || fleet.statuses().len() == 1).await;
    fleet.office.lock().content = format!("{}nonsense \"x\" {{ }}\n\nlogging {{ }}\n", relabel("new"));
    collector.load(&block).await;
    wait_until("the server has a second status", || fleet.statuses().len() == 2).await;
    let (status, message) = fleet.statuses().remove(1);
    assert_eq!(status, i32::from(RemoteConfigStatuses::Failed));
    assert!(
        message.contains("cannot find the definition of component name \"nonsense\""),
        "{message}"
    );
    assert!(
        message.contains("logging not allowed in a configuration from a server"),
        "{message}"
    );
    assert_eq!(collector.running(), ["remotecfg/discovery.relabel.good"]);
    assert!(collector.has("remotecfg_last_load_successful 0"));
    assert!(collector.has("remotecfg_load_failures_total 1"));
    assert!(!collector.remote.controller().last_load_view().unwrap().success);
    // The cache on disk holds the valid configuration.
    collector.stop().await;
    fleet.office.lock().is_away = true;
    let collector = fleet.collector();
    collector.load(&block).await;
    wait_until("the cached configuration runs", || {
        collector.running() == ["remotecfg/discovery.relabel.good"]
    })
    .await;
    collector.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_server_is_away_what_it_sent_last_runs() {
    let fleet = Fleet::start(&relabel("a")).await;
    let collector = fleet.collector();
    // Without an `id`, the collector generates and stores an id.
    let block = fleet.block("");
    collector.load(&block).await;
    wait_until("a component runs", || collector.running().len() == 1).await;
    wait_until("the server has a status", || fleet.statuses().len() == 1).await;
    let id = fleet.office.lock().registered[0].id.clone();
    fleet.office.lock().is_away = true;
    collector.load(&block).await;
    wait_until("the failure is counted", || {
        collector.has("remotecfg_load_failures_total 1")
    })
    .await;
    assert_eq!(collector.running().len(), 1);
    collector.stop().await;

    let collector = fleet.collector();
    collector.load(&block).await;
    wait_until("the cached configuration runs", || {
        collector.running() == ["remotecfg/discovery.relabel.a"]
    })
    .await;
    {
        let mut office = fleet.office.lock();
        office.is_away = false;
        office.content = relabel("b");
        office.registered.clear();
    }
    collector.load(&block).await;
    wait_until("the new configuration runs", || {
        collector.running() == ["remotecfg/discovery.relabel.b"]
    })
    .await;
    assert_eq!(fleet.office.lock().registered[0].id, id);
    // Each collector id has its own cached configuration.
    fleet.office.lock().is_away = true;
    collector.load(&fleet.block("\tid = \"other\"")).await;
    wait_until("the failure is counted", || {
        collector.has("remotecfg_load_failures_total 2")
    })
    .await;
    assert_eq!(collector.running(), ["remotecfg/discovery.relabel.b"]);
    collector.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_that_cannot_be_used_fails_the_load() {
    let fleet = Fleet::start("").await;
    let collector = fleet.collector();
    let refused = async |text: String| {
        let error = collector.own.load(vec![("config.alloy", text)]).await.unwrap_err();
        error.to_string()
    };
    let error = refused(fleet.block("\ttls_config {\n\t\tca_file = \"/no/such/file\"\n\t}")).await;
    assert!(error.contains("cannot read /no/such/file"), "{error}");
    let error = refused("remotecfg {\n\turl = \"ftp://x\"\n}\n".to_owned()).await;
    assert!(
        error.contains("config.alloy:2:2: ") && error.contains("is not an http:// or https:// URL"),
        "{error}"
    );
    assert!(fleet.office.lock().requests.is_empty());
    collector.stop().await;
}
