//! The HTTP routes over a mock of the store: the profiles that reach the mock, refusals of invalid requests, limits,
//! tenants, prefix, and page.
//!
//! `http_store.rs` tests that stored profiles are found again.

use std::io::Write;
use std::sync::Arc;

use alluvium::server::{ProfileStore, ServerLimits, ServerOptions};
use alluvium::store::Limits;
use alluvium_base::BoxFuture;
use alluvium_profile::pprof::{self, Profile, ValueType};
use alluvium_profile::sink::Receiver;
use alluvium_profile::{Labels, ProfileSink, RawProfile, RefusedProfile, SinkError, SinkErrorKind, TenantId};
use alluvium_wire::call::CallError;
use alluvium_wire::connect::{self, Code, Codec};
use alluvium_wire::push;
use parking_lot::Mutex;
use prost::Message;

use crate::harness::TestServer;

const PUSH: &str = "/push.v1.PusherService/Push";

/// Mock of the store. Records the profiles, and refuses profiles whose label `refuse` names a kind of error.
#[derive(Default)]
struct Double {
    taken: Mutex<Vec<(TenantId, RawProfile)>>,
}

impl ProfileStore for Double {
    fn sink(self: Arc<Self>, tenant: &TenantId) -> Receiver {
        Arc::new(OfTenant {
            double: self,
            tenant: tenant.clone(),
        })
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), SinkError>> {
        Box::pin(async { Err(SinkError::new(SinkErrorKind::Unavailable, "the disk is full")) })
    }

    fn limits(&self, _tenant: &TenantId) -> Arc<Limits> {
        Arc::new(Limits {
            max_profile_size_bytes: 2 << 20,
            ..Limits::default()
        })
    }
}

/// The mock as a sink of one tenant.
struct OfTenant {
    double: Arc<Double>,
    tenant: TenantId,
}

impl ProfileSink for OfTenant {
    fn append(&self, profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<RefusedProfile>> {
        Box::pin(async move {
            let mut errors = Vec::new();
            for (index, profile) in profiles.into_iter().enumerate() {
                let kind = match profile.labels.get("refuse") {
                    None => {
                        self.double.taken.lock().push((self.tenant.clone(), profile));
                        continue;
                    }
                    Some("invalid") => SinkErrorKind::Invalid,
                    Some("too_large") => SinkErrorKind::TooLarge,
                    Some("limit") => SinkErrorKind::LimitExceeded,
                    Some("unavailable") => SinkErrorKind::Unavailable,
                    Some("panic") => panic!("as the test wants it"),
                    Some(_) => SinkErrorKind::Internal,
                };
                errors.push(RefusedProfile::new(index, SinkError::new(kind, "refused as asked")));
            }
            errors
        })
    }
}

fn pprof_bytes() -> Vec<u8> {
    pprof::encode(&Profile {
        sample_types: vec![ValueType {
            kind: "cpu",
            unit: "nanoseconds",
        }],
        time_nanos: 1_700_000_000_000_000_000,
        sample_starts: vec![0],
        label_starts: vec![0],
        ..Profile::default()
    })
}

fn profile(labels: &[(&str, &str)]) -> RawProfile {
    RawProfile {
        labels: Labels::from_pairs(labels.iter().copied()),
        id: "".into(),
        pprof: pprof::gzip(&pprof_bytes()).into(),
    }
}

fn request(labels: &[(&str, &str)]) -> Vec<u8> {
    push::to_request(&[profile(labels)]).encode_to_vec()
}

async fn server(options: ServerOptions) -> (TestServer, Arc<Double>) {
    let double = Arc::new(Double::default());
    (TestServer::start(double.clone(), options).await, double)
}

async fn answer(request: reqwest::RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn a_push_reaches_the_store_in_binary_and_json_at_the_root_and_under_the_prefix() {
    let (server, double) = server(ServerOptions::default()).await;
    let labels = [("__name__", "process_cpu"), ("service_name", "shop")];
    let ask = push::to_request(&[profile(&labels)]);
    for prefix in ["", "/profile"] {
        let path = format!("{prefix}{PUSH}");
        let binary = server
            .post(&path)
            .header("content-type", "application/proto")
            .body(ask.encode_to_vec());
        assert_eq!(answer(binary).await, (200, String::new()));
        let text = connect::encode(Codec::Json, &ask);
        let json = server.post(&path).header("content-type", "application/json").body(text);
        assert_eq!(answer(json).await, (200, "{}".to_owned()));
    }
    let taken = double.taken.lock();
    assert_eq!(taken.len(), 4);
    for (tenant, taken) in taken.iter() {
        assert_eq!(
            (tenant.as_str(), &taken.labels),
            ("anonymous", &profile(&labels).labels)
        );
        assert_eq!(taken.pprof, profile(&labels).pprof);
    }
}

#[tokio::test]
async fn the_prefix_may_be_the_first_part_of_a_route() {
    let options = ServerOptions {
        prefix: "/pyroscope".to_owned(),
        ..ServerOptions::default()
    };
    let (server, double) = server(options).await;
    for path in ["/ingest", "/pyroscope/ingest", "/pyroscope/pyroscope/ingest"] {
        let folded = server
            .post(&format!("{path}?name=shop&format=collapsed"))
            .body("main;work 3\n");
        assert_eq!(answer(folded).await.0, 200, "{path}");
    }
    assert_eq!(double.taken.lock().len(), 3);
}

#[tokio::test]
async fn bodies_may_be_compressed_by_gzip_and_zstd() {
    let (server, double) = server(ServerOptions::default()).await;
    let plain = request(&[("__name__", "a")]);
    for (name, packed) in [
        ("gzip", pprof::gzip(&plain)),
        ("zstd", zstd::encode_all(plain.as_slice(), 1).unwrap()),
    ] {
        let push = server
            .post(PUSH)
            .header("content-type", "application/proto")
            .header("content-encoding", name)
            .body(packed);
        assert_eq!(answer(push).await.0, 200, "{name}");
    }
    assert_eq!(double.taken.lock().len(), 2);
}

#[tokio::test]
async fn gzip_needs_no_header_and_has_the_same_bounds() {
    let options = ServerOptions {
        limits: ServerLimits {
            unpacked_body_bytes: 8 << 20,
            ..ServerLimits::default()
        },
        ..ServerOptions::default()
    };
    let (server, double) = server(options).await;
    let labels = [("__name__", "a"), ("service_name", "shop")];
    let binary = pprof::gzip(&request(&labels));
    let json = pprof::gzip(&connect::encode(Codec::Json, &push::to_request(&[profile(&labels)])));
    let folded = pprof::gzip(b"main;work 3\n");
    let bomb = pprof::gzip(&vec![b'a'; 200 << 20]);
    let cut = binary[..binary.len() - 10].to_vec();
    let ingest = "/ingest?name=shop";
    for (path, kind, body, expected) in [
        (PUSH, "application/proto", &binary, 200),
        (PUSH, "application/json", &json, 200),
        (PUSH, "application/proto", &bomb, 413),
        (PUSH, "application/proto", &cut, 400),
        (ingest, "", &folded, 200),
        (ingest, "", &bomb, 413),
        ("/ingest?name=shop&format=lines", "", &folded, 200),
        ("/ingest?name=shop&format=lines", "", &bomb, 413),
        ("/ingest?name=shop&format=pprof", "", &folded, 400),
    ] {
        let post = server.post(path).header("content-type", kind).body(body.clone());
        let (status, text) = answer(post).await;
        assert_eq!(status, expected, "{path} {kind}: {text}");
    }
    // A profile that is gzip itself reaches the store as it was sent.
    let packed = pprof::gzip(&pprof_bytes());
    assert_eq!(answer(server.post(ingest).body(packed.clone())).await.0, 200);
    let taken = double.taken.lock();
    assert_eq!(taken.len(), 5);
    assert_eq!(taken[4].1.pprof, packed);
}

#[tokio::test]
async fn the_push_client_gets_every_kind_of_refusal_with_its_code() {
    let (server, double) = server(ServerOptions::default()).await;
    for (asked, status, code, is_retryable) in [
        ("invalid", 400, Code::InvalidArgument, false),
        ("too_large", 413, Code::InvalidArgument, false),
        ("limit", 429, Code::ResourceExhausted, true),
        ("unavailable", 503, Code::Unavailable, true),
        ("internal", 500, Code::Internal, true),
    ] {
        let good = profile(&[("__name__", "good")]);
        let bad = profile(&[("__name__", "bad"), ("refuse", asked)]);
        let error = server.pusher().push(&[good, bad]).await.unwrap_err();
        assert_eq!(error.is_retryable(), is_retryable, "{asked}");
        let CallError::Refused {
            status: got_status,
            code: got,
            message,
            ..
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!((got_status, got), (status, Some(code)));
        assert_eq!(message, "series 1: refused as asked");
    }
    assert_eq!(double.taken.lock().len(), 5, "each push stores its valid profile");
    let error = server.pusher().push(&[]).await.unwrap_err();
    assert!(error.to_string().ends_with("no profiles received"), "{error}");
}

#[tokio::test]
async fn a_handler_that_panics_answers_500_and_the_server_goes_on() {
    let (server, _) = server(ServerOptions::default()).await;
    let error = server
        .pusher()
        .push(&[profile(&[("refuse", "panic")])])
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::Refused { status: 500, .. }), "{error}");
    assert!(server.pusher().push(&[profile(&[("__name__", "a")])]).await.is_ok());
}

#[tokio::test]
async fn wrong_requests_are_refused_with_status_and_reason_and_store_nothing() {
    type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, Vec<u8>, u16, &'a str);
    let options = ServerOptions {
        limits: ServerLimits {
            body_bytes: 4 << 20,
            unpacked_body_bytes: 8 << 20,
            ..ServerLimits::default()
        },
        ..ServerOptions::default()
    };
    let (server, double) = server(options).await;
    let proto = ("content-type", "application/proto");
    let json = ("content-type", "application/json");
    let gzip = ("content-encoding", "gzip");
    let good = request(&[("__name__", "a")]);
    let bomb = || pprof::gzip(&vec![0u8; 200 << 20]);
    let packed = pprof::gzip(&pprof_bytes());
    let cut = |bytes: &[u8]| bytes[..bytes.len() - 10].to_vec();
    let ingest = "/ingest?name=app&format=pprof";
    let cases: Vec<Case> = vec![
        (PUSH, vec![proto], b"garbage".to_vec(), 400, "protobuf"),
        (PUSH, vec![proto], cut(&good), 400, "protobuf"),
        (PUSH, vec![proto], Vec::new(), 400, "no profiles received"),
        (PUSH, vec![json], Vec::new(), 400, "JSON"),
        (PUSH, vec![json], b"{\"series\":".to_vec(), 400, "JSON"),
        (PUSH, vec![json], b"{}".to_vec(), 400, "no profiles received"),
        (
            PUSH,
            vec![json],
            br#"{"series":[{"samples":[{"rawProfile":"%%%"}]}]}"#.to_vec(),
            400,
            "JSON",
        ),
        (PUSH, vec![proto, gzip], good.clone(), 400, "gzip"),
        (PUSH, vec![proto, gzip], cut(&pprof::gzip(&good)), 400, "gzip"),
        (PUSH, vec![proto, gzip], bomb(), 413, "decompressed"),
        (PUSH, vec![proto], vec![0; (4 << 20) + 1], 413, "limit is 4194304"),
        (PUSH, vec![proto, ("content-encoding", "br")], good.clone(), 415, "br"),
        (PUSH, vec![], good.clone(), 415, "content type"),
        (
            PUSH,
            vec![("content-type", "text/plain")],
            good.clone(),
            415,
            "text/plain",
        ),
        (
            PUSH,
            vec![("content-type", "application/connect+proto")],
            good.clone(),
            415,
            "stream",
        ),
        (
            PUSH,
            vec![proto, ("connect-timeout-ms", "soon")],
            good.clone(),
            400,
            "connect-timeout-ms",
        ),
        ("/push.v1.PusherService/Pull", vec![proto], good, 501, "Pull"),
        (ingest, vec![], b"garbage".to_vec(), 400, "pprof"),
        (ingest, vec![], cut(&packed), 400, "gzip"),
        (ingest, vec![], Vec::new(), 400, "empty"),
        (ingest, vec![], bomb(), 413, "2097152"),
        (ingest, vec![], vec![0; (4 << 20) + 1], 413, "limit is 4194304"),
        (
            "/ingest?format=pprof",
            vec![],
            packed.clone(),
            400,
            "service name is required",
        ),
        ("/ingest?name=a%20b", vec![], packed.clone(), 400, "not allowed"),
        ("/ingest?name=a&from=x", vec![], packed.clone(), 400, "from"),
        (
            "/ingest?name=a&format=jfr",
            vec![],
            packed.clone(),
            422,
            "no chunk begins here",
        ),
        (
            "/ingest?name=a&format=speedscope",
            vec![],
            packed.clone(),
            422,
            "speedscope",
        ),
        (
            "/ingest?name=a",
            vec![],
            b"main;work many\n".to_vec(),
            400,
            "not a count",
        ),
        ("/nothing", vec![], Vec::new(), 404, "/nothing"),
    ];
    for (path, headers, body, status, reason) in cases {
        let mut request = server.post(path).body(body);
        for (name, value) in &headers {
            request = request.header(*name, *value);
        }
        let (got, text) = answer(request).await;
        assert_eq!(got, status, "{path} {headers:?}: {text}");
        let error: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(
            error["message"].as_str().unwrap().contains(reason),
            "{path} {headers:?}: {text}"
        );
        assert!(error["code"].is_string());
    }
    for path in [PUSH, "/ingest", "/profile/ingest", "/flush"] {
        assert_eq!(server.get(path).await.0, 405, "{path}");
    }
    assert!(double.taken.lock().is_empty());
}

#[tokio::test]
async fn ingest_takes_raw_bodies_forms_and_compressed_ones() {
    let (server, double) = server(ServerOptions::default()).await;
    let packed = pprof::gzip(&pprof_bytes());
    let mut form =
        b"--B\r\nContent-Disposition: form-data; name=\"profile\"; filename=\"profile.pprof\"\r\n\r\n".to_vec();
    form.write_all(&packed).unwrap();
    form.extend_from_slice(b"\r\n--B--\r\n");
    let query = "name=shop.api%7Bregion%3Deu%7D&from=1700000000&until=1700000010&spyName=gospy";
    for (path, kind, body) in [
        ("/ingest", "application/octet-stream", packed.clone()),
        // The last gzip member states a length of 0.
        (
            "/ingest",
            "application/octet-stream",
            [packed.clone(), pprof::gzip(b"")].concat(),
        ),
        ("/pyroscope/ingest", "multipart/form-data; boundary=B", form.clone()),
        ("/profile/ingest", "multipart/form-data; boundary=B", form),
    ] {
        let request = server
            .post(&format!("{path}?{query}"))
            .header("content-type", kind)
            .body(body);
        assert_eq!(answer(request).await, (200, String::new()), "{path}");
    }
    for (_, taken) in double.taken.lock().iter() {
        assert_eq!(
            taken.labels.to_string(),
            "{__delta__=\"false\", __name__=\"process_cpu\", pyroscope_spy=\"gospy\", \
             region=\"eu\", service_name=\"shop.api\"}"
        );
        assert!(taken.pprof.starts_with(&packed));
    }
    let limited = server
        .post("/ingest?name=app%7Brefuse%3Dlimit%7D&format=pprof")
        .body(packed);
    let response = limited.send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
}

#[tokio::test]
async fn with_tenancy_on_the_tenant_comes_from_the_header() {
    let (server, double) = server(ServerOptions {
        multi_tenant: true,
        ..ServerOptions::default()
    })
    .await;
    for (tenant, status) in [
        (Some("team-a"), 200),
        (None, 401),
        (Some("a|b"), 401),
        (Some("a/b"), 400),
        (Some(".."), 400),
    ] {
        for (path, kind, body) in [
            (PUSH, "application/proto", request(&[("__name__", "a")])),
            (
                "/ingest?name=app&format=pprof",
                "application/octet-stream",
                pprof_bytes(),
            ),
        ] {
            let mut request = server.post(path).header("content-type", kind).body(body);
            if let Some(tenant) = tenant {
                request = request.header("x-scope-orgid", tenant);
            }
            assert_eq!(answer(request).await.0, status, "{tenant:?} {path}");
        }
    }
    let taken = double.taken.lock();
    assert_eq!(taken.len(), 2);
    assert!(taken.iter().all(|(tenant, _)| tenant.as_str() == "team-a"));
}

#[tokio::test]
async fn ready_says_why_it_is_not_and_flush_says_what_failed() {
    let (server, _) = server(ServerOptions::default()).await;
    assert_eq!(server.get("/ready").await, (200, "ready\n".to_owned()));
    server.readiness.set_not_ready("replaying the write-ahead log");
    let not_ready = (503, "not ready: replaying the write-ahead log\n".to_owned());
    assert_eq!(server.get("/profile/ready").await, not_ready);
    let (status, text) = answer(server.post("/flush")).await;
    assert_eq!((status, text.contains("the disk is full")), (503, true));
    let (status, text) = server.get("/api/v1/status/buildinfo").await;
    assert_eq!((status, text.contains("\"version\"")), (200, true));
}

#[tokio::test]
async fn the_page_answers_at_the_root_and_under_the_prefix() {
    let (server, _) = server(ServerOptions::default()).await;
    for (path, status) in [
        ("/", 200),
        ("/profile", 200),
        ("/profile/", 200),
        ("/profile/profile?q=1", 200),
        ("/sql", 200),
        ("/nothing", 404),
        ("/profile/pipeline", 404),
    ] {
        let request = server.client.get(format!("{}{path}", server.url));
        let response = request.header("accept", "text/html,*/*;q=0.8").send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{path}");
        assert!(
            response.headers()["content-security-policy"]
                .to_str()
                .unwrap()
                .starts_with("default-src 'self'")
        );
        assert!(response.text().await.unwrap().contains("<html"), "{path}");
    }
    for path in ["/assets/none.js", "/nothing", "/profile/pipeline"] {
        let (status, text) = server.get(path).await;
        assert_eq!((status, text.contains("\"not_found\"")), (404, true), "{path}: {text}");
    }
}

#[tokio::test]
async fn files_of_the_page_are_compressed_kept_and_asked_for_again_by_tag() {
    let (server, _) = server(ServerOptions::default()).await;
    let (_, index) = server.get("/").await;
    let script = index
        .split('"')
        .find(|part| part.starts_with("./assets/") && part.ends_with(".js"))
        .unwrap()
        .trim_start_matches('.')
        .to_owned();
    for path in [script.clone(), format!("/profile{script}")] {
        let url = format!("{}{path}", server.url);
        let plain = server.client.get(&url).header("accept-encoding", "identity");
        let plain = plain.send().await.unwrap();
        assert_eq!(plain.headers()["content-type"], "text/javascript; charset=utf-8");
        assert_eq!(plain.headers()["cache-control"], "public, max-age=31536000, immutable");
        let tag = plain.headers()["etag"].clone();
        let plain = plain.bytes().await.unwrap();
        let packed = server
            .client
            .get(&url)
            .header("accept-encoding", "gzip")
            .send()
            .await
            .unwrap();
        // The client decompresses the file and removes `Content-Length`, so the length may be unknown.
        assert!(packed.content_length().is_none_or(|length| length < plain.len() as u64));
        assert_eq!(packed.bytes().await.unwrap(), plain);
        let again = server
            .client
            .get(&url)
            .header("if-none-match", tag)
            .send()
            .await
            .unwrap();
        assert_eq!(again.status().as_u16(), 304);
        assert!(again.bytes().await.unwrap().is_empty());
    }
    let response = server.client.get(&server.url).send().await.unwrap();
    assert_eq!(response.headers()["cache-control"], "no-cache");
    let head = server
        .client
        .head(format!("{}{script}", server.url))
        .send()
        .await
        .unwrap();
    assert_eq!(head.status().as_u16(), 200);
}

#[tokio::test]
async fn http2_without_tls_works_beside_http1() {
    let (server, double) = server(ServerOptions::default()).await;
    let client = reqwest::Client::builder()
        .no_proxy()
        .http2_prior_knowledge()
        .build()
        .unwrap();
    let response = client
        .post(format!("{}{PUSH}", server.url))
        .header("content-type", "application/proto")
        .body(request(&[("__name__", "a")]))
        .send()
        .await
        .unwrap();
    assert_eq!(
        (response.status().as_u16(), response.version()),
        (200, reqwest::Version::HTTP_2)
    );
    assert_eq!(double.taken.lock().len(), 1);
    assert_eq!(server.stop().await, 0);
}

#[tokio::test]
async fn a_port_that_is_taken_is_one_clear_line() {
    let (server, _) = server(ServerOptions::default()).await;
    let address = server.url.strip_prefix("http://").unwrap();
    let error = alluvium_admin::listen::Listener::bind(address, Default::default())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot listen on {address}: another program uses the port")
    );
}
