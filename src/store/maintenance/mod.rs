//! Maintenance: merges small files into large sorted files, downsamples and deletes old data, and deletes files that
//! are no longer needed.
//!
//! One thread works in rounds (`runner`). It plans jobs for the live files ([`plan`]) and rewrites some of the files
//! (`merge`). Then it replaces the old files with the new files in one commit to the table. From then on, new queries
//! read the new files (`worker`, `exchange`). Readers keep the files of their snapshot until the vacuum ([`retention`])
//! deletes them after a grace period. A round that fails or is interrupted leaves files that no table lists. These
//! files are removed, and the next round makes a new plan.

mod config;
pub mod deletion;
mod exchange;
mod jobs;
pub(in crate::store) mod merge;
pub(crate) mod plan;
mod report;
mod requests;
pub(crate) mod retention;
mod runner;
#[cfg(test)]
mod tests;
mod worker;

pub use config::MaintenanceConfig;
pub(crate) use exchange::remove_unnamed;
pub(crate) use report::Report;
pub(crate) use requests::Requests;
pub use requests::Work;
pub use retention::aging::Downsampling;
pub use retention::space::{FreeFloor, SpaceLimits};
pub(crate) use runner::Maintainer;
