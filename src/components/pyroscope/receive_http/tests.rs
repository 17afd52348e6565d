//! Tests of the component from outside: requests arrive over a socket, and profiles arrive at a sink.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use parking_lot::Mutex;
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::common::serving::grpc::testing::{framed, post_http1, post_http2, send};
use crate::common::testing::{Body, Collector, Recorder, Running, eventually, receivers};
use crate::pyroscope::receive_http::DEFINITION;
use crate::pyroscope::receive_http::arguments::ReceiveArguments;
use alluvium_base::BoxFuture;
use alluvium_lang::value::{Number, Value};
use alluvium_pipeline::component::HealthState;
use alluvium_profile::sink::Receiver;
use alluvium_profile::upload::Upload;
use alluvium_profile::{Labels, ProfileSink, RawProfile, RefusedProfile, SinkError, SinkErrorKind, pprof};
use alluvium_wire::client::{ClientOptions, Connections, HttpClient, Pem};
use alluvium_wire::connect::{Codec, encode};
use alluvium_wire::proto::health::HealthCheckRequest;
use alluvium_wire::proto::push::PushRequest;
use alluvium_wire::push::to_request;

const PUSH: &str = "push.v1.PusherService/Push";
const HEALTH: &str = "grpc.health.v1.Health/Check";
const PPROF: &[u8] = &[0x0a, 4, 8, 1, 16, 2];

/// A sink that refuses all profiles with a given kind of error.
struct Refusing(Mutex<SinkErrorKind>);

impl ProfileSink for Refusing {
    fn append(&self, profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<RefusedProfile>> {
        let error = SinkError::new(*self.0.lock(), "told to");
        Box::pin(async move { error.for_all(profiles.len()) })
    }
}

/// A component on a free port.
struct Port {
    recorder: Recorder,
    running: Running<ReceiveArguments>,
    body: Body,
}

impl Port {
    async fn open(sink: Receiver) -> Self {
        Self::with(sink, http(), Body::new()).await
    }

    async fn with(sink: Receiver, http: Body, rest: Body) -> Self {
        let recorder = Recorder::new("pyroscope.receive_http.test", Path::new("/nonexistent"));
        let body = rest.with("forward_to", receivers([sink])).block("http", http);
        let running = Running::start(&DEFINITION, &recorder, &body);
        eventually("the port", || recorder.health().0 == HealthState::Healthy).await;
        Self {
            recorder,
            running,
            body,
        }
    }

    fn url(&self, path: &str) -> String {
        let health = self.recorder.health().1;
        let (_, addresses) = health.split_once("listening on ").unwrap();
        let address = addresses.split(' ').next().unwrap();
        format!("http://{address}/{path}")
    }

    /// Returns the URL of a path on the gRPC port.
    fn grpc_url(&self, path: &str) -> String {
        let health = self.recorder.health().1;
        let (_, address) = health.split_once(" (http), ").unwrap();
        format!("http://{}/{path}", address.trim_end_matches(" (grpc)"))
    }

    async fn post(&self, path: &str, content_type: &str, body: impl Into<Bytes>) -> (StatusCode, String) {
        let request = client().post(self.url(path)).header("content-type", content_type);
        let response = request.body(body.into()).send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    }
}

fn http() -> Body {
    Body::new()
        .text("listen_address", "127.0.0.1")
        .with("listen_port", Value::Number(Number::Int(0)))
}

/// Returns a block `grpc` with any free port.
fn grpc() -> Body {
    Body::new().text("listen_address", "127.0.0.1")
}

fn number(number: usize) -> Value {
    Value::Number(Number::Int(i64::try_from(number).unwrap()))
}

fn client() -> Connections {
    let options = ClientOptions::new("test".into());
    HttpClient::new(&options).unwrap().client().clone()
}

fn request(name: &str) -> PushRequest {
    to_request(&[RawProfile {
        labels: Labels::from_pairs([("__name__", name), ("zone", "eu")]),
        id: "7b1d".into(),
        pprof: Bytes::from_static(PPROF),
    }])
}

#[tokio::test]
async fn an_upload_of_any_format_goes_on_as_it_came() {
    let sink = Arc::new(Collector::default());
    let port = Port::open(sink.clone()).await;
    for (format, content_type, body) in [
        ("pprof", "multipart/form-data; boundary=x", &b"--x\r\nbroken"[..]),
        ("jfr", "application/octet-stream", b"FLR\0"),
        ("speedscope", "application/json", b"{}"),
        ("tree", "binary/octet-stream+tree", b"\x01a\x02\0"),
        ("of-tomorrow", "", b""),
    ] {
        let path =
            format!("ingest?format={format}&name=shop.cpu%7Bzone%3Deu%7D&from=1&until=2&spyName=gospy&sampleRate=97");
        assert_eq!(
            port.post(&path, content_type, body).await,
            (StatusCode::OK, String::new())
        );
        let profile = sink.profiles().pop().unwrap();
        let expected = r#"{__name__="shop.cpu", service_name="shop.cpu", zone="eu"}"#;
        assert_eq!(profile.labels.to_string(), expected);
        let upload = Upload::read(&profile.pprof).unwrap();
        assert_eq!(upload.body, body);
        assert_eq!(&*upload.content_type, content_type);
        assert_eq!(
            &*upload.query,
            format!("format={format}&from=1&until=2&spyName=gospy&sampleRate=97")
        );
    }
    port.running.stop().await;
}

#[tokio::test]
async fn an_upload_keeps_the_id_that_another_collector_gave_it() {
    let sink = Arc::new(Collector::default());
    let port = Port::open(sink.clone()).await;
    let too_long = "x".repeat(129);
    for (id, status) in [("7b1d", StatusCode::OK), (&*too_long, StatusCode::BAD_REQUEST)] {
        let request = client()
            .post(port.url("ingest?name=shop"))
            .header("x-alluvium-upload-id", id);
        assert_eq!(request.body("a;b 1").send().await.unwrap().status(), status);
    }
    assert_eq!(port.post("ingest?name=shop", "", "a;b 1").await.0, StatusCode::OK);
    let ids: Vec<Arc<str>> = sink.profiles().into_iter().map(|profile| profile.id).collect();
    assert_eq!(ids, ["7b1d".into(), Arc::from("")]);
    port.running.stop().await;
}

#[tokio::test]
async fn a_push_in_either_form_and_compressed_becomes_profiles() {
    let sink = Arc::new(Collector::default());
    let port = Port::open(sink.clone()).await;
    let (proto, json) = (
        encode(Codec::Proto, &request("cpu")),
        encode(Codec::Json, &request("cpu")),
    );
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&proto).unwrap();
    let gzip: Bytes = gzip.finish().unwrap().into();
    for (content_type, encoding, body, answer) in [
        ("application/proto", "identity", proto, ""),
        ("application/proto", "gzip", gzip, ""),
        ("application/json", "identity", json, "{}"),
    ] {
        let request = client()
            .post(port.url(PUSH))
            .header("content-type", content_type)
            .header("content-encoding", encoding);
        let response = request.body(body).send().await.unwrap();
        assert_eq!(
            (response.status(), &response.text().await.unwrap()[..]),
            (StatusCode::OK, answer)
        );
        let profile = sink.profiles().pop().unwrap();
        let expected = r#"{__name__="cpu", service_name="cpu", zone="eu"}"#;
        assert_eq!((profile.labels.to_string().as_str(), &*profile.id), (expected, "7b1d"));
        assert_eq!(profile.pprof, PPROF);
    }
    assert_eq!(sink.profiles().len(), 3);
    port.running.stop().await;
}

#[tokio::test]
async fn a_push_by_grpc_or_grpc_web_becomes_a_profile_too() {
    let sink = Arc::new(Collector::default());
    let port = Port::open(sink.clone()).await;
    let url = port.url(PUSH);
    let message = request("cpu").encode_to_vec();
    let plain = || framed(false, &message);
    let packed = framed(true, &pprof::gzip(&message));
    let grpc = ("content-type", "application/grpc");
    let (gzip, te) = (("grpc-encoding", "gzip"), ("te", "trailers"));
    for answer in [
        send(post_http2(&url), &[grpc], plain()).await,
        send(post_http2(&url), &[grpc, gzip], packed).await,
        // Connect's client for Go sends such a request to an `http:` address.
        send(post_http1(&url), &[grpc, te], plain()).await,
    ] {
        assert_eq!((answer.status, &*answer.body), (200, &[0; 5][..]));
        assert_eq!(answer.trailers["grpc-status"], "0");
    }
    let web = send(
        post_http1(&url),
        &[("content-type", "application/grpc-web+proto")],
        plain(),
    )
    .await;
    assert_eq!((web.status, &web.body[..6]), (200, &[0, 0, 0, 0, 0, 0x80][..]));
    assert!(String::from_utf8_lossy(&web.body).contains("grpc-status:0"));
    let kind = "application/grpc-web-text+proto";
    let (kind, accept) = (("content-type", kind), ("accept", kind));
    let text = send(post_http1(&url), &[kind, accept], STANDARD.encode(plain())).await;
    assert!(text.body.starts_with(b"AAAAAAA"), "{:?}", text.body);
    let profiles = sink.profiles();
    assert_eq!(profiles.len(), 5);
    for profile in profiles {
        let expected = r#"{__name__="cpu", service_name="cpu", zone="eu"}"#;
        assert_eq!((profile.labels.to_string().as_str(), &*profile.id), (expected, "7b1d"));
        assert_eq!(profile.pprof, PPROF);
    }
    let metrics = port.recorder.context.metrics.encode();
    assert!(
        metrics.contains("pyroscope_receive_http_requests_total{route=\"push\",status=\"200\"} 5"),
        "{metrics}"
    );
    port.running.stop().await;
}

#[tokio::test]
async fn a_push_by_grpc_is_refused_with_the_code_that_says_why() {
    let sink = Arc::new(Refusing(Mutex::new(SinkErrorKind::LimitExceeded)));
    let port = Port::open(sink).await;
    let url = port.url(PUSH);
    let message = request("cpu").encode_to_vec();
    let grpc = ("content-type", "application/grpc");
    let json = ("content-type", "application/grpc+json");
    for (answer, code, reason) in [
        (
            send(post_http2(&url), &[grpc], framed(false, &message)).await,
            "8",
            "told to",
        ),
        (
            send(post_http2(&url), &[grpc], message.clone()).await,
            "3",
            "flags before the message",
        ),
        (
            send(post_http2(&url), &[grpc], framed(true, &message)).await,
            "3",
            "names no compression",
        ),
        (
            send(post_http2(&url), &[json], framed(false, &message)).await,
            "3",
            "not supported",
        ),
        (
            send(post_http1(&url), &[grpc], framed(false, &message)).await,
            "12",
            "gRPC needs HTTP/2",
        ),
    ] {
        assert_eq!((answer.status, answer.header("grpc-status")), (200, code), "{reason}");
        assert!(answer.header("grpc-message").contains(reason), "{:?}", answer.headers);
        assert!(answer.body.is_empty());
    }
    port.running.stop().await;
}

#[tokio::test]
async fn the_grpc_port_accepts_pushes_and_health_checks_and_nothing_else() {
    let sink = Arc::new(Collector::default());
    let port = Port::with(sink.clone(), http(), Body::new().block("grpc", grpc())).await;
    let content_type = ("content-type", "application/grpc");
    let call = async |path: &str, message: &[u8]| {
        let url = port.grpc_url(path);
        send(post_http2(&url), &[content_type], framed(false, message)).await
    };
    let answer = call(PUSH, &request("cpu").encode_to_vec()).await;
    assert_eq!((answer.header("grpc-status"), &*answer.body), ("0", &[0; 5][..]));
    let expected = r#"{__name__="cpu", service_name="cpu", zone="eu"}"#;
    assert_eq!(sink.profiles().pop().unwrap().labels.to_string(), expected);

    for service in ["", "push.v1.PusherService"] {
        let check = HealthCheckRequest {
            service: service.to_owned(),
        };
        let answer = call(HEALTH, &check.encode_to_vec()).await;
        // The message has one field: the status SERVING.
        assert_eq!(
            (answer.header("grpc-status"), &*answer.body),
            ("0", &[0, 0, 0, 0, 2, 8, 1][..])
        );
    }
    let unknown = HealthCheckRequest {
        service: "querier.v1.QuerierService".to_owned(),
    };
    assert_eq!(call(HEALTH, &unknown.encode_to_vec()).await.header("grpc-status"), "5");
    for path in ["grpc.health.v1.Health/Watch", "ingest?name=a"] {
        let answer = call(path, b"").await;
        assert_eq!(answer.header("grpc-status"), "12", "{path}");
        assert!(answer.header("grpc-message").contains("is not implemented"), "{path}");
    }
    assert_eq!(sink.profiles().len(), 1);
    let metrics = port.recorder.context.metrics.encode();
    assert!(
        metrics.contains("pyroscope_receive_http_requests_total{route=\"push\",status=\"200\"} 1"),
        "{metrics}"
    );
    port.running.stop().await;
}

#[tokio::test]
async fn a_message_on_the_grpc_port_may_be_as_large_as_its_limit_and_no_larger() {
    let message = request("cpu").encode_to_vec();
    for (limit, code) in [(message.len(), "0"), (message.len() - 1, "3")] {
        let grpc = grpc().with("server_max_recv_msg_size", number(limit));
        let port = Port::with(Arc::new(Collector::default()), http(), Body::new().block("grpc", grpc)).await;
        let url = port.grpc_url(PUSH);
        let body = framed(false, &message);
        let answer = send(post_http2(&url), &[("content-type", "application/grpc")], body).await;
        assert_eq!(answer.header("grpc-status"), code, "{limit}");
        port.running.stop().await;
    }
}

#[tokio::test]
async fn an_update_opens_and_closes_the_grpc_port_and_keeps_the_other() {
    let sink = Arc::new(Collector::default());
    let port = Port::open(sink.clone()).await;
    let before = port.url("");
    let with_grpc = port.body.clone().block("grpc", grpc());
    port.running.component.update(with_grpc.arguments(&DEFINITION)).unwrap();
    eventually("the gRPC port", || port.recorder.health().1.contains("(grpc)")).await;
    assert_eq!(port.url(""), before);
    let url = port.grpc_url(HEALTH);
    let answer = send(
        post_http2(&url),
        &[("content-type", "application/grpc")],
        framed(false, b""),
    )
    .await;
    assert_eq!(answer.header("grpc-status"), "0");

    port.running.component.update(port.body.arguments(&DEFINITION)).unwrap();
    let address = url.trim_start_matches("http://").split('/').next().unwrap().to_owned();
    let closed = || std::net::TcpStream::connect(&address).is_err();
    eventually("the gRPC port to be closed", closed).await;
    assert_eq!(port.post("ingest?name=a", "", "").await.0, StatusCode::OK);
    port.running.stop().await;
}

#[test]
fn both_ports_on_one_address_are_refused_at_the_argument() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let shared = usize::from(free.local_addr().unwrap().port());
    let read = |own: &str| {
        let http = http().with("listen_port", number(shared));
        let grpc = grpc().text("listen_address", own).with("listen_port", number(shared));
        let body = Body::new().with("forward_to", receivers([])).block("http", http);
        body.block("grpc", grpc).read(&DEFINITION).map(drop)
    };
    let message = format!("grpc.listen_port: the port of the block http is {shared} as well");
    assert_eq!(read("127.0.0.1"), Err(message.clone()));
    assert_eq!(read(""), Err(message));
    assert_eq!(read("127.0.0.2"), Ok(()));
}

/// Reads the frames that the server sends on an HTTP/2 connection whose client never responds. Returns the type and
/// the payload of each.
async fn frames(address: &str) -> Vec<(u8, Vec<u8>)> {
    /// The connection preface, and an empty SETTINGS frame.
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(PREFACE).await.unwrap();
    let mut bytes = Vec::new();
    // The server may reset the connection.
    let _ = stream.read_to_end(&mut bytes).await;
    let (mut frames, mut rest) = (Vec::new(), &bytes[..]);
    while let Some((header, tail)) = rest.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
        frames.push((header[3], tail[..length].to_vec()));
        rest = &tail[length..];
    }
    frames
}

/// Returns the value of a setting in the server's SETTINGS frame, and the window that a connection gets.
fn settings(frames: &[(u8, Vec<u8>)]) -> (impl Fn(u16) -> Option<u32>, u32) {
    let (mut settings, mut window) = (HashMap::new(), 65_535);
    for (kind, payload) in frames {
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        match kind {
            4 => settings.extend(
                payload
                    .chunks(6)
                    .map(|entry| (u16::from_be_bytes([entry[0], entry[1]]), number(&entry[2..]))),
            ),
            8 => window += number(payload),
            _ => {}
        }
    }
    (move |id| settings.get(&id).copied(), window)
}

#[tokio::test]
async fn frames_windows_and_pings_of_http2_are_the_configured_ones() {
    const WINDOW: u16 = 4;
    const FRAME: u16 = 5;
    let pings = || {
        Body::new()
            .text("read_idle_timeout", "50ms")
            .text("ping_timeout", "50ms")
    };
    let sizes = pings()
        .with("max_read_frame_size", number(32_768))
        .with("max_upload_buffer_per_connection", number(2 << 20))
        .with("max_upload_buffer_per_stream", number(1 << 20));
    for (http2, window, frame, connection) in [
        (sizes, 1 << 20, 32_768, 2 << 20),
        (pings(), 128 << 10, 16_384, 128 << 10),
    ] {
        let port = Port::with(
            Arc::new(Collector::default()),
            http().block("http2", http2),
            Body::new(),
        )
        .await;
        let url = port.url("");
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        // The server closes the connection because no ping is answered. The default would be after 30 seconds.
        let frames = tokio::time::timeout(Duration::from_secs(20), frames(address))
            .await
            .unwrap();
        assert!(frames.iter().any(|(kind, _)| *kind == 6), "no ping: {frames:?}");
        let (setting, connection_window) = settings(&frames);
        assert_eq!(setting(WINDOW), Some(window));
        assert_eq!(setting(FRAME).unwrap_or(16_384), frame);
        assert_eq!(connection_window, connection);
        port.running.stop().await;
    }
}

#[test]
fn sizes_that_http2_does_not_allow_are_refused() {
    let read = |name: &'static str, size: i64| {
        let http2 = Body::new().with(name, Value::Number(Number::Int(size)));
        let body = Body::new().with("forward_to", receivers([]));
        let read = body.block("http", http().block("http2", http2)).read(&DEFINITION);
        read.map(drop)
    };
    for (name, smallest, largest) in [
        ("max_read_frame_size", 16_384, 16_777_215),
        ("max_upload_buffer_per_connection", 65_535, 2_147_483_647),
        ("max_upload_buffer_per_stream", 1, 2_147_483_647),
    ] {
        for size in [0, smallest, largest] {
            assert_eq!(read(name, size), Ok(()), "{name} = {size}");
        }
        let message = format!("http.http2.{name}: {name} must be 0, or from {smallest} to {largest}");
        assert_eq!(read(name, largest + 1), Err(message.clone()));
        let below = if smallest > 1 { smallest - 1 } else { -1 };
        assert_eq!(read(name, below), Err(message));
    }
}

#[tokio::test]
async fn what_the_receivers_say_becomes_a_status_that_tells_whether_to_try_again() {
    let sink = Arc::new(Refusing(Mutex::new(SinkErrorKind::Internal)));
    let port = Port::open(sink.clone()).await;
    for (kind, status, retry) in [
        (SinkErrorKind::Invalid, 400, None),
        (SinkErrorKind::TooLarge, 413, None),
        (SinkErrorKind::LimitExceeded, 429, Some("1")),
        (SinkErrorKind::Unavailable, 503, Some("1")),
        (SinkErrorKind::Internal, 500, None),
    ] {
        *sink.0.lock() = kind;
        let push = client()
            .post(port.url(PUSH))
            .header("content-type", "application/proto");
        let ingest = client().post(port.url("ingest?name=shop"));
        for request in [push.body(request("cpu").encode_to_vec()), ingest.body("a;b 1")] {
            let response = request.send().await.unwrap();
            let after = response
                .headers()
                .get("retry-after")
                .map(|value| value.to_str().unwrap());
            assert_eq!((response.status().as_u16(), after), (status, retry));
            assert!(response.text().await.unwrap().contains("told to"));
        }
    }
    let metrics = port.recorder.context.metrics.encode();
    assert!(
        metrics.contains("pyroscope_receive_http_requests_total{route=\"push\",status=\"429\"} 1"),
        "{metrics}"
    );
    port.running.stop().await;
}

#[tokio::test]
async fn what_is_wrong_is_refused_with_its_reason_and_forwards_nothing() {
    let sink = Arc::new(Collector::default());
    let port = Port::open(sink.clone()).await;
    let hidden = {
        let mut request = request("cpu");
        request.series[0].samples[0].raw_profile = Upload::head("", "", "").into();
        request.encode_to_vec()
    };
    for (path, content_type, body, status, reason) in [
        ("ingest?format=jfr", "", vec![], 400, "name: service name is required"),
        ("ingest?name=a&from=soon", "", vec![], 400, "from: `soon` is not a time"),
        (
            PUSH,
            "text/plain",
            vec![],
            415,
            "content type `text/plain` is not supported",
        ),
        (PUSH, "application/proto", vec![], 400, "no profiles received"),
        (PUSH, "application/proto", vec![0xff], 400, "protobuf"),
        (PUSH, "application/proto", hidden, 400, "is not pprof"),
        ("elsewhere", "", vec![], 404, ""),
    ] {
        let (answered, text) = port.post(path, content_type, body).await;
        assert_eq!(answered.as_u16(), status, "{path}: {text}");
        assert!(text.contains(reason), "{text}");
    }
    assert!(sink.profiles().is_empty());
    port.running.stop().await;
}

#[tokio::test]
async fn bodies_have_a_bound_each_and_one_together() {
    let sink = Arc::new(Collector::default());
    let limits = Body::new()
        .text("max_body_bytes", "64KiB")
        .text("max_bytes_in_flight", "100KiB");
    let port = Port::with(sink.clone(), http(), Body::new().block("limits", limits)).await;
    let small_body = || vec![b'a'; 60 << 10];
    assert_eq!(port.post("ingest?name=a", "", small_body()).await.0, StatusCode::OK);
    let (status, text) = port.post("ingest?name=a", "", vec![b'a'; 65 << 10]).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(text.contains("the limit is 65536 bytes"), "{text}");
    // A compressed body of 10 MiB of one letter.
    let packed = client()
        .post(port.url(PUSH))
        .header("content-type", "application/proto")
        .header("content-encoding", "gzip");
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&vec![b'a'; 10 << 20]).unwrap();
    let response = packed.body(bomb.finish().unwrap()).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);

    // A body that has begun and does not end keeps its part of the budget.
    let (first, rest) = futures::channel::mpsc::unbounded::<Result<Vec<u8>, std::io::Error>>();
    first.unbounded_send(Ok(small_body())).unwrap();
    let slow = client()
        .post(port.url("ingest?name=slow"))
        .body(reqwest::Body::wrap_stream(rest));
    let slow = tokio::spawn(slow.send());
    let mut unavailable = None;
    while unavailable.is_none() {
        let response = client()
            .post(port.url("ingest?name=a"))
            .body(small_body())
            .send()
            .await
            .unwrap();
        unavailable = Some(response).filter(|response| response.status() == StatusCode::SERVICE_UNAVAILABLE);
    }
    let unavailable = unavailable.unwrap();
    assert_eq!(unavailable.headers()["retry-after"], "1");
    let text = unavailable.text().await.unwrap();
    assert!(text.contains("of 102400 bytes"), "{text}");
    drop(first);
    assert_eq!(slow.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(port.post("ingest?name=a", "", small_body()).await.0, StatusCode::OK);
    port.running.stop().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_in_time_is_given_up() {
    let port = Port::with(
        Arc::new(Collector::default()),
        http().text("server_read_timeout", "50ms"),
        Body::new(),
    )
    .await;
    let (_first, rest) = futures::channel::mpsc::unbounded::<Result<Vec<u8>, std::io::Error>>();
    let slow = client()
        .post(port.url("ingest?name=slow"))
        .body(reqwest::Body::wrap_stream(rest));
    assert_eq!(slow.send().await.unwrap().status(), StatusCode::REQUEST_TIMEOUT);
    port.running.stop().await;
}

#[tokio::test]
async fn an_update_keeps_the_port_or_changes_it_and_a_bad_one_changes_nothing() {
    let sink = Arc::new(Collector::default());
    let port = Port::open(sink.clone()).await;
    let before = port.url("");
    let limits = Body::new().text("max_body_bytes", "64KiB");
    let smaller = port.body.clone().block("limits", limits);
    port.running.component.update(smaller.arguments(&DEFINITION)).unwrap();
    let post_large_body = || port.post("ingest?name=a", "", vec![0; 70 << 10]);
    while post_large_body().await.0 != StatusCode::PAYLOAD_TOO_LARGE {}
    assert_eq!(port.url(""), before);

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let number = i64::from(listener.local_addr().unwrap().port());
    let arguments_with_port = |number: i64| {
        let http = http().with("listen_port", Value::Number(Number::Int(number)));
        let forward_to = receivers([sink.clone() as _]);
        Body::new()
            .with("forward_to", forward_to)
            .block("http", http)
            .arguments(&DEFINITION)
    };
    let error = port.running.component.update(arguments_with_port(number)).unwrap_err();
    assert!(error.0.contains("another program uses the port"), "{error}");
    assert_eq!(port.post("ingest?name=a", "", "").await.0, StatusCode::OK);

    drop(listener);
    port.running.component.update(arguments_with_port(number)).unwrap();
    eventually("the other port", || port.url("").contains(&number.to_string())).await;
    assert_eq!(port.post("ingest?name=a", "", "").await.0, StatusCode::OK);
    let closed = || std::net::TcpStream::connect(before.trim_start_matches("http://").trim_end_matches('/')).is_err();
    eventually("the first port to be closed", closed).await;
    port.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ports_have_tls_where_it_is_configured() {
    let tls = Body::new()
        .text("cert_pem", include_str!("../../../wire/client/testdata/server.pem"))
        .with(
            "key_pem",
            Value::Secret(include_str!("../../../wire/client/testdata/server.key").into()),
        );
    let grpc = Body::new().block("grpc", grpc().block("tls", tls.clone()));
    let port = Port::with(Arc::new(Collector::default()), http().block("tls", tls), grpc).await;
    let mut options = ClientOptions::new("test".into());
    options.tls.ca = Some(Pem::Text(include_str!("../../../wire/client/testdata/ca.pem").into()));
    options.tls.server_name = Some("server.test".into());
    let secure = HttpClient::new(&options).unwrap();
    let url = port.url("ingest?name=a").replace("http://", "https://");
    let response = secure.client().post(url).body("a;b 1").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(client().post(port.url("ingest?name=a")).send().await.is_err());
    let url = port.grpc_url(HEALTH).replace("http://", "https://");
    let headers = [("content-type", "application/grpc")];
    let answer = send(secure.client().post(url), &headers, framed(false, b"")).await;
    assert_eq!(answer.header("grpc-status"), "0");
    port.running.stop().await;
}

#[test]
fn limits_that_let_nothing_pass_are_refused() {
    let read = |body: &str, all: &str| {
        let limits = Body::new()
            .text("max_body_bytes", body)
            .text("max_bytes_in_flight", all);
        let body = Body::new().with("forward_to", receivers([])).block("limits", limits);
        body.read(&DEFINITION).map(drop).unwrap_err()
    };
    assert_eq!(
        read("1KiB", "1MiB"),
        "limits.max_body_bytes: max_body_bytes must be at least 64KiB"
    );
    assert_eq!(
        read("2MiB", "1MiB"),
        "limits.max_bytes_in_flight: max_bytes_in_flight must not be less than max_body_bytes"
    );
}
