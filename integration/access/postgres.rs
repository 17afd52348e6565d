//! The PostgreSQL port requires the same credentials as the HTTP port: psql sends tokens and passwords, with and
//! without TLS.

use std::process::Command;

use alluvium::query::{QueryEngine, QueryLimits};
use alluvium::server::access::{Access, AccessMetrics, AccessOptions};
use alluvium::server::postgres::{PostgresError, PostgresOptions, PostgresServer, PostgresTls, PostgresUser};
use alluvium::server::tls::TlsFiles;
use alluvium_base::Shutdown;
use alluvium_telemetry::metrics::Scope;

use super::{Doors, PASSWORD, authority, certificate};
use crate::harness::Nothing;
use crate::program::other;

/// An open port that closes when it is dropped.
struct Port {
    address: std::net::SocketAddr,
    metrics: Scope,
    shutdown: Shutdown,
}

impl Drop for Port {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

fn engine() -> QueryEngine {
    QueryEngine::new(std::sync::Arc::new(Nothing), QueryLimits::default()).unwrap()
}

async fn open(access: AccessOptions, change: impl FnOnce(&mut PostgresOptions)) -> Port {
    let metrics = Scope::new();
    let mut options = PostgresOptions::new("127.0.0.1:0");
    options.multi_tenant = access.multi_tenant;
    options.access = Access::new(access, AccessMetrics::new(&metrics)).unwrap();
    change(&mut options);
    let server = PostgresServer::bind(options, engine()).await.unwrap();
    let (address, shutdown) = (server.local_addr(), Shutdown::new());
    tokio::spawn(server.serve(shutdown.clone()));
    Port {
        address,
        metrics,
        shutdown,
    }
}

/// Runs psql. Returns whether it succeeded, and its output.
fn psql(host: &str, port: u16, more: &str, password: &str) -> (bool, String) {
    let connection = format!("host={host} port={port} {more}");
    let output = Command::new("psql")
        .args(["-X", "-q", "-A", "-t", "-w", "-d", &connection, "-c", "SELECT 6 * 7"])
        .env("PGPASSWORD", password)
        .env("PGCONNECT_TIMEOUT", "20")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_comes_in_by_token_and_by_password_for_its_tenants() {
    if other("psql", &["--version"], "postgresql-client").is_none() {
        return;
    }
    let doors = Doors::new();
    let (reader, writer) = (
        doors.token("reader", "read", &["shop"]),
        doors.token("writer", "write", &["shop"]),
    );
    let mut access = doors.options();
    access.users = Some(doors.users());
    access.multi_tenant = true;
    let port = open(access, |options| {
        options.users = vec![PostgresUser {
            name: "grafana".to_owned(),
            password: "by scram".to_owned(),
            tenants: vec!["desk".parse().unwrap()],
        }];
    })
    .await;
    let ask = |more: &str, password: &str| psql("127.0.0.1", port.address.port(), more, password);
    let answered = |(is_well, text): (bool, String)| is_well && text.trim() == "42";
    assert!(answered(ask("user=me dbname=shop", &reader)));
    assert!(answered(ask("user=me dbname=postgres", &reader)));
    assert!(answered(ask("user=grafana dbname=desk", "by scram")));
    assert!(answered(ask("user=ada dbname=anonymous", PASSWORD)));
    for (more, password, reason) in [
        ("user=me dbname=desk", reader.as_str(), "does not exist"),
        ("user=me dbname=shop", "allu_wrong", "password authentication failed"),
        (
            "user=ada dbname=shop",
            "wrong password",
            "password authentication failed",
        ),
        ("user=grafana dbname=desk", &reader, "password authentication failed"),
        ("user=me dbname=shop", &writer, "lacks the role `read`"),
    ] {
        let (is_well, text) = ask(more, password);
        assert!(!is_well && text.contains(reason), "{more}: {text}");
    }
    // The PostgreSQL port also limits failed password attempts of a user. The table above contains one such attempt.
    for _ in 1..10 {
        assert!(
            ask("user=grafana dbname=desk", "guess")
                .1
                .contains("authentication failed")
        );
    }
    assert!(
        ask("user=grafana dbname=desk", "by scram")
            .1
            .contains("too many attempts")
    );
    let metrics = port.metrics.encode();
    assert!(
        metrics.contains("alluvium_access_refusals_total{reason=\"wrong\"} 12"),
        "{metrics}"
    );
    assert!(
        metrics.contains("alluvium_access_refusals_total{reason=\"right\"} 1"),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_comes_in_over_tls_by_token_and_by_client_certificate() {
    if other("psql", &["--version"], "postgresql-client").is_none()
        || other("openssl", &["version"], "openssl").is_none()
    {
        return;
    }
    let doors = Doors::new();
    let folder = doors.folder.path();
    authority(folder);
    certificate(folder, "server");
    certificate(folder, "agent");
    let token = doors.token("reader", "read", &[]);
    let mut access = doors.options();
    let (rights, tenants) = super::rights("read", &[]);
    let name = "agent".to_owned();
    access.certificates = Some(vec![alluvium::server::access::CertificateRule {
        name,
        rights,
        tenants,
    }]);
    let port = open(access, |options| {
        options.tls = Some(PostgresTls {
            files: TlsFiles {
                certificate: folder.join("server.pem"),
                key: folder.join("server.key"),
                client_ca: Some(folder.join("ca.pem")),
            },
            required: true,
        });
    })
    .await;
    let number = port.address.port();
    let path = |name: &str| folder.join(name).display().to_string();
    let secure = format!(
        "user=me dbname=postgres sslmode=verify-full sslrootcert={}",
        path("ca.pem")
    );
    let ask = |more: &str, password: &str| psql("localhost", number, more, password);
    let (is_well, text) = ask(&secure, &token);
    assert!(is_well && text.trim() == "42", "{text}");
    let shown = format!("{secure} sslcert={} sslkey={}", path("agent.pem"), path("agent.key"));
    let (is_well, text) = ask(&shown, "");
    assert!(is_well && text.trim() == "42", "{text}");
    assert!(!ask(&secure, "allu_wrong").0);
    let (is_well, text) = ask("user=me dbname=postgres sslmode=disable", &token);
    assert!(!is_well && text.contains("requires TLS"), "{text}");
}

/// Returns a non-loopback address of this machine, if it has one.
fn outward() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent; the kernel only selects a source address.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_not_taken_in_the_clear_from_another_machine() {
    if other("psql", &["--version"], "postgresql-client").is_none() {
        return;
    }
    let Some(outward) = outward() else { return };
    let doors = Doors::new();
    let token = doors.token("reader", "read", &[]);
    let port = open(doors.options(), |options| options.listen = "0.0.0.0:0".to_owned()).await;
    let (is_well, text) = psql(
        &outward.to_string(),
        port.address.port(),
        "user=me dbname=postgres",
        &token,
    );
    assert!(!is_well && text.contains("over TLS or from the same machine"), "{text}");
    assert!(psql("127.0.0.1", port.address.port(), "user=me dbname=postgres", &token).0);
    assert!(
        port.metrics
            .encode()
            .contains("alluvium_access_refusals_total{reason=\"plain\"} 1")
    );
}

#[tokio::test]
async fn the_port_opens_to_other_machines_when_it_asks_or_is_told_not_to() {
    let doors = Doors::new();
    let bind = async |access: AccessOptions| {
        let mut options = PostgresOptions::new("0.0.0.0:0");
        options.access = Access::new(access, AccessMetrics::default()).unwrap();
        PostgresServer::bind(options, engine()).await
    };
    assert!(matches!(bind(doors.options()).await, Err(PostgresError::NoUsers(_))));
    let open = AccessOptions {
        is_open: true,
        ..doors.options()
    };
    assert!(bind(open).await.is_ok());
    doors.token("reader", "read", &[]);
    assert!(bind(doors.options()).await.is_ok());
}
