//! The client commands against a mock of the server: real HTTP, real messages, and responses from this file.
//!
//! The server's own tests check the responses of a real server to the same queries.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use alluvium::cli::readers::{flamegraph, top};
use alluvium::cli::sending::upload;
use alluvium::cli::sql::{Format, SqlClient, SqlServer};
use alluvium::cli::{Cli, Command};
use alluvium_profile::RawProfile;
use alluvium_profile::flamegraph::{FrameRef, Tree};
use alluvium_profile::pprof;
use alluvium_wire::connect::{self, Codec, ConnectError};
use alluvium_wire::proto::push::{PushRequest, PushResponse};
use alluvium_wire::proto::querier;
use alluvium_wire::push::PushBatch;
use alluvium_wire::querier::{detailed_flamegraph_message, flamegraph_message};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use clap::Parser;

/// Requests that the mock received.
#[derive(Default, Clone)]
struct Seen {
    profiles: Arc<Mutex<Vec<RawProfile>>>,
    questions: Arc<Mutex<Vec<String>>>,
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("integration/fixtures/pprof")
        .join(name)
}

async fn push(State(seen): State<Seen>, body: Bytes) -> Response {
    let request: PushRequest = connect::decode(Codec::Proto, body).unwrap();
    let (profiles, _) = PushBatch::from_request(request).unwrap().split();
    let refused = profiles
        .iter()
        .any(|profile| profile.labels.get("service_name") == Some("refused"));
    seen.profiles.lock().unwrap().extend(profiles);
    if refused {
        let error = ConnectError::invalid("series 0: out of the ingestion window");
        return (StatusCode::BAD_REQUEST, error.to_json()).into_response();
    }
    connect::encode(Codec::Proto, &PushResponse::default()).into_response()
}

async fn merge_profile(State(seen): State<Seen>, headers: HeaderMap, body: Bytes) -> Response {
    let ask: querier::SelectMergeProfileRequest = connect::decode(Codec::Proto, body).unwrap();
    let tenant = headers.get("x-scope-orgid").and_then(|value| value.to_str().ok());
    let mut question = format!("{} {} {tenant:?}", ask.profile_type_id, ask.label_selector);
    if let Some(pgo) = ask.stack_trace_selector.and_then(|selector| selector.go_pgo) {
        question.push_str(&format!(
            " for Go, {} locations, {}",
            pgo.keep_locations, pgo.aggregate_callees
        ));
    }
    seen.questions.lock().unwrap().push(question);
    if ask.label_selector.contains("nobody") {
        return Bytes::new().into_response();
    }
    let packed = std::fs::read(fixture("go-cpu.pb.gz")).unwrap();
    pprof::gunzip(&packed.into(), 1 << 20).unwrap().into_response()
}

async fn merge_stacktraces(body: Bytes) -> Response {
    let ask: querier::SelectMergeStacktracesRequest = connect::decode(Codec::Proto, body).unwrap();
    let mut tree = Tree::by_file();
    let frame = FrameRef {
        function: "main.work",
        file: "main.go",
        line: 7,
        mapping: "app",
    };
    tree.insert([frame], 3_000_000_000);
    let graph = tree.to_flamegraph(0);
    let graph = if ask.frame_details {
        detailed_flamegraph_message(graph)
    } else {
        flamegraph_message(graph)
    };
    let answer = querier::SelectMergeStacktracesResponse {
        flamegraph: Some(graph),
        ..Default::default()
    };
    connect::encode(Codec::Proto, &answer).into_response()
}

async fn sql(headers: HeaderMap, body: String) -> Response {
    let accepted = headers
        .get("accept")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    match body.as_str() {
        "SELECT 1 AS one" if accepted.starts_with("text/csv") => "one\r\n1\r\n".into_response(),
        "SELECT 1 AS one" if accepted == "application/json" => "[\n{\"one\":1}\n]\n".into_response(),
        other => {
            let error = format!(r#"{{"code":"invalid_argument","message":"cannot parse `{other}`"}}"#);
            (StatusCode::BAD_REQUEST, error).into_response()
        }
    }
}

/// Starts the mock under the prefix `/profile` and returns its URL.
async fn start(seen: Seen) -> String {
    // Only the first test installs rustls's crypto provider. Later calls return an error.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let routes = Router::new()
        .route("/push.v1.PusherService/Push", post(push))
        .route("/querier.v1.QuerierService/SelectMergeProfile", post(merge_profile))
        .route(
            "/querier.v1.QuerierService/SelectMergeStacktraces",
            post(merge_stacktraces),
        )
        .route("/api/v1/sql", post(sql))
        .with_state(seen);
    let router = Router::new().nest("/profile", routes);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/profile", listener.local_addr().unwrap());
    tokio::spawn(serve(listener, router));
    url
}

/// Serves until the test's runtime ends.
async fn serve(listener: tokio::net::TcpListener, router: Router) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let stream = hyper_util::rt::TokioIo::new(stream);
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(stream, service)
                .await;
        });
    }
}

/// Parses a command line as the program does.
fn parse(words: &[&str]) -> Command {
    Cli::try_parse_from(["alluvium"].iter().chain(words)).unwrap().command
}

#[tokio::test]
async fn top_prints_the_merged_profile_of_the_question() {
    let seen = Seen::default();
    let url = start(seen.clone()).await;
    let ask = |selector: &'static str| {
        let words = ["top", selector, "--url", &url, "-n", "2", "--tenant", "acme"];
        match parse(&words) {
            Command::Top(args) => args,
            _ => unreachable!(),
        }
    };
    let text = top::table(&ask(r#"cpu{service_name=~"shop.*"}"#)).await.unwrap();
    assert!(
        text.starts_with("File: busy\n") && text.contains("\nType: cpu\n"),
        "{text}"
    );
    assert!(text.contains("  sort.partition_func\n"), "{text}");
    let question = r#"process_cpu:cpu:nanoseconds:cpu:nanoseconds {service_name=~"shop.*"} Some("acme")"#;
    assert_eq!(*seen.questions.lock().unwrap(), [question]);
    let error = top::table(&ask(r#"cpu{a="nobody"}"#)).await.unwrap_err().to_string();
    assert!(error.starts_with("no samples of process_cpu"), "{error}");
}

#[tokio::test]
async fn a_merge_for_the_compiler_of_go_says_what_to_keep() {
    let seen = Seen::default();
    let url = start(seen.clone()).await;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("default.pgo");
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(["pgo", "{a=\"b\"}", "--url", &url, "--keep-locations", "7", "-o"])
        .arg(&out)
        .output()
        .await
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let question = r#"process_cpu:cpu:nanoseconds:cpu:nanoseconds {a="b"} None for Go, 7 locations, true"#;
    assert_eq!(*seen.questions.lock().unwrap(), [question]);
    let plain = pprof::gunzip(&std::fs::read(&out).unwrap().into(), 1 << 20).unwrap();
    let profile = pprof::decode(&plain).unwrap();
    assert!(profile.functions.iter().any(|function| function.start_line > 0));
}

#[tokio::test]
async fn a_flame_graph_is_drawn_with_file_and_line() {
    let url = start(Seen::default()).await;
    let Command::Flamegraph(args) = parse(&["flamegraph", "{}", "--type", "cpu", "--url", &url]) else {
        unreachable!()
    };
    let svg = flamegraph::draw(&args).await.unwrap();
    assert!(
        svg.contains("main.work\ntotal 3 s (100%), self 3 s (100%)\nmain.go:7\napp"),
        "{svg}"
    );
}

#[tokio::test]
async fn files_are_uploaded_and_a_refused_one_is_named() {
    let seen = Seen::default();
    let url = start(seen.clone()).await;
    let (cpu, heap) = (fixture("go-cpu.pb.gz"), fixture("go-allocs.pb.gz"));
    let (cpu, heap) = (cpu.to_str().unwrap(), heap.to_str().unwrap());
    let label = |value: &str| format!("service_name={value}");
    let arguments = |service: &str| {
        let words = ["upload", cpu, heap, "/none", "--url", &url, "--label", &label(service)];
        match parse(&words) {
            Command::Upload(args) => args,
            _ => unreachable!(),
        }
    };
    let refused = |service: &'static str| {
        let arguments = arguments(service);
        async move {
            let mut refused = Vec::new();
            let sent = upload::upload(&arguments, |sent| {
                refused.extend(sent.result.err().map(|error| (sent.path, format!("{error:#}"))));
            });
            sent.await.unwrap();
            refused.sort();
            refused
        }
    };
    let some = refused("shop").await;
    assert_eq!(some.len(), 1);
    assert_eq!(some[0].0, PathBuf::from("/none"));
    let mut names: Vec<String> = seen
        .profiles
        .lock()
        .unwrap()
        .iter()
        .map(|profile| profile.labels.to_string())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            r#"{__name__="memory", service_name="shop"}"#,
            r#"{__name__="process_cpu", service_name="shop"}"#
        ]
    );
    let all = refused("refused").await;
    assert_eq!(all.len(), 3);
    assert!(all[1].1.ends_with("series 0: out of the ingestion window"), "{all:?}");
    assert!(upload::run(arguments("refused")).await.is_err());
}

#[tokio::test]
async fn a_folder_is_imported_whatever_the_formats_in_it_are() {
    let seen = Seen::default();
    let url = start(seen.clone()).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("more")).unwrap();
    let node = r#"{"nodes": [{"id": 1, "callFrame": {"functionName": "main"}}], "samples": [1, 1],
        "timeDeltas": [0, 7], "startTime": 0, "endTime": 9}"#;
    for (name, content) in [
        ("shop.folded", "main;work 3\n"),
        ("more/web.cpuprofile", node),
        ("more/notes.txt", "Notes of today"),
    ] {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    let Command::Upload(args) = parse(&["import", folder.path().to_str().unwrap(), "--url", &url]) else {
        unreachable!()
    };
    let error = upload::run(args).await.unwrap_err().to_string();
    assert_eq!(error, "1 of 3 files were refused");
    let mut found: Vec<(String, i64)> = Vec::new();
    for raw in seen.profiles.lock().unwrap().iter() {
        let plain = pprof::gunzip(&raw.pprof, 1 << 20).unwrap();
        let profile = pprof::decode(&plain).unwrap();
        assert!(profile.time_nanos > 0, "a profile without a time gets the current time");
        found.push((raw.labels.to_string(), profile.values.iter().sum()));
    }
    found.sort();
    let label = |text: &str| text.to_owned();
    assert_eq!(
        found,
        [
            (label(r#"{__name__="process_cpu", service_name="shop"}"#), 3),
            (label(r#"{__name__="wall", service_name="web"}"#), 9_000)
        ]
    );
}

#[tokio::test]
async fn sql_is_answered_in_the_form_asked_for() {
    let url = start(Seen::default()).await;
    let Command::Sql(args) = parse(&["sql", "SELECT 1", "--url", &url]) else {
        unreachable!()
    };
    let client = SqlClient::Server(SqlServer::new(&args.server).await.unwrap());
    let statement = " SELECT 1 AS one;\n";
    assert_eq!(
        client.ask(statement, Format::Table).await.unwrap(),
        b"one\n---\n  1\n(1 row)\n"
    );
    assert_eq!(client.ask(statement, Format::Csv).await.unwrap(), b"one\r\n1\r\n");
    let error = client.ask("SELEKT", Format::Json).await.unwrap_err().to_string();
    assert_eq!(error, "cannot parse `SELEKT`");
}
