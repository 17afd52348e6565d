//! Access control as clients see it: every entry point of the server, and credentials that the server refuses.
//!
//! Scenario: servers that require authentication, in this process and as whole programs. Guarantee: every threat of
//! `docs/security.md` has a defence, and the tests that the document names exist.

mod audit;
mod login;
mod oidc;
mod postgres;
mod program;
mod roles;
mod tls;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use alluvium::server::ServerOptions;
use alluvium::server::access::{AccessOptions, Rights, TenantScope, passwords, tokens};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Nowhere, TestServer};
use crate::tidy::{root, tracked_files};

/// Password of the test users.
const PASSWORD: &str = "correct horse battery";

/// Token and user files of a server.
struct Doors {
    folder: TempDir,
}

impl Doors {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn tokens(&self) -> PathBuf {
        self.folder.path().join(AccessOptions::TOKENS)
    }

    /// Creates a token with this role for these tenants.
    fn token(&self, name: &str, role: &str, tenants: &[&str]) -> String {
        let (rights, scope) = rights(role, tenants);
        tokens::add(&self.tokens(), name, &rights, &scope).unwrap()
    }

    /// Creates a file with the user `ada`, who may read and write.
    fn users(&self) -> PathBuf {
        let (rights, scope) = rights("read,write", &[]);
        let path = self.folder.path().join("users");
        std::fs::write(&path, passwords::line("ada", PASSWORD, &rights, &scope).unwrap()).unwrap();
        path
    }

    fn options(&self) -> AccessOptions {
        AccessOptions::new(self.folder.path())
    }

    /// Starts a server over a store that discards all profiles.
    async fn server(&self) -> TestServer {
        self.server_with(self.options(), ServerOptions::default()).await
    }

    async fn server_with(&self, access: AccessOptions, options: ServerOptions) -> TestServer {
        TestServer::start_guarded(Arc::new(Nowhere), options, access, None).await
    }
}

/// Adds a JSON body to a request.
fn with_json(request: reqwest::RequestBuilder, body: &Value) -> reqwest::RequestBuilder {
    request
        .header("content-type", "application/json")
        .body(body.to_string())
}

fn rights(role: &str, tenants: &[&str]) -> (Rights, TenantScope) {
    let scope = TenantScope::of_ids(tenants.iter().copied()).unwrap();
    (role.parse().unwrap(), scope)
}

/// Returns the number of refusals for a reason.
fn refusals(server: &TestServer, reason: &str) -> u64 {
    let text = server.metrics.encode();
    let start = format!("alluvium_access_refusals_total{{reason=\"{reason}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("no {start}in\n{text}")).parse().unwrap()
}

#[test]
fn every_test_that_the_threats_name_is_there() {
    let page = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let sources: String = tracked_files()
        .iter()
        .filter(|path| path.ends_with(".rs"))
        .map(|path| std::fs::read_to_string(root().join(path)).unwrap())
        .collect();
    let table = page.split("## Threats").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(2);
    let mut seen = 0;
    for row in rows {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let names: Vec<&str> = tests
            .split('`')
            .filter(|name| name.contains('_') && !name.contains('/'))
            .collect();
        assert!(!names.is_empty(), "no test: {row}");
        for name in names {
            assert!(sources.contains(&format!("fn {name}(")), "there is no test {name}");
        }
        seen += 1;
    }
    assert!(seen > 20, "{seen} threats");
}

/// Runs openssl in a folder.
fn openssl(folder: &Path, arguments: &str) {
    let output = Command::new("openssl")
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Creates a certificate authority, `ca.pem`.
fn authority(folder: &Path) {
    openssl(
        folder,
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=authority -keyout ca.key \
         -out ca.pem",
    );
}

/// Creates a certificate signed by the authority: `NAME.pem` and `NAME.key`.
fn certificate(folder: &Path, name: &str) {
    let request = format!(
        "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={name} -addext \
         subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout {name}.key -out {name}.csr"
    );
    openssl(folder, &request);
    let sign = format!(
        "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -copy_extensions copy -out \
         {name}.pem"
    );
    openssl(folder, &sign);
}
