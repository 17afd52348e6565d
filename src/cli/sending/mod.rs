//! Commands that make or send profiles: `record` and `upload`.

pub(in crate::cli) mod record;
pub mod upload;
