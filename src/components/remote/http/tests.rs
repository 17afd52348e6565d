//! Tests with a server on this machine, whose responses become exports.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body as HttpBody;
use axum::http::{Request, StatusCode};
use parking_lot::Mutex;

use crate::common::testing::{Body, Recorder, Running, Server, eventually, serve};
use crate::remote::http::{DEFINITION, HttpArguments};
use alluvium_base::net::hostname;
use alluvium_base::spread::Spread;
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;

/// A server with its next response, the number of received requests, and a description of the last request.
#[derive(Default)]
struct Peer {
    answer: Mutex<(StatusCode, Vec<u8>)>,
    request_count: AtomicUsize,
    last: Mutex<String>,
}

impl Peer {
    async fn start() -> (Arc<Self>, String, Server) {
        let peer = Arc::new(Self::default());
        let shared = peer.clone();
        let router = Router::new().fallback(move |request: Request<HttpBody>| {
            let peer = shared.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
                let header = |name: &str| match parts.headers.get(name) {
                    Some(value) => value.to_str().unwrap().to_owned(),
                    None => "-".to_owned(),
                };
                *peer.last.lock() = format!(
                    "{} {} {} {} {} {}",
                    parts.method,
                    parts.uri,
                    header("user-agent"),
                    header("authorization"),
                    header("x-one"),
                    String::from_utf8_lossy(&body)
                );
                peer.request_count.fetch_add(1, Ordering::SeqCst);
                peer.answer.lock().clone()
            }
        });
        let (url, server) = serve(router).await;
        (peer, url, server)
    }

    fn say(&self, status: StatusCode, text: &str) {
        *self.answer.lock() = (status, text.as_bytes().to_vec());
    }
}

fn body(url: &str) -> Body {
    Body::new().text("url", url)
}

/// Arguments with a short time between requests. The timeout is shorter still, because it must be less than that time.
fn often(url: &str) -> Body {
    body(url).text("poll_frequency", "1s").text("poll_timeout", "990ms")
}

/// Builds the component on a thread that may block, as the engine does.
async fn start(recorder: &Recorder, body: Body) -> Running<HttpArguments> {
    let recorder = recorder.clone();
    tokio::task::spawn_blocking(move || Running::start(&DEFINITION, &recorder, &body))
        .await
        .unwrap()
}

async fn update(running: &Running<HttpArguments>, body: Body) -> Result<(), String> {
    let component = running.component.clone();
    let update = move || component.update(body.arguments(&DEFINITION));
    tokio::task::spawn_blocking(update)
        .await
        .unwrap()
        .map_err(|error| error.to_string())
}

async fn refused(body: Body) -> String {
    let build = move || {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::new("remote.http.test", folder.path());
        match DEFINITION.build.unwrap()(recorder.context, body.arguments(&DEFINITION)) {
            Ok(_) => panic!("built"),
            Err(error) => error.to_string(),
        }
    };
    tokio::task::spawn_blocking(build).await.unwrap()
}

#[tokio::test]
async fn the_answer_is_followed_and_bad_answers_leave_the_last_one() {
    let (peer, url, _server) = Peer::start().await;
    peer.say(StatusCode::OK, " one\n\n");
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("remote.http.test", folder.path());
    let running = start(&recorder, often(&format!("{url}/value"))).await;
    assert_eq!(recorder.export("content"), Value::string("one"));
    peer.say(StatusCode::OK, "two");
    eventually("the new answer", || recorder.export("content") == Value::string("two")).await;
    peer.say(StatusCode::INTERNAL_SERVER_ERROR, "three");
    eventually("the trouble", || recorder.health().0 == HealthState::Unhealthy).await;
    assert!(recorder.health().1.contains("500"), "{:?}", recorder.health());
    assert_eq!(recorder.export("content"), Value::string("two"));
    *peer.answer.lock() = (StatusCode::OK, b"\xff".to_vec());
    eventually("the failure for bad text", || recorder.health().1.contains("not UTF-8")).await;
    assert_eq!(recorder.export("content"), Value::string("two"));
    peer.say(StatusCode::OK, "four");
    eventually("the end of the trouble", || {
        recorder.export("content") == Value::string("four")
    })
    .await;
    eventually("health", || recorder.health().0 == HealthState::Healthy).await;
    running.stop().await;
}

#[tokio::test]
async fn the_request_is_what_the_arguments_say_and_an_update_asks_once() {
    let (peer, url, _server) = Peer::start().await;
    peer.say(StatusCode::OK, "hush");
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("remote.http.test", folder.path());
    let first = body(&format!("{url}/a?b=c"))
        .text("method", "POST")
        .text("body", "question")
        .with("headers", Value::object([("X-One", Value::string("1"))]))
        .with("is_secret", Value::Bool(true))
        .block(
            "client",
            Body::new().with("bearer_token", Value::Secret("token".into())),
        );
    let running = start(&recorder, first).await;
    assert_eq!(recorder.export("content"), Value::Secret("hush".into()));
    assert_eq!(*peer.last.lock(), "POST /a?b=c alluvium-test Bearer token 1 question");
    let agent = Value::object([("User-Agent", Value::string("other"))]);
    update(&running, body(&format!("{url}/d")).with("headers", agent))
        .await
        .unwrap();
    assert_eq!(*peer.last.lock(), "GET /d other - - ");
    assert_eq!(recorder.export("content"), Value::string("hush"));
    peer.say(StatusCode::NOT_FOUND, "");
    let error = update(&running, body(&format!("{url}/e"))).await.unwrap_err();
    assert!(error.contains("404"), "{error}");
    assert_eq!(
        peer.request_count.load(Ordering::SeqCst),
        3,
        "one request for each set of arguments"
    );
    assert_eq!(recorder.export("content"), Value::string("hush"));
    running.stop().await;
}

#[tokio::test]
async fn what_cannot_be_had_at_the_start_is_not_loaded_and_no_error_tells_the_password() {
    let (peer, url, _server) = Peer::start().await;
    peer.say(StatusCode::FORBIDDEN, "");
    let with_password = url.replace("http://", "http://user:psst@");
    let error = refused(body(&format!("{with_password}/x?key=hidden"))).await;
    assert!(error.contains("403"), "{error}");
    assert!(!error.contains("psst") && !error.contains("hidden"), "{error}");
    let error = refused(body("http://user:psst@127.0.0.1:1/x")).await;
    assert!(error.contains("cannot fetch") && !error.contains("psst"), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_in_time_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let short_timeout = body(&format!("http://{address}/")).text("poll_timeout", "20ms");
    let error = refused(short_timeout).await;
    assert!(error.contains("no response within the timeout"), "{error}");
}

#[test]
fn the_arguments_are_checked() {
    let check = |body: Body| {
        let error = body.read(&DEFINITION).err()?;
        error.split_once(": ").map(|(path, _)| path.to_owned())
    };
    let valid_body = || body("http://localhost/x");
    assert_eq!(check(valid_body()), None);
    assert_eq!(
        check(valid_body().text("poll_frequency", "0s")).as_deref(),
        Some("poll_frequency")
    );
    assert_eq!(
        check(valid_body().text("poll_timeout", "0s")).as_deref(),
        Some("poll_timeout")
    );
    assert_eq!(
        check(valid_body().text("poll_timeout", "1m")).as_deref(),
        Some("poll_timeout")
    );
    assert_eq!(check(valid_body().text("method", "G T")).as_deref(), Some("method"));
    assert_eq!(check(body("ftp://localhost/x")).as_deref(), Some("url"));
    let headers = Value::object([("a b", Value::string("1"))]);
    assert_eq!(check(valid_body().with("headers", headers)).as_deref(), Some("headers"));
    let two_credentials = Body::new()
        .with("bearer_token", Value::Secret("x".into()))
        .text("bearer_token_file", "y");
    let path = check(valid_body().block("client", two_credentials));
    assert!(path.is_some_and(|path| path.starts_with("client")));
}

#[tokio::test]
async fn the_second_fetch_is_shifted_so_that_a_fleet_is_spread_over_the_interval() {
    let times: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let recorded = times.clone();
    let handler = move || {
        recorded.lock().push(Instant::now());
        std::future::ready("text")
    };
    let (url, _server) = serve(Router::new().fallback(handler)).await;
    let interval = Duration::from_millis(200);
    let id = (0..1_000)
        .map(|number| format!("remote.http.test_{number}"))
        .find(|id| Spread::new(&hostname(), id).first_pause(interval) > interval * 5 / 4)
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(&id, folder.path());
    let body = body(&url).text("poll_frequency", "200ms").text("poll_timeout", "199ms");
    let running = start(&recorder, body).await;
    eventually("three fetches", || times.lock().len() >= 3).await;
    let times = times.lock().clone();
    let pause = Spread::new(&hostname(), &id).first_pause(interval);
    assert!(
        times[1] - times[0] >= pause && times[2] - times[1] >= interval,
        "{times:?}"
    );
    running.stop().await;
}
