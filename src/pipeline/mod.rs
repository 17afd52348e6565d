//! Trees to running components.
//!
//! [`component`] is the contract between engine and components, [`check`] says what is wrong with a configuration
//! without running it, and [`run`] runs one. Takes the definitions of components as data and never names one.

pub(crate) mod check;
pub mod component;
pub(crate) mod run;

pub(crate) use check::redact;
pub use check::settings::logging::LoggingSettings;
pub use check::validate;
pub use run::{Controller, Options, RestartPolicy};
