//! Watches the folders of files. Folders are watched instead of files, because editors and Kubernetes replace a file or
//! a link instead of writing to it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// Folders whose changes wake a component.
pub(crate) struct FolderWatcher {
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
}

impl FolderWatcher {
    /// Creates a watcher that wakes `changed`. It watches no folder yet.
    pub(crate) fn new(changed: Arc<Notify>) -> Result<Self, notify::Error> {
        let watcher = notify::recommended_watcher(move |event: Result<notify::Event, notify::Error>| {
            // The component's own reads are events, too, and must not wake it again.
            let is_change = event.is_ok_and(|event| match event.kind {
                EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
                _ => true,
            });
            if is_change {
                changed.notify_one();
            }
        })?;
        Ok(Self {
            watcher,
            watched: BTreeSet::new(),
        })
    }

    /// Watches the folders of `patterns` and the `further` folders, and no other folders. A folder that does not exist
    /// is tried again at the next call.
    pub(crate) fn watch<'a>(&mut self, patterns: impl Iterator<Item = &'a str>, further: Vec<PathBuf>) {
        let required: BTreeSet<PathBuf> = patterns.map(folder_of).chain(further).collect();
        for folder in self.watched.difference(&required) {
            // The error is ignored: if the folder no longer exists, it is not watched in any case.
            let _ = self.watcher.unwatch(folder);
        }
        self.watched
            .retain(|folder| required.contains(folder) && folder.exists());
        for folder in required {
            if !self.watched.contains(&folder) && self.watcher.watch(&folder, RecursiveMode::NonRecursive).is_ok() {
                self.watched.insert(folder);
            }
        }
    }
}

/// Returns the parent folder of a pattern, cut off before the first part with a wildcard: `/etc` for `/etc/x*/a.json`.
fn folder_of(pattern: &str) -> PathBuf {
    let mut folder = PathBuf::new();
    let parent = Path::new(pattern).parent().unwrap_or(Path::new(""));
    for part in parent.components() {
        if part.as_os_str().to_string_lossy().contains(['*', '?', '[']) {
            break;
        }
        folder.push(part);
    }
    if folder.as_os_str().is_empty() {
        folder.push(".");
    }
    folder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_ends_before_the_first_wildcard() {
        assert_eq!(folder_of("/etc/targets/*.json"), Path::new("/etc/targets"));
        assert_eq!(folder_of("/etc/*/x/a.json"), Path::new("/etc"));
        assert_eq!(folder_of("a.yml"), Path::new("."));
    }
}
