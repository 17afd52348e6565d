//! Connect framing: reads a call from a request, and writes its response with status and headers.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::Request;

use crate::server::bodies::sending::respond;
use crate::server::calls::method::Method;
use crate::server::calls::perform::{Bounds, perform};
use crate::server::state::shared::ServerState;
use alluvium_wire::connect::{CallHeaders, ConnectError};
use alluvium_wire::service::RequestMessage;

/// Handles a Connect call and returns the message, or an error as JSON.
pub(in crate::server) async fn handle<Message: RequestMessage>(
    state: &ServerState,
    bounds: Bounds,
    method: &impl Method<Message>,
    request: Request<Body>,
) -> Response {
    run(state, bounds, method, request)
        .await
        .unwrap_or_else(IntoResponse::into_response)
}

async fn run<Message: RequestMessage>(
    state: &ServerState,
    bounds: Bounds,
    method: &impl Method<Message>,
    request: Request<Body>,
) -> Result<Response, ConnectError> {
    let (parts, body) = request.into_parts();
    let call = CallHeaders::read(&parts.headers)?;
    let tenants = (bounds.tenants)(&parts.headers, &state.options)?;
    let body = state.intake.read(&parts.headers, body, bounds.limit).await?;
    let written = perform(state, bounds, call, tenants, body, method).await?;
    let time = state.engine.limits().timeout;
    respond(&state.answers, time, call.codec.content_type(), written)
}
