//! What the server says about its requests: metrics by route and status, a log line each at debug level; and what happens when a handler panics.
//!
//! In: every request. Out: counters and histograms in the given scope. Routes are labelled by their template, never by the path that came.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use http::Request;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::server::ServerState;
use crate::telemetry::metrics::Scope;
use crate::wire::connect::{Code, ConnectError};

/// Bounds of the time histogram in seconds: from a label look-up to the longest query.
const SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RouteLabels {
    route: String,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TimeLabels {
    route: String,
}

/// Metrics of the HTTP side.
#[derive(Clone, Debug)]
pub struct ServerMetrics {
    requests: Family<RouteLabels, Counter>,
    seconds: Family<TimeLabels, Histogram>,
    in_flight: Gauge,
}

impl ServerMetrics {
    /// Registers the metrics.
    pub fn new(scope: &Scope) -> Self {
        let metrics = Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            in_flight: Gauge::default(),
        };
        scope.register(
            "alluvium_http_requests",
            "Requests answered, by route and status",
            metrics.requests.clone(),
        );
        scope.register(
            "alluvium_http_request_seconds",
            "Time from a request's headers to its answer's, by route",
            metrics.seconds.clone(),
        );
        scope.register(
            "alluvium_http_requests_in_flight",
            "Requests being worked on",
            metrics.in_flight.clone(),
        );
        metrics
    }
}

/// Counts a request in flight until dropped, also when the client goes away and the handler's future is dropped.
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

/// The middleware.
pub async fn observe(State(state): State<ServerState>, request: Request<Body>, next: Next) -> Response {
    let started = Instant::now();
    let route = route(&request, &state.options.prefix);
    let method = request.method().clone();
    let _in_flight = InFlight::new(&state.metrics.in_flight);
    let response = AssertUnwindSafe(next.run(request))
        .catch_unwind()
        .await
        .unwrap_or_else(|_| {
            tracing::error!(route, "request handler panicked");
            ConnectError::new(Code::Internal, "the request made the server fail").into_response()
        });
    let elapsed = started.elapsed();
    let status = response.status().as_u16();
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

/// Template of the route without the prefix; what no template matched is the page or nothing.
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
