//! Tests of TLS and basic authentication on the collector's port, over real connections and with reloads of the `http`
//! block.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::Url;

use crate::app::protection::{Protection, from_within};
use alluvium_admin::listen::{ListenOptions, Listener};
use alluvium_base::Shutdown;
use alluvium_components::ALL;
use alluvium_lang::Diagnostics;
use alluvium_pipeline::component::own_http::OwnHttp;
use alluvium_pipeline::{Controller, Options};
use alluvium_wire::client::{ClientOptions, Credential, HttpClient, Pem, Secret, TlsOptions};

const CA: &str = include_str!("../../wire/client/testdata/ca.pem");
const CERTIFICATE: &str = include_str!("../../wire/client/testdata/server.pem");
const KEY: &str = include_str!("../../wire/client/testdata/server.key");

struct House {
    controller: Controller,
    address: SocketAddr,
    folder: tempfile::TempDir,
    shutdown: Shutdown,
}

impl House {
    async fn open(config: &str) -> Self {
        Self::open_with(config, ListenOptions::default()).await
    }

    async fn open_with(config: &str, listen: ListenOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("ca.pem", CA), ("cert.pem", CERTIFICATE), ("key.pem", KEY)] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let (protection, shutdown) = (Protection::default(), Shutdown::new());
        let prepared = protection.clone();
        let options = Options {
            own_http: OwnHttp::new("alloy.internal:12345"),
            on_http: Arc::new(move |settings| prepared.prepare(settings)),
            ..Options::new(folder.path().join("data"))
        };
        let controller = Controller::new(ALL, options);
        let listener = Listener::bind("127.0.0.1:0", listen).await.unwrap();
        let address = listener.local_addr();
        let routes = Router::new()
            .route("/open", get(async || "open"))
            .route("/metrics", get(async || "metrics"))
            .route("/debug/pprof/{kind}", get(async || "profile"));
        let routes = protection.guard(routes);
        controller.own_http().set(from_within(routes.clone()));
        let house = Self {
            controller,
            address,
            folder,
            shutdown: shutdown.clone(),
        };
        house.load(config).await.unwrap();
        tokio::spawn(listener.with_tls(protection.tls()).serve(routes, shutdown));
        house
    }

    async fn load(&self, config: &str) -> Result<Diagnostics, Diagnostics> {
        let config = config.replace("$DIR", &self.folder.path().display().to_string());
        self.controller.load(vec![("main.alloy", config)]).await
    }

    /// Returns the status and body of the response, or the reason why there is no response.
    async fn get(&self, scheme: &str, path: &str, options: ClientOptions) -> Result<(u16, String), String> {
        // Each request uses a new client, because an open connection would keep its old TLS settings.
        let client = HttpClient::new(&options).map_err(|error| error.to_string())?;
        let url = Url::parse(&format!("{scheme}://{}{path}", self.address)).unwrap();
        let request = client.get(url).await.map_err(|error| error.to_string())?;
        let response = request.send().await.map_err(|error| format!("{error:?}"))?;
        let status = response.status().as_u16();
        let text = response.text().await.map_err(|error| format!("{error:?}"))?;
        Ok((status, text))
    }

    async fn status(&self, path: &str, password: Option<&str>) -> u16 {
        self.get("http", path, with_password(password)).await.unwrap().0
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

fn plain() -> ClientOptions {
    ClientOptions::new("alluvium-test".into())
}

fn with_password(password: Option<&str>) -> ClientOptions {
    let mut options = plain();
    if let Some(password) = password {
        options.credential = Credential::Basic {
            username: "reader".into(),
            password: Secret::Text(password.into()),
        };
    }
    options
}

/// Returns options of a client that trusts the certificate authority of the tests and may have its own certificate.
fn trusting(with_certificate: bool) -> ClientOptions {
    let own = |text: &str| with_certificate.then(|| Pem::Text(text.into()));
    ClientOptions {
        tls: TlsOptions {
            ca: Some(Pem::Text(CA.into())),
            server_name: Some("server.test".into()),
            certificate: own(CERTIFICATE),
            key: own(KEY),
            ..TlsOptions::default()
        },
        ..plain()
    }
}

fn tls(arguments: &str) -> String {
    format!(
        "http {{\n\ttls {{\n\t\tcert_file = \"$DIR/cert.pem\"\n\t\tkey_file = \"$DIR/key.pem\"\n{arguments}\n\t}}\n}}\n"
    )
}

fn auth(password: &str, filter: &str) -> String {
    format!(
        "http {{\n\tauth {{\n\t\tbasic {{\n\t\t\tusername = \"reader\"\n\t\t\tpassword = \
            \"{password}\"\n\t\t}}\n{filter}\n\t}}\n}}\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_turns_tls_on_and_off_and_a_broken_one_changes_nothing() {
    let house = House::open("").await;
    assert_eq!(house.get("http", "/open", plain()).await.unwrap(), (200, "open".into()));

    house.load(&tls("")).await.unwrap();
    assert_eq!(
        house.get("https", "/open", trusting(false)).await.unwrap(),
        (200, "open".into())
    );
    assert!(
        house.get("http", "/open", plain()).await.is_err(),
        "the port must not answer plain HTTP"
    );
    assert!(
        house.get("https", "/open", plain()).await.is_err(),
        "a client without the CA of the tests must reject the certificate"
    );

    for (broken, message) in [
        (tls("").replace("cert.pem", "missing.pem"), "cannot read"),
        (tls("").replace("cert.pem", "key.pem"), "contains no certificate"),
        (tls("").replace("key.pem", "cert.pem"), "contains no private key"),
        (tls("max_version = \"TLS11\""), "TLS 1.0 and 1.1 are not supported"),
        (
            tls("min_version = \"TLS13\"\nmax_version = \"TLS12\""),
            "above max_version",
        ),
        (tls("curve_preferences = [\"CurveP521\"]"), "none of these curves"),
        (
            tls("cipher_suites = [\"TLS_RSA_WITH_AES_128_CBC_SHA\"]\nmax_version = \"TLS12\""),
            "none of these cipher suites",
        ),
        (
            tls("client_auth_type = \"RequireAndVerifyClientCert\""),
            "needs client_ca_pem",
        ),
        (
            tls("client_ca_file = \"$DIR/ca.pem\""),
            "when client_auth_type is NoClientCert",
        ),
        (tls("cert_pem = \"x\""), "cannot specify both cert_pem and cert_file"),
        (
            "http {\n\ttls {\n\t\tcert_file = \"$DIR/cert.pem\"\n\t}\n}\n".to_owned(),
            "must specify either key_pem or key_file",
        ),
    ] {
        let error = house.load(&broken).await.unwrap_err().to_string();
        assert!(error.contains(message), "{message}: {error}");
        assert_eq!(
            house.get("https", "/open", trusting(false)).await.unwrap().0,
            200,
            "{message}"
        );
    }

    house.load("").await.unwrap();
    assert_eq!(house.get("http", "/open", plain()).await.unwrap().0, 200);
    assert!(house.get("https", "/open", trusting(false)).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_suites_and_curves_are_what_is_asked_for() {
    let house = House::open(&tls("max_version = \"TLS12\"")).await;
    let mut new_only = trusting(false);
    new_only.tls.min_version = alluvium_wire::client::TlsVersion::Tls13;
    assert!(house.get("https", "/open", new_only.clone()).await.is_err());
    assert_eq!(house.get("https", "/open", trusting(false)).await.unwrap().0, 200);
    house
        .load(&tls(
            "min_version = \"TLS13\"\ncurve_preferences = [\"CurveP384\"]\ncipher_suites = \
            [\"TLS_AES_128_GCM_SHA256\"]",
        ))
        .await
        .unwrap();
    assert_eq!(house.get("https", "/open", new_only).await.unwrap().0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_show_the_certificates_that_are_asked_for() {
    let house = House::open("").await;
    let asks = |kind: &str, authority: bool| {
        let authority = if authority {
            "client_ca_file = \"$DIR/ca.pem\""
        } else {
            ""
        };
        tls(&format!("client_auth_type = \"{kind}\"\n{authority}"))
    };
    // The last two columns: whether clients with and without a certificate are accepted.
    for (kind, authority, with, without) in [
        ("NoClientCert", false, true, true),
        ("RequestClientCert", false, true, true),
        ("RequireAnyClientCert", false, true, false),
        ("VerifyClientCertIfGiven", true, true, true),
        ("RequireAndVerifyClientCert", true, true, false),
    ] {
        house.load(&asks(kind, authority)).await.unwrap();
        for (certificate, welcome) in [(true, with), (false, without)] {
            let answer = house.get("https", "/open", trusting(certificate)).await;
            assert_eq!(answer.is_ok(), welcome, "{kind}, certificate {certificate}: {answer:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_certificate_needs_no_reload_and_a_broken_one_is_not_taken() {
    let house = House::open(&tls("")).await;
    let path = house.folder.path().join("cert.pem");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    let touch = |text: &str, seconds: u64| {
        std::fs::write(&path, text).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(later + std::time::Duration::from_secs(seconds))
            .unwrap();
    };
    touch("half a certi", 0);
    assert_eq!(house.get("https", "/open", trusting(false)).await.unwrap().0, 200);
    touch(CERTIFICATE, 1);
    assert_eq!(house.get("https", "/open", trusting(false)).await.unwrap().0, 200);
}

/// Opens a connection, sends these bytes, and then sends nothing more.
async fn stuck(house: &House, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(house.address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// Waits until the other side has closed the connection.
async fn closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_mins(1), stream.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the connection stays open");
}

/// The first bytes of a TLS handshake.
const HELLO: &[u8] = &[22, 3, 1];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_say_nothing_or_do_not_finish_are_sent_away() {
    let listen = ListenOptions {
        header_timeout: Duration::from_millis(300),
        handshake_timeout: Duration::from_millis(300),
        ..ListenOptions::default()
    };
    let house = House::open_with("", listen).await;
    for bytes in [&b""[..], b"GET /open HTTP/1.1\r\n"] {
        closed(stuck(&house, bytes).await).await;
    }
    house.load(&tls("")).await.unwrap();
    for bytes in [b"", HELLO] {
        closed(stuck(&house, bytes).await).await;
    }
    assert_eq!(house.get("https", "/open", trusting(false)).await.unwrap().0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_wait_for_their_turn_and_silent_clients_take_none() {
    let listen = ListenOptions {
        max_handshakes: 1,
        handshake_timeout: Duration::from_millis(500),
        ..ListenOptions::default()
    };
    let house = House::open_with(&tls(""), listen).await;
    let _silent = [stuck(&house, b"").await, stuck(&house, b"").await];
    assert_eq!(house.get("https", "/open", trusting(false)).await.unwrap().0, 200);
    // After the timeout of the stuck connection, the next connection is accepted.
    let connection = stuck(&house, HELLO).await;
    assert_eq!(house.get("https", "/open", trusting(false)).await.unwrap().0, 200);
    closed(connection).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_beyond_the_most_wait_until_one_has_ended() {
    let listen = ListenOptions {
        max_connections: 1,
        header_timeout: Duration::from_millis(300),
        ..ListenOptions::default()
    };
    let house = House::open_with("", listen).await;
    let first = stuck(&house, b"").await;
    assert_eq!(house.status("/open", None).await, 200);
    closed(first).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_password_is_asked_for_on_the_paths_that_need_it() {
    let house = House::open(&auth("first", "")).await;
    for (path, password, status) in [
        ("/open", None, 401),
        ("/open", Some("wrong"), 401),
        ("/open", Some("first"), 200),
        ("/nothing/here", None, 401),
    ] {
        assert_eq!(house.status(path, password).await, status, "{path} {password:?}");
    }
    // A reload applies to requests on open connections.
    house.load(&auth("second", "")).await.unwrap();
    assert_eq!(house.status("/open", Some("first")).await, 401);
    assert_eq!(house.status("/open", Some("second")).await, 200);

    let named = "filter {\n\tpaths = [\"/metrics\", \"/debug\"]\n}";
    house.load(&auth("x", named)).await.unwrap();
    for (path, status) in [
        ("/open", 200),
        ("/metrics", 401),
        ("/debug/pprof/heap", 401),
        ("/%6Detrics", 401),
    ] {
        assert_eq!(house.status(path, None).await, status, "{path}");
    }
    let others = "filter {\n\tpaths = [\"/open\"]\n\tauthenticate_matching_paths = false\n}";
    house.load(&auth("x", others)).await.unwrap();
    for (path, status) in [
        ("/open", 200),
        ("/metrics", 401),
        ("/%6Fpen", 401),
        ("/debug/pprof/heap", 401),
    ] {
        assert_eq!(house.status(path, None).await, status, "{path}");
    }
    house.load("").await.unwrap();
    assert_eq!(house.status("/metrics", None).await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn components_reach_the_endpoints_without_a_socket_and_with_the_password() {
    let house = House::open(&auth("x", "")).await;
    let own = house.controller.own_http();
    assert!(own.is_at("Alloy.Internal", Some(12345)));
    assert!(
        !own.is_at("alloy.internal", Some(80))
            && !own.is_at("alloy.internal", None)
            && !own.is_at("localhost", Some(12345))
    );
    let ask = async |authorization: Option<&str>| {
        let mut request = http::Request::get("/debug/pprof/heap?seconds=1");
        if let Some(authorization) = authorization {
            request = request.header("Authorization", authorization);
        }
        own.send(request.body(Bytes::new()).unwrap()).await
    };
    assert_eq!(ask(None).await.status(), 401);
    // The header contains `reader:x`.
    let answer = ask(Some("Basic cmVhZGVyOng=")).await;
    assert_eq!((answer.status().as_u16(), &answer.body()[..]), (200, &b"profile"[..]));
}

#[tokio::test]
async fn a_program_without_a_listener_refuses_the_block() {
    let folder = tempfile::tempdir().unwrap();
    let controller = Controller::new(ALL, Options::new(folder.path()));
    let error = controller
        .load(vec![("main.alloy", auth("x", ""))])
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("no listener that the block"), "{error}");
    controller.load(vec![("main.alloy", "http { }\n")]).await.unwrap();
}
