//! `local.file_match`: the files that match patterns, as targets.
//!
//! In: targets with a pattern. Out: a target for each file, with the labels of the pattern's target and the path of the
//! file. The component reads names and times of files, but not their content.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::common::arguments::targets::{Target, Targets};
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use alluvium_lang::attribute::Interval;
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

mod pattern;
#[cfg(test)]
mod tests;

use pattern::{Pattern, PatternError};

/// Label of a target. In the arguments, it contains a pattern of files. In the exports, it contains the path of a file.
const PATH: &str = "__path__";
/// Label with the pattern of files to exclude.
const EXCLUDE: &str = "__path_exclude__";

arguments! {
    /// Arguments of `local.file_match`.
    pub(crate) struct FileMatchArguments {
        /// Files whose last write is longer ago than this duration are excluded. With 0 no file is excluded.
        ignore_older_than: Duration = "0s",
        /// Targets with a pattern of files in the label `__path__`. The optional label `__path_exclude__` has a pattern
        /// of files to exclude.
        path_targets: Targets,
        /// Time between two searches for files.
        sync_period: Interval = "10s",
    }
}

/// The definition of `local.file_match`.
pub(crate) const DEFINITION: Definition<FileMatchArguments> = polled::definition::<FileMatch>(
    "local.file_match",
    "`local.file_match` finds the files that match patterns, and exports each file as a target.",
);

struct FileMatch {
    watches: Arc<[Watch]>,
    max_age: Duration,
    interval: Duration,
}

/// A target of the arguments, with its compiled patterns.
struct Watch {
    target: Target,
    files: Pattern,
    excluded: Option<Pattern>,
}

/// The reason why the files of a target cannot be found.
#[derive(Debug, thiserror::Error)]
enum TargetError {
    #[error("the target has no label {PATH}")]
    NoPath,
    /// The pattern in a label is invalid.
    #[error("{label}: {source}")]
    Pattern { label: &'static str, source: PatternError },
}

impl Discovery for FileMatch {
    type Arguments = FileMatchArguments;

    fn new(arguments: &FileMatchArguments, _context: &Context) -> Result<Self, ComponentError> {
        let watches = arguments.path_targets.iter().enumerate().map(|(index, target)| {
            let watch = Watch::new(target);
            watch.map_err(|error| ComponentError(format!("path_targets[{index}]: {error}")))
        });
        Ok(Self {
            watches: watches.collect::<Result<_, _>>()?,
            max_age: arguments.ignore_older_than,
            interval: arguments.sync_period.get(),
        })
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    /// The files are on this machine.
    fn is_spread(&self) -> bool {
        false
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let (watches, max_age) = (self.watches.clone(), self.max_age);
        let search = tokio::task::spawn_blocking(move || {
            let oldest = SystemTime::now().checked_sub(max_age).filter(|_| !max_age.is_zero());
            let targets = watches.iter().map(|watch| watch.targets(oldest));
            targets.collect::<Result<Vec<_>, PatternError>>()
        });
        let targets = search.await.map_err(DiscoveryError::Search)?;
        let targets = targets.map_err(|error| DiscoveryError::Configuration(error.into()))?;
        Ok(targets.into_iter().flatten().collect())
    }
}

impl Watch {
    fn new(target: Target) -> Result<Self, TargetError> {
        let pattern = |label: &'static str| {
            let text = target.get(label).filter(|text| !text.is_empty());
            let pattern = text.map(|text| Pattern::new(text)).transpose();
            pattern.map_err(|source| TargetError::Pattern { label, source })
        };
        Ok(Self {
            files: pattern(PATH)?.ok_or(TargetError::NoPath)?,
            excluded: pattern(EXCLUDE)?,
            target,
        })
    }

    /// Returns a target for each matching file that was written at `oldest` or later.
    fn targets(&self, oldest: Option<SystemTime>) -> Result<Vec<Target>, PatternError> {
        let mut targets = Vec::new();
        for path in self.files.files()? {
            if self.excluded.as_ref().is_some_and(|excluded| excluded.is_match(&path)) {
                continue;
            }
            // The file may have been deleted, or its metadata may be inaccessible.
            let Ok(metadata) = std::fs::metadata(&path) else {
                continue;
            };
            let is_old = oldest.is_some_and(|oldest| metadata.modified().is_ok_and(|modified| modified < oldest));
            if metadata.is_dir() || is_old {
                continue;
            }
            let mut target = self.target.clone();
            target.insert(PATH.into(), path.to_string_lossy().into());
            targets.push(target);
        }
        Ok(targets)
    }
}
