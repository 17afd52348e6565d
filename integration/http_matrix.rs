//! The matrix of status codes: 194 requests to eleven routes, each with the status that Pyroscope's clients expect,
//! over Connect, gRPC and gRPC-Web.
//!
//! The cases were written for this project; each route and status has as many cases as in Pyroscope's own test. If
//! Alluvium returns another status on purpose, the case is in [`DIFFERENT`] with the reason, and in `docs/http-api.md`.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;

use alluvium::server::ServerOptions;
use alluvium_wire::connect::{self, Codec};
use alluvium_wire::proto::{querier, types};
use axum::body::Body as RequestBody;
use hyper::body::Body as _;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prost::Message;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tonic::{Code, Status};

use crate::grpc::{frame, web};
use crate::http_store::{CPU, Pushed, Site, push_some};

/// Methods that no call supports.
const OTHER_METHODS: [&str; 4] = ["GET", "PUT", "DELETE", "PATCH"];

/// Route, parameter, value, Pyroscope's status, Alluvium's status, and the reason.
const DIFFERENT: [(&str, &str, &str, u16, u16, &str); 1] = [(
    "/pyroscope/render",
    "from",
    "yesterday",
    200,
    400,
    "a text that is not a time is an error of the client, and Alluvium does not replace it with the current time",
)];

/// Number of cases by route, with the statuses 200, 400, 405 and 415, as in Pyroscope's own test.
const COUNTS: [(&str, [usize; 4]); 11] = [
    ("/pyroscope/render", [14, 9, 4, 0]),
    ("/pyroscope/render-diff", [3, 16, 4, 0]),
    ("ProfileTypes", [6, 5, 4, 1]),
    ("LabelValues", [3, 7, 4, 1]),
    ("LabelNames", [2, 5, 4, 1]),
    ("Series", [3, 5, 4, 1]),
    ("SelectMergeStacktraces", [4, 9, 4, 1]),
    ("SelectMergeProfile", [3, 9, 4, 1]),
    ("SelectSeries", [3, 10, 4, 1]),
    ("Diff", [3, 10, 4, 1]),
    ("SelectMergeSpanProfile", [3, 9, 4, 1]),
];

/// Request body of a call.
#[derive(Clone)]
enum Body {
    /// A request that is an object.
    Json(Value),
    /// A text that is not a valid request. It can only be sent as JSON.
    Text(&'static str),
}

/// A request to a call, with its expected status.
struct Case {
    call: &'static str,
    body: Body,
    status: u16,
}

/// Builds the cases of one call from the request `good`: the changes in `right` lead to status 200, those in `wrong` to
/// 400. A change consists of a path into the request, with dots between the fields, and the new value of that field.
fn cases(call: &'static str, good: &Value, right: &[&[(&str, Value)]], wrong: &[&[(&str, Value)]]) -> Vec<Case> {
    let changed = |changes: &[(&str, Value)]| {
        let mut question = good.clone();
        for (path, value) in changes {
            let mut place = &mut question;
            for key in path.split('.') {
                place = &mut place[key];
            }
            *place = value.clone();
        }
        Body::Json(question)
    };
    let case = |status| move |body| Case { call, body, status };
    let right = right.iter().map(|changes| changed(changes)).map(case(200));
    let wrong = wrong.iter().map(|changes| changed(changes));
    let unread = ["", "{\"start\": "].map(Body::Text);
    right.chain(wrong.chain(unread).map(case(400))).collect()
}

/// Returns all cases of calls over Connect.
fn all_cases(pushed: &Pushed) -> Vec<Case> {
    let (start, end) = pushed.range();
    let (none, text) = (json!(0), json!("yesterday"));
    let no_range: &[(&str, Value)] = &[("start", none.clone()), ("end", none.clone())];
    let reversed: &[(&str, Value)] = &[("start", json!(end)), ("end", json!(start))];
    let times: &[(&str, Value)] = &[("start", text)];
    let bad_matcher: &[(&str, Value)] = &[("matchers", json!(["{service_name="]))];
    let matcher: &[(&str, Value)] = &[("matchers", json!(["{service_name=\"cart\"}"]))];
    let no_type: &[(&str, Value)] = &[("profileTypeID", json!(""))];
    let bad_type: &[(&str, Value)] = &[("profileTypeID", json!("process_cpu"))];
    let no_selector: &[(&str, Value)] = &[("labelSelector", json!(""))];
    let bad_selector: &[(&str, Value)] = &[("labelSelector", json!("{a=~\"(\"}"))];
    let narrow: &[(&str, Value)] = &[("labelSelector", json!("{service_name=\"cart\"}"))];
    let nothing: &[(&str, Value)] = &[("labelSelector", json!("{service_name=\"none\"}"))];
    let nodes = |nodes: i64| [("maxNodes", json!(nodes))];
    let range = json!({"start": start, "end": end});
    let value_of = json!({"start": start, "end": end, "name": "service_name"});
    let question = json!({"profileTypeID": CPU, "labelSelector": "{}", "start": start, "end": end});
    let with = |name: &str, value: Value| {
        let mut changed = question.clone();
        changed[name] = value;
        changed
    };
    let sides = json!({"left": question.clone(), "right": question.clone()});
    [
        cases(
            "ProfileTypes",
            &range,
            &[
                &[],
                no_range,
                &[("start", none.clone())],
                &[("start", json!(-1000))],
                &[("start", json!(end))],
                &[("start", json!(start.to_string()))],
            ],
            &[reversed, times, &[("end", json!({}))]],
        ),
        cases(
            "LabelValues",
            &value_of,
            &[&[], matcher, &[("name", json!("nobody_has_it"))]],
            &[no_range, reversed, times, bad_matcher, &[("name", json!(""))]],
        ),
        cases(
            "LabelNames",
            &range,
            &[&[], matcher],
            &[no_range, reversed, bad_matcher],
        ),
        cases(
            "Series",
            &range,
            &[
                &[],
                matcher,
                &[("labelNames", json!(["service_name", "__profile_type__"]))],
            ],
            &[no_range, reversed, bad_matcher],
        ),
        cases(
            "SelectMergeStacktraces",
            &question,
            &[&[], narrow, nothing, &nodes(0)],
            &[
                no_type,
                bad_type,
                no_selector,
                bad_selector,
                no_range,
                reversed,
                &nodes(-1),
            ],
        ),
        cases(
            "SelectMergeProfile",
            &question,
            &[&[], narrow, nothing],
            &[no_type, bad_type, no_selector, bad_selector, no_range, reversed, times],
        ),
        cases(
            "SelectSeries",
            &with("step", json!(15)),
            &[&[], narrow, &[("groupBy", json!(["service_name"]))]],
            &[
                no_type,
                bad_type,
                no_selector,
                bad_selector,
                no_range,
                reversed,
                &[("step", none)],
                &[("step", json!(-1))],
            ],
        ),
        cases(
            "Diff",
            &sides,
            &[
                &[],
                &[("left.labelSelector", json!("{service_name=\"cart\"}"))],
                &[("right.maxNodes", json!(10))],
            ],
            &[
                &[("left", Value::Null)],
                &[("right", Value::Null)],
                &[("left.profileTypeID", json!(""))],
                &[("right.profileTypeID", json!("process_cpu"))],
                &[("left.labelSelector", json!(""))],
                &[("right.labelSelector", json!("{a"))],
                &[("left.start", json!(0)), ("left.end", json!(0))],
                &[("right.start", json!(end + 1))],
            ],
        ),
        cases(
            "SelectMergeSpanProfile",
            &with("spanSelector", json!(["00000000000000ab"])),
            &[&[], narrow, &nodes(0)],
            &[
                no_type,
                bad_type,
                no_selector,
                bad_selector,
                no_range,
                reversed,
                &[("spanSelector", json!(["ab"]))],
            ],
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the cases of plain routes: route, parameter, changed value, and expected status.
fn plain_cases() -> Vec<(&'static str, &'static str, String, u16)> {
    let (render, diff) = ("/pyroscope/render", "/pyroscope/render-diff");
    let (all, bad) = (format!("{CPU}{{}}"), format!("{CPU}{{a=~\"(\"}}"));
    let mut found = vec![
        (render, "query", String::new(), 400),
        (render, "query", bad.clone(), 400),
        (render, "query", "process_cpu{}".to_owned(), 400),
        (render, "query", "{service_name=\"cart\"}".to_owned(), 400),
        (diff, "leftQuery", bad.clone(), 400),
        (diff, "rightQuery", bad, 400),
        (diff, "leftQuery", all.clone(), 200),
        (diff, "rightQuery", all, 200),
        (
            diff,
            "rightQuery",
            "memory:inuse_space:bytes:space:bytes{}".to_owned(),
            400,
        ),
    ];
    let texts: [(&str, &str, &str, u16); 32] = [
        (render, "maxNodes", "1024", 200),
        (render, "max-nodes", "1024", 200),
        (render, "maxNodes", "0", 200),
        (render, "max-nodes", "0", 200),
        (render, "maxNodes", "invalid", 200),
        (render, "aggregation", "sum", 200),
        (render, "aggregation", "avg", 200),
        (render, "aggregation", "invalid", 200),
        (render, "groupBy", "service_name", 200),
        (render, "groupBy", "nobody_has_it", 200),
        (render, "format", "dot", 200),
        (render, "format", "json", 200),
        (render, "from", "", 200),
        (render, "unknown", "1", 200),
        (render, "from", "0", 400),
        (render, "until", "0", 400),
        (render, "from", "now+1h", 400),
        (render, "maxNodes", "-1", 400),
        (render, "maxNodes", "2000000", 400),
        (diff, "maxNodes", "10", 200),
        (diff, "maxNodes", "2000000", 400),
        (diff, "leftQuery", "", 400),
        (diff, "rightQuery", "", 400),
        (diff, "leftQuery", "process_cpu{}", 400),
        (diff, "rightQuery", "process_cpu{}", 400),
        (diff, "leftQuery", "{}", 400),
        (diff, "rightQuery", "{}", 400),
        (diff, "leftFrom", "0", 400),
        (diff, "leftUntil", "0", 400),
        (diff, "rightFrom", "0", 400),
        (diff, "rightUntil", "0", 400),
        (diff, "leftFrom", "now", 400),
    ];
    found.extend(texts.map(|(route, name, value, status)| (route, name, value.to_owned(), status)));
    found.push((diff, "rightFrom", "now+1d".to_owned(), 400));
    found
}

/// Returns the status of a plain route with one changed parameter.
async fn plain(site: &Site, route: &str, name: &str, value: &str) -> u16 {
    let all = format!("{CPU}{{}}");
    let good: &[(&str, &str)] = if route == "/pyroscope/render" {
        &[("query", &all), ("from", "now-15m"), ("until", "now")]
    } else {
        &[
            ("leftQuery", &all),
            ("leftFrom", "now-30m"),
            ("leftUntil", "now-15m"),
            ("rightQuery", &all),
            ("rightFrom", "now-15m"),
            ("rightUntil", "now"),
        ]
    };
    let mut asked = url::form_urlencoded::Serializer::new(String::new());
    asked.extend_pairs(good.iter().filter(|(given, _)| *given != name));
    asked.append_pair(name, value);
    site.server.get(&format!("{route}?{}", asked.finish())).await.0
}

fn path(call: &str) -> String {
    format!("/querier.v1.QuerierService/{call}")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_of_the_matrix_has_its_status_over_connect() {
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    let mut counts: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let mut count = |route: &'static str, status: u16| {
        let place = [200, 400, 405, 415].iter().position(|known| *known == status).unwrap();
        counts.entry(route).or_default()[place] += 1;
    };
    for case in all_cases(&pushed) {
        let text = match &case.body {
            Body::Json(question) => question.to_string(),
            Body::Text(text) => (*text).to_owned(),
        };
        let request = site
            .server
            .post(&path(case.call))
            .header("content-type", "application/json");
        let response = request.body(text.clone()).send().await.unwrap();
        let status = response.status().as_u16();
        let answer = response.text().await.unwrap();
        assert_eq!(status, case.status, "{} {text}: {answer}", case.call);
        if status == 400 {
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["code"], "invalid_argument", "{} {text}", case.call);
        }
        count(case.call, status);
    }
    for (route, name, value, status) in plain_cases() {
        assert_eq!(
            plain(&site, route, name, &value).await,
            status,
            "{route} {name}={value}"
        );
        count(route, status);
    }
    for (route, _) in COUNTS {
        let (url, methods) = if route.starts_with('/') {
            (
                format!("{}{route}", site.server.url),
                ["POST", "PUT", "DELETE", "PATCH"],
            )
        } else {
            (format!("{}{}", site.server.url, path(route)), OTHER_METHODS)
        };
        for method in methods {
            let request = site.server.client.request(method.parse().unwrap(), &url);
            assert_eq!(request.send().await.unwrap().status(), 405, "{method} {route}");
            count(route, 405);
        }
        if !route.starts_with('/') {
            let request = site.server.post(&path(route)).header("content-type", "text/plain");
            assert_eq!(request.body("{}").send().await.unwrap().status(), 415, "{route}");
            count(route, 415);
        }
    }
    assert_eq!(counts, BTreeMap::from(COUNTS));
    assert_eq!(COUNTS.iter().flat_map(|(_, counts)| counts).sum::<usize>(), 194);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_differs_from_pyroscope_on_purpose_is_as_it_is_listed() {
    let site = Site::new(ServerOptions::default()).await;
    for (route, name, value, theirs, ours, reason) in DIFFERENT {
        assert_ne!(theirs, ours, "{reason}");
        assert_eq!(
            plain(&site, route, name, value).await,
            ours,
            "{route} {name}={value}: {reason}"
        );
    }
}

/// Encodes a request as protobuf; `None` when only JSON can express it.
macro_rules! encoded {
    ($ask:ty, $question:expr) => {
        connect::decode::<$ask>(Codec::Json, $question.to_string().into())
            .ok()
            .map(|ask| ask.encode_to_vec())
    };
}

fn message(case: &Case) -> Option<Vec<u8>> {
    let Body::Json(question) = &case.body else {
        return None;
    };
    match case.call {
        "ProfileTypes" => encoded!(querier::ProfileTypesRequest, question),
        "LabelValues" => encoded!(types::LabelValuesRequest, question),
        "LabelNames" => encoded!(types::LabelNamesRequest, question),
        "Series" => encoded!(querier::SeriesRequest, question),
        "SelectMergeStacktraces" => encoded!(querier::SelectMergeStacktracesRequest, question),
        "SelectMergeProfile" => encoded!(querier::SelectMergeProfileRequest, question),
        "SelectSeries" => encoded!(querier::SelectSeriesRequest, question),
        "Diff" => encoded!(querier::DiffRequest, question),
        "SelectMergeSpanProfile" => encoded!(querier::SelectMergeSpanProfileRequest, question),
        other => panic!("{other} is not in the matrix"),
    }
}

/// Response to a gRPC call.
struct Answer {
    /// The body: frames of messages.
    body: Vec<u8>,
    /// The status that ended the call.
    status: Status,
}

/// Calls a URL by gRPC with this body. The status is in the trailers, or in the headers if there are no trailers.
async fn grpc(client: &Client<HttpConnector, RequestBody>, url: &str, body: Vec<u8>) -> Answer {
    let request = http::Request::post(url)
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    let request = request.body(RequestBody::from(body)).unwrap();
    let (parts, mut incoming) = client.request(request).await.unwrap().into_parts();
    assert_eq!(parts.status, 200, "{url}");
    let (mut body, mut trailers) = (Vec::new(), None);
    while let Some(frame) = poll_fn(|context| Pin::new(&mut incoming).poll_frame(context)).await {
        match frame.unwrap().into_data() {
            Ok(data) => body.extend_from_slice(&data),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    let is_in_headers = parts.headers.contains_key("grpc-status");
    assert_ne!(
        is_in_headers,
        trailers.is_some(),
        "{url}: the status must be in one place"
    );
    let status = Status::from_header_map(trailers.as_ref().unwrap_or(&parts.headers));
    Answer {
        body,
        status: status.expect("every response has a status"),
    }
}

/// Returns a gRPC client over HTTP/2, or over HTTP/1.1 with trailers.
fn grpc_client(is_http2: bool) -> Client<HttpConnector, RequestBody> {
    Client::builder(TokioExecutor::new()).http2_only(is_http2).build_http()
}

#[tokio::test]
async fn a_failing_status_behind_a_message_is_not_taken_for_a_success() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/any", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        // The request ends with the message `ask`.
        while !request.ends_with(b"ask") {
            assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/grpc\r\ntransfer-encoding: chunked\r\n\
                    trailer: grpc-status\r\n\r\n";
        let rest = "5\r\n\0\0\0\0\0\r\n0\r\ngrpc-status: 3\r\n\r\n";
        stream.write_all(format!("{head}{rest}").as_bytes()).await.unwrap();
        stream
    });
    let answer = grpc(&grpc_client(false), &url, frame(0, b"ask")).await;
    assert_eq!((answer.body.len(), answer.status.code()), (5, Code::InvalidArgument));
    drop(server.await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_question_of_the_matrix_has_the_same_outcome_over_grpc_and_grpc_web() {
    let site = Site::new(ServerOptions::default()).await;
    let pushed = push_some(&site).await;
    let clients = [true, false].map(grpc_client);
    let mut asked = 0;
    for case in all_cases(&pushed) {
        let Some(message) = message(&case) else { continue };
        asked += 1;
        let expected = match case.status {
            200 => Code::Ok,
            _ => Code::InvalidArgument,
        };
        let body = frame(0, &message);
        let by_web = web(&site.server, &path(case.call), &[], body.clone()).await;
        assert_eq!(by_web.status, expected, "{} over gRPC-Web: {}", case.call, by_web.text);
        for client in &clients {
            let url = format!("{}{}", site.server.url, path(case.call));
            let Answer { body, status } = grpc(client, &url, body.clone()).await;
            assert_eq!(status.code(), expected, "{} over gRPC: {status:?}", case.call);
            assert_eq!(body.is_empty(), expected != Code::Ok, "{} over gRPC", case.call);
        }
    }
    // All cases except those that only JSON can express: two texts for each call, and four requests with times of a
    // wrong type.
    assert_eq!(asked, 30 + 69 - 18 - 4);
}
