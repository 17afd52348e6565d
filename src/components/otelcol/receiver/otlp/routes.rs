//! The routes of the HTTP port and of the gRPC port, and their responses.
//!
//! A response is a success if the receivers accepted all profiles, or accepted some and permanently rejected the
//! others. Otherwise the status of the response tells the client whether to retry.

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
use xxhash_rust::xxh3::xxh3_128;

use crate::common::passing::fanout::Fanout;
use crate::common::serving::grpc;
use crate::common::serving::intake::{Intake, TakenBody};
use crate::otelcol::receiver::otlp::metrics::ReceiverMetrics;
use crate::otelcol::receiver::otlp::receipt::ReceiptTimes;
use alluvium_profile::{RawProfile, RefusedProfile, pprof};
use alluvium_wire::connect::{self, CallHeaders, Code, Codec, ConnectError};
use alluvium_wire::grpc_status;
use alluvium_wire::otlp::messages::{ExportProfilesServiceRequest, ExportProfilesServiceResponse};
use alluvium_wire::otlp::{self, EXPORT_ROUTE, ExportBatch, ExportOutcome, HTTP_ROUTE};

/// Seconds after which a rejected client may retry.
const RETRY_AFTER_SECONDS: &str = "1";

/// Shared state of the request handlers.
pub(super) struct Handlers {
    /// The receivers of the profiles.
    pub fanout: Arc<Fanout>,
    /// The metrics of the component.
    pub metrics: ReceiverMetrics,
    /// Reads the bodies of requests.
    pub intake: Intake,
    /// Maximum time from the end of a request body to the response.
    pub answer_within: Duration,
    /// Dates profiles without a time.
    pub receipt: Arc<ReceiptTimes>,
}

/// Returns the routes of the HTTP port.
pub(super) fn http_router(handlers: Handlers) -> Router {
    Router::new()
        .route(&format!("/{HTTP_ROUTE}"), post(by_http))
        .with_state(Arc::new(handlers))
}

/// Returns the routes of the gRPC port. Calls for other signals get the status UNIMPLEMENTED.
pub(super) fn grpc_router(handlers: Handlers) -> Router {
    Router::new()
        .route(&format!("/{EXPORT_ROUTE}"), post(by_grpc))
        .fallback(unknown_call)
        .with_state(Arc::new(handlers))
}

async fn unknown_call(request: Request<Body>) -> Response {
    grpc::unimplemented(&request, "only profiles are supported")
}

async fn by_http(State(handlers): State<Arc<Handlers>>, request: Request<Body>) -> Response {
    let is_json = |value: &HeaderValue| value.as_bytes().starts_with(Codec::Json.content_type().as_bytes());
    let codec = if request.headers().get(CONTENT_TYPE).is_some_and(is_json) {
        Codec::Json
    } else {
        Codec::Proto
    };
    let (status, mut response) = match handlers.take_http(request).await {
        Ok(answer) => (200, connect::encode(codec, &answer).into_response()),
        Err(error) => (error.status, refusal(codec, &error)),
    };
    handlers.metrics.request("http", status);
    let kind = HeaderValue::from_static(otlp::content_type(codec));
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

async fn by_grpc(State(handlers): State<Arc<Handlers>>, request: Request<Body>) -> Response {
    let count = |status| handlers.metrics.request("grpc", status);
    grpc::serve(request, count, |request| handlers.take_grpc(request)).await
}

fn refusal(codec: Codec, error: &ConnectError) -> Response {
    tracing::debug!(status = error.status, error = %error, "profiles refused");
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = match codec {
        Codec::Proto => grpc_status::encode(error),
        Codec::Json => grpc_status::to_json(error),
    };
    let mut response = (status, body).into_response();
    if matches!(error.code, Code::Unavailable | Code::ResourceExhausted) {
        let seconds = HeaderValue::from_static(RETRY_AFTER_SECONDS);
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    response
}

impl Handlers {
    async fn take_http(&self, request: Request<Body>) -> Result<ExportProfilesServiceResponse, ConnectError> {
        let (parts, body) = request.into_parts();
        let call = CallHeaders::read(&parts.headers)?;
        let body = self.intake.read(&parts.headers, body, Vec::new()).await?;
        let body = self
            .intake
            .unpack(call.compression.or_detected(&body.bytes), body)
            .await?;
        self.take(call.codec, body).await
    }

    async fn take_grpc(&self, request: Request<Body>) -> Result<Bytes, ConnectError> {
        let (parts, body) = request.into_parts();
        let body = grpc::read_message(&self.intake, &parts.headers, body).await?;
        let answer = self.take(Codec::Proto, body).await?;
        Ok(connect::encode(Codec::Proto, &answer))
    }

    /// Converts a request to profiles and forwards them to the receivers.
    async fn take(&self, codec: Codec, body: TakenBody) -> Result<ExportProfilesServiceResponse, ConnectError> {
        let (bytes, _held) = body.split();
        let bytes = otlp::upgrade(codec, bytes)?;
        let mut weighed = self.intake.take(otlp::weight(codec, &bytes)?)?;
        let receipt = self.receipt.clone();
        let read = tokio::task::spawn_blocking(move || read(codec, bytes, &receipt)).await;
        let read = read.map_err(|error| ConnectError::new(Code::Internal, format!("the decoder panicked: {error}")))?;
        let (profiles, outcome) = read?;
        weighed.keep(profiles.iter().map(|profile| profile.pprof.len()).sum());
        let count = profiles.len();
        let refused = if profiles.is_empty() {
            Vec::new()
        } else {
            self.forward(profiles).await?
        };
        self.metrics.count_received(count, refused.len());
        outcome.finish(refused)
    }

    /// Forwards profiles to the receivers. If they do not accept them within `answer_within`, the error asks the client
    /// to retry. The profiles may then be stored twice, which is better than losing them.
    async fn forward(&self, profiles: Vec<RawProfile>) -> Result<Vec<RefusedProfile>, ConnectError> {
        let forwarded = tokio::time::timeout(self.answer_within, self.fanout.append(profiles));
        forwarded.await.map_err(|_| {
            let seconds = self.answer_within.as_secs();
            let message = format!("the receivers did not accept the profiles within {seconds} s, try again");
            ConnectError::new(Code::Unavailable, message)
        })
    }
}

/// Reads a request and converts its profiles to compressed pprof.
fn read(codec: Codec, bytes: Bytes, receipt: &ReceiptTimes) -> Result<(Vec<RawProfile>, ExportOutcome), ConnectError> {
    let hash = xxh3_128(&bytes);
    let mut request: ExportProfilesServiceRequest = connect::decode(codec, bytes)?;
    receipt.date(&mut request, hash, now_nanos());
    let (profiles, outcome) = ExportBatch::read(&request, 0)?.split();
    let profiles = profiles.into_iter().map(|profile| {
        let (raw, _) = profile.into_parts();
        RawProfile {
            pprof: pprof::gzip(&raw.pprof).into(),
            ..raw
        }
    });
    Ok((profiles.collect(), outcome))
}

fn now_nanos() -> u64 {
    let unix_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(unix_time.as_nanos()).unwrap_or(u64::MAX)
}
