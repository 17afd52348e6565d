//! Tests the client against servers on this machine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::routing::{get, post};
use http::HeaderMap;

use crate::client::{
    ClientOptions, Credential, HttpClient, OAuth2, Pem, ProxyOptions, Secret, TlsOptions, TlsVersion, error_chain,
};

async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { serve_router(listener, router).await });
    format!("http://{address}")
}

/// Serves the router with hyper-util, as the program does. `axum::serve` needs a feature of axum that the program does
/// not enable.
async fn serve_router(listener: tokio::net::TcpListener, router: Router) {
    while let Ok((stream, _)) = listener.accept().await {
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let io = hyper_util::rt::TokioIo::new(stream);
            let builder = hyper_util::server::conn::auto::Builder::new(hyper_util::rt::TokioExecutor::new());
            let _ = builder.serve_connection(io, service).await;
        });
    }
}

fn options(credential: Credential) -> ClientOptions {
    ClientOptions {
        credential,
        ..ClientOptions::new("alluvium-test".into())
    }
}

async fn authorization(options: ClientOptions) -> String {
    let echo = |headers: HeaderMap| async move {
        let value = |name: &str| {
            headers
                .get(name)
                .map_or("-", |value| value.to_str().unwrap())
                .to_owned()
        };
        format!("{} {}", value("authorization"), value("user-agent"))
    };
    let url = serve(Router::new().route("/", get(echo))).await;
    let client = HttpClient::new(&options).unwrap();
    let request = client.get(url.parse().unwrap()).await.unwrap();
    request.send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn credentials_and_user_agent_are_sent() {
    assert_eq!(authorization(options(Credential::None)).await, "- alluvium-test");
    let basic = Credential::Basic {
        username: "user".into(),
        password: Secret::Text("pass".into()),
    };
    assert_eq!(authorization(options(basic)).await, "Basic dXNlcjpwYXNz alluvium-test");
}

#[tokio::test]
async fn a_line_break_at_the_end_of_a_secret_is_ignored() {
    for end in ["\n", "\r\n"] {
        let secret = || Secret::Text(format!("pass{end}").into());
        let basic = Credential::Basic {
            username: "user".into(),
            password: secret(),
        };
        assert_eq!(authorization(options(basic)).await, "Basic dXNlcjpwYXNz alluvium-test");
        let bearer = Credential::Authorization {
            scheme: "Bearer".into(),
            credentials: secret(),
        };
        assert_eq!(authorization(options(bearer)).await, "Bearer pass alluvium-test");
    }
    // A password may end with a space.
    let basic = Credential::Basic {
        username: "user".into(),
        password: Secret::Text("pass ".into()),
    };
    assert_eq!(
        authorization(options(basic)).await,
        "Basic dXNlcjpwYXNzIA== alluvium-test"
    );
}

#[tokio::test]
async fn a_credentials_file_is_read_for_every_request() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let client = HttpClient::new(&options(Credential::Authorization {
        scheme: "Bearer".into(),
        credentials: Secret::File(file.path().into()),
    }))
    .unwrap();
    for token in ["one", "two"] {
        std::fs::write(file.path(), format!("{token}\n")).unwrap();
        assert_eq!(
            client.headers().await.unwrap()["authorization"],
            format!("Bearer {token}")
        );
    }
    file.close().unwrap();
    assert!(
        client
            .headers()
            .await
            .unwrap_err()
            .to_string()
            .starts_with("cannot read")
    );
}

#[tokio::test]
async fn an_oauth2_token_is_asked_for_once() {
    let request_count = Arc::new(AtomicUsize::new(0));
    let answer = |State(request_count): State<Arc<AtomicUsize>>, headers: HeaderMap, body: String| async move {
        request_count.fetch_add(1, Ordering::Relaxed);
        assert_eq!(headers["authorization"], "Basic aWQ6c2VjcmV0");
        assert_eq!(body, "grant_type=client_credentials&scope=a+b&audience=x");
        r#"{"access_token": "token", "token_type": "bearer", "expires_in": 3600}"#
    };
    let url = serve(
        Router::new()
            .route("/token", post(answer))
            .with_state(request_count.clone()),
    )
    .await;
    let client = HttpClient::new(&options(Credential::OAuth2(Box::new(OAuth2 {
        client_id: "id".into(),
        client_secret: Secret::Text("secret".into()),
        scopes: vec!["a".into(), "b".into()],
        token_url: format!("{url}/token").parse().unwrap(),
        endpoint_params: BTreeMap::from([("audience".into(), "x".into())]),
        options: ClientOptions::new("alluvium-test".into()),
    }))))
    .unwrap();
    for _ in 0..2 {
        assert_eq!(client.headers().await.unwrap()["authorization"], "Bearer token");
    }
    assert_eq!(request_count.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn requests_go_through_the_proxy() {
    let proxy = serve(Router::new().fallback(|uri: http::Uri| async move { format!("proxied {uri}") })).await;
    let client = HttpClient::new(&ClientOptions {
        proxy: ProxyOptions {
            url: Some(proxy.parse().unwrap()),
            ..ProxyOptions::default()
        },
        ..options(Credential::None)
    })
    .unwrap();
    let request = client.get("http://nowhere.invalid/x".parse().unwrap()).await.unwrap();
    assert_eq!(
        request.send().await.unwrap().text().await.unwrap(),
        "proxied http://nowhere.invalid/x"
    );
}

const CA: &str = include_str!("testdata/ca.pem");
const SERVER: &str = include_str!("testdata/server.pem");
const SERVER_KEY: &str = include_str!("testdata/server.key");

/// Starts a TLS server that answers every request with `yes`. If `mutual`, it requires a client certificate.
fn serve_tls(mutual: bool) -> String {
    use std::io::{Read as _, Write as _};

    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(CA.as_bytes()).unwrap())
        .unwrap();
    let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = if mutual {
        let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .unwrap();
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    let config = builder
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(SERVER.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(SERVER_KEY.as_bytes()).unwrap(),
        )
        .unwrap();
    let config = Arc::new(config);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream);
            // A client that does not trust the server closes the connection here.
            if stream.read(&mut [0; 4096]).is_ok() {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nyes");
            }
        }
    });
    url
}

async fn ask(url: &str, tls: TlsOptions) -> Result<String, String> {
    let options = ClientOptions {
        tls,
        ..options(Credential::None)
    };
    let client = HttpClient::new(&options).map_err(|error| error.to_string())?;
    let request = client.get(url.parse().unwrap()).await.unwrap();
    let response = request.send().await.map_err(|error| error_chain(&error))?;
    response.text().await.map_err(|error| error_chain(&error))
}

fn pem(text: &str) -> Option<Pem> {
    Some(Pem::Text(text.into()))
}

#[tokio::test]
async fn a_server_is_trusted_by_its_authority_and_its_name() {
    let url = serve_tls(false);
    let trusting = TlsOptions {
        ca: pem(CA),
        server_name: Some("server.test".into()),
        ..TlsOptions::default()
    };
    assert_eq!(ask(&url, trusting.clone()).await.as_deref(), Ok("yes"));
    let wrong_name = TlsOptions {
        server_name: Some("other.test".into()),
        ..trusting
    };
    assert!(ask(&url, wrong_name).await.unwrap_err().contains("certificate"));
    let stranger = ask(&url, TlsOptions::default()).await.unwrap_err();
    assert!(stranger.contains("certificate"), "{stranger}");
    let reckless = TlsOptions {
        insecure_skip_verify: true,
        min_version: TlsVersion::Tls13,
        ..TlsOptions::default()
    };
    assert_eq!(ask(&url, reckless).await.as_deref(), Ok("yes"));
}

#[tokio::test]
async fn a_client_shows_its_certificate() {
    let url = serve_tls(true);
    let with_certificate = TlsOptions {
        ca: pem(CA),
        server_name: Some("server.test".into()),
        certificate: pem(SERVER),
        key: pem(SERVER_KEY),
        ..TlsOptions::default()
    };
    assert_eq!(ask(&url, with_certificate.clone()).await.as_deref(), Ok("yes"));
    let without = TlsOptions {
        certificate: None,
        key: None,
        ..with_certificate
    };
    assert!(ask(&url, without).await.is_err());
}

#[tokio::test]
async fn wrong_certificates_are_refused_when_the_client_is_made() {
    let message = |tls| async { ask("https://127.0.0.1:1", tls).await.unwrap_err() };
    let not_pem = TlsOptions {
        ca: pem("nonsense"),
        ..TlsOptions::default()
    };
    assert_eq!(message(not_pem).await, "tls_config: the ca holds no certificate");
    let no_file = TlsOptions {
        ca: Some(Pem::File("/nonexistent/ca.pem".into())),
        ..TlsOptions::default()
    };
    assert!(message(no_file).await.starts_with("cannot read /nonexistent/ca.pem"));
}

/// Runs a SOCKS server (RFC 1928) for one connection, with user and password (RFC 1929). It connects to `behind`,
/// whatever address the client requests. Returns the port of the server, and a task that returns the user, the password
/// and the requested address.
async fn socks(behind: String) -> (u16, tokio::task::JoinHandle<String>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let text = async |stream: &mut tokio::net::TcpStream| {
            let length = stream.read_u8().await.unwrap();
            let mut text = vec![0; length.into()];
            stream.read_exact(&mut text).await.unwrap();
            text
        };
        assert_eq!(stream.read_u8().await.unwrap(), 5, "version");
        let methods = text(&mut stream).await;
        assert!(methods.contains(&2), "the client offers no user and password");
        stream.write_all(&[5, 2]).await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), 1, "version of the login");
        let (user, password) = (text(&mut stream).await, text(&mut stream).await);
        stream.write_all(&[1, 0]).await.unwrap();
        let mut request = [0; 4];
        stream.read_exact(&mut request).await.unwrap();
        assert_eq!(request, [5, 1, 0, 3], "the client must connect to a host name");
        let host = text(&mut stream).await;
        let requested_port = stream.read_u16().await.unwrap();
        stream.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 0]).await.unwrap();
        let mut server = tokio::net::TcpStream::connect(behind).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
        let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        format!(
            "{}:{} {}:{requested_port}",
            shown(&user),
            shown(&password),
            shown(&host)
        )
    });
    (port, served)
}

#[tokio::test]
async fn a_socks_proxy_is_given_names_and_credentials() {
    let url = serve(Router::new().route("/", get(|| async { "through" }))).await;
    let (port, served) = socks(url.trim_start_matches("http://").to_owned()).await;
    let proxy = ProxyOptions {
        url: Some(format!("socks5://me:secret@127.0.0.1:{port}").parse().unwrap()),
        ..ProxyOptions::default()
    };
    let client = HttpClient::new(&ClientOptions {
        proxy,
        ..options(Credential::None)
    });
    let client = client.unwrap();
    let request = client.get("http://shop.invalid:8080/".parse().unwrap()).await.unwrap();
    assert_eq!(request.send().await.unwrap().text().await.unwrap(), "through");
    drop(client);
    assert_eq!(served.await.unwrap(), "me:secret shop.invalid:8080");
}
