//! The HTTP routes of the server and their status codes. Protocols are in `wire`, data in `store`, queries in `query`.
//!
//! In: HTTP requests on one port. Out: calls of the store and the query engine, and their results as HTTP answers.
//! [`router`] builds the routes, at `/` and under a prefix; `admin::listen` serves them. `docs/http-api.md` describes
//! every route.

mod about;
pub mod access;
mod adhoc;
mod body;
mod budget;
mod calls;
mod connect;
mod debuginfo;
mod delete;
mod error;
mod grpc;
mod health;
mod ingest;
mod kept;
mod limits;
mod metrics;
mod observe;
mod otlp;
mod pace;
mod page;
mod perform;
pub mod postgres;
mod profefe;
mod prometheus;
mod push;
mod querier;
mod questions;
mod ready;
mod recording_rules;
mod render;
mod routes;
mod senders;
mod sending;
mod services;
mod settings;
mod sql;
mod state;
mod status;
mod tenant;
mod timeline_messages;
pub mod tls;
mod token;
mod user_settings;
mod vcs;
mod workers;

pub use limits::ServerLimits;
pub use metrics::ServerMetrics;
pub use prometheus::{Prometheus, PrometheusError};
pub use ready::Readiness;
pub use routes::router;
pub use settings::Settings;
pub(crate) use settings::limit_values;
pub use state::{ProfileStore, ServerOptions, ServerState};
pub(crate) use token::AdminToken;
