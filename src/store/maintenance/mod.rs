//! Maintenance: merges small files into large sorted ones, downsamples and deletes old data, and deletes files that are
//! no longer needed.
//!
//! One thread works in rounds (`runner`): it looks at the live files ([`plan`]), rewrites some of them ([`rewrite`]),
//! commits the exchange to the table in one entry and publishes it (`worker`, `exchange`). Readers keep the files of
//! their view until [`vacuum`] deletes them after a grace period. A round that fails or is cut off leaves files that
//! no table names; they are removed, and the next round plans anew.

pub(crate) mod aging;
mod config;
pub mod deletion;
mod deletion_job;
mod exchange;
mod input;
mod jobs;
mod names;
mod parts;
pub(crate) mod plan;
mod profiles;
mod report;
mod requests;
pub(crate) mod rewrite;
mod room;
mod runner;
mod samples;
mod series_merge;
mod space;
pub(crate) mod vacuum;
mod vacuum_job;
mod watch;
mod worker;

pub use aging::Downsampling;
pub use config::MaintenanceConfig;
pub(crate) use exchange::remove_unnamed;
pub(crate) use report::Report;
pub(crate) use requests::Requests;
pub use requests::Work;
pub(crate) use runner::Maintainer;
pub use space::{FreeFloor, SpaceLimits};

#[cfg(test)]
mod clock_tests;
#[cfg(test)]
mod damaged_file_tests;
#[cfg(test)]
mod deletion_tests;
#[cfg(test)]
mod exchange_tests;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod flush_fault_tests;
#[cfg(test)]
mod growth_tests;
#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod tests;
