//! `local.file_match`: the files that patterns match, each a target.
//!
//! In: targets with a pattern. Out: for each file the labels of its target, with the path of the file. Only names and
//! times of files are looked at.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::components::common::arguments::targets::{Target, Targets};
use crate::components::common::discovery::polled;
use crate::components::common::discovery::polled::Discovery;
use crate::lang::attribute::Interval;
use crate::lang::body::arguments;
use crate::pipeline::component::{ComponentError, Context, Definition};

mod pattern;
#[cfg(test)]
mod tests;

use pattern::Pattern;

/// Label of a target: the pattern of its files, then the path of one.
const PATH: &str = "__path__";
/// Label of a target: the pattern of files to leave out.
const EXCLUDE: &str = "__path_exclude__";

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
pub(crate) const DEFINITION: Definition<FileMatchArguments> = polled::definition::<FileMatch>(
    "local.file_match",
    "`local.file_match` finds the files that patterns match and makes a target of each.",
);

struct FileMatch {
    watches: Arc<[Watch]>,
    max_age: Duration,
    interval: Duration,
}

/// A target, with its patterns compiled.
struct Watch {
    target: Target,
    files: Pattern,
    excluded: Option<Pattern>,
}

impl Discovery for FileMatch {
    type Arguments = FileMatchArguments;

    fn new(arguments: &FileMatchArguments, _context: &Context) -> Result<Self, ComponentError> {
        let watches = arguments.path_targets.iter().enumerate().map(|(place, target)| {
            let watch = Watch::new(target);
            watch.map_err(|error| ComponentError(format!("path_targets[{place}]: {error}")))
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

    async fn targets(&self) -> Result<Vec<Target>, String> {
        let (watches, max_age) = (self.watches.clone(), self.max_age);
        let looked = tokio::task::spawn_blocking(move || {
            let oldest = SystemTime::now().checked_sub(max_age).filter(|_| !max_age.is_zero());
            let found = watches.iter().map(|watch| watch.targets(oldest));
            found.collect::<Result<Vec<_>, String>>()
        });
        let found = looked
            .await
            .map_err(|error| format!("looking for files failed: {error}"))?;
        Ok(found?.into_iter().flatten().collect())
    }
}

impl Watch {
    fn new(target: Target) -> Result<Self, String> {
        let pattern = |label: &str| target.get(label).filter(|text| !text.is_empty());
        let files = pattern(PATH).ok_or_else(|| format!("the target has no label {PATH}"))?;
        Ok(Self {
            files: Pattern::new(files).map_err(|error| format!("{PATH}: {error}"))?,
            excluded: pattern(EXCLUDE)
                .map(|text| Pattern::new(text).map_err(|error| format!("{EXCLUDE}: {error}")))
                .transpose()?,
            target,
        })
    }

    /// A target for each file that is not older than `oldest`.
    fn targets(&self, oldest: Option<SystemTime>) -> Result<Vec<Target>, String> {
        let mut targets = Vec::new();
        for path in self.files.files()? {
            if self.excluded.as_ref().is_some_and(|excluded| excluded.is_match(&path)) {
                continue;
            }
            // Skips a file that is gone by now, or that we may not look at.
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
