//! Profiles of OpenTelemetry: the call `Export` of its service, and the same request as a plain POST.
//!
//! In: an export request by gRPC or Connect, or by HTTP as protobuf or JSON. Out: profiles to the store. The response
//! counts the profiles that the server refused permanently. On the plain route, an error is a `google.rpc.Status` in
//! the encoding of the request, as OTLP specifies.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request};
use prost::Message as _;

use crate::server::bodies::sending::respond;
use crate::server::calls::perform::{Bounds, perform};
use crate::server::state::shared::ServerState;
use crate::server::state::tenant::{one_tenant, tenant, tenants};
use alluvium_wire::connect::{CallHeaders, Codec, ConnectError};
use alluvium_wire::grpc_status;
use alluvium_wire::otlp::messages::{ExportProfilesServiceRequest, ExportProfilesServiceResponse};
use alluvium_wire::otlp::{self, EXPORT_ROUTE, ExportBatch};
use alluvium_wire::service::{Call, CallResult, Routes};

/// Estimated size of the decoded columns in bytes for each byte of a request. The columns are larger, because a request
/// contains each stack only once for all its samples.
const EXPANSION: usize = 8;

/// Profiles without a time reach the store without a time. The store uses the time of receipt, and recognises the same
/// profile if the client sends it again.
const NO_TIME: i64 = 0;

/// Passes exported profiles to the store.
#[derive(Clone)]
pub(super) struct Exporter(pub(in crate::server) ServerState);

/// Returns the limits of an export request.
pub(in crate::server) fn bounds(state: &ServerState) -> Bounds {
    Bounds {
        limit: state.options.limits.push(),
        upgrade: Some(otlp::upgrade),
        weigh: otlp::weight,
        tenants,
    }
}

impl Exporter {
    /// Registers the call `Export` of the service `ProfilesService`.
    pub(super) fn route(&self, routes: &mut impl Routes) {
        let exporter = self.clone();
        routes.unary(EXPORT_ROUTE, move |call| {
            let exporter = exporter.clone();
            async move { exporter.export(call).await }
        });
    }

    async fn export(&self, call: Call<ExportProfilesServiceRequest>) -> CallResult<ExportProfilesServiceResponse> {
        let tenant = one_tenant(&call.tenants)?;
        let Call {
            request, mut memory, ..
        } = call;
        let work_bytes = request.encoded_len().saturating_mul(EXPANSION);
        let read = move || {
            let batch = ExportBatch::read(&request, NO_TIME)?;
            drop(request);
            memory.keep(batch.bytes());
            Ok((batch.split(), memory))
        };
        let ((profiles, outcome), memory) = self.0.workers.run(work_bytes, read).await?;
        let refused = if profiles.is_empty() {
            Vec::new()
        } else {
            self.0.append_decoded(tenant, profiles, memory).await?
        };
        Ok(outcome.finish(refused)?.into())
    }
}

/// `POST /v1development/profiles`: responds as soon as the profiles are durable.
pub(super) async fn export(State(state): State<ServerState>, request: Request<Body>) -> Response {
    let is_json = |value: &HeaderValue| value.as_bytes().starts_with(Codec::Json.content_type().as_bytes());
    let codec = if request.headers().get(CONTENT_TYPE).is_some_and(is_json) {
        Codec::Json
    } else {
        Codec::Proto
    };
    take(&state, request)
        .await
        .unwrap_or_else(|error| refusal(codec, error))
}

async fn take(state: &ServerState, request: Request<Body>) -> Result<Response, ConnectError> {
    let (parts, body) = request.into_parts();
    let call = CallHeaders::read(&parts.headers)?;
    let tenant = tenant(&parts.headers, &state.options)?;
    let bounds = bounds(state);
    let body = state.intake.read(&parts.headers, body, bounds.limit).await?;
    let exporter = Exporter(state.clone());
    let method = move |call: Call<ExportProfilesServiceRequest>| {
        let exporter = exporter.clone();
        async move { exporter.export(call).await }
    };
    let written = perform(state, bounds, call, tenant.into(), body, &method).await?;
    let time = state.engine.limits().timeout;
    respond(&state.answers, time, otlp::content_type(call.codec), written)
}

/// Returns the response to a failed request in the form of OTLP. Status and `Retry-After` are the same as on all
/// routes.
fn refusal(codec: Codec, error: ConnectError) -> Response {
    let status: Bytes = match codec {
        Codec::Proto => grpc_status::encode(&error),
        Codec::Json => grpc_status::to_json(&error),
    };
    let mut response = error.into_response();
    *response.body_mut() = status.into();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(otlp::content_type(codec)));
    response
}
