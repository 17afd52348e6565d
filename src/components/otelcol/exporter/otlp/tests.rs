//! Tests of the component from outside: profiles go into its receiver and reach an endpoint on this machine.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use http::HeaderMap;

use crate::common::sending::otlp::testing::{Endpoint, body, profiles_arrive_after_a_failure};
use crate::common::testing::serve;
use crate::otelcol::exporter::otlp::DEFINITION;
use alluvium_admin::grpc;
use alluvium_wire::grpc::PREFIX_BYTES;
use alluvium_wire::otlp::EXPORT_ROUTE;

fn router(endpoint: Arc<Endpoint>) -> Router {
    Router::new()
        .route(&format!("/{EXPORT_ROUTE}"), post(export))
        .with_state(endpoint)
}

async fn export(State(endpoint): State<Arc<Endpoint>>, headers: HeaderMap, body: Bytes) -> Response {
    if endpoint.is_down() {
        return grpc::failure(14, "away", &[]);
    }
    endpoint.take(headers, &body.slice(PREFIX_BYTES..));
    grpc::success(vec![0; PREFIX_BYTES].into(), None)
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_arrive_with_their_names_after_the_endpoint_was_away() {
    let endpoint = Arc::new(Endpoint::default());
    let (url, _server) = serve(router(endpoint.clone())).await;
    let headers = profiles_arrive_after_a_failure(&DEFINITION, &url, &endpoint).await;
    assert_eq!(
        (&headers["x-scope-orgid"], &headers["grpc-encoding"]),
        (&"team".parse().unwrap(), &"gzip".parse().unwrap())
    );
}

#[test]
fn endpoints_that_are_none_are_refused() {
    let read = |url: &str| body(url).read(&DEFINITION).map(drop).unwrap_err();
    for url in ["", "collector:port:x", "ftp://collector:1"] {
        let error = read(url);
        assert!(error.starts_with("client.endpoint: "), "{error}");
    }
}
