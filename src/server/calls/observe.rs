//! Observes requests: counts them by route and status, records the senders of profiles, logs each request at debug
//! level, and handles panics.
//!
//! In: every request. Out: the HTTP metrics of `ServerMetrics`. The label `route` is the route's template, never the
//! path of the request.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use http::Request;
use prometheus_client::metrics::gauge::Gauge;

use crate::server::state::metrics::{RouteLabels, TimeLabels};
use crate::server::state::senders::SenderRequest;
use crate::server::state::shared::ServerState;
use crate::server::state::tenant::tenant;
use alluvium_admin::peer::Peer;
use alluvium_wire::connect::{Code, ConnectError};

/// The HTTP status that corresponds to the result of a call, for protocols with their own statuses.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallStatus(pub(in crate::server) u16);

/// Counts a request as in progress until this value is dropped, which also happens if the client disconnects.
struct InFlight<'a>(&'a Gauge);

impl<'a> InFlight<'a> {
    fn new(gauge: &'a Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Counts a request, measures its duration, and responds with status 500 if the handler panics.
pub(crate) async fn observe(State(state): State<ServerState>, request: Request<Body>, next: Next) -> Response {
    let started = Instant::now();
    let route = route(&request, &state.options.prefix);
    let method = request.method().clone();
    let address = request.extensions().get::<Peer>().map(|peer| peer.address.ip());
    let sending = SenderRequest::of(
        (&method, &route),
        request.headers(),
        || tenant(request.headers(), &state.options).ok(),
        address,
    );
    let _in_flight = InFlight::new(&state.metrics.in_flight);
    let response = AssertUnwindSafe(next.run(request))
        .catch_unwind()
        .await
        .unwrap_or_else(|_| {
            tracing::error!(route, "request handler panicked");
            ConnectError::new(Code::Internal, "the request handler panicked").into_response()
        });
    let elapsed = started.elapsed();
    // gRPC responses always have the HTTP status 200, so the status of the call is counted instead.
    let status = match response.extensions().get::<CallStatus>() {
        Some(CallStatus(status)) => *status,
        None => response.status().as_u16(),
    };
    if let Some(sending) = sending {
        state
            .senders
            .count_response(sending, status, chrono::Utc::now().timestamp_millis());
    }
    tracing::debug!(
        method = method.as_str(),
        route,
        status,
        milliseconds = elapsed.as_secs_f64() * 1000.0,
        "request answered"
    );
    let time_labels = TimeLabels { route: route.clone() };
    state
        .metrics
        .seconds
        .get_or_create(&time_labels)
        .observe(elapsed.as_secs_f64());
    state
        .metrics
        .requests
        .get_or_create(&RouteLabels { route, status })
        .inc();
    response
}

/// Returns the template of the route without the prefix, or `page` if no template matches the path.
fn route(request: &Request<Body>, prefix: &str) -> String {
    match request.extensions().get::<MatchedPath>() {
        Some(path) => {
            let path = path.as_str();
            path.strip_prefix(prefix)
                .filter(|rest| rest.starts_with('/'))
                .unwrap_or(path)
                .to_owned()
        }
        None => "page".to_owned(),
    }
}
