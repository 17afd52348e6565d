//! Checks with schemathesis that a server behaves as `docs/reference/openapi.yaml` describes, and that the file
//! describes every plain route: every route of `docs/http-api.md` that is neither a service call nor a page.
//!
//! Scenario: a real server with a profile. schemathesis derives requests from the file: its examples, boundary values,
//! wrong methods, and random values with a fixed seed. Guarantees: no response is a server error, and the file
//! describes the status, the content type and the form of the body of each response.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::client;
use crate::program::{Address, Program, other};

/// Number of requests with random values for each route.
const EXAMPLES: &str = "40";

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/openapi.yaml")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_answers_as_its_description_says() {
    let python = std::env::var("ALLUVIUM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let schemathesis = Path::new(&python).with_file_name("schemathesis");
    let schemathesis = schemathesis.to_string_lossy();
    if other(&schemathesis, &["--version"], "schemathesis").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let http = client();
    let address = Address::keep();
    let url = format!("http://{address}");
    let data = folder.path().join("data").display().to_string();
    let mut server = Program::alluvium(
        &["serve", "--listen", &address, "--data", &data],
        &folder.path().join("serve.log"),
    );
    server.ready(&http, &format!("{url}/ready")).await;
    let pushed = http
        .post(format!("{url}/ingest?name=shop"))
        .body("main;work 30\nmain;idle 70\n")
        .send()
        .await
        .unwrap();
    assert!(pushed.status().is_success());

    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
    let report = Command::new(&*schemathesis)
        .arg("run")
        .arg(path())
        .args(["--url", &url])
        // Without a Prometheus, the server responds with 501. The module `prometheus` tests this route with a
        // Prometheus.
        .args(["--exclude-path", "/api/v1/prometheus/query_range"])
        .args(["--checks", checks, "--phases", "examples,coverage,fuzzing"])
        .args(["--max-examples", EXAMPLES, "--seed", "1", "--no-color"])
        // schemathesis stores its findings in the folder that it runs in.
        .current_dir(folder.path())
        .output()
        .unwrap();
    server.check();
    assert!(
        report.status.success(),
        "{}{}\n{}",
        String::from_utf8_lossy(&report.stdout),
        String::from_utf8_lossy(&report.stderr),
        server.tail()
    );
    assert!(server.terminate().success());
}

#[test]
fn every_plain_route_of_the_documentation_is_described() {
    let described = std::fs::read_to_string(path()).unwrap();
    let described: BTreeSet<_> = described
        .lines()
        .filter_map(|line| line.strip_prefix("  /")?.strip_suffix(':'))
        .map(|path| format!("/{path}"))
        .collect();
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/http-api.md")).unwrap();
    let (_, routes) = text.split_once("## Routes").unwrap();
    let (routes, _) = routes.split_once("\n## ").unwrap();
    let documented: BTreeSet<_> = routes
        .lines()
        .filter(|line| line.starts_with("| `/") && !line.contains("[the page]") && !line.contains("`/speedscope/"))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        // `proto/` describes the calls of services.
        .filter(|path| path.starts_with('/') && !path.contains(".v1"))
        .map(str::to_owned)
        .collect();
    assert!(documented.len() > 15, "{documented:?}");
    assert_eq!(documented, described);
}
