//! Trees to running components: the graph, its evaluation, reload, health.
//!
//! Takes the definitions of components as data and never names one. [`validate`] checks a configuration without running it; a
//! [`Controller`] runs one.

pub mod component;
mod controller;
pub mod foreign;
pub mod graph;
pub mod live;
pub mod logging;
mod metrics;
mod names;
mod node;
mod plan;
mod redact;
pub mod status;
mod stop;
mod validate;

pub use controller::{Controller, LastLoad, Options};
pub use logging::LoggingSettings;
pub use node::RestartPolicy;
pub use redact::redact;
pub use validate::validate;
