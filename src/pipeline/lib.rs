//! The pipeline: from configuration texts to running components.
//!
//! [`component`] is the contract between engine and components, [`check`] checks a configuration without running it,
//! and [`run`] runs a configuration. The program passes the definitions of components as data; this module names no
//! component.

pub mod check;
pub mod component;
pub mod run;

pub use check::redact;
pub use check::settings::logging::LoggingSettings;
pub use check::validate;
pub use run::{Controller, Options, RestartPolicy};
