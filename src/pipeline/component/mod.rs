//! What engine and components agree on: how a kind of component is defined, what an instance does, and what it may use
//! of the world.
//!
//! [`Definition`] is data; [`Component`] does the work; [`Context`] holds all that a component may use: where to send
//! exports and health, metrics, [`live`] debugging, the program's own endpoints. The engine knows both without the type
//! of their arguments, as [`AnyDefinition`] and [`AnyComponent`]. Nothing here checks or runs a configuration.

mod contract;
mod definition;
mod erased;
pub(crate) mod import;
pub mod live;
pub(crate) mod own_http;

pub use contract::{Component, ComponentError, Context, HealthState};
pub(crate) use contract::{ExportsSender, HealthSender};
pub use definition::{Definition, Stability, no_metrics};
pub use erased::AnyDefinition;
pub(crate) use erased::{AnyComponent, ValidArguments};
