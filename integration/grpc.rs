//! gRPC and gRPC-Web beside Connect on one port: the same services, responses, limits and errors.
//!
//! tonic's client uses gRPC over HTTP/2 without TLS. gRPC-Web requests are built by hand like a browser's `fetch`, over
//! HTTP/1.1, so that the test can also send wrong frames.

use std::sync::Arc;
use std::time::Duration;

use alluvium::server::{ProfileStore, ServerLimits, ServerOptions};
use alluvium_base::BoxFuture;
use alluvium_profile::pprof;
use alluvium_profile::sink::Receiver;
use alluvium_profile::{Labels, ProfileSink, RawProfile, RefusedProfile, SinkError, SinkErrorKind, TenantId};
use alluvium_wire::grpc_status;
use alluvium_wire::proto::google::Profile;
use alluvium_wire::proto::push::{PushRequest, PushResponse, RawProfileSeries};
use alluvium_wire::proto::{querier, types};
use alluvium_wire::push;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use parking_lot::Mutex;
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::harness::{TestServer, tenant};
use crate::http_store::{Site, push_some};

const PUSH: &str = "/push.v1.PusherService/Push";

/// Mock of the store. Records the tenants and names of profiles. Refuses profiles of the service `refused`, and never
/// responds to profiles of the service `stuck`.
#[derive(Default)]
struct Double(Mutex<Vec<(TenantId, String)>>);

impl ProfileStore for Double {
    fn sink(self: Arc<Self>, tenant: &TenantId) -> Receiver {
        Arc::new(OfTenant(self, tenant.clone()))
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), SinkError>> {
        Box::pin(async { Ok(()) })
    }
}

/// The mock as a sink of one tenant.
struct OfTenant(Arc<Double>, TenantId);

impl ProfileSink for OfTenant {
    fn append(&self, profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<RefusedProfile>> {
        Box::pin(async move {
            let mut errors = Vec::new();
            for (index, profile) in profiles.iter().enumerate() {
                match profile.labels.get("service_name").unwrap_or_default() {
                    "stuck" => std::future::pending().await,
                    "refused" => errors.push(RefusedProfile::new(
                        index,
                        SinkError::new(SinkErrorKind::Invalid, "refused as asked"),
                    )),
                    name => self.0.0.lock().push((self.1.clone(), name.to_owned())),
                }
            }
            errors
        })
    }
}

async fn server(options: ServerOptions) -> (TestServer, Arc<Double>) {
    let double = Arc::new(Double::default());
    (TestServer::start(double.clone(), options).await, double)
}

/// Builds a push with one profile of each of these services.
fn push_of(services: &[&str]) -> PushRequest {
    let profiles = services.iter().map(|service| RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", *service)]),
        id: "".into(),
        pprof: pprof::gzip(b"not looked at here").into(),
    });
    push::to_request(&profiles.collect::<Vec<_>>())
}

/// Calls a route with tonic's client. `prefix` is the path before all routes.
pub(crate) async fn grpc<Ask, Reply>(
    server: &TestServer,
    prefix: &str,
    route: &'static str,
    request: Request<Ask>,
) -> Result<Reply, Status>
where
    Ask: Message + Send + Sync + 'static,
    Reply: Message + Default + Send + Sync + 'static,
{
    let client: Client<HttpConnector, tonic::body::Body> =
        Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let origin = format!("{}{prefix}", server.url).parse().unwrap();
    let mut client = tonic::client::Grpc::with_origin(client, origin).max_decoding_message_size(64 << 20);
    client.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static(route);
    let answer = client.unary(request, path, ProstCodec::default()).await?;
    Ok(answer.into_inner())
}

/// Response to a gRPC-Web call.
pub(crate) struct WebAnswer {
    message: Vec<u8>,
    /// True when the message is gzip.
    is_compressed: bool,
    /// Code of the status that ended the call.
    pub status: Code,
    /// Message of the status, percent-decoded.
    pub text: String,
}

/// Posts a body unchanged and parses the response.
pub(crate) async fn web(server: &TestServer, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> WebAnswer {
    let mut request = server.post(path).header("content-type", "application/grpc-web+proto");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.body(body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let mut trailers = response.headers().clone();
    let body = response.bytes().await.unwrap();
    let mut answer = WebAnswer {
        message: Vec::new(),
        is_compressed: false,
        status: Code::Unknown,
        text: String::new(),
    };
    let mut rest = body.as_ref();
    while let [flags, a, b, c, d, more @ ..] = rest {
        let (content, after) = more.split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
        if flags & 0x80 == 0 {
            answer.message = content.to_vec();
            answer.is_compressed = flags & 1 == 1;
        } else {
            for line in std::str::from_utf8(content).unwrap().lines() {
                let (name, value) = line.split_once(':').unwrap();
                let name: http::HeaderName = name.trim().parse().unwrap();
                trailers.insert(name, value.trim().parse().unwrap());
            }
        }
        rest = after;
    }
    assert!(rest.is_empty());
    let status = Status::from_header_map(&trailers).expect("every answer has a status");
    answer.status = status.code();
    status.message().clone_into(&mut answer.text);
    answer
}

/// Returns a message with the five-byte prefix of a gRPC frame.
pub(crate) fn frame(flags: u8, message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u32).to_be_bytes();
    [&[flags], length.as_slice(), message].concat()
}

#[tokio::test]
async fn a_push_over_grpc_and_grpc_web_reaches_the_store_at_the_root_and_under_the_prefix() {
    let (server, double) = server(ServerOptions::default()).await;
    for prefix in ["", "/profile"] {
        let PushResponse {} = grpc(&server, prefix, PUSH, Request::new(push_of(&["grpc"])))
            .await
            .unwrap();
        let body = frame(0, &push_of(&["web"]).encode_to_vec());
        let answer = web(&server, &format!("{prefix}{PUSH}"), &[], body.clone()).await;
        assert_eq!((answer.status, answer.message), (Code::Ok, Vec::new()));
        let text = STANDARD.encode(&body);
        let request = server
            .post(&format!("{prefix}{PUSH}"))
            .header("content-type", "application/grpc-web-text")
            .header("accept", "application/grpc-web-text");
        let answer = request.body(text).send().await.unwrap();
        let text = answer.bytes().await.unwrap();
        // Each frame has its own padding, so the text contains padding in the middle.
        let answer: Vec<u8> = text.chunks(4).flat_map(|four| STANDARD.decode(four).unwrap()).collect();
        assert!(String::from_utf8_lossy(&answer).contains("grpc-status:0"), "{answer:?}");
    }
    let names: Vec<String> = double.0.lock().iter().map(|(_, name)| name.clone()).collect();
    assert_eq!(names, ["grpc", "web", "web", "grpc", "web", "web"]);
}

#[tokio::test]
async fn the_tenant_is_that_of_the_metadata_and_must_be_there() {
    let (server, double) = server(ServerOptions {
        multi_tenant: true,
        ..ServerOptions::default()
    })
    .await;
    let mut named = Request::new(push_of(&["shop"]));
    named.metadata_mut().insert("x-scope-orgid", "team-a".parse().unwrap());
    let PushResponse {} = grpc(&server, "", PUSH, named).await.unwrap();
    let nobody: Result<PushResponse, _> = grpc(&server, "", PUSH, Request::new(push_of(&["shop"]))).await;
    assert_eq!(nobody.unwrap_err().code(), Code::Unauthenticated);
    assert_eq!(*double.0.lock(), [(tenant("team-a"), "shop".to_owned())]);
}

#[tokio::test]
async fn what_the_store_refuses_is_told_and_counted_as_over_connect() {
    let (server, double) = server(ServerOptions::default()).await;
    let partly = Request::new(push_of(&["shop", "refused"]));
    let error = grpc::<_, PushResponse>(&server, "", PUSH, partly).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("series 1: refused as asked"), "{error}");
    let details = grpc_status::decode(error.details()).unwrap().details;
    assert_eq!(details[0].type_name, "push.v1.PushRefusals");
    assert_eq!(double.0.lock().len(), 1, "the store must keep the other profile");
    let many = Request::new(push_of(&["refused"; 2000]));
    let error = grpc::<_, PushResponse>(&server, "", PUSH, many).await.unwrap_err();
    assert!(
        error.message().len() <= 2048 && error.details().is_empty(),
        "the error must fit into headers"
    );
    let metrics = server.metrics.encode();
    let counted = "alluvium_http_requests_total{route=\"/push.v1.PusherService/Push\",status=\"400\"} 2";
    assert!(metrics.contains(counted), "{metrics}");
}

#[tokio::test]
async fn the_time_that_a_caller_gives_is_kept() {
    let (server, _double) = server(ServerOptions::default()).await;
    let mut request = Request::new(push_of(&["stuck"]));
    request.set_timeout(Duration::from_millis(5));
    let error = grpc::<_, PushResponse>(&server, "", PUSH, request).await.unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded);
    assert!(error.message().contains("5 ms"), "{error}");
}

#[tokio::test]
async fn compressed_messages_are_taken_within_the_same_bounds() {
    let (server, double) = server(ServerOptions {
        limits: ServerLimits {
            body_bytes: 1 << 20,
            unpacked_body_bytes: 1 << 20,
            ..ServerLimits::default()
        },
        ..ServerOptions::default()
    })
    .await;
    let gzip = [("grpc-encoding", "gzip")];
    let zeros = pprof::gzip(&vec![0; 64 << 20]);
    let empty_series = PushRequest {
        series: vec![RawProfileSeries::default(); 10_001],
    };
    let good = push_of(&["shop"]).encode_to_vec();
    let cases: Vec<(&str, &[_], Vec<u8>, Code, &str)> = vec![
        ("gzip", &gzip, frame(1, &pprof::gzip(&good)), Code::Ok, ""),
        ("not compressed after all", &gzip, frame(0, &good), Code::Ok, ""),
        (
            "a bomb",
            &gzip,
            frame(1, &zeros),
            Code::InvalidArgument,
            "1048576 bytes when decompressed",
        ),
        ("damaged", &gzip, frame(1, b"garbage"), Code::InvalidArgument, "gzip"),
        (
            "no compression named",
            &[],
            frame(1, &good),
            Code::InvalidArgument,
            "grpc-encoding",
        ),
        (
            "unknown",
            &[("grpc-encoding", "br")],
            frame(1, &good),
            Code::Unimplemented,
            "br",
        ),
        (
            "too long",
            &[],
            frame(0, &vec![0; (1 << 20) + 1]),
            Code::InvalidArgument,
            "limit is 1048576",
        ),
        (
            "too much",
            &[],
            frame(0, &empty_series.encode_to_vec()),
            Code::InvalidArgument,
            "10000 series",
        ),
        (
            "announced only",
            &[],
            frame(0, &good)[..9].to_vec(),
            Code::InvalidArgument,
            "after 4 of",
        ),
        ("no prefix", &[], vec![0, 0], Code::InvalidArgument, "after 2 of 5"),
        (
            "two messages",
            &[],
            frame(0, &good).repeat(2),
            Code::InvalidArgument,
            "one message",
        ),
        ("flags", &[], frame(4, &good), Code::InvalidArgument, "not 4"),
        (
            "timeout",
            &[("grpc-timeout", "soon")],
            frame(0, &good),
            Code::InvalidArgument,
            "grpc-timeout",
        ),
    ];
    for (name, headers, body, status, text) in cases {
        let answer = web(&server, PUSH, headers, body).await;
        assert_eq!(answer.status, status, "{name}: {}", answer.text);
        assert!(answer.text.contains(text), "{name}: {}", answer.text);
    }
    assert_eq!(double.0.lock().len(), 2);
}

#[tokio::test]
async fn calls_that_are_not_there_and_grpc_over_http_1_are_refused_in_the_protocol_of_the_caller() {
    let (server, _double) = server(ServerOptions::default()).await;
    let unknown = "/querier.v1.QuerierService/SelectNothing";
    let error = grpc::<_, PushResponse>(&server, "/profile", unknown, Request::new(PushRequest::default()));
    assert_eq!(error.await.unwrap_err().code(), Code::Unimplemented);
    let request = server.post(PUSH).header("content-type", "application/grpc");
    let response = request.body(frame(0, b"")).send().await.unwrap();
    assert_eq!(response.headers()["grpc-status"], "12");
    assert!(response.headers()["grpc-message"].to_str().unwrap().contains("HTTP/2"));
}

/// Returns the raw bytes of the server's response to a gRPC call over HTTP/1.1.
async fn over_http_1(server: &TestServer, path: &str, message: &[u8]) -> String {
    let mut connection = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    let body = frame(0, message);
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: here\r\ncontent-type: application/grpc+proto\r\nte: trailers\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn clients_without_tls_that_read_trailers_may_speak_grpc_over_http_1() {
    let (server, double) = server(ServerOptions::default()).await;
    let answer = over_http_1(&server, PUSH, &push_of(&["shop"]).encode_to_vec()).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(head.contains("trailer: grpc-status"), "{answer}");
    assert!(head.contains("transfer-encoding: chunked"), "{answer}");
    // The prefix of an empty message, followed by the status.
    assert_eq!(body, "5\r\n\0\0\0\0\0\r\n0\r\ngrpc-status: 0\r\n\r\n", "{answer}");
    let answer = over_http_1(&server, PUSH, &push_of(&["refused"]).encode_to_vec()).await;
    assert!(answer.contains("grpc-status: 3"), "{answer}");
    assert_eq!(double.0.lock().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_the_same_messages_by_every_protocol() {
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    let (start, end) = pushed.range();
    let selection = pushed.selection("{}");

    let names: types::LabelValuesResponse = grpc(
        &site.server,
        "/profile",
        "/querier.v1.QuerierService/LabelValues",
        Request::new(types::LabelValuesRequest {
            name: "service_name".to_owned(),
            start,
            end,
            ..Default::default()
        }),
    )
    .await
    .unwrap();
    assert_eq!(names.names, ["cart", "checkout", "search"]);

    let stacktraces = querier::SelectMergeStacktracesRequest {
        profile_type_id: selection.profile_type.clone(),
        label_selector: selection.selector.clone(),
        start,
        end,
        frame_details: true,
        ..Default::default()
    };
    let route = "/querier.v1.QuerierService/SelectMergeStacktraces";
    let graph: querier::SelectMergeStacktracesResponse =
        grpc(&site.server, "", route, Request::new(stacktraces.clone()))
            .await
            .unwrap();
    let by_connect = site
        .server
        .querier()
        .merge_stacktraces(selection.clone(), 0)
        .await
        .unwrap();
    assert_eq!(
        alluvium_wire::querier::flamegraph(graph.flamegraph.unwrap()),
        by_connect
    );
    assert_eq!(by_connect.total, pushed.total());

    // The merged profile is larger than one piece of a response body (64 KiB). It arrives with and without gzip.
    let ask = querier::SelectMergeProfileRequest {
        profile_type_id: selection.profile_type.clone(),
        label_selector: selection.selector.clone(),
        start,
        end,
        ..Default::default()
    };
    let route = "/querier.v1.QuerierService/SelectMergeProfile";
    let by_grpc: Profile = grpc(&site.server, "", route, Request::new(ask.clone())).await.unwrap();
    let by_connect = site.server.querier().merge_profile(selection).await.unwrap();
    assert_eq!(by_grpc, Profile::decode(by_connect.clone()).unwrap());
    let body = frame(0, &ask.encode_to_vec());
    let plain = web(&site.server, route, &[], body.clone()).await;
    assert!(!plain.is_compressed && plain.message.len() > 64 << 10);
    assert_eq!(plain.message, by_connect);
    let packed = web(&site.server, route, &[("grpc-accept-encoding", "gzip")], body).await;
    assert!(packed.is_compressed && packed.message.len() < plain.message.len());
    assert_eq!(pprof::gunzip(&packed.message.into(), 64 << 20).unwrap(), by_connect);
}
