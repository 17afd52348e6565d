//! Tests against a fake web service: which targets and errors result from its responses.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::get;
use parking_lot::Mutex;

use super::DEFINITION;
use crate::common::testing::{Body, Recorder, Running, eventually, serve};
use alluvium_base::net::hostname;
use alluvium_base::spread::Spread;
use alluvium_pipeline::component::HealthState;

const TWO: &str = r#"[{"targets": ["one:80"], "labels": {"env": "dev"}}, {"targets": ["two:80"]}, {"targets": []}]"#;

#[tokio::test]
async fn groups_become_targets_and_a_failure_keeps_the_last_ones() {
    let next: Arc<Mutex<(StatusCode, &str, &str)>> = Arc::new(Mutex::new((StatusCode::OK, "application/json", TWO)));
    let answers = next.clone();
    let handler = move |sent: HeaderMap| {
        assert_eq!(sent["accept"], "application/json");
        assert_eq!(sent["x-prometheus-refresh-interval-seconds"], "3600");
        let (status, media, body) = *answers.lock();
        async move { (status, [("content-type", media)], body).into_response() }
    };
    let (base, _server) = serve(Router::new().route("/targets", get(handler))).await;
    let url = format!("{base}/targets");
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.http.test", folder.path());
    let body = Body::new().text("url", &url).text("refresh_interval", "1h");
    let running = Running::start(&DEFINITION, &recorder, &body);
    let expected = [
        format!("{{__address__=one:80,__meta_url={url},env=dev}}"),
        format!("{{__address__=two:80,__meta_url={url}}}"),
    ];
    eventually("two targets", || recorder.exported_targets("targets") == expected).await;

    for (answer, reason) in [
        (
            (StatusCode::OK, "text/html", TWO),
            "answered with the content type `text/html`, not application/json",
        ),
        (
            (StatusCode::OK, "application/json", "[{\"targets\": 1}]"),
            "answered with invalid JSON: 1:14: invalid type: integer `1`, expected a sequence",
        ),
        (
            (StatusCode::OK, "application/json", "[{\"targets\": [], \"label\": {}}]"),
            "answered with invalid JSON: 1:24: unknown field `label`, expected `targets` or `labels`",
        ),
        (
            (StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "no database"),
            "the server answered 500 Internal Server Error: no database",
        ),
    ] {
        *next.lock() = answer;
        // The component refreshes immediately when it gets new arguments.
        let before = recorder.health().1;
        running.component.update(body.arguments(&DEFINITION)).unwrap();
        eventually(reason, || recorder.health().1 != before).await;
        let (state, message) = recorder.health();
        assert!(
            state == HealthState::Unhealthy && message.ends_with(reason),
            "{message}"
        );
        assert_eq!(recorder.exported_targets("targets"), expected);
    }
    // A service in Go answers `null` for an empty list. This is a valid response.
    *next.lock() = (StatusCode::OK, "application/json", "null");
    running.component.update(body.arguments(&DEFINITION)).unwrap();
    eventually("no target", || recorder.exported_targets("targets").is_empty()).await;
    assert_eq!(recorder.health().0, HealthState::Healthy);
    running.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_compressed_without_being_asked_for_is_read() {
    let packed = alluvium_profile::pprof::gzip(TWO.as_bytes());
    let handler = move || {
        let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
        let packed = packed.clone();
        async move { (StatusCode::OK, headers, packed).into_response() }
    };
    let (base, _server) = serve(Router::new().route("/", get(handler))).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.http.test", folder.path());
    let body = Body::new().text("url", &base);
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("two targets", || recorder.exported_targets("targets").len() == 2).await;
    running.stop().await;
}

#[tokio::test]
async fn the_second_refresh_is_shifted_so_that_a_fleet_is_spread_over_the_interval() {
    let times: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let recorded = times.clone();
    let handler = move || {
        recorded.lock().push(Instant::now());
        std::future::ready(([("content-type", "application/json")], TWO))
    };
    let (base, _server) = serve(Router::new().route("/targets", get(handler))).await;
    let interval = Duration::from_millis(200);
    // The first pause of this component is clearly longer than the interval.
    let id = (0..1_000)
        .map(|number| format!("discovery.http.test_{number}"))
        .find(|id| Spread::new(&hostname(), id).first_pause(interval) > interval * 5 / 4)
        .unwrap();
    let pause = Spread::new(&hostname(), &id).first_pause(interval);
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(&id, folder.path());
    let body = Body::new()
        .text("url", &format!("{base}/targets"))
        .text("refresh_interval", "200ms");
    let running = Running::start(&DEFINITION, &recorder, &body);
    let gaps = || {
        let times = times.lock().clone();
        times
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect::<Vec<Duration>>()
    };
    eventually("three refreshes", || gaps().len() >= 2).await;
    assert!(gaps()[0] >= pause && gaps()[1] >= interval, "{:?}", gaps());
    // New arguments are used at once, and then the place in the interval applies again.
    let before = gaps().len();
    running.component.update(body.arguments(&DEFINITION)).unwrap();
    eventually("the refresh after it", || gaps().len() >= before + 3).await;
    assert!(
        gaps()[before..before + 3].iter().any(|gap| *gap >= pause),
        "{:?}",
        gaps()
    );
    running.stop().await;
}
