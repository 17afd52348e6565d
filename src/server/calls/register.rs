//! Registers the calls of services as HTTP routes for all protocols.
//!
//! In: services, which register their calls through [`Routes`]. Out: HTTP routes. Connect (`connect`) and gRPC (`grpc`)
//! differ only in headers and framing. Both share limits, budgets, deadlines and encodings (`perform`).

use axum::body::Body;
use axum::extract::State;
use axum::routing::{MethodRouter, post};
use http::Request;

use crate::query::QueryEngine;
use crate::server::calls::perform::Bounds;
use crate::server::calls::{connect, grpc};
use crate::server::state::shared::ServerState;
use alluvium_wire::grpc::Protocol;
use alluvium_wire::service::{Call, CallResult, ReplyMessage, RequestMessage, Routes};

/// Routes of the calls of one service.
pub(in crate::server) struct Calls {
    bounds: Bounds,
    routes: Vec<(String, MethodRouter<ServerState>)>,
}

impl Calls {
    /// Creates an empty set of routes for a service with these bounds.
    pub(in crate::server) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            routes: Vec::new(),
        }
    }

    /// Returns the path and the handler of each call.
    pub(in crate::server) fn into_routes(self) -> Vec<(String, MethodRouter<ServerState>)> {
        self.routes
    }
}

impl Routes for Calls {
    fn unary<Message, Reply, Work>(
        &mut self,
        route: &'static str,
        work: impl Fn(Call<Message>) -> Work + Clone + Send + Sync + 'static,
    ) where
        Message: RequestMessage,
        Reply: ReplyMessage,
        Work: Future<Output = CallResult<Reply>> + Send + 'static,
    {
        let bounds = self.bounds;
        let handler = move |State(state): State<ServerState>, request: Request<Body>| {
            let work = work.clone();
            async move {
                match Protocol::of(request.headers()) {
                    Protocol::Connect => connect::handle(&state, bounds, &work, request).await,
                    Protocol::Grpc => grpc::handle(&state, bounds, &work, request).await,
                    Protocol::GrpcWeb => grpc::handle_web(&state, bounds, &work, request).await,
                }
            }
        };
        self.routes.push((format!("/{route}"), post(handler)));
    }
}

/// Routes of calls that wait for a query slot before they run. So the limit on running queries also bounds the rest of
/// the work of a call, such as the parsing of selectors.
pub(in crate::server) struct Admitted<'a, R> {
    pub(in crate::server) engine: QueryEngine,
    pub(in crate::server) routes: &'a mut R,
}

impl<R: Routes> Routes for Admitted<'_, R> {
    fn unary<Message, Reply, Work>(
        &mut self,
        route: &'static str,
        work: impl Fn(Call<Message>) -> Work + Clone + Send + Sync + 'static,
    ) where
        Message: RequestMessage,
        Reply: ReplyMessage,
        Work: Future<Output = CallResult<Reply>> + Send + 'static,
    {
        let engine = self.engine.clone();
        self.routes.unary(route, move |call| {
            let (engine, work) = (engine.clone(), Box::pin(work(call)));
            async move { engine.admitted(work).await }
        });
    }
}
