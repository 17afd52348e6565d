//! Commands on stored data: `labels` and `series` of a server, and `store` for a data folder.

pub(in crate::cli) mod labels;
mod listing;
pub(in crate::cli) mod series;
#[cfg(feature = "server")]
pub(in crate::cli) mod store;
