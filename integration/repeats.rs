//! Profiles that a client sends again because it did not receive the response. The server stores them once, also across
//! a crash. It does not mistake other profiles for repeated ones.

use std::path::Path;

use alluvium::server::ServerOptions;
use alluvium_profile::pprof::{self, Builder, Profile, ValueType};
use alluvium_profile::{Labels, RawProfile};
use alluvium_wire::call::{CallError, Caller};
use alluvium_wire::push::PushClient;
use futures::future::join_all;

use crate::harness::client;
use crate::http_store::{Site, now_ms};
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
    // Without an id or without a time, nothing shows that two profiles are the same.
    for profile in [profile("", "desk", now, 10_000), profile("7b1d", "desk", 0, 10_000)] {
        for _ in 0..2 {
            pusher.push(std::slice::from_ref(&profile)).await.unwrap();
        }
    }
    assert_eq!(stored(http, url).await, (9, 41_112));
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
