//! Tests of the component from outside: profiles go into its receiver and reach an endpoint on this machine.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::{HeaderMap, StatusCode};

use crate::common::sending::otlp::testing::{
    Endpoint, body, profiles_arrive_after_a_failure, stored_profiles_are_not_sent_again,
};
use crate::common::testing::serve;
use crate::otelcol::exporter::otlphttp::DEFINITION;

fn router(endpoint: Arc<Endpoint>) -> Router {
    Router::new()
        .route("/base/v1development/profiles", post(export))
        .with_state(endpoint)
}

async fn export(State(endpoint): State<Arc<Endpoint>>, headers: HeaderMap, body: Bytes) -> Response {
    if endpoint.is_down() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    endpoint.take(headers, &body);
    if let Some(refusal) = endpoint.next_refusal() {
        return (StatusCode::TOO_MANY_REQUESTS, refusal).into_response();
    }
    ([("content-type", "application/x-protobuf")], "").into_response()
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_arrive_with_their_names_after_the_endpoint_was_away() {
    let endpoint = Arc::new(Endpoint::default());
    let (url, _server) = serve(router(endpoint.clone())).await;
    let headers = profiles_arrive_after_a_failure(&DEFINITION, &format!("{url}/base"), &endpoint).await;
    assert_eq!(
        (&headers["x-scope-orgid"], &headers["content-encoding"]),
        (&"team".parse().unwrap(), &"gzip".parse().unwrap())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_that_the_endpoint_has_stored_are_not_sent_again() {
    let endpoint = Arc::new(Endpoint::default());
    let (url, _server) = serve(router(endpoint.clone())).await;
    stored_profiles_are_not_sent_again(&DEFINITION, &format!("{url}/base"), &endpoint).await;
}

#[test]
fn endpoints_that_are_none_are_refused() {
    let read = |url: &str| body(url).read(&DEFINITION).map(drop).unwrap_err();
    for url in ["", "collector:4318", "ftp://collector:1"] {
        let error = read(url);
        assert!(error.starts_with("client"), "{error}");
    }
}
