//! The collector as a process: protection of its listener across reloads, and configuration from a server.
//!
//! In: the program, the certificates of the client's tests, and a test server that implements `collector.v1`. The tests
//! wait until a condition is true, at most for the timeout `program::PATIENCE`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use alluvium_wire::client::{ClientOptions, Credential, HttpClient, Pem, Secret, TlsOptions};
use alluvium_wire::proto::collector::{GetConfigRequest, GetConfigResponse};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use prost::Message as _;

use crate::program::{self, Address, PATIENCE, Program};

const OWN: &str = "discovery.relabel \"own\" {\n\ttargets = []\n}\n";

fn certificates(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/wire/client/testdata");
    folder.join(name)
}

/// Returns a client, with or without a password, that trusts the test authority.
fn client(password: Option<&str>) -> HttpClient {
    let mut options = ClientOptions::new("test".into());
    options.tls = TlsOptions {
        ca: Some(Pem::File(certificates("ca.pem"))),
        server_name: Some("server.test".into()),
        ..TlsOptions::default()
    };
    if let Some(password) = password {
        options.credential = Credential::Basic {
            username: "u".into(),
            password: Secret::Text(password.into()),
        };
    }
    HttpClient::new(&options).unwrap()
}

/// Returns status and body of a response. The status is 0 if there is no response.
async fn get(client: &HttpClient, url: &str) -> (u16, String) {
    let request = client.get(url.parse().unwrap()).await.unwrap();
    match request.send().await {
        Ok(answer) => (answer.status().as_u16(), answer.text().await.unwrap_or_default()),
        Err(error) => (0, error.to_string()),
    }
}

struct Collector {
    program: Program,
    address: Address,
    config: PathBuf,
}

impl Collector {
    /// Starts the program on a configuration and waits until it is ready.
    async fn start(folder: &Path, text: &str) -> Self {
        Self::with_flags(folder, text, &[]).await
    }

    async fn with_flags(folder: &Path, text: &str, flags: &[&str]) -> Self {
        let config = folder.join("config.alloy");
        std::fs::write(&config, text).unwrap();
        let address = Address::keep();
        let (data, path) = (folder.join("data"), config.display().to_string());
        let data = data.display().to_string();
        let own = [
            "run",
            &path,
            "--server.http.listen-addr",
            &address,
            "--storage.path",
            &data,
        ];
        let flags: Vec<&str> = own.iter().chain(flags).copied().collect();
        let mut collector = Self {
            program: Program::alluvium(&flags, &folder.join("log")),
            address,
            config,
        };
        let url = collector.url("/-/ready");
        let plain = client(None);
        collector
            .until("ready", async || get(&plain, &url).await.0 == 200)
            .await;
        collector
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn secure(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    async fn until(&mut self, what: &str, mut done: impl AsyncFnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !done().await {
            self.program.check();
            assert!(Instant::now() < deadline, "timed out: {what}\n{}", self.program.tail());
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn the_http_block_protects_the_listener_and_a_reload_changes_it() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), OWN).await;
    let (nobody, known, other) = (client(None), client(Some("p")), client(Some("q")));
    let write = |block: &str| std::fs::write(&collector.config, format!("{OWN}\n{block}")).unwrap();
    assert_eq!(get(&nobody, &collector.url("/metrics")).await.0, 200);

    write("http {\n\tauth {\n\t\tbasic {\n\t\t\tusername = \"u\"\n\t\t\tpassword = \"p\"\n\t\t}\n\t}\n}\n");
    assert_eq!(
        get(&nobody, &collector.url("/-/reload")).await,
        (200, "config reloaded\n".to_owned())
    );
    assert_eq!(get(&nobody, &collector.url("/metrics")).await.0, 401);
    assert_eq!(get(&other, &collector.url("/metrics")).await.0, 401);
    assert_eq!(get(&known, &collector.url("/metrics")).await.0, 200);

    let (cert, key) = (certificates("server.pem"), certificates("server.key"));
    let tls = |cert: &Path| {
        format!(
            "http {{\n\tauth {{\n\t\tbasic {{\n\t\t\tusername = \"u\"\n\t\t\tpassword = \"p\"\n\t\t}}\n\t}}\n\n\ttls {{\
             \n\t\tcert_file = \"{}\"\n\t\tkey_file  = \"{}\"\n\t}}\n}}\n",
            cert.display(),
            key.display()
        )
    };
    write(&tls(&cert));
    assert_eq!(get(&known, &collector.url("/-/reload")).await.0, 200);
    assert_eq!(get(&known, &collector.secure("/metrics")).await.0, 200);
    assert_eq!(get(&nobody, &collector.secure("/metrics")).await.0, 401);
    // Existing connections continue without TLS. A new connection must use TLS.
    assert_eq!(get(&client(Some("p")), &collector.url("/metrics")).await.0, 0);

    // An unusable certificate changes nothing.
    write(&tls(Path::new("/no/such/certificate")));
    let (status, text) = get(&known, &collector.secure("/-/reload")).await;
    assert_eq!(status, 400, "{text}");
    assert!(text.contains("/no/such/certificate"), "{text}");
    assert_eq!(get(&client(Some("p")), &collector.secure("/metrics")).await.0, 200);

    write("");
    assert_eq!(get(&known, &collector.secure("/-/reload")).await.0, 200);
    assert_eq!(get(&client(None), &collector.url("/metrics")).await.0, 200);
}

#[tokio::test]
async fn a_configuration_of_conprof_runs_as_it_is() {
    let pushes = Arc::new(Mutex::new(0));
    let counted = pushes.clone();
    let push = move || {
        *counted.lock().unwrap() += 1;
        async { ([("content-type", "application/proto")], Bytes::new()) }
    };
    let server = Router::new().fallback(push);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, server).await });

    let folder = tempfile::tempdir().unwrap();
    let to = format!("--config.extra-args=push-url=http://{target}");
    let idle = "scrape_configs: []\n";
    let flags = ["--config.format=conprof", &to];
    let mut collector = Collector::with_flags(folder.path(), idle, &flags).await;
    let (nobody, reload) = (client(None), collector.url("/-/reload"));

    let job = format!(
        "scrape_configs:\n- job_name: self\n  scrape_interval: 1s\n  static_configs: [{{targets: ['{}']}}]\n",
        &*collector.address
    );
    std::fs::write(&collector.config, format!("{job}  colour: red\n")).unwrap();
    let (status, text) = get(&nobody, &reload).await;
    assert_eq!(status, 400, "{text}");
    assert!(
        text.contains("scrape_configs[0].colour: `pyroscope.scrape` has no such argument"),
        "{text}"
    );

    std::fs::write(&collector.config, job).unwrap();
    assert_eq!(get(&nobody, &reload).await, (200, "config reloaded\n".to_owned()));
    collector
        .until("a profile of the collector itself", async || {
            *pushes.lock().unwrap() > 0
        })
        .await;
    assert!(
        collector.program.tail().contains("note on the conversion"),
        "{}",
        collector.program.tail()
    );
}

#[tokio::test]
async fn a_page_of_a_stranger_can_neither_reload_nor_read_the_collector() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), OWN).await;
    let client = program::client();
    let ask = async |method: &str, path: &str, headers: &[(&str, &str)]| {
        let mut request = client.request(method.parse().unwrap(), collector.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap().status().as_u16()
    };
    let cross = ("sec-fetch-site", "cross-site");
    let navigate = ("sec-fetch-mode", "navigate");
    let rebound = [("host", "evil.example:12345"), ("sec-fetch-site", "same-origin")];
    for (method, path, headers, status) in [
        ("GET", "/-/reload", &[][..], 200),
        ("POST", "/-/reload", &[("sec-fetch-site", "same-origin")], 200),
        ("GET", "/-/reload", &[cross, navigate], 403),
        ("POST", "/-/reload", &[("origin", "http://evil.example")], 403),
        ("GET", "/-/reload", &[("referer", "http://evil.example/")], 403),
        ("GET", "/-/support?duration=1", &[cross, navigate], 403),
        ("GET", "/graph", &[cross, navigate], 200),
        ("GET", "/api/v0/web/components", &rebound, 403),
        ("GET", "/graph", &rebound, 403),
        ("GET", "/metrics", &[("host", "collector.internal")], 200),
    ] {
        assert_eq!(ask(method, path, headers).await, status, "{method} {path} {headers:?}");
    }
}

/// A server that provides configurations.
#[derive(Default)]
struct Fleet {
    content: String,
    is_away: bool,
    /// Status codes that collectors reported, with their texts.
    told: Vec<(i32, String)>,
}

type Shared = Arc<Mutex<Fleet>>;

async fn answer(State(fleet): State<Shared>, uri: Uri, body: Bytes) -> Response {
    let mut fleet = fleet.lock().unwrap();
    if fleet.is_away {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let message = match uri.path().rsplit('/').next() {
        Some("GetConfig") => {
            let request = GetConfigRequest::decode(body).unwrap();
            let status = request.remote_config_status;
            fleet
                .told
                .extend(status.map(|status| (status.status, status.error_message)));
            let answer = GetConfigResponse {
                content: fleet.content.clone(),
                hash: fleet.content.chars().rev().collect(),
                not_modified: false,
            };
            if request.hash == answer.hash {
                GetConfigResponse {
                    not_modified: true,
                    ..GetConfigResponse::default()
                }
            } else {
                answer
            }
            .encode_to_vec()
        }
        // The responses to registration and unregistration are empty messages.
        _ => Vec::new(),
    };
    ([("content-type", "application/proto")], message).into_response()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_from_a_server_runs_follows_it_and_survives_its_absence() {
    let fleet = Shared::default();
    let set = |change: &dyn Fn(&mut Fleet)| change(&mut fleet.lock().unwrap());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}/api", listener.local_addr().unwrap());
    let routes = Router::new().fallback(answer).with_state(fleet.clone());
    let serving = tokio::spawn(async move { axum::serve(listener, routes).await });

    let folder = tempfile::tempdir().unwrap();
    let text = format!("{OWN}\nremotecfg {{\n\turl = \"{server}\"\n\tid  = \"me\"\n}}\n");
    set(&|fleet| fleet.content = "discovery.relabel \"a\" {\n\ttargets = []\n}\n".to_owned());
    let mut collector = Collector::start(folder.path(), &text).await;
    let plain = client(None);
    let (reload, list) = (
        collector.url("/-/reload"),
        collector.url("/api/v0/web/remotecfg/components"),
    );
    let runs = async |name: &str| {
        get(&plain, &list)
            .await
            .1
            .contains(&format!("\"localID\":\"discovery.relabel.{name}\""))
    };
    collector.until("a runs", async || runs("a").await).await;
    let own = get(&plain, &collector.url("/api/v0/web/components")).await.1;
    assert!(
        own.contains("discovery.relabel.own") && !own.contains("discovery.relabel.a\""),
        "{own}"
    );
    let one = get(
        &plain,
        &collector.url("/api/v0/web/remotecfg/components/discovery.relabel.a"),
    )
    .await
    .1;
    assert!(one.contains("\"moduleID\":\"remotecfg\""), "{one}");

    set(&|fleet| fleet.content = "discovery.relabel \"bc\" {\n\ttargets = []\n}\n".to_owned());
    assert_eq!(get(&plain, &reload).await.0, 200);
    collector
        .until("bc runs", async || runs("bc").await && !runs("a").await)
        .await;

    set(&|fleet| fleet.content = "discovery.relabel \"bad\" {\n\ttargets = 5 +\n}\n".to_owned());
    assert_eq!(get(&plain, &reload).await.0, 200);
    collector
        .until("the server learns that the configuration is bad", async || {
            fleet
                .lock()
                .unwrap()
                .told
                .iter()
                .any(|(status, text)| *status == 3 && text.contains("remotecfg:3:1: "))
        })
        .await;
    assert!(runs("bc").await);
    let healthy = get(&plain, &collector.url("/-/healthy")).await;
    assert_eq!(healthy.0, 200);
    assert!(healthy.1.contains("load of the remote configuration"), "{}", healthy.1);
    assert!(collector.program.terminate().success());

    set(&|fleet| fleet.is_away = true);
    let mut collector = Collector::start(folder.path(), &text).await;
    let list = collector.url("/api/v0/web/remotecfg/components");
    collector
        .until("bc runs again", async || {
            get(&plain, &list).await.1.contains("discovery.relabel.bc")
        })
        .await;
    assert!(collector.program.terminate().success());
    serving.abort();
}
