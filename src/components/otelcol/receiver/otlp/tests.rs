//! Tests of the component from outside: requests arrive over sockets, and profiles arrive at a sink.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use prost::Message as _;

use crate::common::serving::grpc::testing::{Answer, framed, post_http1, post_http2, send};
use crate::common::testing::{Body, Collector, Recorder, Running, eventually, receivers};
use crate::otelcol::receiver::otlp::DEFINITION;
use crate::otelcol::receiver::otlp::arguments::ReceiverArguments;
use alluvium_base::BoxFuture;
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;
use alluvium_profile::sink::Receiver;
use alluvium_profile::{ProfileSink, RawProfile, RefusedProfile, SinkError, SinkErrorKind, pprof};
use alluvium_wire::connect::{Codec, decode, encode};
use alluvium_wire::grpc_status;
use alluvium_wire::otlp::messages::ExportProfilesServiceRequest;
use alluvium_wire::otlp::messages::ExportProfilesServiceResponse;
use alluvium_wire::otlp::{EXPORT_ROUTE, HTTP_ROUTE};

/// A sink that refuses the first profile of each batch with a given kind of error.
struct Refusing(Mutex<SinkErrorKind>);

impl ProfileSink for Refusing {
    fn append(&self, _: Vec<RawProfile>) -> BoxFuture<'_, Vec<RefusedProfile>> {
        let error = SinkError::new(*self.0.lock(), "told to");
        Box::pin(async move { error.for_all(1) })
    }
}

/// A component on two free ports.
struct Ports {
    recorder: Recorder,
    running: Running<ReceiverArguments>,
}

impl Ports {
    async fn open(sink: Receiver) -> Self {
        let recorder = Recorder::new("otelcol.receiver.otlp.test", Path::new("/nonexistent"));
        let local = || Body::new().text("endpoint", "127.0.0.1:0");
        let body = Body::new()
            .block("grpc", local())
            .block("http", local())
            .block("output", Body::new().with("profiles", receivers([sink])));
        let running = Running::start(&DEFINITION, &recorder, &body);
        eventually("the ports", || recorder.health().0 == HealthState::Healthy).await;
        Self { recorder, running }
    }

    fn address(&self, port: &str) -> String {
        let health = self.recorder.health().1;
        let addresses = health.strip_prefix("listening on ").unwrap();
        let address = addresses.split(", ").find(|address| address.ends_with(port)).unwrap();
        format!("http://{}", address.split(' ').next().unwrap())
    }

    async fn grpc(&self, route: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
        let request = post_http2(&format!("{}/{route}", self.address("(grpc)")));
        send(request.header("content-type", "application/grpc"), headers, body).await
    }

    async fn http(&self, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
        let request = post_http1(&format!("{}/{HTTP_ROUTE}", self.address("(http)")));
        send(request, headers, body).await
    }
}

/// Returns a request with one profile of the service `shop`: two stacks with 150 and 100 nanoseconds of CPU.
fn request() -> ExportProfilesServiceRequest {
    let json = r#"{
        "resourceProfiles": [{
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
            "scopeProfiles": [{"profiles": [{
                "sampleType": {"typeStrindex": 1, "unitStrindex": 2},
                "periodType": {"typeStrindex": 3, "unitStrindex": 4},
                "period": "50",
                "samples": [{"stackIndex": 1, "values": ["3"]}, {"stackIndex": 2, "values": ["1", "1"]}]
            }]}]
        }],
        "dictionary": {
            "stringTable": ["", "samples", "count", "cpu", "nanoseconds", "main", "work"],
            "mappingTable": [{}],
            "functionTable": [{}, {"nameStrindex": 5}, {"nameStrindex": 6}],
            "locationTable": [{}, {"lines": [{"functionIndex": 2}]}, {"lines": [{"functionIndex": 1}]}],
            "stackTable": [{}, {"locationIndices": [1, 2]}, {"locationIndices": [2]}],
            "linkTable": [{}],
            "attributeTable": [{}]
        }
    }"#;
    decode(Codec::Json, json.into()).unwrap()
}

/// Converts a [`request`] to the layout of OTLP 1.9, in which the values of a sample are its field 2 and not 4.
fn older(mut message: Vec<u8>) -> Vec<u8> {
    for start in [[8, 1, 0x22, 1], [8, 2, 0x22, 2]] {
        let place = message.windows(4).position(|window| window == start).unwrap();
        message[place + 2] = 0x12;
    }
    message
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_by_either_transport_becomes_pprof() {
    let sink = Arc::new(Collector::default());
    let ports = Ports::open(sink.clone()).await;
    let message = request().encode_to_vec();
    let plain = ports.grpc(EXPORT_ROUTE, &[], framed(false, &message)).await;
    assert_eq!((plain.header("grpc-status"), &*plain.body), ("0", &[0; 5][..]));
    assert!(plain.trailers.contains_key("grpc-status"));
    let packed = framed(true, &pprof::gzip(&message));
    let packed = ports.grpc(EXPORT_ROUTE, &[("grpc-encoding", "gzip")], packed).await;
    assert_eq!(packed.header("grpc-status"), "0");
    let protobuf = ("content-type", "application/x-protobuf");
    let posted = ports.http(&[protobuf], message.clone()).await;
    assert_eq!((posted.status, posted.header("content-type")), (200, protobuf.1));
    let gzip = ports
        .http(&[protobuf, ("content-encoding", "gzip")], pprof::gzip(&message))
        .await;
    assert_eq!(gzip.status, 200);
    let json = encode(Codec::Json, &request()).to_vec();
    let json = ports.http(&[("content-type", "application/json")], json).await;
    assert_eq!((json.status, &*json.body), (200, &b"{}"[..]));
    let older = older(message);
    let older_by_grpc = ports.grpc(EXPORT_ROUTE, &[], framed(false, &older)).await;
    assert_eq!(older_by_grpc.header("grpc-status"), "0");
    assert_eq!(ports.http(&[protobuf], older).await.status, 200);
    let profiles = sink.profiles();
    assert_eq!(profiles.len(), 7);
    for profile in profiles {
        assert_eq!(profile.labels.get("service_name"), Some("shop"));
        let bytes = pprof::gunzip(&profile.pprof, 1 << 20).unwrap();
        let columns = pprof::decode(&bytes).unwrap();
        assert_eq!(columns.values, [150, 100]);
    }
    ports.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_refused_in_the_protocol_of_the_sender() {
    let sink = Arc::new(Collector::default());
    let ports = Ports::open(sink.clone()).await;
    let message = request().encode_to_vec();
    let mut broken = request();
    broken.dictionary.as_mut().unwrap().stack_table.clear();
    let broken = broken.encode_to_vec();
    let traces = "opentelemetry.proto.collector.trace.v1.TraceService/Export";
    for (name, route, headers, body, status) in [
        ("broken", EXPORT_ROUTE, &[][..], framed(false, &broken), "3"),
        ("garbage", EXPORT_ROUTE, &[], framed(false, b"garbage"), "3"),
        ("no message", EXPORT_ROUTE, &[], vec![0, 0], "3"),
        (
            "cut off",
            EXPORT_ROUTE,
            &[],
            framed(false, &message)[..20].to_vec(),
            "3",
        ),
        (
            "compressed without grpc-encoding",
            EXPORT_ROUTE,
            &[],
            framed(true, &message),
            "3",
        ),
        (
            "encoding",
            EXPORT_ROUTE,
            &[("grpc-encoding", "br")],
            framed(true, &message),
            "12",
        ),
        ("too large", EXPORT_ROUTE, &[], vec![0; (4 << 20) + 1], "3"),
        ("another signal", traces, &[], framed(false, b""), "12"),
    ] {
        let answer = ports.grpc(route, headers, body).await;
        assert_eq!(answer.header("grpc-status"), status, "{name}");
        assert_eq!(answer.status, 200, "{name}");
    }
    let protobuf = ("content-type", "application/x-protobuf");
    for (name, headers, body, status) in [
        ("broken", &[protobuf][..], broken, 400),
        ("text", &[("content-type", "text/plain")], message.clone(), 415),
        ("JSON", &[("content-type", "application/json")], message, 400),
        ("too large", &[protobuf], vec![0; (20 << 20) + 1], 413),
    ] {
        let answer = ports.http(headers, body).await;
        assert_eq!(answer.status, status, "{name}");
        if headers.contains(&protobuf) {
            assert_eq!(answer.header("content-type"), protobuf.1);
            assert!(grpc_status::decode(&answer.body).is_some(), "{name}");
        }
    }
    assert!(sink.profiles().is_empty());
    ports.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_is_that_of_the_receivers() {
    let sink = Arc::new(Refusing(Mutex::new(SinkErrorKind::Unavailable)));
    let ports = Ports::open(sink.clone()).await;
    let protobuf = ("content-type", "application/x-protobuf");
    let mut two = request();
    let profiles = &mut two.resource_profiles[0].scope_profiles[0].profiles;
    profiles.push(profiles[0].clone());
    let two = two.encode_to_vec();
    for (kind, status, code) in [
        (SinkErrorKind::Unavailable, 503, "14"),
        (SinkErrorKind::LimitExceeded, 429, "8"),
        (SinkErrorKind::Internal, 500, "13"),
    ] {
        *sink.0.lock() = kind;
        let by_http = ports.http(&[protobuf], two.clone()).await;
        assert_eq!(by_http.status, status);
        assert_eq!(by_http.header("retry-after").is_empty(), status == 500);
        let by_grpc = ports.grpc(EXPORT_ROUTE, &[], framed(false, &two)).await;
        assert_eq!(by_grpc.header("grpc-status"), code);
        assert_eq!(by_grpc.header("grpc-status-details-bin").is_empty(), code != "8");
    }
    *sink.0.lock() = SinkErrorKind::Invalid;
    let partly = ports.http(&[protobuf], two).await;
    assert_eq!(partly.status, 200);
    let answer = ExportProfilesServiceResponse::decode(partly.body).unwrap();
    assert_eq!(answer.partial_success.unwrap().rejected_profiles, 1);
    ports.running.stop().await;
}

#[test]
fn other_signals_and_a_receiver_without_a_port_are_refused_by_name() {
    let read = |body: Body| body.read(&DEFINITION).map(drop).unwrap_err();
    let output = || Body::new().with("profiles", receivers([Arc::new(Collector::default()) as Receiver]));
    let grpc = || Body::new().block("grpc", Body::new());
    let traces = output().with("traces", Value::array([Value::string("somewhere")]));
    assert_eq!(
        read(grpc().block("output", traces)),
        "output.traces: traces are not supported, only profiles are: leave traces empty"
    );
    let error = read(Body::new().block("output", output()));
    assert!(error.contains("one of the blocks grpc and http"), "{error}");
    let tls = Body::new().text("cert_file", "a").text("cert_pem", "b");
    let body_with_tls = Body::new().block("grpc", Body::new().block("tls", tls));
    assert_eq!(
        read(body_with_tls.block("output", output())),
        "grpc.tls.cert_pem: at most one of cert_pem and cert_file may be configured"
    );
    let udp = Body::new().block("grpc", Body::new().text("transport", "unix"));
    let error = read(udp.block("output", output()));
    assert!(error.contains("must be one of tcp"), "{error}");
}
