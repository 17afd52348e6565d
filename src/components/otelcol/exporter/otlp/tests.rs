//! Tests of the component from outside: profiles go into its receiver and reach an endpoint on this machine.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::{HeaderMap, HeaderValue};
use prost::Message as _;

use crate::common::sending::otlp::testing::{
    Endpoint, body, profiles_arrive_after_a_failure, stored_profiles_are_not_sent_again,
};
use crate::common::testing::serve;
use crate::otelcol::exporter::otlp::DEFINITION;
use alluvium_admin::grpc;
use alluvium_profile::pprof;
use alluvium_wire::grpc::{PREFIX_BYTES, Prefix};
use alluvium_wire::otlp::EXPORT_ROUTE;
use alluvium_wire::otlp::messages::ExportProfilesServiceResponse;

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
    if let Some(refusal) = endpoint.next_refusal() {
        let headers = [
            ("content-type", "application/grpc"),
            ("grpc-status", "8"),
            ("grpc-message", refusal.as_str()),
        ];
        return (headers, "").into_response();
    }
    // Servers in Go compress the response like the request.
    let message = pprof::gzip(&ExportProfilesServiceResponse::default().encode_to_vec());
    let prefix = Prefix {
        is_compressed: true,
        length: message.len() as u32,
    };
    let mut response = grpc::success([&prefix.to_bytes(), message.as_slice()].concat().into(), None);
    response
        .headers_mut()
        .insert("grpc-encoding", HeaderValue::from_static("gzip"));
    response
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

#[tokio::test(flavor = "multi_thread")]
async fn profiles_that_the_endpoint_has_stored_are_not_sent_again() {
    let endpoint = Arc::new(Endpoint::default());
    let (url, _server) = serve(router(endpoint.clone())).await;
    stored_profiles_are_not_sent_again(&DEFINITION, &url, &endpoint).await;
}

#[test]
fn endpoints_that_are_none_are_refused() {
    let read = |url: &str| body(url).read(&DEFINITION).map(drop).unwrap_err();
    for url in ["", "collector:port:x", "ftp://collector:1"] {
        let error = read(url);
        assert!(error.starts_with("client.endpoint: "), "{error}");
    }
}
