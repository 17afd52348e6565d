//! `push.v1.PusherService/Push`.
//!
//! In: a call. Out: the profiles to the store; the store's errors, joined, to the caller. Valid profiles of a call stay stored when others are
//! refused.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::Request;

use crate::server::ServerState;
use crate::server::unary::{Answer, unary};
use crate::wire::proto::push::{PushRequest, PushResponse};
use crate::wire::push::PushBatch;

/// The route.
pub async fn push(State(state): State<ServerState>, request: Request<Body>) -> Response {
    unary(state, request, |state, tenant, ask: PushRequest| async move {
        let (profiles, outcome) = PushBatch::from_request(ask)?.split();
        let errors = match profiles.is_empty() {
            true => Vec::new(),
            false => state.store.append(&tenant, profiles).await,
        };
        outcome.finish(errors)?;
        Ok(Answer::Message(PushResponse {}))
    })
    .await
}
