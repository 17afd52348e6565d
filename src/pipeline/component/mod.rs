//! What engine and components agree on: how a kind of component is defined, what an instance does, and what it may use
//! of the world.
//!
//! [`Definition`] is data; [`Component`] is what the engine runs; [`Context`] holds all that a component may use:
//! exports and health to tell, metrics, [`live`] debugging, the program's own endpoints. Neither checks nor runs
//! anything.

mod contract;
mod definition;
pub mod import;
pub mod live;
pub mod own_http;

pub use contract::{Component, ComponentError, Context, ExportsSender, HealthSender, HealthState};
pub use definition::{ArgumentError, Build, Definition, Stability};
