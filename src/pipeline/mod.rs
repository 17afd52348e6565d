//! Trees to running components: the graph, its evaluation, reload, health.
//!
//! Takes the definitions of components as data and never names one. [`validate`] checks a configuration without running it; a
//! [`Controller`] runs one.

pub mod component;
mod controller;
mod engine;
pub mod foreign;
pub mod graph;
pub mod http;
mod lints;
pub mod live;
mod load;
mod logging;
mod metrics;
pub mod modules;
mod names;
mod node;
pub mod own_http;
mod plan;
mod redact;
pub mod remote;
pub mod settings;
pub mod status;
mod stop;
mod validate;

pub use controller::{Controller, LastLoad, Options};
pub use logging::LoggingSettings;
pub use node::RestartPolicy;
pub use redact::redact;
pub use validate::validate;
