//! OpenTelemetry profiles that clients send to a server with a real store. The tests use gRPC and HTTP with protobuf
//! and JSON, with and without compression. They send invalid requests as well, and check the results of queries.
//!
//! The tests build the requests by hand, so the expected values are known.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use alluvium::server::{ServerLimits, ServerOptions};
use alluvium_base::Shutdown;
use alluvium_components::ALL;
use alluvium_pipeline::{Controller, Options};
use alluvium_profile::pprof;
use alluvium_wire::connect::{self, Codec};
use alluvium_wire::grpc_status;
use alluvium_wire::otlp::messages::any_value::Value as Content;
use alluvium_wire::otlp::messages::{
    AnyValue, ExportProfilesServiceRequest, ExportProfilesServiceResponse, Function, KeyValue, KeyValueAndUnit, Line,
    Link, Location, Profile, ProfilesDictionary, Resource, ResourceProfiles, Sample, ScopeProfiles, Stack, ValueType,
};
use alluvium_wire::querier::Selection;
use prost::Message as _;
use serde_json::{Value, json};
use tonic::{Code, Request};

use crate::grpc::grpc;
use crate::http_store::{CPU, Site};
use crate::program::Address;

pub(crate) const EXPORT: &str = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";
pub(crate) const HTTP: &str = "/v1development/profiles";

/// Nanoseconds that one tick stands for.
const PERIOD: i64 = 10_000_000;

fn now_nanos() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn text(value: &str) -> Option<AnyValue> {
    Some(AnyValue {
        value: Some(Content::StringValue(value.to_owned())),
    })
}

fn sample(stack: i32, values: &[i64]) -> Sample {
    Sample {
        stack_index: stack,
        values: values.to_vec(),
        ..Sample::default()
    }
}

/// Returns a request with 3 ticks of `main` and 7 ticks of `work` called by `main`. A third sample has 2 ticks of
/// `main`, and an attribute that assigns it to the service `other`.
pub(crate) fn request(service: &str) -> ExportProfilesServiceRequest {
    let strings = [
        "",
        "samples",
        "count",
        "cpu",
        "nanoseconds",
        "main",
        "work",
        "service.name",
        "thread.name",
    ];
    let value_type = |kind, unit| {
        Some(ValueType {
            type_strindex: kind,
            unit_strindex: unit,
        })
    };
    let mut of_other = sample(1, &[]);
    of_other.timestamps_unix_nano = vec![1, 2];
    of_other.attribute_indices = vec![1];
    let mut of_thread = sample(2, &[7]);
    of_thread.attribute_indices = vec![2];
    of_thread.link_index = 1;
    let profile = Profile {
        sample_type: value_type(1, 2),
        period_type: value_type(3, 4),
        period: PERIOD,
        time_unix_nano: now_nanos(),
        duration_nano: 5_000_000_000,
        samples: vec![sample(1, &[1, 2]), of_thread, of_other],
        profile_id: vec![7; 16],
        ..Profile::default()
    };
    let named = |function| Location {
        lines: vec![Line {
            function_index: function,
            line: 1,
            ..Line::default()
        }],
        ..Location::default()
    };
    let function = |name| Function {
        name_strindex: name,
        ..Function::default()
    };
    let stack = |locations: &[i32]| Stack {
        location_indices: locations.to_vec(),
    };
    let attribute = |key, value| KeyValueAndUnit {
        key_strindex: key,
        value: text(value),
        unit_strindex: 0,
    };
    ExportProfilesServiceRequest {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource {
                attributes: vec![KeyValue {
                    key: "service.name".to_owned(),
                    value: text(service),
                    key_strindex: 0,
                }],
                ..Resource::default()
            }),
            scope_profiles: vec![ScopeProfiles {
                profiles: vec![profile],
                ..ScopeProfiles::default()
            }],
            ..ResourceProfiles::default()
        }],
        dictionary: Some(ProfilesDictionary {
            string_table: strings.map(str::to_owned).to_vec(),
            function_table: vec![Function::default(), function(5), function(6)],
            location_table: vec![Location::default(), named(1), named(2)],
            stack_table: vec![Stack::default(), stack(&[1]), stack(&[2, 1])],
            attribute_table: vec![
                KeyValueAndUnit::default(),
                attribute(7, "other"),
                attribute(8, "worker"),
            ],
            link_table: vec![
                Link::default(),
                Link {
                    trace_id: vec![1; 16],
                    span_id: vec![2; 8],
                },
            ],
            ..ProfilesDictionary::default()
        }),
    }
}

/// A request whose content is not decoded.
#[derive(Clone, PartialEq, prost::Message)]
struct Encoded {
    #[prost(bytes = "vec", repeated, tag = "1")]
    resource_profiles: Vec<Vec<u8>>,
    #[prost(bytes = "vec", tag = "2")]
    dictionary: Vec<u8>,
}

/// Returns a [`request`] in the layout of OTLP 1.9, in which values, attributes and link of a sample have other
/// numbers.
fn older(service: &str) -> Vec<u8> {
    let mut bytes = request(service).encode_to_vec();
    for (sample, older_sample) in [
        (&[8, 1, 0x22, 2, 1, 2][..], &[8, 1, 0x12, 2, 1, 2][..]),
        (
            &[8, 2, 0x12, 1, 2, 0x18, 1, 0x22, 1, 7],
            &[8, 2, 0x12, 1, 7, 0x1a, 1, 2, 0x20, 1],
        ),
        (&[8, 1, 0x12, 1, 1, 0x2a, 16], &[8, 1, 0x1a, 1, 1, 0x2a, 16]),
    ] {
        let mut windows = bytes.windows(sample.len());
        let start = windows.position(|window| window == sample).unwrap();
        bytes[start..start + sample.len()].copy_from_slice(older_sample);
    }
    bytes
}

/// Returns the only profile of a [`request`].
pub(crate) fn profile(request: &mut ExportProfilesServiceRequest) -> &mut Profile {
    &mut request.resource_profiles[0].scope_profiles[0].profiles[0]
}

/// Posts a body, and returns status, content type and body of the response.
async fn post(site: &Site, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> (u16, String, Vec<u8>) {
    let mut request = site.server.post(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.body(body).send().await.unwrap();
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    (
        response.status().as_u16(),
        kind,
        response.bytes().await.unwrap().to_vec(),
    )
}

/// Returns the CPU time in nanoseconds of the profiles that match a selector, by leaf function.
async fn times(site: &Site, selector: &str) -> Vec<(String, i64)> {
    let now_ms = (now_nanos() / 1_000_000) as i64;
    let selection = Selection {
        profile_type: CPU.to_owned(),
        selector: selector.to_owned(),
        start_ms: now_ms - 600_000,
        end_ms: now_ms + 60_000,
    };
    let body = site.server.querier().merge_profile(selection).await.unwrap();
    let profile = pprof::decode(&body).unwrap();
    let mut times: Vec<(String, i64)> = Vec::new();
    for sample in 0..profile.sample_count() {
        let leaf = profile.locations[profile.stack(sample)[0] as usize];
        let function = profile.lines_of(&leaf)[0].function;
        let name = profile.functions[function as usize].name;
        times.push((name.to_owned(), profile.values_of(sample).iter().sum()));
    }
    times.sort();
    times
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_come_by_grpc_and_http_and_are_found_with_exact_totals() {
    let site = Site::new(ServerOptions::default()).await;
    let good = |service: &str| request(service).encode_to_vec();
    for prefix in ["", "/profile"] {
        let answer: ExportProfilesServiceResponse =
            grpc(&site.server, prefix, EXPORT, Request::new(request("by-grpc")))
                .await
                .unwrap();
        assert_eq!(answer, ExportProfilesServiceResponse::default());
        let path = format!("{prefix}{HTTP}");
        let connect = [("content-type", "application/proto")];
        let by_connect = post(&site, &format!("{prefix}{EXPORT}"), &connect, good("by-connect")).await;
        assert_eq!((by_connect.0, by_connect.2.len()), (200, 0));
        for kind in ["application/x-protobuf", "application/protobuf"] {
            let answer = post(&site, &path, &[("content-type", kind)], good("by-http")).await;
            assert_eq!(answer, (200, "application/x-protobuf".to_owned(), Vec::new()));
        }
        let json = connect::encode(Codec::Json, &request("by-json")).to_vec();
        let answer = post(&site, &path, &[("content-type", "application/json")], json).await;
        assert_eq!(answer, (200, "application/json".to_owned(), b"{}".to_vec()));
    }
    for (encoding, body) in [
        ("gzip", pprof::gzip(&good("packed"))),
        // A body may be gzip although no header says so.
        ("", pprof::gzip(&good("packed"))),
        ("zstd", zstd::encode_all(good("packed").as_slice(), 1).unwrap()),
    ] {
        let headers = [
            ("content-type", "application/x-protobuf"),
            ("content-encoding", encoding),
        ];
        assert_eq!(post(&site, HTTP, &headers, body).await.0, 200, "{encoding}");
    }
    let older_by_grpc = Request::new(Encoded::decode(older("older").as_slice()).unwrap());
    let answer: ExportProfilesServiceResponse = grpc(&site.server, "", EXPORT, older_by_grpc).await.unwrap();
    assert_eq!(answer, ExportProfilesServiceResponse::default());
    let protobuf = [("content-type", "application/x-protobuf")];
    assert_eq!(post(&site, HTTP, &protobuf, older("older")).await.0, 200);
    // OTLP 1.8 had these names in JSON.
    let json = String::from_utf8(connect::encode(Codec::Json, &request("older")).to_vec()).unwrap();
    let json = json
        .replace("\"samples\":", "\"sample\":")
        .replace("\"lines\":", "\"line\":");
    let headers = [("content-type", "application/json")];
    assert_eq!(post(&site, HTTP, &headers, json.into_bytes()).await.0, 200);
    for (service, requests) in [
        ("by-grpc", 2),
        ("by-connect", 2),
        ("by-http", 4),
        ("by-json", 2),
        ("packed", 3),
        ("older", 3),
    ] {
        let expected = [
            ("main".to_owned(), 3 * PERIOD * requests),
            ("work".to_owned(), 7 * PERIOD * requests),
        ];
        assert_eq!(times(&site, &format!("{{service_name=\"{service}\"}}")).await, expected);
    }
    let expected = [("main".to_owned(), 2 * PERIOD * 16)];
    assert_eq!(times(&site, "{service_name=\"other\"}").await, expected);
    let of_thread = times(&site, "{thread.name=\"worker\"}").await;
    assert_eq!(of_thread, [("work".to_owned(), 7 * PERIOD * 16)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_refused_as_a_whole_in_the_encoding_of_the_request() {
    let site = Site::new(ServerOptions::default()).await;
    let mut broken = request("shop");
    profile(&mut broken).samples[0].stack_index = 9;
    let reason = "stack_index is 9, but stack_table has 3 entries";
    let error = grpc::<_, ExportProfilesServiceResponse>(&site.server, "", EXPORT, Request::new(broken.clone()));
    let error = error.await.unwrap_err();
    assert_eq!((error.code(), error.message()), (Code::InvalidArgument, reason));

    let kind = "application/x-protobuf";
    let (status, answered, body) = post(&site, HTTP, &[("content-type", kind)], broken.encode_to_vec()).await;
    assert_eq!((status, answered.as_str()), (400, kind));
    let error = grpc_status::decode(&body).unwrap();
    assert_eq!(error.message, reason);

    let json = connect::encode(Codec::Json, &broken).to_vec();
    let kind = "application/json";
    let (status, answered, body) = post(&site, HTTP, &[("content-type", kind)], json).await;
    assert_eq!((status, answered.as_str()), (400, kind));
    let error: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(error, json!({"code": 3, "message": reason}));

    let mut deep = request("shop");
    deep.dictionary.as_mut().unwrap().stack_table[1].location_indices = vec![1; 20_000];
    profile(&mut deep).samples = vec![sample(1, &[1]); 20_000];
    let protobuf = ("content-type", "application/x-protobuf");
    for (name, headers, body, expected) in [
        ("garbage", &[protobuf][..], b"garbage".to_vec(), 400),
        ("garbage as JSON", &[("content-type", kind)], b"{".to_vec(), 400),
        (
            "text",
            &[("content-type", "text/plain")],
            request("a").encode_to_vec(),
            415,
        ),
        ("no type", &[], request("a").encode_to_vec(), 415),
        ("encoding", &[protobuf, ("content-encoding", "br")], Vec::new(), 415),
        ("expansion", &[protobuf], deep.encode_to_vec(), 413),
        ("many", &[protobuf], [0x0a, 0].repeat(600_000), 413),
    ] {
        let (status, _, body) = post(&site, HTTP, headers, body).await;
        assert_eq!(status, expected, "{name}: {}", String::from_utf8_lossy(&body));
    }
    let nothing = post(&site, HTTP, &[protobuf], Vec::new()).await;
    assert_eq!(nothing.0, 200, "a request without profiles must succeed");
    assert_eq!(times(&site, "{}").await, [], "a refused request was stored");
    let metrics = site.server.metrics.encode();
    let counted = "alluvium_http_requests_total{route=\"/v1development/profiles\",status=\"413\"} 2";
    assert!(metrics.contains(counted), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_the_store_refuses_is_counted_in_the_response_and_the_others_are_there() {
    let site = Site::new(ServerOptions::default()).await;
    let mut mixed = request("shop");
    let mut old = profile(&mut mixed).clone();
    old.time_unix_nano = 1_000_000_000_000_000_000;
    mixed.resource_profiles[0].scope_profiles[0].profiles.push(old);
    let answer: ExportProfilesServiceResponse = grpc(&site.server, "", EXPORT, Request::new(mixed.clone()))
        .await
        .unwrap();
    let partial = answer.partial_success.unwrap();
    assert_eq!(partial.rejected_profiles, 1);
    assert!(partial.error_message.contains("reject_older_than"), "{partial:?}");
    let total: i64 = times(&site, "{}").await.iter().map(|(_, time)| time).sum();
    assert_eq!(total, 12 * PERIOD);
    mixed.resource_profiles[0].scope_profiles[0].profiles.remove(0);
    let error = grpc::<_, ExportProfilesServiceResponse>(&site.server, "", EXPORT, Request::new(mixed));
    assert_eq!(error.await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tenant_and_the_limits_are_those_of_every_route() {
    let site = Site::new(ServerOptions {
        multi_tenant: true,
        limits: ServerLimits {
            body_bytes: 2_000,
            unpacked_body_bytes: 2_000,
            ..ServerLimits::default()
        },
        ..ServerOptions::default()
    })
    .await;
    let protobuf = ("content-type", "application/x-protobuf");
    let tenant = ("x-scope-orgid", "team-a");
    let body = request("shop").encode_to_vec();
    assert_eq!(post(&site, HTTP, &[protobuf], body.clone()).await.0, 401);
    assert_eq!(post(&site, HTTP, &[protobuf, tenant], body).await.0, 200);
    let large = request(&"x".repeat(2_000)).encode_to_vec();
    let (status, kind, body) = post(&site, HTTP, &[protobuf, tenant], large).await;
    assert_eq!((status, kind.as_str()), (413, "application/x-protobuf"));
    assert!(grpc_status::decode(&body).unwrap().message.contains("2000 bytes"));
}

/// Profiles go to the first collector by HTTP, from there to the second one by gRPC, and to the server by HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn profiles_go_through_two_collectors_and_keep_their_types_and_totals() {
    let site = Site::new(ServerOptions::default()).await;
    let (first, second) = (Address::keep(), Address::keep());
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        r#"
otelcol.receiver.otlp "first" {{
	http {{ endpoint = "{first}" }}
	output {{ profiles = [otelcol.exporter.otlp.second.input] }}
}}
otelcol.exporter.otlp "second" {{
	client {{ endpoint = "http://{second}" }}
}}
otelcol.receiver.otlp "second" {{
	grpc {{ endpoint = "{second}" }}
	output {{ profiles = [otelcol.exporter.otlphttp.server.input] }}
}}
otelcol.exporter.otlphttp "server" {{
	client {{ endpoint = "{}/profile" }}
}}
"#,
        site.server.url
    );
    let controller = Controller::new(ALL, Options::new(folder.path()));
    controller.load(vec![("a.alloy".to_owned(), text)]).await.unwrap();
    let stop = Shutdown::new();
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { controller.run(stop).await }
    });
    let client = crate::harness::client();
    let deadline = Instant::now() + Duration::from_mins(1);
    let body = request("shop").encode_to_vec();
    loop {
        let request = client.post(format!("http://{first}{HTTP}"));
        let request = request
            .header("content-type", "application/x-protobuf")
            .body(body.clone());
        match request.send().await {
            Ok(response) => {
                assert_eq!(response.status(), 200);
                break;
            }
            // Connections fail until the components run and open their ports.
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let expected = [("main".to_owned(), 3 * PERIOD), ("work".to_owned(), 7 * PERIOD)];
    while times(&site, "{service_name=\"shop\"}").await != expected {
        assert!(Instant::now() < deadline, "the profiles did not arrive");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let other = times(&site, "{service_name=\"other\"}").await;
    assert_eq!(other, [("main".to_owned(), 2 * PERIOD)]);
    stop.cancel();
    running.await.unwrap();
}
