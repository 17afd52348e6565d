//! The contract between engine and components: the definition of a kind of component, the behaviour of an instance, and
//! the resources that it may use.
//!
//! [`Definition`] is data; [`Component`] does the work; [`Context`] holds everything that a component may use: senders
//! for exports and health, metrics, [`live`] debugging, the program's own endpoints. The engine uses definitions and
//! components with erased argument types, as [`AnyDefinition`] and [`AnyComponent`]. Nothing here checks or runs a
//! configuration.

mod contract;
mod definition;
mod erased;
pub mod import;
pub mod large_responses;
pub mod live;
pub mod own_http;

pub use contract::{Component, ComponentError, Context, HealthState, InFlight};
pub use contract::{ExportsSender, HealthSender, run_passive};
pub use definition::{Definition, Stability, no_metrics};
pub use erased::AnyDefinition;
pub use erased::{AnyComponent, ValidArguments};
