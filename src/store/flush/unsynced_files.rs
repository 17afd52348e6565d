//! Files of a table that are written but not durable yet, and the folders to sync because they contain new names.
//!
//! In: complete files. Out: the same files, durable: synced in a folder, or uploaded to a bucket. Each folder is synced
//! once, however many files are in and below it. Many syncs or uploads run at the same time, because a disk or a bucket
//! completes many of them in little more time than a single one. Without this concurrency, a flush of thousands of
//! small tenants would take minutes.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::store::common::error::StoreError;
use crate::store::common::fault::{FaultPoint, Faults};
use crate::store::common::lifecycle::message;
use crate::store::common::schema::Table;
use crate::store::tables::root::Root;

/// Maximum number of files that are held open.
const OPEN_FILES: usize = 128;
/// Maximum number of bytes of files that wait for their upload. The upload of a small file holds the file in memory, so
/// this limit also bounds the memory of all concurrent uploads.
const MAX_PENDING_BYTES: u64 = 32 << 20;
/// Maximum number of threads that sync or upload.
const THREADS: usize = 16;
/// Number of syncs that justify the start of a thread.
const SYNCS_PER_THREAD: usize = 4;
/// Number of uploads that justify the start of a thread. One request to a bucket takes longer than the start of a
/// thread.
const UPLOADS_PER_THREAD: usize = 1;

/// Files that must be durable before a table's log may name them.
pub(crate) struct UnsyncedFiles<'a> {
    table: Table,
    faults: &'a Faults,
    root: Root,
    files: Vec<UnsyncedFile>,
    waiting_bytes: u64,
    folders: BTreeSet<PathBuf>,
}

/// A complete file that is not durable yet.
struct UnsyncedFile {
    /// Path or address of the file, for messages.
    path: PathBuf,
    /// Path relative to the root of the tables.
    relative: String,
    file: Mutex<File>,
}

impl<'a> UnsyncedFiles<'a> {
    /// Creates an empty set of files of `table`.
    pub(crate) fn new(root: &Root, table: Table, faults: &'a Faults) -> Self {
        Self {
            table,
            faults,
            root: root.clone(),
            files: Vec::new(),
            waiting_bytes: 0,
            folders: BTreeSet::new(),
        }
    }

    /// Adds a complete file of `size` bytes. `relative` is its path below the table's folder. If the tables are in a
    /// folder, the folder of the file and its parents up to the table's folder are added too, because they may be new.
    pub(crate) fn add(&mut self, relative: &str, file: File, size: u64) -> Result<(), StoreError> {
        let relative = format!("{}/{relative}", self.table.name());
        let path = self.root.name(&relative);
        if let Some(root) = self.root.folder() {
            let table = root.join(self.table.name());
            let above = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&table));
            for folder in above {
                if !self.folders.insert(folder.to_owned()) {
                    break;
                }
            }
        } else {
            self.waiting_bytes += size;
        }
        let file = Mutex::new(file);
        self.files.push(UnsyncedFile { path, relative, file });
        if self.files.len() >= OPEN_FILES || self.waiting_bytes >= MAX_PENDING_BYTES {
            self.sync_files(&|| false)?;
        }
        Ok(())
    }

    /// Makes all files durable. Fails with `Closed` if `is_over` returns true before an upload or the sync of a folder.
    pub(crate) fn sync(mut self, is_over: impl Fn() -> bool + Sync) -> Result<(), StoreError> {
        self.sync_files(&is_over)?;
        let folders: Vec<&PathBuf> = self.folders.iter().collect();
        run_concurrently(&folders, SYNCS_PER_THREAD, |folder| {
            if is_over() {
                return Err(StoreError::Closed);
            }
            self.faults
                .run(FaultPoint::FolderSync(self.table), || File::open(folder)?.sync_all())
                .map_err(StoreError::io("sync the folder", folder))
        })
    }

    fn sync_files(&mut self, is_over: &(impl Fn() -> bool + Sync)) -> Result<(), StoreError> {
        let files = std::mem::take(&mut self.files);
        self.waiting_bytes = 0;
        let point = FaultPoint::FileSync(self.table);
        match &self.root {
            Root::Folder(_) => run_concurrently(&files, SYNCS_PER_THREAD, |UnsyncedFile { path, file, .. }| {
                self.faults
                    .run(point, || file.lock().sync_all())
                    .map_err(StoreError::io("sync", path))
            }),
            Root::Bucket(bucket) => {
                run_concurrently(&files, UPLOADS_PER_THREAD, |UnsyncedFile { path, relative, file }| {
                    if is_over() {
                        return Err(StoreError::Closed);
                    }
                    self.faults
                        .run(point, || bucket.upload(relative, &mut file.lock()))
                        .map_err(StoreError::io("write", path))
                })
            }
        }
    }
}

/// Runs `sync` for every item, with one thread for every `share` items and at most [`THREADS`] threads. After an error,
/// no further item is started.
fn run_concurrently<T: Sync>(
    items: &[T],
    share: usize,
    sync: impl Fn(&T) -> Result<(), StoreError> + Sync,
) -> Result<(), StoreError> {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            sync(item).inspect_err(|_| next.store(items.len(), Ordering::Relaxed))?;
        }
        Ok(())
    };
    let threads = (items.len() / share).min(THREADS);
    std::thread::scope(|scope| {
        let start = |_| {
            // If a thread cannot be started, the calling thread does its share of the work.
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
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use object_store::memory::InMemory;
    use parking_lot::Condvar;

    use super::*;
    use crate::store::common::fault::FaultHook;
    use crate::store::tables::bucket::metrics::BucketMetrics;
    use crate::store::tables::bucket::options::CustomStore;
    use crate::store::tables::bucket::{Bucket, BucketOptions, Provider};

    /// Records the syncs, and fails the sync with the number `failing`.
    #[derive(Default)]
    struct Syncs {
        synced: Mutex<Vec<FaultPoint>>,
        failing: usize,
    }

    impl FaultHook for Syncs {
        fn check(&self, point: FaultPoint) -> io::Result<()> {
            let mut synced = self.synced.lock();
            synced.push(point);
            if synced.len() == self.failing {
                return Err(io::Error::other("injected"));
            }
            Ok(())
        }
    }

    fn fill(folder: &Path, hook: &Arc<Syncs>) -> Result<(), StoreError> {
        let faults = Faults::new(hook.clone());
        let mut unsynced = UnsyncedFiles::new(&Root::from(folder), Table::Series, &faults);
        for tenant in 0..200 {
            let relative = format!("tenant={tenant}/day=1/a.parquet");
            let path = folder.join("series").join(&relative);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            unsynced.add(&relative, File::create(&path).unwrap(), 0)?;
        }
        unsynced.sync(|| false)
    }

    #[test]
    fn every_file_and_every_folder_is_synced_once_and_files_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let hook = Arc::<Syncs>::default();
        fill(folder.path(), &hook).unwrap();
        let synced = hook.synced.lock();
        let (files, folders) = synced.split_at(200);
        assert!(files.iter().all(|point| *point == FaultPoint::FileSync(Table::Series)));
        assert!(
            folders
                .iter()
                .all(|point| *point == FaultPoint::FolderSync(Table::Series))
        );
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
            assert!(
                hook.synced.lock().len() < failing + THREADS,
                "continues after a failure"
            );
        }
    }

    /// Blocks each upload until as many uploads have begun as there are threads.
    #[derive(Default)]
    struct Meeting {
        begun: Mutex<usize>,
        changed: Condvar,
    }

    impl FaultHook for Meeting {
        fn check(&self, _: FaultPoint) -> io::Result<()> {
            let mut begun = self.begun.lock();
            *begun += 1;
            self.changed.notify_all();
            while *begun < THREADS {
                if self.changed.wait_for(&mut begun, Duration::from_mins(1)).timed_out() {
                    return Err(io::Error::other("the others did not begin"));
                }
            }
            Ok(())
        }
    }

    #[test]
    fn files_of_many_tenants_are_uploaded_at_the_same_time() {
        let custom_store = CustomStore {
            name: "tests".to_owned(),
            store: Arc::new(InMemory::new()),
        };
        let options = BucketOptions::new(Provider::Custom(custom_store));
        let bucket = Bucket::open(&options, None, BucketMetrics::default()).unwrap();
        let root = Root::Bucket(Arc::new(bucket));
        let faults = Faults::new(Arc::<Meeting>::default());
        let mut unsynced = UnsyncedFiles::new(&root, Table::Series, &faults);
        for tenant in 0..THREADS {
            let mut file = tempfile::tempfile().unwrap();
            io::Write::write_all(&mut file, format!("of {tenant}").as_bytes()).unwrap();
            let relative = format!("tenant={tenant}/day=1/a.parquet");
            unsynced.add(&relative, file, 5).unwrap();
        }
        unsynced.sync(|| false).unwrap();
        let read = |tenant| match &root {
            Root::Bucket(bucket) => bucket.read(&format!("series/tenant={tenant}/day=1/a.parquet")).unwrap(),
            Root::Folder(_) => panic!("it is a bucket"),
        };
        assert_eq!(read(0), "of 0".as_bytes());
        assert_eq!(read(THREADS - 1), "of 15".as_bytes());
    }
}
