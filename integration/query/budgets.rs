//! Limits on the resources of the query engine that a client can take: query slots, memory, regular expressions.
//!
//! Scenario: a real port, and clients that never read, query everything, or send arbitrarily long selectors. Guarantee:
//! an honest client receives responses, and each refusal names the limit.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use alluvium::query::{Detail, QueryEngine, QueryError, QueryLimits};
use alluvium::server::ServerOptions;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::fixture::{CPU, ENDLESS, NOON, OwnedFrame, TestStore, profile};
use super::{engine_with, minute, short, stacks_of, two_services};
use crate::harness::{Nowhere, TestServer, tenants};

async fn serve(engine: QueryEngine) -> TestServer {
    let options = ServerOptions {
        multi_tenant: true,
        ..ServerOptions::default()
    };
    TestServer::start_over(Arc::new(Nowhere), engine, options, Default::default()).await
}

/// Returns status and text of a query of tenant `one`.
async fn ask(server: &TestServer, call: &str, body: Value) -> (u16, String) {
    let request = server.post(&format!("/querier.v1.QuerierService/{call}"));
    let request = request
        .header("x-scope-orgid", "one")
        .header("content-type", "application/json");
    let request = request.body(body.to_string());
    // The client requests the response without compression, because the compressed response would be short.
    let request = request.header("accept-encoding", "identity");
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn sql(server: &TestServer, text: &str) -> (u16, String) {
    let request = server.post("/api/v1/sql").header("x-scope-orgid", "one");
    let response = request
        .header("content-type", "text/plain")
        .body(text.to_owned())
        .send();
    let response = response.await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

// The result of this query has hundreds of megabytes.
const LARGE: &str = "SELECT repeat('x', 60000) FROM samples a, samples b, samples c";

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_never_read_their_answers_keep_no_place() {
    let limits = QueryLimits {
        max_concurrent_queries: 2,
        ..short(Duration::from_secs(4))
    };
    let server = serve(engine_with(two_services(), limits)).await;
    let mut silent = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        let request = format!(
            "POST /api/v1/sql HTTP/1.1\r\nhost: x\r\nx-scope-orgid: one\r\ncontent-type: text/plain\r\
             \ncontent-length: {}\r\n\r\n{LARGE}",
            LARGE.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        // The response has begun, and the client stops reading.
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
        silent.push(stream);
    }
    // The query waits for a slot at most until the other queries reach their timeout.
    let (status, text) = sql(&server, "SELECT count(*) AS n FROM samples").await;
    assert!(status == 200 && text.contains("20"), "{status} {text}");
    for mut stream in silent {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        assert!(!rest.ends_with(b"0\r\n\r\n"), "a truncated response looks complete");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_share_their_places_and_sql_has_others() {
    let limits = QueryLimits {
        max_concurrent_queries: 3,
        ..short(Duration::from_secs(4))
    };
    let engine = engine_with(two_services(), limits);
    let server = serve(engine.clone()).await;
    let range = json!({"start": NOON, "end": NOON + 60_000});
    assert_eq!(ask(&server, "LabelNames", range.clone()).await.0, 200);
    // Three queries hold the slots and three wait for them, so the query below gets no slot before its timeout.
    let mut held = Vec::new();
    for number in 0..6 {
        if number == 3 {
            // Without this pause, the first three queries would free their slots at the moment at which the last three
            // stop waiting, and the query below could get a slot.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let engine = engine.clone();
        let mut endless = Box::pin(async move {
            let work = std::future::pending::<Result<(), QueryError>>();
            engine.admitted(work).await
        });
        assert!(futures::poll!(&mut endless).is_pending());
        held.push(tokio::spawn(endless));
    }
    let (refused, beside) = tokio::join!(
        ask(&server, "LabelNames", range.clone()),
        sql(&server, "SELECT 1 AS one")
    );
    assert_eq!(beside.0, 200);
    let (status, text) = refused;
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("3 queries") && text.contains("unavailable"), "{text}");
    for task in &held {
        task.abort();
    }
    assert_eq!(ask(&server, "LabelNames", range).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_in_memory_are_charged_to_the_question() {
    let limits = QueryLimits {
        max_query_memory_bytes: 1 << 20,
        ..QueryLimits::default()
    };
    let store = TestStore::new();
    store.add(profile(
        "one",
        &[("service_name", "shop")],
        CPU,
        NOON,
        &[(&[("work", "work.go", 1)], 1)],
    ));
    let given = store.to_endless_head();
    let engine = engine_with(store, limits);
    let server = serve(engine.clone()).await;
    let range = json!({"start": NOON, "end": NOON + 60_000});
    let mut stacks = range.clone();
    stacks["profileTypeID"] = CPU.into();
    stacks["labelSelector"] = "{}".into();
    for (call, body) in [
        ("LabelNames", &range),
        ("ProfileTypes", &range),
        ("SelectMergeStacktraces", &stacks),
        ("SelectMergeProfile", &stacks),
    ] {
        given.store(0, Ordering::Relaxed);
        let (status, text) = ask(&server, call, body.clone()).await;
        assert!(
            status == 400 && text.contains("sql.max_query_memory"),
            "{call}: {status} {text}"
        );
        assert!(given.load(Ordering::Relaxed) < ENDLESS / 2, "{call}");
    }
    for text in [
        "SELECT count(DISTINCT stack) FROM samples",
        "SELECT * FROM stacks",
        "SELECT count(*) FROM flat WHERE service_name = 'shop'",
    ] {
        given.store(0, Ordering::Relaxed);
        let (status, answer) = sql(&server, text).await;
        assert!(
            status == 400 && answer.contains("sql.max_query_memory"),
            "{text}: {status} {answer}"
        );
        assert!(given.load(Ordering::Relaxed) < ENDLESS / 2, "{text}");
    }
    // A query succeeds, so all memory was released.
    assert_eq!(sql(&server, "SELECT 1 AS one").await.0, 200);
}

/// Returns a store with a stack of 400 functions in one file with a long name. A detailed flame graph repeats the name
/// for each function: 24 MB.
fn wide() -> Arc<TestStore> {
    let store = TestStore::new();
    let mut wide = profile("one", &[("service_name", "shop")], CPU, NOON, &[]);
    let file = "f".repeat(60_000);
    let frame = |number: usize| OwnedFrame {
        function: format!("function_{number}"),
        file: file.clone(),
        ..OwnedFrame::default()
    };
    wide.samples.push(((0..400).map(frame).collect(), 1, None));
    store.add(wide).to_files();
    store
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_nobody_reads_is_counted_and_given_back() {
    let engine = engine_with(wide(), short(Duration::from_secs(10)));
    let mut options = ServerOptions {
        multi_tenant: true,
        ..ServerOptions::default()
    };
    options.limits.answers_bytes = 32 << 20;
    let server = TestServer::start_over(Arc::new(Nowhere), engine, options, Default::default()).await;
    let question = json!({
        "start": NOON, "end": NOON + 60_000, "profileTypeID": CPU, "labelSelector": "{}", "frameDetails": true
    });
    let call = "SelectMergeStacktraces";
    let (status, text) = ask(&server, call, question.clone()).await;
    assert!(status == 200 && text.len() > 24_000_000, "{status} {}", text.len());
    // The receive buffer is small. Otherwise, the system's buffers alone would hold the whole response.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    let mut silent = socket.connect(server.address().parse().unwrap()).await.unwrap();
    let body = question.to_string();
    let request = format!(
        "POST /querier.v1.QuerierService/{call} HTTP/1.1\r\nhost: x\r\nx-scope-orgid: one\r\
         \ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    silent.write_all(request.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    silent.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    let mut was_refused = false;
    loop {
        let (status, text) = ask(&server, call, question.clone()).await;
        match status {
            200 => break,
            503 => assert!(text.contains("not read yet"), "{text}"),
            _ => panic!("{status} {text}"),
        }
        was_refused = true;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(was_refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_charged_as_often_as_an_answer_repeats_it() {
    let store = wide();
    let limits = QueryLimits {
        max_query_memory_bytes: 8 << 20,
        ..QueryLimits::default()
    };
    let engine = engine_with(store.clone(), limits);
    let question = || stacks_of(CPU, "{}", minute());
    assert_eq!(
        engine
            .flamegraph(&tenants("one"), question(), 0, Detail::Names)
            .await
            .unwrap()
            .total,
        1
    );
    let told = engine
        .flamegraph(&tenants("one"), question(), 0, Detail::Files)
        .await
        .unwrap_err();
    assert!(matches!(told, QueryError::Limit(_)), "{told:?}");
    for text in [
        "SELECT frames FROM flat".to_owned(),
        "SELECT count(*) AS n FROM flat WHERE stack_contains(frames, 'x')".to_owned(),
        format!("SELECT count(*) AS n FROM flamegraph('{CPU}{{}}', '2026-11-20', '2026-11-21')"),
        format!("SELECT count(*) AS n FROM top('{CPU}{{}}', '2026-11-20', '2026-11-21')"),
    ] {
        let answer = match engine.sql(&tenants("one"), &text).await {
            Ok(result) => result.collect().await.map(|_| ()),
            Err(error) => Err(error),
        };
        assert!(matches!(answer, Err(QueryError::Limit(_))), "{text}: {answer:?}");
    }
    let roomy = engine_with(store, QueryLimits::default());
    let graph = roomy
        .flamegraph(&tenants("one"), question(), 0, Detail::Files)
        .await
        .unwrap();
    assert_eq!((graph.total, graph.levels.len()), (1, 401));
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_and_lists_of_a_request_are_bounded() {
    let server = serve(engine_with(two_services(), QueryLimits::default())).await;
    let with = |matchers: Vec<String>| json!({"start": NOON, "end": NOON + 60_000, "matchers": matchers});
    let condition = r#"region=~"eu|us","#;
    let many = |count: usize| format!("{{{}}}", condition.repeat(count));
    assert_eq!(ask(&server, "Series", with(vec![many(16), many(16)])).await.0, 200);
    for (matchers, reason) in [
        (vec![many(33)], "the limit is 32"),
        (vec![many(16), many(17)], "the limit is 32"),
        (vec!["{}".to_owned(); 1001], "1000 selectors, not 1001"),
        (
            vec![format!(r#"{{region="{}"}}"#, "x".repeat(70_000))],
            "the limit is 65536",
        ),
        (
            vec![format!(r#"{{region="{}"}}"#, "x".repeat(40_000)); 2],
            "the limit is 65536",
        ),
        (
            vec![r#"{region=~"(a{1000}){1000}"}"#.to_owned()],
            "invalid repeat count: `{1000}`",
        ),
        (vec![r#"{region=~"\\pL{500}"}"#.to_owned()], "size limit of 1048576"),
    ] {
        let (status, text) = ask(&server, "Series", with(matchers)).await;
        assert!(status == 400 && text.contains(reason), "{reason}: {status} {text}");
    }
    let mut stacks = json!({"start": NOON, "end": NOON + 60_000, "profileTypeID": CPU, "labelSelector": "{}"});
    stacks["profileIdSelector"] = vec!["x"; 1001].into();
    let (status, text) = ask(&server, "SelectMergeStacktraces", stacks).await;
    assert!(status == 400 && text.contains("1000 profile ids"), "{status} {text}");
}
