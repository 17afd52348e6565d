//! Stores profiles durably: write-ahead log, head in memory, Parquet files in Delta tables. Only this module uses the
//! crates parquet and delta_kernel directly.
//!
//! A profile is checked and decoded (`rules`, `ingest`), written to the log and synced (`log`), applied to the head
//! (`head`) and acknowledged (`intake`). Later the head is flushed to the tables (`flush`, [`tables`]) and its part of
//! the log is deleted. After a crash, `open` brings log and tables into agreement. `docs/store.md` describes the layout
//! and why it is safe.

pub mod common;
mod config;
mod flush;
mod head;
mod ingest;
mod intake;
mod log;
pub mod maintenance;
mod open;
mod quota;
pub(crate) mod rules;
pub mod tables;
pub mod tools;

pub use crate::store::open::store::Store;
pub(crate) use common::error::StoreError;
pub use config::StoreConfig;
pub use log::segment::SyncMode;
pub use quota::TenantRules;
pub use rules::limits::Limits;
pub use rules::tenant_limits::TenantLimits;

#[cfg(test)]
mod tests;
