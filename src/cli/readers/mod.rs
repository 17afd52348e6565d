//! Commands that read a merged profile from a server or from files, and print, draw or write it. `diff` reads two.

pub(in crate::cli) mod compare;
pub mod flamegraph;
pub(in crate::cli) mod list;
pub(in crate::cli) mod peek;
pub(in crate::cli) mod pgo;
pub(in crate::cli) mod profile;
mod report;
pub(in crate::cli) mod source;
mod source_files;
pub mod top;
pub(in crate::cli) mod tree;
pub(in crate::cli) mod tui;
