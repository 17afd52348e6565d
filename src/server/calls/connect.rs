//! Connect framing: reads a call from a request, and writes its response with status and headers.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::Request;

use crate::server::bodies::sending::respond;
use crate::server::calls::perform::{Bounds, perform};
use crate::server::state::shared::ServerState;
use alluvium_wire::connect::{CallHeaders, ConnectError};
use alluvium_wire::service::{Call, CallResult, ReplyMessage, RequestMessage};

/// Handles a Connect call and returns the message, or an error as JSON.
pub(in crate::server) async fn handle<Message, Reply, Work>(
    state: &ServerState,
    bounds: Bounds,
    work: impl Fn(Call<Message>) -> Work,
    request: Request<Body>,
) -> Response
where
    Message: RequestMessage,
    Reply: ReplyMessage,
    Work: Future<Output = CallResult<Reply>>,
{
    run(state, bounds, work, request)
        .await
        .unwrap_or_else(IntoResponse::into_response)
}

async fn run<Message, Reply, Work>(
    state: &ServerState,
    bounds: Bounds,
    work: impl Fn(Call<Message>) -> Work,
    request: Request<Body>,
) -> Result<Response, ConnectError>
where
    Message: RequestMessage,
    Reply: ReplyMessage,
    Work: Future<Output = CallResult<Reply>>,
{
    let (parts, body) = request.into_parts();
    let call = CallHeaders::read(&parts.headers)?;
    let tenants = (bounds.tenants)(&parts.headers, &state.options)?;
    let body = state.intake.read(&parts.headers, body, bounds.limit).await?;
    let written = perform(state, bounds, call, tenants, body, work).await?;
    let time = state.engine.limits().timeout;
    respond(&state.answers, time, call.codec.content_type(), written)
}
