//! Modules: `declare` and its instances, imports, `foreach`.
//!
//! In the text a module is a [`declare::Declare`], analysed once. At run time it is an [`instance::Instance`], a scope of its own with
//! the nodes of the graph, in a tree of instances. [`stage`] makes such a tree without touching what runs; [`propagate`] passes changed values through one.

pub mod blocks;
pub mod declare;
mod evaluate;
pub mod identity;
pub mod instance;
pub mod library;
pub(crate) mod propagate;
pub(crate) mod stage;
