//! The object store through which delta_kernel reads the log of a table. It ensures that delta_kernel reads all commits
//! unchanged.
//!
//! On a local disk, every range that is read from an entry or checkpoint is compared with the checksums of the file
//! ([`sums`]). A bit that flips while the table is open therefore cannot change a result. In a bucket, a listing
//! that lags behind is completed. Otherwise, if a listing lacked the last commits of a server, the server would not
//! find its profiles, or would commit them again. The missing files are requested by name: versions of a log have no
//! gaps, and a request for a known name returns the last write.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use crate::store::tables::delta::log_files::version_of;
use crate::store::tables::delta::sums;

/// Name of the folder of a table's log.
const LOG: &str = "_delta_log";

/// A client that verifies or completes the data that delta_kernel reads.
#[derive(Debug)]
pub(super) struct LogStore {
    inner: Arc<dyn ObjectStore>,
    location: LogLocation,
}

/// Location of the log. The location decides whether reads are verified or listings are completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogLocation {
    Disk,
    Bucket,
}

impl LogStore {
    /// Creates a client that verifies reads from the local disk.
    pub(super) fn verified(disk: Arc<dyn ObjectStore>) -> Self {
        Self {
            inner: disk,
            location: LogLocation::Disk,
        }
    }

    /// Creates a client that completes the listings of a bucket.
    pub(super) fn completed(bucket: Arc<dyn ObjectStore>) -> Self {
        Self {
            inner: bucket,
            location: LogLocation::Bucket,
        }
    }

    /// Returns a verified range of a log file on the local disk.
    async fn read_verified(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let range = options.range.clone();
        let meta = self.inner.get_opts(location, options.with_head(true)).await?.meta;
        let range = selected_range(range.as_ref(), meta.size);
        let path = LocalFileSystem::new().path_to_filesystem(location)?;
        let bytes = sums::read_range(&path, range.clone()).map_err(|error| Error::Generic {
            store: "table log",
            source: error.into(),
        })?;
        let range = range.start..range.start + bytes.len() as u64;
        let bytes = Bytes::from(bytes);
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream::once(async move { Ok(bytes) }).boxed()),
            meta,
            range,
            attributes: object_store::Attributes::default(),
        })
    }
}

impl fmt::Display for LogStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(out)
    }
}

#[async_trait]
impl ObjectStore for LogStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if self.location == LogLocation::Disk && !options.head && is_log_file(location) {
            return self.read_verified(location, options).await;
        }
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        let listed = self.inner.list_with_offset(prefix, offset);
        match Log::of_offset(offset) {
            Some(log) if self.location == LogLocation::Bucket => {
                let inner = self.inner.clone();
                stream::once(async move { log.complete(&inner, listed.try_collect().await?).await })
                    .map_ok(|objects| stream::iter(objects.into_iter().map(Ok)))
                    .try_flatten()
                    .boxed()
            }
            _ => listed,
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Returns true for the path of an entry or checkpoint. Such files have checksums.
fn is_log_file(location: &Path) -> bool {
    let name = location.filename().unwrap_or_default();
    let is_in_log = location.as_ref().rsplit('/').nth(1) == Some(LOG);
    is_in_log && version_of(name).is_some() && (name.ends_with(".json") || name.ends_with(".parquet"))
}

/// Returns the part of `size` bytes that a request selects.
fn selected_range(range: Option<&GetRange>, size: u64) -> Range<u64> {
    match range {
        None => 0..size,
        Some(GetRange::Bounded(range)) => range.start..range.end.min(size),
        Some(GetRange::Offset(start)) => *start..size,
        Some(GetRange::Suffix(length)) => size.saturating_sub(*length)..size,
    }
}

/// A part of the log of a table: its versions from `first` on.
struct Log {
    folder: Path,
    first: u64,
}

impl Log {
    /// Returns the part of a log that a listing after `offset` covers.
    fn of_offset(offset: &Path) -> Option<Self> {
        let (folder, name) = offset.as_ref().rsplit_once('/')?;
        let first = version_of(name).filter(|_| folder.rsplit('/').next() == Some(LOG))?;
        Some(Self {
            folder: Path::parse(folder).ok()?,
            first,
        })
    }

    /// Adds the files that the listing lacks. Requests each next name until a file does not exist.
    async fn complete(&self, store: &Arc<dyn ObjectStore>, mut listing: Vec<ObjectMeta>) -> Result<Vec<ObjectMeta>> {
        let listed = listing.len();
        let versions = |listing: &[ObjectMeta], suffix: &str| -> BTreeSet<u64> {
            let names = listing.iter().filter_map(|meta| meta.location.filename());
            names
                .filter(|name| name.get(20..) == Some(suffix))
                .filter_map(version_of)
                .collect()
        };
        let entries = versions(&listing, ENTRY);
        let mut checkpoint = versions(&listing, CHECKPOINT).last().copied();
        // If `first` is not 0, it is the version of the checkpoint that `_last_checkpoint` (the hint) names, or the
        // version after the last known one. In the first case, the listing may lack the checkpoint.
        if self.first > 0 && checkpoint.is_none() && !entries.contains(&self.first) {
            let meta = self.find_file(store, self.first, CHECKPOINT).await?;
            checkpoint = meta.as_ref().map(|_| self.first);
            listing.extend(meta);
        }
        let mut next = checkpoint.map_or(self.first, |version| version + 1);
        loop {
            if !entries.contains(&next) {
                let Some(meta) = self.find_file(store, next, ENTRY).await? else {
                    break;
                };
                listing.push(meta);
            }
            next += 1;
        }
        if listing.len() > listed {
            listing.sort_by(|one, other| one.location.cmp(&other.location));
        }
        Ok(listing)
    }

    /// Returns the file of a version, if it exists.
    async fn find_file(&self, store: &Arc<dyn ObjectStore>, version: u64, suffix: &str) -> Result<Option<ObjectMeta>> {
        let path = Path::parse(format!("{}/{version:020}{suffix}", self.folder))?;
        match store.head(&path).await {
            Ok(meta) => Ok(Some(meta)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Suffixes of the names of entries and checkpoints, after the version.
const ENTRY: &str = ".json";
const CHECKPOINT: &str = ".checkpoint.parquet";

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn a_listing_that_lags_behind_is_completed_up_to_the_first_version_that_is_not_there() {
        let bucket: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let folder = "tables/samples/_delta_log";
        let path = |name: &str| Path::from(format!("{folder}/{name}"));
        for name in [
            "00000000000000000003.json",
            "00000000000000000004.checkpoint.parquet",
            "00000000000000000004.json",
            "00000000000000000005.json",
            "00000000000000000006.json",
            "00000000000000000008.json",
        ] {
            bucket.put(&path(name), "x".into()).await.unwrap();
        }
        let complete = async |first: u64, listed: &[&str]| {
            let offset = path(&format!("{first:020}"));
            let mut objects = Vec::new();
            for name in listed {
                objects.push(bucket.head(&path(name)).await.unwrap());
            }
            let log = Log::of_offset(&offset).unwrap();
            let objects = log.complete(&bucket, objects).await.unwrap();
            let names = objects.iter().map(|meta| meta.location.filename().unwrap().to_owned());
            names
                .map(|name| name.trim_start_matches('0').to_owned())
                .collect::<Vec<_>>()
        };
        let all = ["4.checkpoint.parquet", "5.json", "6.json"];
        // The hint names checkpoint 4. The listing is empty, or contains only that checkpoint or a later file.
        assert_eq!(complete(4, &[]).await, all);
        assert_eq!(complete(4, &["00000000000000000004.checkpoint.parquet"]).await, all);
        assert_eq!(complete(5, &["00000000000000000006.json"]).await, all[1..]);
        // Files after a gap stay in the listing. The reader reports the missing files.
        assert_eq!(
            complete(5, &["00000000000000000008.json"]).await,
            ["5.json", "6.json", "8.json"]
        );
        assert_eq!(complete(7, &[]).await, Vec::<String>::new());
        assert!(Log::of_offset(&Path::from("tables/samples/tenant=a/00000000000000000004")).is_none());
    }

    #[tokio::test]
    async fn a_range_of_a_log_file_is_read_as_asked_for_or_refused_with_the_name_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join(LOG);
        std::fs::create_dir(&log).unwrap();
        let file = log.join("00000000000000000001.json");
        let bytes: Vec<u8> = (0..3000u32).map(|index| (index % 251) as u8).collect();
        std::fs::write(&file, &bytes).unwrap();
        sums::write(&file).unwrap();
        let store = LogStore::verified(Arc::new(LocalFileSystem::new()));
        let location = Path::from_absolute_path(&file).unwrap();
        let ranges = [
            None,
            Some(GetRange::Bounded(500..1500)),
            Some(GetRange::Offset(2999)),
            Some(GetRange::Suffix(1)),
        ];
        let read = async |range: Option<GetRange>| {
            let options = GetOptions {
                range,
                ..GetOptions::default()
            };
            store.get_opts(&location, options).await?.bytes().await
        };
        for range in &ranges {
            assert_eq!(
                read(range.clone()).await.unwrap(),
                bytes[within_usize(range.as_ref(), bytes.len())].to_vec(),
                "{range:?}"
            );
        }
        let mut altered = bytes.clone();
        altered[700] ^= 4;
        std::fs::write(&file, &altered).unwrap();
        let error = read(ranges[1].clone()).await.unwrap_err().to_string();
        assert!(error.contains("00000000000000000001.json"), "{error}");
        assert!(read(None).await.is_err());
        // The last part is unchanged.
        assert_eq!(read(ranges[3].clone()).await.unwrap(), bytes[2999..].to_vec());
    }

    fn within_usize(range: Option<&GetRange>, size: usize) -> Range<usize> {
        let range = selected_range(range, size as u64);
        range.start as usize..range.end as usize
    }
}
