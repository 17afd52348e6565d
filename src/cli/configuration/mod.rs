//! Commands on configuration files: `validate`, `fmt` and `convert`. They run no component and contact no server.

pub(in crate::cli) mod convert;
mod diagnostics;
mod diff;
pub(in crate::cli) mod fmt;
pub(in crate::cli) mod validate;
