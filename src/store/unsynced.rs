//! Files of a table that are written and not yet durable, and the folders that must have their names.
//!
//! In: complete files. Out: everything is durable. Each folder is synced once, however many files are in and below it,
//! and many syncs run at a time: a disk answers them together in little more than the time of one. A flush of thousands
//! of small tenants takes minutes otherwise.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::store::StoreError;
use crate::store::fault::{Faults, Place};
use crate::store::lifecycle::message;
use crate::store::root::Root;
use crate::store::schema::Table;

/// Files that are held open at a time.
const OPEN_FILES: usize = 128;
/// Threads that sync at a time, and the number of syncs from which on each of them is worth its start.
const THREADS: usize = 16;
const SYNCS_A_THREAD: usize = 4;

/// What must be synced before a table's log may name it.
pub(crate) struct Unsynced<'a> {
    table: Table,
    faults: &'a Faults,
    /// The folder of the table; `None` in a bucket, where a file is durable when it is there.
    root: Option<PathBuf>,
    files: Vec<(PathBuf, File)>,
    folders: BTreeSet<PathBuf>,
}

impl<'a> Unsynced<'a> {
    /// Nothing of `table` yet.
    pub(crate) fn new(root: &Root, table: Table, faults: &'a Faults) -> Self {
        Self {
            table,
            faults,
            root: root.folder().map(|folder| folder.join(table.name())),
            files: Vec::new(),
            folders: BTreeSet::new(),
        }
    }

    /// Adds a complete file, and the folders from its own up to the table's: they may be new.
    pub(crate) fn add(&mut self, path: &Path, file: File) -> Result<(), StoreError> {
        let Some(root) = &self.root else { return Ok(()) };
        let above = path.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
        for folder in above {
            if !self.folders.insert(folder.to_owned()) {
                break;
            }
        }
        self.files.push((path.to_owned(), file));
        if self.files.len() >= OPEN_FILES {
            self.sync_files()?;
        }
        Ok(())
    }

    /// Makes all of it durable. When `is_over` says so it is broken off.
    pub(crate) fn sync(mut self, is_over: impl Fn() -> bool + Sync) -> Result<(), StoreError> {
        self.sync_files()?;
        let folders: Vec<&PathBuf> = self.folders.iter().collect();
        at_once(&folders, |folder| {
            if is_over() {
                return Err(StoreError::Closed);
            }
            self.faults
                .run(Place::FolderSync(self.table), || File::open(folder)?.sync_all())
                .map_err(StoreError::io("sync the folder", folder))
        })
    }

    fn sync_files(&mut self) -> Result<(), StoreError> {
        let files = std::mem::take(&mut self.files);
        at_once(&files, |(path, file)| {
            self.faults
                .run(Place::FileSync(self.table), || file.sync_all())
                .map_err(StoreError::io("sync", path))
        })
    }
}

/// Runs `sync` for every item, on several threads when there are many. After an error no further items are begun.
fn at_once<T: Sync>(items: &[T], sync: impl Fn(&T) -> Result<(), StoreError> + Sync) -> Result<(), StoreError> {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            sync(item).inspect_err(|_| next.store(items.len(), Ordering::Relaxed))?;
        }
        Ok(())
    };
    let threads = (items.len() / SYNCS_A_THREAD).min(THREADS);
    std::thread::scope(|scope| {
        let start = |_| {
            // One that cannot be started is no failure: this thread does its share.
            let thread = std::thread::Builder::new().name("store-flush".to_owned());
            thread.spawn_scoped(scope, work).ok()
        };
        let helpers: Vec<_> = (1..threads).filter_map(start).collect();
        helpers.into_iter().fold(work(), |result, helper| {
            let ended = helper.join();
            result.and(ended.unwrap_or_else(|panic| Err(StoreError::Panicked(message(panic.as_ref())))))
        })
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;
    use crate::store::fault::FaultHook;

    /// Counts the syncs, and fails the one with a number.
    #[derive(Default)]
    struct Syncs {
        done: Mutex<Vec<Place>>,
        failing: usize,
    }

    impl FaultHook for Syncs {
        fn check(&self, place: Place) -> io::Result<()> {
            let mut done = self.done.lock();
            done.push(place);
            if done.len() == self.failing {
                return Err(io::Error::other("injected"));
            }
            Ok(())
        }
    }

    fn fill(folder: &Path, hook: &Arc<Syncs>) -> Result<(), StoreError> {
        let faults = Faults::new(hook.clone());
        let mut unsynced = Unsynced::new(&Root::from(folder), Table::Series, &faults);
        for tenant in 0..200 {
            let path = folder.join(format!("series/tenant={tenant}/day=1/a.parquet"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            unsynced.add(&path, File::create(&path).unwrap())?;
        }
        unsynced.sync(|| false)
    }

    #[test]
    fn every_file_and_every_folder_is_synced_once_and_files_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let hook = Arc::<Syncs>::default();
        fill(folder.path(), &hook).unwrap();
        let done = hook.done.lock();
        let (files, folders) = done.split_at(200);
        assert!(files.iter().all(|place| *place == Place::FileSync(Table::Series)));
        assert!(folders.iter().all(|place| *place == Place::FolderSync(Table::Series)));
        assert_eq!(folders.len(), 200 + 200 + 1, "of the days, the tenants and the table");
    }

    #[test]
    fn a_sync_that_fails_on_any_thread_fails_all() {
        for failing in [1, 100, 201, 601] {
            let folder = tempfile::tempdir().unwrap();
            let hook = Arc::new(Syncs {
                failing,
                ..Syncs::default()
            });
            let error = fill(folder.path(), &hook).unwrap_err();
            assert!(error.to_string().contains("injected"), "{error}");
            assert!(hook.done.lock().len() < failing + THREADS, "it goes on after a failure");
        }
    }
}
