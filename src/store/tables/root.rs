//! The root of the tables: a local folder or a bucket.
//!
//! In: paths relative to the root, as in the tables' logs. Out: the same few operations for both kinds of root. Their
//! errors are `io::Error`s or contain them, so that callers can distinguish a missing file from a failure in the same
//! way for both kinds. In a folder, this module syncs nothing: its callers do the necessary syncs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use object_store::ObjectStore;
use object_store::path::Path as Location;

use crate::store::common::error::StoreError;
use crate::store::common::schema::Table;
use crate::store::tables::bucket::metrics::BucketMetrics;
use crate::store::tables::bucket::{Bucket, BucketOptions, ListedObject};

/// The reason why a path of a table is invalid.
#[derive(Debug, thiserror::Error)]
pub enum LocationError {
    #[error("cannot find the absolute path of {}: {source}", path.display())]
    Absolute { path: PathBuf, source: io::Error },
    #[error("invalid path {} of a table: {source}", path.display())]
    Folder {
        path: PathBuf,
        source: object_store::path::Error,
    },
    #[error(transparent)]
    Bucket(#[from] object_store::path::Error),
}

/// The root of the tables. Clones are cheap.
#[derive(Debug, Clone)]
pub enum Root {
    Folder(PathBuf),
    Bucket(Arc<Bucket>),
}

/// A data folder, and the bucket that holds its tables, if any.
#[derive(Debug, Clone, Copy)]
pub struct DataLocation<'a> {
    pub dir: &'a Path,
    pub bucket: Option<&'a BucketOptions>,
}

impl<'a> From<&'a Path> for DataLocation<'a> {
    fn from(dir: &'a Path) -> Self {
        Self { dir, bucket: None }
    }
}

impl<'a> From<&'a PathBuf> for DataLocation<'a> {
    fn from(dir: &'a PathBuf) -> Self {
        Self { dir, bucket: None }
    }
}

impl DataLocation<'_> {
    /// Returns the root of the tables. A bucket is read without a cache. The call must be outside of any runtime.
    pub(crate) fn root(&self) -> Result<Root, StoreError> {
        Ok(match self.bucket {
            None => Root::Folder(self.dir.join("tables")),
            Some(options) => Root::Bucket(Arc::new(Bucket::open(options, None, BucketMetrics::default())?)),
        })
    }
}

impl Default for Root {
    fn default() -> Self {
        Self::Folder(PathBuf::new())
    }
}

impl From<&Path> for Root {
    fn from(folder: &Path) -> Self {
        Self::Folder(folder.to_owned())
    }
}

impl Root {
    /// Returns the folder, if the root is a folder.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Root::Folder(folder) => Some(folder),
            Root::Bucket(_) => None,
        }
    }

    /// Returns the bucket, if the root is a bucket.
    pub fn bucket(&self) -> Option<&Arc<Bucket>> {
        match self {
            Root::Folder(_) => None,
            Root::Bucket(bucket) => Some(bucket),
        }
    }

    /// Returns the full name of a file or object, for messages.
    pub fn name(&self, path: &str) -> PathBuf {
        match self {
            Root::Folder(folder) => folder.join(path),
            Root::Bucket(bucket) => PathBuf::from(format!("{}{path}", bucket.url())),
        }
    }

    /// Returns the object store that queries read from, or `None` for the local disk.
    pub fn object_store(&self) -> Option<Arc<dyn ObjectStore>> {
        self.bucket().map(|bucket| bucket.reads())
    }

    /// Returns the location of a path in [`Root::object_store`], or on the local disk.
    pub fn location(&self, path: &str) -> Result<Location, LocationError> {
        match self {
            Root::Folder(folder) => {
                let path = folder.join(path);
                let absolute = match std::path::absolute(&path) {
                    Ok(absolute) => absolute,
                    Err(source) => return Err(LocationError::Absolute { path, source }),
                };
                Location::from_absolute_path(&absolute).map_err(|source| LocationError::Folder { path, source })
            }
            Root::Bucket(bucket) => Ok(bucket.location(path)?),
        }
    }

    /// Returns true if the table has a log.
    pub(crate) fn has_log(&self, table: Table) -> Result<bool, StoreError> {
        let log = log_of(table);
        match self {
            Root::Folder(folder) => Ok(folder.join(log).exists()),
            Root::Bucket(bucket) => {
                // A listing of a bucket may lag behind, but a request for a single object does not. The check also
                // requests objects, because an existing table must not be created again.
                let is_there = || {
                    Ok(bucket.has_any(&log)?
                        || bucket.has(&format!("{log}/{:020}.json", 0))?
                        || bucket.has(&format!("{log}/_last_checkpoint"))?)
                };
                is_there().map_err(StoreError::io("list", &self.name(&log)))
            }
        }
    }

    /// Returns those Parquet files of a table for whose path `is_selected` returns true. Checkpoints in the table's log
    /// are not among them. Files that disappear during the listing are left out.
    pub(crate) fn parquet_files(
        &self,
        table: Table,
        is_selected: impl Fn(&str) -> bool,
    ) -> Result<Vec<ListedObject>, StoreError> {
        match self {
            Root::Folder(folder) => {
                let mut files = Vec::new();
                for path in local_parquet_files(&folder.join(table.name()))? {
                    let Ok(relative) = path.strip_prefix(folder) else {
                        continue;
                    };
                    let relative = relative.to_string_lossy().into_owned();
                    if is_selected(&relative)
                        && let Ok(metadata) = fs::metadata(&path)
                    {
                        files.push(ListedObject {
                            path: relative,
                            size: metadata.len(),
                            modified: metadata.modified().unwrap_or(UNIX_EPOCH),
                        });
                    }
                }
                Ok(files)
            }
            Root::Bucket(bucket) => {
                let name = table.name();
                let all = bucket.list(name).map_err(StoreError::io("list", &self.name(name)))?;
                let log = format!("{}/", log_of(table));
                Ok(all
                    .into_iter()
                    .filter(|file| {
                        file.path.ends_with(".parquet") && !file.path.starts_with(&log) && is_selected(&file.path)
                    })
                    .collect())
            }
        }
    }

    /// Returns the files in the log of a table.
    pub(crate) fn log_files(&self, table: Table) -> Result<Vec<ListedObject>, StoreError> {
        let log = log_of(table);
        let failed = |error| StoreError::io("list", &self.name(&log))(error);
        match self {
            Root::Folder(folder) => {
                let entries = match fs::read_dir(folder.join(&log)) {
                    Ok(entries) => entries,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                    Err(error) => return Err(failed(error)),
                };
                let mut files = Vec::new();
                for entry in entries {
                    let entry = entry.map_err(failed)?;
                    // A server may have removed old files from the log meanwhile.
                    let Ok(metadata) = entry.metadata() else {
                        continue;
                    };
                    files.push(ListedObject {
                        path: format!("{log}/{}", entry.file_name().to_string_lossy()),
                        size: metadata.len(),
                        modified: metadata.modified().unwrap_or_else(|_| SystemTime::now()),
                    });
                }
                Ok(files)
            }
            Root::Bucket(bucket) => bucket.list(&log).map_err(failed),
        }
    }

    pub fn read(&self, path: &str) -> io::Result<Bytes> {
        match self {
            Root::Folder(folder) => fs::read(folder.join(path)).map(Bytes::from),
            Root::Bucket(bucket) => bucket.read(path),
        }
    }

    /// Opens a data file of `size` bytes for reading. A file in a bucket is first copied to an unnamed local file.
    pub(crate) fn open_file(&self, path: &str, size: u64) -> io::Result<File> {
        match self {
            Root::Folder(folder) => File::open(folder.join(path)),
            Root::Bucket(bucket) => bucket.open_file(path, size),
        }
    }

    pub fn remove(&self, path: &str) -> io::Result<()> {
        match self {
            Root::Folder(folder) => fs::remove_file(folder.join(path)),
            Root::Bucket(bucket) => bucket.remove(path),
        }
    }
}

/// Returns the path of the log's folder, relative to the root.
pub(crate) fn log_of(table: Table) -> String {
    format!("{}/_delta_log", table.name())
}

fn local_parquet_files(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut paths = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(StoreError::io("list", &folder)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(StoreError::io("list", &folder))?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if path.is_dir() {
                if name.contains('=') {
                    open.push(path);
                }
            } else if name.ends_with(".parquet") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    Ok(paths)
}
