//! Merged stacks: sums by stack, and the trees and tables made from these sums.
//!
//! In: a selection of samples. Out: stacks with their sums ([`sums`]), flame graphs ([`flame`]), the stacks with given
//! functions ([`selector`]), and their values by profile ([`call_site`]).

pub(in crate::query) mod call_site;
pub(in crate::query) mod flame;
pub(in crate::query) mod selector;
pub(in crate::query) mod sums;
