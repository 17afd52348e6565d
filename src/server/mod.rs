//! The HTTP routes of the server and their status codes. `wire` implements the protocols, `store` stores the data, and
//! `query` runs the queries.
//!
//! In: HTTP requests on one port. Out: calls to the store and the query engine, and the results as HTTP responses.
//! [`router`] builds the routes, at `/` and under a prefix; `admin::listen` serves them. `docs/http-api.md` describes
//! every route.

pub mod access;
mod bodies;
mod calls;
pub mod postgres;
mod prometheus;
mod routes;
mod services;
mod state;
pub mod tls;

pub(crate) use access::deletion_token::AdminToken;
pub use bodies::limits::ServerLimits;
pub use prometheus::{Prometheus, PrometheusError};
pub use routes::table::router;
pub use state::metrics::ServerMetrics;
pub use state::ready::Readiness;
pub use state::settings::Settings;
pub(crate) use state::settings::limit_values;
pub use state::shared::{ProfileStore, ServerOptions, ServerState};
