//! `push.v1.PusherService/Push`.
//!
//! In: a call. Out: the profiles to the store; the store's errors, joined, to the caller. Valid profiles of a call stay stored when others are
//! refused.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::Request;

use crate::server::ServerState;
use crate::server::unary::{Answer, Call, in_time, receive, respond};
use crate::wire::connect::ConnectError;
use crate::wire::proto::push::{PushRequest, PushResponse};
use crate::wire::push::PushBatch;
use crate::wire::weight;

/// Takes the profiles of a call.
pub async fn push(State(state): State<ServerState>, request: Request<Body>) -> Response {
    run(state, request).await.unwrap_or_else(IntoResponse::into_response)
}

async fn run(state: ServerState, request: Request<Body>) -> Result<Response, ConnectError> {
    let limit = state.options.limits.push();
    let take_apart = |ask: PushRequest| Ok(PushBatch::from_request(ask)?.split());
    let Call {
        headers,
        tenant,
        ask: (profiles, outcome),
        charge,
    } = receive(&state, request, limit, weight::push, take_apart).await?;
    let work = async {
        let errors = if profiles.is_empty() {
            Vec::new()
        } else {
            state.append(tenant, profiles, charge).await?
        };
        outcome.finish(errors)?;
        Ok(Answer::Message(PushResponse {}))
    };
    let answer = in_time(headers.timeout, work).await?;
    respond(&state, headers, answer).await
}
