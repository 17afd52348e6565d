//! The routes of the HTTP port and of the gRPC port, and their responses.
//!
//! A response is a success if every receiver accepted the profile. Otherwise its status tells the client whether to
//! retry.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;

use crate::common::passing::fanout::Fanout;
use crate::common::serving::grpc::{self, HEALTH_ROUTE};
use crate::common::serving::intake::{Intake, TakenBody};
use crate::pyroscope::receive_http::ingest::IngestRequest;
use crate::pyroscope::receive_http::metrics::ReceiveMetrics;
use crate::pyroscope::receive_http::push;
use alluvium_profile::{RawProfile, RefusedProfile, SinkError};
use alluvium_wire::connect::{self, CallHeaders, Code, Codec, ConnectError};
use alluvium_wire::grpc::Protocol;
use alluvium_wire::proto::push::PushResponse;
use alluvium_wire::push::PUSH_ROUTE;

/// Seconds after which a rejected client may retry.
const RETRY_AFTER_SECONDS: &str = "1";

/// Name of the service of pushes, for health checks.
const PUSH_SERVICE: &str = "push.v1.PusherService";

/// Shared state of the request handlers.
pub(super) struct Handlers {
    /// The receivers of the profiles.
    pub fanout: Arc<Fanout>,
    /// The metrics of the component.
    pub metrics: ReceiveMetrics,
    /// Reads the bodies of requests.
    pub intake: Intake,
    /// Maximum time from the end of the body to the response. Zero means no limit.
    pub answer_within: Duration,
}

/// Returns the routes of the HTTP port, served by `handlers`.
pub(super) fn http_router(handlers: Handlers) -> Router {
    Router::new()
        .route("/ingest", post(ingest))
        .route("/pyroscope/ingest", post(ingest))
        .route(&format!("/{PUSH_ROUTE}"), post(pushed))
        .with_state(Arc::new(handlers))
}

/// Returns the routes of the gRPC port, served by `handlers`.
pub(super) fn grpc_router(handlers: Handlers) -> Router {
    Router::new()
        .route(&format!("/{PUSH_ROUTE}"), post(pushed_by_grpc))
        .route(HEALTH_ROUTE, post(health))
        .fallback(unknown_call)
        .with_state(Arc::new(handlers))
}

async fn ingest(State(handlers): State<Arc<Handlers>>, request: Request<Body>) -> Response {
    let outcome = handlers.take_upload(request).await;
    handlers.metrics.request("ingest", status_of(&outcome));
    match outcome {
        Ok(()) => StatusCode::OK.into_response(),
        Err(error) => refusal(&error),
    }
}

async fn pushed(State(handlers): State<Arc<Handlers>>, request: Request<Body>) -> Response {
    if Protocol::of(request.headers()) != Protocol::Connect {
        return pushed_by_grpc(State(handlers), request).await;
    }
    let outcome = handlers.take_connect(request).await;
    handlers.metrics.request("push", status_of(&outcome));
    match outcome {
        Ok(codec) => {
            let body = connect::encode(codec, &PushResponse {});
            ([(CONTENT_TYPE, codec.content_type())], body).into_response()
        }
        Err(error) => refusal(&error),
    }
}

async fn pushed_by_grpc(State(handlers): State<Arc<Handlers>>, request: Request<Body>) -> Response {
    let count = |status| handlers.metrics.request("push", status);
    grpc::serve(request, count, |request| handlers.take_grpc(request)).await
}

async fn health(State(handlers): State<Arc<Handlers>>, request: Request<Body>) -> Response {
    grpc::health(&handlers.intake, &[PUSH_SERVICE], request).await
}

async fn unknown_call(request: Request<Body>) -> Response {
    grpc::unimplemented(&request, "the port accepts pushes and health checks")
}

impl Handlers {
    async fn take_upload(&self, request: Request<Body>) -> Result<(), ConnectError> {
        let (parts, body) = request.into_parts();
        let request = IngestRequest::read(parts.uri.query().unwrap_or_default(), &parts.headers, now_nanos())?;
        let head_length = request.head.len();
        let (pprof, _held) = self.intake.read(&parts.headers, body, request.head).await?.split();
        self.metrics.count_received(1, pprof.len() - head_length);
        let profile = RawProfile {
            labels: request.labels,
            id: request.id,
            pprof,
        };
        match SinkError::joined(self.forward(vec![profile]).await?) {
            None => Ok(()),
            Some(error) => Err(error.into()),
        }
    }

    async fn take_connect(&self, request: Request<Body>) -> Result<Codec, ConnectError> {
        let (parts, body) = request.into_parts();
        let body = self.intake.read(&parts.headers, body, Vec::new()).await?;
        let call = CallHeaders::read(&parts.headers)?;
        let body = self
            .intake
            .unpack(call.compression.or_detected(&body.bytes), body)
            .await?;
        self.take_push(call.codec, body).await?;
        Ok(call.codec)
    }

    async fn take_grpc(&self, request: Request<Body>) -> Result<Bytes, ConnectError> {
        let (parts, body) = request.into_parts();
        let body = grpc::read_message(&self.intake, &parts.headers, body).await?;
        self.take_push(Codec::Proto, body).await?;
        Ok(connect::encode(Codec::Proto, &PushResponse {}))
    }

    async fn take_push(&self, codec: Codec, body: TakenBody) -> Result<(), ConnectError> {
        let (push, _held) = push::read(&self.intake, codec, body).await?;
        let bytes = push.profiles.iter().map(|profile| profile.pprof.len()).sum();
        self.metrics.count_received(push.profiles.len(), bytes);
        let errors = if push.profiles.is_empty() {
            Vec::new()
        } else {
            self.forward(push.profiles).await?
        };
        push.outcome.finish(errors)?;
        Ok(())
    }

    /// Forwards profiles to the receivers. If they do not accept them within `answer_within`, the error asks the client
    /// to retry. The profiles may then be stored twice, which is better than losing them.
    async fn forward(&self, profiles: Vec<RawProfile>) -> Result<Vec<RefusedProfile>, ConnectError> {
        let forwarded = self.fanout.append(profiles);
        if self.answer_within.is_zero() {
            return Ok(forwarded.await);
        }
        tokio::time::timeout(self.answer_within, forwarded).await.map_err(|_| {
            let seconds = self.answer_within.as_secs();
            let message = format!("the receivers did not accept the profiles within {seconds} s, try again");
            ConnectError::new(Code::Unavailable, message)
        })
    }
}

fn status_of<T>(outcome: &Result<T, ConnectError>) -> u16 {
    outcome
        .as_ref()
        .map_or_else(|error| error.status, |_| StatusCode::OK.as_u16())
}

fn refusal(error: &ConnectError) -> Response {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    tracing::debug!(status = error.status, error = %error, "profiles refused");
    let mut response = (status, error.to_json()).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if matches!(error.code, Code::Unavailable | Code::ResourceExhausted) {
        headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
    }
    response
}

fn now_nanos() -> i64 {
    let unix_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(unix_time.as_nanos()).unwrap_or(i64::MAX)
}
