//! `local.file_match`: the files that patterns match.

use std::time::Duration;

use crate::components::common::discovery;
use crate::components::common::targets::Targets;
use crate::lang::attribute::Interval;
use crate::lang::body::arguments;
use crate::pipeline::component::{Definition, Stability, no_metrics};

arguments! {
    /// Arguments of `local.file_match`.
    pub(crate) struct FileMatchArguments {
        /// Files that were not written to for so long are left out; 0 is never.
        ignore_older_than: Duration = "0s",
        /// Targets whose label __path__ is a pattern of files and __path_exclude__ a pattern of those to leave out.
        path_targets: Targets,
        /// Time from one look at the folders to the next.
        sync_period: Interval = "10s",
    }
}

/// The definition of `local.file_match`.
pub(crate) const FILE_MATCH: Definition<FileMatchArguments> = Definition {
    name: "local.file_match",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`local.file_match` finds the files that patterns match and makes a target of each.",
};
