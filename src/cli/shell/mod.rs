//! Commands for the installation in a shell: completion scripts and manual pages.

pub(in crate::cli) mod completions;
pub(in crate::cli) mod man;
