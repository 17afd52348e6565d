//! Profiles that a client sends again because it did not receive the response. The server stores them once, also across
//! a crash. It does not mistake other profiles for repeated ones.

use std::path::Path;

use alluvium::server::ServerOptions;
use alluvium::store::Limits;
use alluvium_profile::pprof::{self, Builder, Profile, ValueType};
use alluvium_profile::{Labels, RawProfile};
use alluvium_wire::call::{CallError, Caller};
use alluvium_wire::connect::{self, Codec};
use alluvium_wire::otlp::messages::{ExportProfilesServiceRequest, ExportProfilesServiceResponse};
use alluvium_wire::push::PushClient;
use futures::future::join_all;
use tonic::{Code, Request};

use crate::grpc::grpc;
use crate::harness::client;
use crate::http_store::{Site, now_ms};
use crate::otlp;
use crate::program::{Address, Program, sql};

const COUNT: &str = "SELECT count(*), sum(total) FROM profiles";

/// Returns a profile with one sample of this value. The time is in Unix nanoseconds; 0 means that it is not known.
pub(crate) fn profile(id: &str, service: &str, time_nanos: i64, value: i64) -> RawProfile {
    let mut builder = Builder::new(Profile {
        sample_types: vec![ValueType {
            kind: "cpu",
            unit: "nanoseconds",
        }],
        time_nanos,
        ..Profile::default()
    });
    let work = builder.named("work");
    builder.sample([work], [], &[value]);
    RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", service)]),
        id: id.into(),
        pprof: pprof::gzip(&pprof::encode(&builder.finish())).into(),
    }
}

/// Returns number and total of the stored profiles.
pub(crate) async fn stored(http: &reqwest::Client, url: &str) -> (u64, i64) {
    let rows = sql(http, url, COUNT).await;
    (rows[0][0].parse().unwrap(), rows[0][1].parse().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_with_an_id_is_stored_once_and_what_differs_in_anything_is_another() {
    let site = Site::new(ServerOptions::default()).await;
    let (http, url) = (&site.server.client, &site.server.url);
    let pusher = site.server.pusher();
    let now = now_ms() * 1_000_000;
    let one = profile("7b1d", "shop", now, 1);
    for _ in 0..3 {
        pusher.push(std::slice::from_ref(&one)).await.unwrap();
        assert_eq!(stored(http, url).await, (1, 1));
    }
    site.flush().await;
    pusher.push(std::slice::from_ref(&one)).await.unwrap();
    assert_eq!(stored(http, url).await, (1, 1), "also when it is in a file");
    // If a program sets the same id in all of its profiles, the server stores all of them.
    let others = [
        profile("7b1d", "shop", now, 10),
        profile("7b1d", "shop", now + 1000, 1),
        profile("7b1d", "cart", now, 100),
        profile("other", "shop", now, 1000),
    ];
    pusher.push(&others).await.unwrap();
    pusher.push(&others).await.unwrap();
    assert_eq!(stored(http, url).await, (5, 1112));
    // Nothing shows that two profiles without an id are the same, or two without a time and with an id that is no UUID.
    for profile in [profile("", "desk", now, 10_000), profile("7b1d", "desk", 0, 10_000)] {
        for _ in 0..2 {
            pusher.push(std::slice::from_ref(&profile)).await.unwrap();
        }
    }
    assert_eq!(stored(http, url).await, (9, 41_112));
    let undated = profile("0190163d-8694-739b-aea5-966c26f8ad91", "desk", 0, 100_000);
    for _ in 0..3 {
        pusher.push(std::slice::from_ref(&undated)).await.unwrap();
    }
    assert_eq!(stored(http, url).await, (10, 141_112));
}

/// Rows of a request of [`exports`]: the profile of one service has samples with and without the label of a thread, and
/// the profile of another service has one sample.
const ROWS: u64 = 3;

/// Returns export requests by name: one whose profile has a time, and one whose profile has none.
fn exports() -> [(&'static str, ExportProfilesServiceRequest); 2] {
    let mut dated = otlp::request("dated");
    otlp::profile(&mut dated).profile_id = vec![1; 16];
    let mut undated = otlp::request("undated");
    let undated_profile = otlp::profile(&mut undated);
    (undated_profile.profile_id, undated_profile.time_unix_nano) = (vec![2; 16], 0);
    [("dated", dated), ("undated", undated)]
}

/// Sends a request by HTTP, as protobuf and as JSON.
async fn post(http: &reqwest::Client, url: &str, request: &ExportProfilesServiceRequest) {
    for (kind, codec) in [
        ("application/x-protobuf", Codec::Proto),
        ("application/json", Codec::Json),
    ] {
        let body = connect::encode(codec, request).to_vec();
        let post = http.post(format!("{url}{}", otlp::HTTP)).header("content-type", kind);
        assert_eq!(post.body(body).send().await.unwrap().status(), 200);
    }
}

/// Sends a request by gRPC.
async fn call(
    site: &Site,
    request: &ExportProfilesServiceRequest,
) -> Result<ExportProfilesServiceResponse, tonic::Status> {
    grpc(&site.server, "", otlp::EXPORT, Request::new(request.clone())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_is_sent_again_by_any_protocol_is_stored_once() {
    let site = Site::new(ServerOptions::default()).await;
    let (http, url) = (&site.server.client, &site.server.url);
    let mut expected = 0;
    for (name, request) in exports() {
        expected += ROWS;
        for _ in 0..2 {
            call(&site, &request).await.unwrap();
            post(http, url, &request).await;
            assert_eq!(stored(http, url).await.0, expected, "{name}");
        }
        site.flush().await;
        call(&site, &request).await.unwrap();
        assert_eq!(stored(http, url).await.0, expected, "{name}, in a file");
        // Another profile may have the same samples.
        let mut other = request.clone();
        otlp::profile(&mut other).profile_id[0] = 9;
        expected += ROWS;
        post(http, url, &other).await;
        assert_eq!(stored(http, url).await.0, expected, "{name}, with another id");
    }
    // Nothing shows that two profiles without an id are the same.
    let mut request = otlp::request("no-id");
    otlp::profile(&mut request).profile_id = Vec::new();
    post(http, url, &request).await;
    assert_eq!(stored(http, url).await.0, expected + 2 * ROWS);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_services_of_an_export_that_were_stored_are_not_stored_again_because_others_were_refused() {
    let limits = Limits {
        max_active_series: 2,
        ..Limits::default()
    };
    let site = Site::with_limits(ServerOptions::default(), limits).await;
    for (name, request) in exports() {
        for _ in 0..3 {
            let error = call(&site, &request).await.unwrap_err();
            assert_eq!(error.code(), Code::ResourceExhausted, "{name}: {error}");
        }
        // The limit allows the two series of the first service, and none of the others.
        assert_eq!(stored(&site.server.client, &site.server.url).await.0, 2, "{name}");
    }
}

/// A speedscope file with two equal profiles of different names.
const SPEEDSCOPE: &[u8] = br#"{
    "$schema": "https://www.speedscope.app/file-format-schema.json",
    "shared": {"frames": [{"name": "main"}, {"name": "work"}, {"name": "idle"}]},
    "profiles": [
        {"type": "sampled", "name": "a", "unit": "none", "startValue": 0, "endValue": 7,
         "samples": [[0, 1], [0, 2]], "weights": [3, 4]},
        {"type": "sampled", "name": "b", "unit": "none", "startValue": 0, "endValue": 7,
         "samples": [[0, 1], [0, 2]], "weights": [3, 4]}
    ]
}"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_with_an_id_is_stored_once_in_every_format() {
    let site = Site::new(ServerOptions::default()).await;
    let (http, url) = (&site.server.client, &site.server.url);
    let now = now_ms();
    let range = format!("from={}&until={}", now / 1000 - 10, now / 1000);
    let upload = async |format: &str, id: &str, body: &[u8]| {
        let request = site.server.post(&format!("/ingest?name=shop&format={format}&{range}"));
        let request = request.header("x-alluvium-upload-id", id).body(body.to_vec());
        assert_eq!(request.send().await.unwrap().status(), 200, "{format}");
        stored(http, url).await
    };
    let pprof = profile("", "shop", now * 1_000_000, 7).pprof;
    let undated = profile("", "shop", 0, 8).pprof;
    let perf_script = b"app 1234/1240 [001] 12345.678901: 250000 cpu-clock:pppH: \n\t  401000 work+0x0 (/app)\n\n";
    let bodies: [(&str, &[u8]); 7] = [
        ("pprof", &pprof),
        ("pprof", &undated),
        ("groups", b"main;work 3\nmain;idle 4\nmain;wait;read 5\n"),
        ("lines", b"main;work\nmain;idle\n"),
        ("jfr", include_bytes!("fixtures/jfr/small.jfr")),
        ("speedscope", SPEEDSCOPE),
        ("perf_script", perf_script),
    ];
    for (format, body) in bodies {
        let before = stored(http, url).await;
        let first = upload(format, "7b1d", body).await;
        assert!(first.0 > before.0, "{format}");
        for _ in 0..3 {
            assert_eq!(upload(format, "7b1d", body).await, first, "{format}");
        }
        // An upload with another id or without one is another upload.
        let other = upload(format, "other", body).await;
        assert_eq!(other.0 - first.0, first.0 - before.0, "{format}");
        for count in [2, 3] {
            assert_eq!(
                upload(format, "", body).await.0 - first.0,
                count * (first.0 - before.0),
                "{format}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_one_is_stored_and_each_is_told_so_or_to_try_again() {
    let site = Site::new(ServerOptions::default()).await;
    let same = profile("same", "shop", now_ms() * 1_000_000, 7);
    let pushes = (0..50).map(|_| {
        let (pusher, same) = (site.server.pusher(), same.clone());
        async move {
            loop {
                match pusher.push(std::slice::from_ref(&same)).await {
                    Ok(()) => return,
                    Err(CallError::Refused { status: 503, .. }) => tokio::task::yield_now().await,
                    Err(error) => panic!("{error}"),
                }
            }
        }
    });
    join_all(pushes).await;
    assert_eq!(stored(&site.server.client, &site.server.url).await, (1, 7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_log_has_is_known_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let (address, http) = (Address::keep(), client());
    let url = format!("http://{address}");
    let log = folder.path().join("serve.log");
    let start = || {
        let arguments = ["serve", "--listen", &address, "--data", &data];
        Program::alluvium(&arguments, Path::new(&log))
    };
    let pusher = PushClient::new(Caller::new(http.clone(), url.parse().unwrap()));
    let now = now_ms() * 1_000_000;
    let profiles: Vec<RawProfile> = (0..20)
        .map(|number| profile(&format!("id-{number}"), "shop", now + number, 1 << number))
        .collect();
    let mut server = start();
    server.ready(&http, &format!("{url}/ready")).await;
    pusher.push(&profiles[..15]).await.unwrap();
    server.kill();
    let mut server = start();
    server.ready(&http, &format!("{url}/ready")).await;
    // The client has not seen the response, so it sends everything again.
    pusher.push(&profiles).await.unwrap();
    assert_eq!(stored(&http, &url).await, (20, (1 << 20) - 1));
    let answer = http.get(format!("{url}/metrics")).send().await.unwrap();
    let metrics = answer.text().await.unwrap();
    let line = "alluvium_store_rejected_profiles_total{reason=\"repeated\"} 15";
    assert!(metrics.contains(line), "{metrics}");
    assert!(server.terminate().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_in_the_log_is_known_after_a_crash_and_one_in_files_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let (address, http) = (Address::keep(), client());
    let url = format!("http://{address}");
    let log = folder.path().join("serve.log");
    let start = || {
        let arguments = ["serve", "--listen", &address, "--data", &data];
        Program::alluvium(&arguments, Path::new(&log))
    };
    let exports = exports();
    let mut server = start();
    server.ready(&http, &format!("{url}/ready")).await;
    for (_, request) in &exports {
        post(&http, &url, request).await;
    }
    let expected = 2 * ROWS;
    assert_eq!(stored(&http, &url).await.0, expected);
    server.kill();
    let mut server = start();
    server.ready(&http, &format!("{url}/ready")).await;
    for (name, request) in &exports {
        post(&http, &url, request).await;
        assert_eq!(stored(&http, &url).await.0, expected, "{name}");
    }
    // A stop writes everything to files and empties the log.
    assert!(server.terminate().success());
    let mut server = start();
    server.ready(&http, &format!("{url}/ready")).await;
    for (_, request) in &exports {
        post(&http, &url, request).await;
    }
    assert_eq!(stored(&http, &url).await.0, 2 * expected);
    assert!(server.terminate().success());
}
