//! Commands that generate completion scripts for shells, and manual pages.

pub(in crate::cli) mod completions;
pub(in crate::cli) mod man;
