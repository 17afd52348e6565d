//! TLS on the HTTP port: gRPC over TLS, renewed certificates, and client certificates.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium::server::ServerOptions;
use alluvium::server::access::{AccessOptions, CertificateRule};
use alluvium::server::tls::TlsFiles;
use prost::Message as _;

use super::{Doors, authority, certificate, rights, with_json};
use crate::harness::{Nowhere, TestServer, client};
use crate::program::{PATIENCE, other};

const TYPES: &str = "/querier.v1.QuerierService/ProfileTypes";

fn files(folder: &Path, client_ca: bool) -> TlsFiles {
    TlsFiles {
        certificate: folder.join("server.pem"),
        key: folder.join("server.key"),
        client_ca: client_ca.then(|| folder.join("ca.pem")),
    }
}

/// Returns a client that trusts the authority `ca` and presents the certificate `own`.
fn trusting(folder: &Path, ca: &str, own: Option<&str>) -> reqwest::Client {
    let read = |name: String| std::fs::read(folder.join(name)).unwrap();
    drop(client());
    let ca = reqwest::Certificate::from_pem(&read(format!("{ca}.pem"))).unwrap();
    let mut builder = reqwest::Client::builder().no_proxy().tls_certs_only([ca]);
    if let Some(own) = own {
        let pem = [read(format!("{own}.pem")), read(format!("{own}.key"))].concat();
        builder = builder.identity(reqwest::Identity::from_pem(&pem).unwrap());
    }
    builder.build().unwrap()
}

async fn start(access: AccessOptions, files: TlsFiles) -> TestServer {
    TestServer::start_guarded(Arc::new(Nowhere), ServerOptions::default(), access, Some(files)).await
}

async fn ask(client: &reqwest::Client, server: &TestServer, token: &str) -> Option<u16> {
    let request = client
        .post(format!("{}{TYPES}", server.url))
        .header("content-type", "application/json");
    let request = if token.is_empty() {
        request
    } else {
        request.bearer_auth(token)
    };
    Some(request.body("{}").send().await.ok()?.status().as_u16())
}

#[tokio::test]
async fn the_port_speaks_tls_only_and_grpc_over_it() {
    if other("openssl", &["version"], "openssl").is_none() {
        return;
    }
    let doors = Doors::new();
    let folder = doors.folder.path();
    authority(folder);
    certificate(folder, "server");
    let token = doors.token("reader", "read", &[]);
    let server = start(doors.options(), files(folder, false)).await;
    let http = trusting(folder, "ca", None);
    assert_eq!(ask(&http, &server, &token).await, Some(200));
    assert_eq!(ask(&http, &server, "").await, Some(401));
    // gRPC needs HTTP/2, which client and server negotiate in the TLS handshake.
    let message = alluvium_wire::proto::querier::ProfileTypesRequest::default().encode_to_vec();
    let call = http
        .post(format!("{}{TYPES}", server.url))
        .header("content-type", "application/grpc");
    let answer = call
        .header("te", "trailers")
        .body(crate::grpc::frame(0, &message))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.version(), http::Version::HTTP_2);
    assert_eq!(answer.headers()["grpc-status"], "16");
    let login = http.post(format!("{}/api/v1/login", server.url));
    let login = with_json(login, &serde_json::json!({ "password": token }));
    let login = login.send().await.unwrap();
    assert!(login.headers()["set-cookie"].to_str().unwrap().ends_with("; Secure"));
    let plain = server.url.replace("https://", "http://");
    assert!(client().get(format!("{plain}/ready")).send().await.is_err());
}

#[tokio::test]
async fn a_renewed_certificate_is_used_without_a_restart_and_a_broken_one_is_not() {
    if other("openssl", &["version"], "openssl").is_none() {
        return;
    }
    let doors = Doors::new();
    let folder = doors.folder.path();
    authority(folder);
    certificate(folder, "server");
    let token = doors.token("reader", "read", &[]);
    let server = start(doors.options(), files(folder, false)).await;
    assert_eq!(ask(&trusting(folder, "ca", None), &server, &token).await, Some(200));
    std::fs::rename(folder.join("ca.pem"), folder.join("old.pem")).unwrap();
    authority(folder);
    assert_eq!(ask(&trusting(folder, "ca", None), &server, &token).await, None);
    let good = ["server.pem", "server.key"].map(|name| (name, std::fs::read(folder.join(name)).unwrap()));
    std::fs::write(folder.join("server.pem"), "no certificate").unwrap();
    assert_eq!(ask(&trusting(folder, "old", None), &server, &token).await, Some(200));
    for (name, bytes) in good {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    certificate(folder, "server");
    let deadline = Instant::now() + PATIENCE;
    while ask(&trusting(folder, "ca", None), &server, &token).await != Some(200) {
        assert!(Instant::now() < deadline, "the old certificate is still used");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(ask(&trusting(folder, "old", None), &server, &token).await, None);
}

#[tokio::test]
async fn a_client_certificate_is_an_identity_and_one_of_a_stranger_is_not() {
    if other("openssl", &["version"], "openssl").is_none() {
        return;
    }
    let doors = Doors::new();
    let folder = doors.folder.path();
    authority(folder);
    for name in ["server", "agent", "nobody"] {
        certificate(folder, name);
    }
    let strangers = folder.join("strangers");
    std::fs::create_dir(&strangers).unwrap();
    authority(&strangers);
    certificate(&strangers, "agent");
    std::fs::copy(folder.join("ca.pem"), strangers.join("trusted.pem")).unwrap();
    let (read, scope) = rights("read", &[]);
    let mut options = doors.options();
    options.certificates = Some(vec![CertificateRule {
        name: "agent".to_owned(),
        rights: read,
        tenants: scope,
    }]);
    let token = doors.token("reader", "read", &[]);
    let server = start(options, files(folder, true)).await;
    assert_eq!(
        ask(&trusting(folder, "ca", Some("agent")), &server, "").await,
        Some(200)
    );
    // The authority signed this certificate, but no configuration grants it a role.
    assert_eq!(
        ask(&trusting(folder, "ca", Some("nobody")), &server, "").await,
        Some(401)
    );
    assert_eq!(ask(&trusting(folder, "ca", None), &server, "").await, Some(401));
    assert_eq!(ask(&trusting(folder, "ca", None), &server, &token).await, Some(200));
    // This certificate has the right name but another authority, so the handshake fails.
    assert_eq!(
        ask(&trusting(&strangers, "trusted", Some("agent")), &server, "").await,
        None
    );
    let push = trusting(folder, "ca", Some("agent")).post(format!("{}/push.v1.PusherService/Push", server.url));
    let push = push
        .header("content-type", "application/json")
        .body("{}")
        .send()
        .await
        .unwrap();
    assert_eq!(push.status(), 403);
}
