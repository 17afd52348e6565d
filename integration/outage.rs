//! The real program as a collector. It receives an hour's worth of profiles while its endpoint is unavailable.
//!
//! Scenario: `pyroscope.receive_http` accepts pushes for `pyroscope.write`, whose endpoint responds with 503. The test
//! kills the collector in the middle and starts it again, and the collector accepts the remaining pushes. Guarantee:
//! when the endpoint is available again, it receives every acknowledged profile exactly once, in push order.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alluvium_profile::{Labels, RawProfile};
use alluvium_wire::call::Caller;
use alluvium_wire::connect::{self, Codec};
use alluvium_wire::proto::push::{PushRequest, PushResponse};
use alluvium_wire::push::{PushBatch, PushClient};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;

use crate::program::{Address, PATIENCE, Program, client};

/// Number of profiles of an hour at 33 per second.
const HOUR: u64 = 33 * 3600;
/// Number of profiles in a push.
const PUSH: usize = 100;

/// A server that is available at times. It stores the numbers of the accepted profiles in the order of arrival.
#[derive(Clone, Default)]
pub(crate) struct Sink {
    pub(crate) is_there: Arc<AtomicBool>,
    taken: Arc<Mutex<Vec<u64>>>,
}

impl Sink {
    /// Serves while the test's runtime exists. Returns the URL.
    pub(crate) async fn serve(&self) -> String {
        let routes = Router::new()
            .route("/push.v1.PusherService/Push", post(take))
            .layer(DefaultBodyLimit::disable())
            .with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        url
    }

    pub(crate) fn taken(&self) -> Vec<u64> {
        self.taken.lock().unwrap().clone()
    }

    /// Waits until the last profile that the server has accepted is the one with this number.
    pub(crate) async fn has(&self, number: u64, program: &mut Program) {
        let deadline = Instant::now() + PATIENCE;
        while self.taken.lock().unwrap().last() != Some(&number) {
            program.check();
            assert!(
                Instant::now() < deadline,
                "profile {number} did not arrive, the last one is {:?}\n{}",
                self.taken().last(),
                program.tail()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn take(State(sink): State<Sink>, body: Bytes) -> Response {
    if !sink.is_there.load(Ordering::SeqCst) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let request: PushRequest = connect::decode(Codec::Proto, body).unwrap();
    let (profiles, _) = PushBatch::from_request(request).unwrap().split();
    let numbers = profiles
        .iter()
        .map(|profile| profile.labels.get("number").unwrap().parse::<u64>().unwrap());
    sink.taken.lock().unwrap().extend(numbers);
    connect::encode(Codec::Proto, &PushResponse::default()).into_response()
}

/// Returns a profile with its number as a label. Neither collector nor server reads its bytes.
pub(crate) fn numbered(number: u64, pprof: &Bytes) -> RawProfile {
    let number = number.to_string();
    RawProfile {
        labels: Labels::from_pairs([
            ("__name__", "cpu"),
            ("number", number.as_str()),
            ("service_name", "away"),
        ]),
        id: "".into(),
        pprof: pprof.clone(),
    }
}

pub(crate) fn pusher(receiver: &str) -> PushClient {
    PushClient::new(Caller::new(client(), format!("http://{receiver}").parse().unwrap()))
}

/// Starts a collector that stores its files in a storage folder and sends to these endpoints. Returns the address of
/// its receiver, its own address, and its process.
pub(crate) async fn collector(storage: &Path, endpoints: &[&str], log: &Path) -> (Address, Address, Program) {
    let (own, receiver) = (Address::keep(), Address::keep());
    let endpoints: String = endpoints
        .iter()
        .map(|url| {
            format!(
                "endpoint {{\n url = \"{url}\"\n min_backoff_period = \"20ms\"\n max_backoff_period = \"100ms\"\n}}\n"
            )
        })
        .collect();
    let text = format!(
        r#"
        pyroscope.receive_http "in" {{
            http {{
                listen_address = "127.0.0.1"
                listen_port    = {}
            }}
            forward_to = [pyroscope.write.out.receiver]
        }}
        pyroscope.write "out" {{
            {endpoints}
        }}
        "#,
        receiver.port()
    );
    let config = log.with_extension("alloy");
    std::fs::write(&config, text).unwrap();
    let arguments = [
        "run",
        &config.to_string_lossy(),
        "--server.http.listen-addr",
        &own,
        "--storage.path",
        &storage.to_string_lossy(),
    ];
    let mut program = Program::alluvium(&arguments, log);
    program.ready(&client(), &format!("http://{own}/-/ready")).await;
    (receiver, own, program)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_hour_without_the_endpoint_and_a_kill_in_it_lose_and_repeat_nothing_and_keep_the_order() {
    let folder = tempfile::tempdir().unwrap();
    let (storage, log) = (folder.path().join("data"), folder.path().join("log"));
    let sink = Sink::default();
    let url = sink.serve().await;
    let pprof = Bytes::from_static(&[0x0a, 4, 8, 1, 16, 2]);
    let push = async |receiver: &str, numbers: RangeInclusive<u64>| {
        let pusher = pusher(receiver);
        let profiles: Vec<RawProfile> = numbers.map(|number| numbered(number, &pprof)).collect();
        for some in profiles.chunks(PUSH) {
            pusher.push(some).await.unwrap();
        }
    };
    let (receiver, _own, mut program) = collector(&storage, &[&url], &log).await;
    push(&*receiver, 1..=HOUR / 2).await;
    program.kill();
    let (receiver, _own, mut program) = collector(&storage, &[&url], &log).await;
    push(&*receiver, HOUR / 2 + 1..=HOUR).await;
    assert!(sink.taken().is_empty());
    sink.is_there.store(true, Ordering::SeqCst);
    sink.has(HOUR, &mut program).await;
    assert!(program.terminate().success(), "{}", program.tail());
    let taken = sink.taken();
    let wrong = taken.iter().zip(1_u64..).find(|(taken, number)| *taken != number);
    assert_eq!((taken.len() as u64, wrong), (HOUR, None));
}
