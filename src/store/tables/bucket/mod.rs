//! The bucket that holds the tables: its client, its cache, and the few operations that the store's threads need.
//!
//! In: [`BucketOptions`] and a local folder. Out: blocking operations for the store's threads, and for queries an
//! `object_store` that reads through the cache. Requests run in a small runtime that belongs to the bucket. They
//! therefore depend neither on a busy server runtime nor on a runtime of the caller. The blocking operations must be
//! called outside of any runtime.

mod cache;
mod counted;
#[cfg(test)]
mod fault_tests;
pub(crate) mod metrics;
pub mod options;
mod options_error;
mod reader;
#[cfg(test)]
mod servers_tests;

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path as Location;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload, WriteMultipart};
use tokio::runtime::{Handle, Runtime};
use url::Url;

use crate::store::common::error::StoreError;
use crate::store::tables::delta::executor;
use cache::{BLOCK_BYTES, BlockCache, BlockKey};
use counted::Counted;
use metrics::BucketMetrics;
use reader::CachedReads;

pub use options::{BucketOptions, Provider, Secret};

/// Number of threads for requests. The threads mostly wait.
const THREADS: usize = 2;
/// Maximum size in bytes of a file that is uploaded in one request.
const MAX_PUT_BYTES: u64 = 16 << 20;
/// Size of one part of a multipart upload in bytes.
const PART_BYTES: usize = 8 << 20;

/// An object that a listing found.
#[derive(Debug, Clone)]
pub struct ListedObject {
    /// Path relative to the root of the tables.
    pub path: String,
    /// Size of the object in bytes.
    pub size: u64,
    /// Time at which the object was written.
    pub modified: SystemTime,
}

/// The part of an object store that holds the tables.
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    reads: Arc<CachedReads>,
    cache: Arc<BlockCache>,
    metrics: BucketMetrics,
    runtime: Option<Runtime>,
    handle: Handle,
    url: Url,
    prefix: Location,
    sync_interval: Duration,
    spool: PathBuf,
    spooled: AtomicU64,
}

impl Bucket {
    /// Creates the client without a request to the bucket. `dir` is the data folder, in which `cache/` and `spool/` are
    /// created. `dir` is `None` for a reader that stores nothing on disk.
    pub fn open(options: &BucketOptions, dir: Option<&Path>, metrics: BucketMetrics) -> Result<Self, StoreError> {
        let address = options.address();
        let refused = |error: &dyn Display| StoreError::Bucket {
            address: address.clone(),
            reason: error.to_string(),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("store-objects")
            .enable_all()
            .build()
            .map_err(StoreError::io("start threads for", Path::new(&address)))?;
        let handle = runtime.handle().clone();
        let client = options.client(&handle).map_err(|error| refused(&error))?;
        let url = Url::parse(&address).map_err(|error| refused(&error))?;
        let prefix = Location::parse(options.prefix.trim_matches('/')).map_err(|error| refused(&error))?;
        let store: Arc<dyn ObjectStore> = Arc::new(Counted::new(client, metrics.clone()));
        let (spool, cache) = if let Some(dir) = dir {
            (dir.join("spool"), dir.join("cache"))
        } else {
            let folder = std::env::temp_dir();
            (folder.clone(), folder)
        };
        let cache = match dir {
            Some(_) => {
                empty_folder(&spool).map_err(StoreError::io("empty", &spool))?;
                BlockCache::open(&cache, options.cache_bytes).map_err(StoreError::io("open the cache", &cache))?
            }
            None => BlockCache::disabled(),
        };
        let cache = Arc::new(cache);
        let reads = Arc::new(CachedReads::new(
            store.clone(),
            cache.clone(),
            metrics.clone(),
            handle.clone(),
        ));
        Ok(Self {
            store,
            reads,
            cache,
            metrics,
            runtime: Some(runtime),
            handle,
            url,
            prefix,
            sync_interval: options.sync_interval,
            spool,
            spooled: AtomicU64::new(0),
        })
    }

    /// Returns the address of the root, such as `s3://bucket/prefix/`.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the runtime in which requests run.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Returns the client without the cache, for the tables' logs.
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        self.store.clone()
    }

    /// Returns the client that reads through the cache, for queries.
    pub fn reads(&self) -> Arc<dyn ObjectStore> {
        self.reads.clone()
    }

    /// Returns the metrics of the bucket's requests.
    pub fn metrics(&self) -> &BucketMetrics {
        &self.metrics
    }

    /// Returns the interval between polls for the commits of other servers.
    pub fn sync_interval(&self) -> Duration {
        self.sync_interval
    }

    /// Returns the location in the bucket of the object at `path`, which is relative to the root of the tables.
    pub fn location(&self, path: &str) -> Result<Location, object_store::path::Error> {
        let all = match self.prefix.as_ref() {
            "" => path.to_owned(),
            prefix => format!("{prefix}/{path}"),
        };
        Location::parse(all)
    }

    /// Returns all objects below `folder`. [`ListedObject::path`] is relative to the root of the tables.
    pub fn list(&self, folder: &str) -> io::Result<Vec<ListedObject>> {
        let prefix = self.location(folder).map_err(io::Error::other)?;
        let skip = match self.prefix.as_ref().len() {
            0 => 0,
            length => length + 1,
        };
        let store = self.store.clone();
        let objects: Vec<_> = self.run(async move { store.list(Some(&prefix)).try_collect().await })?;
        Ok(objects
            .into_iter()
            .filter_map(|object| {
                Some(ListedObject {
                    path: object.location.as_ref().get(skip..)?.to_owned(),
                    size: object.size,
                    modified: object.last_modified.into(),
                })
            })
            .collect())
    }

    /// Returns true if any object lies below `folder`.
    pub(crate) fn has_any(&self, folder: &str) -> io::Result<bool> {
        let prefix = self.location(folder).map_err(io::Error::other)?;
        let store = self.store.clone();
        self.run(async move {
            store
                .list(Some(&prefix))
                .try_next()
                .await
                .map(|object| object.is_some())
        })
    }

    /// Returns true if an object exists at a path. The check does not depend on listings.
    pub(crate) fn has(&self, path: &str) -> io::Result<bool> {
        let location = self.location(path).map_err(io::Error::other)?;
        let store = self.store.clone();
        self.run(async move {
            match store.head(&location).await {
                Ok(_) => Ok(true),
                Err(object_store::Error::NotFound { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    /// Reads the whole object at a path.
    pub fn read(&self, path: &str) -> io::Result<Bytes> {
        let location = self.location(path).map_err(io::Error::other)?;
        let store = self.store.clone();
        self.run(async move { store.get(&location).await?.bytes().await })
    }

    /// Copies the object to an unnamed local file. Cached blocks are not requested from the bucket.
    pub(crate) fn open_file(&self, path: &str, size: u64) -> io::Result<File> {
        let location = self.location(path).map_err(io::Error::other)?;
        let mut file = self.scratch()?;
        let mut offset = 0;
        while offset < size {
            let data = if let Some(data) = self
                .cache
                .get(BlockKey::new(location.as_ref(), (offset / BLOCK_BYTES) as u32))
            {
                data
            } else {
                // These blocks are not added to the cache: inputs of a merge are not read again, and would evict
                // blocks that queries need.
                let (store, location) = (self.store.clone(), location.clone());
                let end = size.min(offset + MAX_PUT_BYTES);
                self.run(async move { store.get_range(&location, offset..end).await })?
            };
            if data.is_empty() {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    format!("the object has {offset} bytes, but the table's log says {size}"),
                ));
            }
            file.write_all(&data)?;
            offset += data.len() as u64;
        }
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }

    /// Creates an unnamed local file.
    pub fn scratch(&self) -> io::Result<File> {
        let number = self.spooled.fetch_add(1, Ordering::Relaxed);
        let path = self.spool.join(format!("{}-{number}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        fs::remove_file(&path)?;
        Ok(file)
    }

    /// Writes a small object, or replaces the object at the same path. Only [`Bucket::read`] may read the object,
    /// because it does not use the cache. A cached block could be older than the replacement.
    pub(crate) fn put(&self, path: &str, bytes: Vec<u8>) -> io::Result<()> {
        let location = self.location(path).map_err(io::Error::other)?;
        let store = self.store.clone();
        self.run(async move { store.put(&location, bytes.into()).await.map(drop) })
    }

    /// Uploads a local file as a new object. If the file fits in one request, caches its blocks, because queries read
    /// them soon.
    pub fn upload(&self, path: &str, file: &mut File) -> io::Result<()> {
        let location = self.location(path).map_err(io::Error::other)?;
        let size = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(0))?;
        if size <= MAX_PUT_BYTES {
            let mut data = Vec::with_capacity(size as usize);
            file.read_to_end(&mut data)?;
            let data = Bytes::from(data);
            let (store, payload, target) = (self.store.clone(), PutPayload::from(data.clone()), location.clone());
            self.run(async move { store.put(&target, payload).await })?;
            for (block, start) in (0..size).step_by(BLOCK_BYTES as usize).enumerate() {
                let end = (start + BLOCK_BYTES).min(size);
                self.cache.put(
                    BlockKey::new(location.as_ref(), block as u32),
                    &data[start as usize..end as usize],
                );
            }
            self.metrics.cache_bytes.set(self.cache.bytes() as i64);
            return Ok(());
        }
        let store = self.store.clone();
        let mut upload = self.run(async move {
            let upload = store.put_multipart(&location).await?;
            Ok(WriteMultipart::new_with_chunk_size(upload, PART_BYTES))
        })?;
        loop {
            let mut part = vec![0; PART_BYTES];
            let length = read_full(file, &mut part)?;
            if length == 0 {
                break;
            }
            part.truncate(length);
            upload = self.run(async move {
                upload.wait_for_capacity(1).await?;
                upload.put(part.into());
                Ok(upload)
            })?;
        }
        self.metrics.written_bytes.inc_by(size);
        self.run(async move { upload.finish().await })?;
        Ok(())
    }

    /// Deletes an object. On some kinds of store, a missing object is not an error.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        let location = self.location(path).map_err(io::Error::other)?;
        let store = self.store.clone();
        self.run(async move { store.delete(&location).await })
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        let _entered = self.handle.enter();
        // The kind of the error is preserved, because callers distinguish `NotFound` and `AlreadyExists`.
        executor::block_on(work).map_err(io::Error::from)
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The last owner may be a task of another runtime, which must not block.
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Bucket({})", self.url)
    }
}

fn read_full(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// Creates the folder, or removes the files that a killed process left in it.
fn empty_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.metadata()?.is_file() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
