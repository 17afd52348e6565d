//! The shared routes, asked over a real socket's worth of HTTP but without one.
//!
//! In: requests to the router. The profiles themselves are tested in `telemetry::profiling`.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use prometheus_client::metrics::counter::Counter;
use tower::ServiceExt as _;

use crate::base::Shutdown;
use crate::telemetry::metrics::Scope;
use crate::telemetry::profiling::Profiling;

use super::{AdminState, router};

fn state() -> AdminState {
    AdminState {
        metrics: Scope::new(),
        ready: Arc::new(|| Ok(())),
        healthy: Arc::new(|| Ok(())),
        profiling: Some(Profiling::new(Shutdown::new())),
        reload: None,
        components: None,
        component: None,
    }
}

async fn ask(state: AdminState, method: Method, path: &str) -> (StatusCode, String, String) {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    let response = router(state).oneshot(request).await.unwrap();
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let kind = kind.map(|kind| kind.to_str().unwrap().to_owned()).unwrap_or_default();
    let body = axum::body::to_bytes(response.into_body(), 10 << 20).await.unwrap();
    (status, kind, String::from_utf8_lossy(&body).into_owned())
}

async fn get(state: AdminState, path: &str) -> (StatusCode, String) {
    let (status, _, body) = ask(state, Method::GET, path).await;
    (status, body)
}

#[tokio::test]
async fn metrics_come_as_prometheus_text() {
    let state = state();
    let counter: Counter = Counter::default();
    state.metrics.register("alluvium_test", "Test", counter);
    let (status, kind, body) = ask(state, Method::GET, "/metrics").await;
    assert_eq!(
        (status, kind.as_str()),
        (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8")
    );
    assert!(body.contains("# TYPE alluvium_test_total counter\nalluvium_test_total 0\n"));
}

#[tokio::test]
async fn health_and_readiness_say_the_reason() {
    assert_eq!(get(state(), "/-/ready").await.0, StatusCode::OK);
    assert_eq!(get(state(), "/-/healthy").await.0, StatusCode::OK);
    let bad = AdminState {
        ready: Arc::new(|| Err("replaying the log".into())),
        healthy: Arc::new(|| Err("pyroscope.write.a: no endpoint".into())),
        ..state()
    };
    assert_eq!(
        get(bad.clone(), "/-/ready").await,
        (StatusCode::SERVICE_UNAVAILABLE, "replaying the log\n".into())
    );
    assert_eq!(
        get(bad, "/-/healthy").await,
        (
            StatusCode::INTERNAL_SERVER_ERROR,
            "pyroscope.write.a: no endpoint\n".into()
        )
    );
}

#[tokio::test]
async fn reload_answers_get_and_post_and_gives_the_diagnostics() {
    assert_eq!(get(state(), "/-/reload").await.0, StatusCode::NOT_FOUND);
    let good = AdminState {
        reload: Some(Arc::new(|| Box::pin(async { Ok(()) }))),
        ..state()
    };
    for method in [Method::GET, Method::POST] {
        let (status, _, body) = ask(good.clone(), method, "/-/reload").await;
        assert_eq!((status, body.as_str()), (StatusCode::OK, "config reloaded\n"));
    }
    let bad = AdminState {
        reload: Some(Arc::new(|| Box::pin(async { Err("a.river:1:2: no".to_owned()) }))),
        ..state()
    };
    assert_eq!(
        get(bad, "/-/reload").await,
        (StatusCode::BAD_REQUEST, "a.river:1:2: no\n".into())
    );
}

#[tokio::test]
async fn components_are_listed_and_found_by_id() {
    let state = AdminState {
        components: Some(Arc::new(|| serde_json::json!([{"localID": "a.b"}]))),
        component: Some(Arc::new(|id| {
            (id == "mod/a.b.c").then(|| serde_json::json!({"localID": id}))
        })),
        ..state()
    };
    let (status, kind, body) = ask(state.clone(), Method::GET, "/api/v0/web/components").await;
    assert_eq!(
        (status, kind.as_str(), body.as_str()),
        (StatusCode::OK, "application/json", "[{\"localID\":\"a.b\"}]")
    );
    let (status, body) = get(state.clone(), "/api/v0/web/components/mod/a.b.c").await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "{\"localID\":\"mod/a.b.c\"}"));
    let (status, body) = get(state, "/api/v0/web/components/x").await;
    assert_eq!(
        (status, body.as_str()),
        (StatusCode::NOT_FOUND, "there is no component `x`\n")
    );
}

#[tokio::test]
async fn pprof_has_an_index_a_heap_and_clear_refusals() {
    let (status, kind, body) = ask(state(), Method::GET, "/debug/pprof/").await;
    assert_eq!((status, kind.as_str()), (StatusCode::OK, "text/html; charset=utf-8"));
    assert!(body.contains("heap"));
    let (status, kind, _) = ask(state(), Method::GET, "/debug/pprof/allocs").await;
    assert_eq!((status, kind.as_str()), (StatusCode::OK, "application/octet-stream"));
    assert_eq!(get(state(), "/debug/pprof/cmdline").await.0, StatusCode::OK);

    let refusals = [
        (
            "goroutine",
            404,
            "there is no `goroutine` profile: only a Go program has it; this one has `profile` and `heap`\n",
        ),
        (
            "trace",
            404,
            "there is no profile `trace`; there are `profile`, `heap` and `allocs`\n",
        ),
        (
            "profile?seconds=x",
            400,
            "`seconds` is a whole number of seconds, not `x`\n",
        ),
        (
            "profile?seconds=0",
            400,
            "a CPU profile takes from 1 to 300 seconds, not 0\n",
        ),
    ];
    for (path, code, text) in refusals {
        let (status, body) = get(state(), &format!("/debug/pprof/{path}")).await;
        assert_eq!((status.as_u16(), body.as_str()), (code, text));
    }
    let off = AdminState {
        profiling: None,
        ..state()
    };
    assert_eq!(get(off, "/debug/pprof/heap").await.0, StatusCode::NOT_FOUND);
}
