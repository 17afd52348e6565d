//! A running configuration: evaluation, loads and reloads, exports and health of components.
//!
//! In: the graphs of `check` and the components of the program. A [`Controller`] holds a tree of instances, one per
//! scope. `stage` builds such a tree without affecting the running one, `propagate` passes changed values through a
//! tree, `load` swaps one tree for another.

mod controller;
mod engine;
mod evaluate;
mod identity;
mod instance;
mod library;
pub mod live;
mod load;
mod metrics;
mod names;
mod node;
mod plan;
pub mod prepare;
mod propagate;
mod stage;
pub(crate) mod status;
mod stop;

pub use controller::{Controller, Options};
pub use node::RestartPolicy;
