//! gRPC and gRPC-Web framing: reads a call from a request, and writes its response.
//!
//! In: a request. Out: a response with its status in the trailers, or in the headers if there is no message
//! (`alluvium_admin::grpc`). This module replaces tonic's codec, because tonic buffers a message before its memory can
//! be charged, and decompresses on the thread that serves connections (docs/adr/0007-grpc.md).

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{Request, Version};

use crate::server::bodies::sending::sending;
use crate::server::calls::method::Method;
use crate::server::calls::observe::CallStatus;
use crate::server::calls::perform::{Bounds, perform};
use crate::server::state::shared::ServerState;
use alluvium_admin::grpc::MESSAGE_BYTES;
use alluvium_wire::connect::log;
use alluvium_wire::connect::{Code, ConnectError};
use alluvium_wire::grpc::{Prefix, call_headers};
use alluvium_wire::grpc_status;
use alluvium_wire::service::RequestMessage;

/// Handles a call over HTTP/2, or over HTTP/1.1 if the client reads trailers, like Connect's client for Go.
pub(in crate::server) async fn handle<Message: RequestMessage>(
    state: &ServerState,
    bounds: Bounds,
    method: &impl Method<Message>,
    request: Request<Body>,
) -> Response {
    if !alluvium_admin::grpc::takes_trailers(&request) {
        let message = "gRPC needs HTTP/2, or `TE: trailers`; otherwise use gRPC-Web or Connect";
        return refusal(&ConnectError::new(Code::Unimplemented, message));
    }
    let version = request.version();
    match run(state, bounds, method, request).await {
        Ok(response) if version == Version::HTTP_2 => response,
        Ok(response) => alluvium_admin::grpc::announced(response),
        Err(error) => refusal(&error),
    }
}

/// Handles a gRPC-Web call. The trailers are in the body. If the client requests base64, the whole body is base64 text.
pub(super) async fn handle_web<Message: RequestMessage>(
    state: &ServerState,
    bounds: Bounds,
    method: &impl Method<Message>,
    request: Request<Body>,
) -> Response {
    let handler = |request| async {
        let answered = run(state, bounds, method, request).await;
        answered.unwrap_or_else(|error| refusal(&error))
    };
    alluvium_admin::grpc::web(request, handler).await
}

async fn run<Message: RequestMessage>(
    state: &ServerState,
    bounds: Bounds,
    method: &impl Method<Message>,
    request: Request<Body>,
) -> Result<Response, ConnectError> {
    let (parts, body) = request.into_parts();
    let call = call_headers(&parts.headers)?;
    let tenants = (bounds.tenants)(&parts.headers, &state.options)?;
    let body = state.intake.read_message(call.compression, body, bounds.limit).await?;
    let written = perform(state, bounds, call, tenants, body, method).await?;
    let prefix = Prefix {
        is_compressed: written.is_compressed,
        length: u32::try_from(written.bytes.len())
            .map_err(|_| ConnectError::too_large("the response is longer than 4 GiB, the maximum of gRPC"))?,
    };
    let time = state.engine.limits().timeout;
    let encoding = written.is_compressed.then_some("gzip");
    let body = sending(&state.answers, time, &prefix.to_bytes(), written)?;
    Ok(alluvium_admin::grpc::success(body, encoding))
}

/// Returns the response to a failed call: no message, and the status in the headers.
pub(in crate::server) fn refusal(error: &ConnectError) -> Response {
    log(error);
    let mut shortened = error.clone();
    shortened
        .message
        .truncate(error.message.floor_char_boundary(MESSAGE_BYTES));
    let details = if shortened.details.is_empty() {
        Bytes::new()
    } else {
        grpc_status::encode(&shortened)
    };
    let mut response = alluvium_admin::grpc::failure(error.code.grpc_number(), &shortened.message, &details);
    response.extensions_mut().insert(CallStatus(error.status));
    response
}
