//! Trees to running components.
//!
//! [`component`] is the contract between engine and components, [`check`] says what is wrong with a configuration
//! without running it, and [`run`] runs one. Takes the definitions of components as data and never names one.

pub mod check;
pub mod component;
pub mod run;

pub use check::settings::logging::LoggingSettings;
pub use check::{redact, validate};
pub use run::{Controller, LastLoad, Options, RestartPolicy};
