//! Tests of the shared routes through the router, without a socket.
//!
//! The profiles themselves are tested in `admin::profiling`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode, header};
use prometheus_client::metrics::counter::Counter;
use tower::ServiceExt as _;

use crate::collector_page;
use crate::profiling::Profiling;
use crate::web::{self, Answer, Web};
use crate::{AdminState, SupportError, router};
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_telemetry::metrics::Scope;

fn state() -> AdminState {
    AdminState {
        metrics: Scope::new(),
        ready: Arc::new(|| None),
        healthy: Arc::new(|| None),
        note: Arc::new(String::new),
        profiling: Some(Profiling::new(Shutdown::new())),
        reload: None,
        support: None,
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
    let noted = AdminState {
        note: Arc::new(|| "but\n".into()),
        ..state()
    };
    assert_eq!(
        get(noted, "/-/healthy").await,
        (StatusCode::OK, "All components are healthy.\nbut\n".into())
    );
    let unhealthy_state = AdminState {
        ready: Arc::new(|| Some("replaying the log".into())),
        healthy: Arc::new(|| Some("pyroscope.write.a: no endpoint".into())),
        ..state()
    };
    assert_eq!(
        get(unhealthy_state.clone(), "/-/ready").await,
        (StatusCode::SERVICE_UNAVAILABLE, "replaying the log\n".into())
    );
    assert_eq!(
        get(unhealthy_state, "/-/healthy").await,
        (
            StatusCode::INTERNAL_SERVER_ERROR,
            "pyroscope.write.a: no endpoint\n".into()
        )
    );
}

#[tokio::test]
async fn reload_answers_get_and_post_and_gives_the_diagnostics() {
    assert_eq!(get(state(), "/-/reload").await.0, StatusCode::NOT_FOUND);
    let working_state = AdminState {
        reload: Some(Arc::new(|| Box::pin(async { Ok(()) }))),
        ..state()
    };
    for method in [Method::GET, Method::POST] {
        let (status, _, body) = ask(working_state.clone(), method, "/-/reload").await;
        assert_eq!((status, body.as_str()), (StatusCode::OK, "config reloaded\n"));
    }
    let failing_state = AdminState {
        reload: Some(Arc::new(|| Box::pin(async { Err("a.river:1:2: no".into()) }))),
        ..state()
    };
    assert_eq!(
        get(failing_state, "/-/reload").await,
        (StatusCode::BAD_REQUEST, "a.river:1:2: no\n".into())
    );
}

#[tokio::test]
async fn a_support_bundle_is_a_download_with_a_checked_duration() {
    assert_eq!(get(state(), "/-/support").await.0, StatusCode::NOT_FOUND);
    let state = |answer: fn(Duration) -> Result<Vec<u8>, SupportError>| AdminState {
        support: Some(Arc::new(move |duration| Box::pin(async move { answer(duration) }))),
        ..state()
    };
    let working_state = state(|duration| Ok(duration.as_secs().to_string().into_bytes()));
    for (path, seconds) in [("/-/support", "30"), ("/-/support?duration=2", "2")] {
        let (status, kind, body) = ask(working_state.clone(), Method::GET, path).await;
        assert_eq!(
            (status, kind.as_str(), body.as_str()),
            (StatusCode::OK, "application/zip", seconds)
        );
    }
    for duration in ["0", "301", "x", "-1"] {
        let (status, body) = get(working_state.clone(), &format!("/-/support?duration={duration}")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{duration}");
        assert_eq!(body, "`duration` must be a whole number of seconds from 1 to 300\n");
    }
    let busy = state(|_| Err(SupportError::Busy));
    assert_eq!(get(busy, "/-/support").await.0, StatusCode::CONFLICT);
}

/// A collector with two components. Only the component in the module serves requests.
struct Two;

impl Web for Two {
    fn components(&self, module: &str) -> Option<serde_json::Value> {
        match module {
            "" => Some(serde_json::json!([{"localID": "a.b"}])),
            "m/n.o" => Some(serde_json::json!([{"localID": "a.b.c"}])),
            _ => None,
        }
    }

    fn remote_components(&self, module: &str) -> Option<serde_json::Value> {
        module.is_empty().then(|| serde_json::json!([]))
    }

    fn component(&self, id: &str) -> Option<serde_json::Value> {
        self.has_component(id).then(|| serde_json::json!({"localID": id}))
    }

    fn remote_component(&self, _id: &str) -> Option<serde_json::Value> {
        None
    }

    fn peers(&self) -> serde_json::Value {
        serde_json::json!([{"isSelf": true}])
    }

    fn last_load(&self) -> serde_json::Value {
        serde_json::json!({"success": true})
    }

    fn has_component(&self, id: &str) -> bool {
        ["a.b", "m/n.o/a.b.c"].contains(&id)
    }

    fn serve(&self, id: &str, request: http::Request<Bytes>) -> Answer {
        let text = format!("{} {} {}", request.method(), request.uri(), request.body().len());
        (id != "a.b").then(|| -> BoxFuture<'static, _> { Box::pin(async { http::Response::new(Bytes::from(text)) }) })
    }
}

#[tokio::test]
async fn a_goroutine_dump_is_a_post_to_a_component() {
    let routes = web::router(Arc::new(Two));
    for (method, id, status, text) in [
        (
            Method::POST,
            "m/n.o/a.b.c",
            200,
            "POST /goroutines?target=http%3A%2F%2Fh 0",
        ),
        (
            Method::POST,
            "a.b",
            404,
            "there is no component `a.b` that scrapes goroutines\n",
        ),
        (Method::GET, "m/n.o/a.b.c", 405, ""),
    ] {
        let uri = format!("/api/v0/web/goroutines/{id}?target=http%3A%2F%2Fh");
        let request = Request::builder().method(method).uri(uri).body(Body::empty()).unwrap();
        let response = routes.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), status, "{id}");
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&body), text, "{id}");
    }
}

#[tokio::test]
async fn components_are_listed_and_found_by_id() {
    let routes = web::router(Arc::new(Two)).merge(web::component_router(Arc::new(Two)));
    let ask = async |path: &str| {
        let request = Request::builder().uri(path).body(Body::from("four")).unwrap();
        let response = routes.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8_lossy(&body).into_owned())
    };
    for (path, status, text) in [
        ("/api/v0/web/components", 200, "[{\"localID\":\"a.b\"}]"),
        (
            "/api/v0/web/components/m/n.o/a.b.c",
            200,
            "{\"localID\":\"m/n.o/a.b.c\"}",
        ),
        ("/api/v0/web/components/x", 404, "there is no component `x`\n"),
        ("/api/v0/web/modules/m/n.o/components", 200, "[{\"localID\":\"a.b.c\"}]"),
        ("/api/v0/web/modules/x/components", 404, "there is no module `x`\n"),
        (
            "/api/v0/web/modules/x",
            404,
            "there is only `/components` below a module\n",
        ),
        ("/api/v0/web/remotecfg/components", 200, "[]"),
        ("/api/v0/web/remotecfg/components/x", 404, "there is no component `x`\n"),
        (
            "/api/v0/web/remotecfg/modules/x/components",
            404,
            "there is no module `x`\n",
        ),
        ("/api/v0/web/peers", 200, "[{\"isSelf\":true}]"),
        ("/api/v0/web/last-load", 200, "{\"success\":true}"),
        ("/api/v0/component/m/n.o/a.b.c/x/y?z=1", 200, "GET /x/y?z=1 4"),
        ("/api/v0/component/m/n.o/a.b.c", 200, "GET / 4"),
        (
            "/api/v0/component/a.b/",
            404,
            "the component `a.b` has no HTTP endpoints\n",
        ),
        ("/api/v0/component/x/", 404, "there is no component at `x/`\n"),
    ] {
        assert_eq!(ask(path).await, (status, text.to_owned()), "{path}");
    }
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
            "there is no `goroutine` profile: only Go programs have it; this program has `profile` and `heap`\n",
        ),
        (
            "trace",
            404,
            "there is no profile `trace`; there are `profile`, `heap` and `allocs`\n",
        ),
        (
            "profile?seconds=x",
            400,
            "`seconds` must be a whole number of seconds, not `x`\n",
        ),
        (
            "profile?seconds=0",
            400,
            "the duration of a CPU profile must be 1 to 300 seconds, not 0\n",
        ),
    ];
    for (path, code, text) in refusals {
        let (status, body) = get(state(), &format!("/debug/pprof/{path}")).await;
        assert_eq!((status.as_u16(), body.as_str()), (code, text));
    }
    let unprofiled_state = AdminState {
        profiling: None,
        ..state()
    };
    assert_eq!(
        get(unprofiled_state, "/debug/pprof/heap").await.0,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn a_prefix_with_brackets_is_a_path_like_any_other() {
    for prefix in ["/a{b}", "/{*x}/y", "{", "/"] {
        let page = collector_page::router(prefix);
        let nested = match prefix.trim_matches('/') {
            "" => "/".to_owned(),
            inner => format!("/{inner}/"),
        };
        let request = Request::builder().uri(&nested).body(Body::empty()).unwrap();
        let status = page.oneshot(request).await.unwrap().status();
        assert_eq!(status, StatusCode::TEMPORARY_REDIRECT, "{prefix}");
    }
}
