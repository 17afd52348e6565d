//! The tables of SQL: the four tables of the store, and the view `flat` of samples with their series and stacks.
//!
//! In: the context of a query. Out: a catalog for its session ([`catalog`]).

mod bounds;
pub(in crate::query) mod catalog;
mod evaluate;
pub(in crate::query) mod flat;
pub(in crate::query) mod hint;
mod lookup;
