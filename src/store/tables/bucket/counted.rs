//! An object store client that counts requests, caches log entries of the tables, and rejects truncated objects.
//!
//! If a response has fewer bytes than it announces, the read fails. Otherwise a cache would store the truncated object
//! and never read the missing bytes. A log entry is written once and read on every reload of its table, so entries are
//! cached in memory up to a bound. All other requests pass through.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use parking_lot::Mutex;

use crate::store::tables::bucket::metrics::BucketMetrics;

/// Maximum size of the cached entries in bytes. An entry has a few kilobytes, and by default a checkpoint follows every
/// 50 entries, so the entries since the last checkpoint fit easily.
const ENTRIES_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub(crate) struct Counted {
    inner: Arc<dyn ObjectStore>,
    metrics: BucketMetrics,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_path: HashMap<Path, (ObjectMeta, Bytes)>,
    bytes: usize,
}

impl Counted {
    /// Creates a client that counts the requests to `inner`.
    pub(super) fn new(inner: Arc<dyn ObjectStore>, metrics: BucketMetrics) -> Self {
        Self {
            inner,
            metrics,
            entries: Mutex::default(),
        }
    }

    fn count<T>(&self, operation: &'static str, result: Result<T>) -> Result<T> {
        self.metrics.count(operation, result.as_ref().err());
        result
    }

    fn remembered(&self, location: &Path) -> Option<GetResult> {
        let (meta, bytes) = self.entries.lock().by_path.get(location).cloned()?;
        Some(result_of(meta, bytes))
    }

    fn remember(&self, meta: &ObjectMeta, bytes: &Bytes) {
        let mut entries = self.entries.lock();
        if entries.bytes + bytes.len() > ENTRIES_BYTES {
            // The cache is full and drops all its entries. This is cheap, because later reads need mostly newer ones.
            *entries = Entries::default();
        }
        if entries
            .by_path
            .insert(meta.location.clone(), (meta.clone(), bytes.clone()))
            .is_none()
        {
            entries.bytes += bytes.len();
        }
    }
}

/// Returns a result that holds the whole object.
fn result_of(meta: ObjectMeta, bytes: Bytes) -> GetResult {
    GetResult {
        range: 0..bytes.len() as u64,
        payload: GetResultPayload::Stream(stream::once(async move { Ok(bytes) }).boxed()),
        meta,
        attributes: object_store::Attributes::default(),
    }
}

/// Returns a stream of `length` bytes. If fewer bytes arrive, the stream ends with an error. Errors are counted.
fn check_length(
    stream: BoxStream<'static, Result<Bytes>>,
    length: u64,
    location: &Path,
    metrics: BucketMetrics,
) -> BoxStream<'static, Result<Bytes>> {
    let message = format!("{location} was cut short: fewer than {length} bytes arrived");
    let pieces = stream::try_unfold((stream, length, message), |(mut stream, left, message)| async move {
        match stream.try_next().await? {
            Some(bytes) => {
                let left = left.saturating_sub(bytes.len() as u64);
                Ok(Some((bytes, (stream, left, message))))
            }
            None if left == 0 => Ok(None),
            None => Err(Error::Generic {
                store: "bucket",
                source: message.into(),
            }),
        }
    });
    pieces.inspect_err(move |error| metrics.failed("get", error)).boxed()
}

/// Returns true if the request is for a whole log entry, `_delta_log/<20 digits>.json`.
fn is_entry(location: &Path, options: &GetOptions) -> bool {
    let plain = options.range.is_none()
        && !options.head
        && options.if_match.is_none()
        && options.if_none_match.is_none()
        && options.if_modified_since.is_none()
        && options.if_unmodified_since.is_none()
        && options.version.is_none();
    plain
        && location.filename().is_some_and(|name| {
            name.strip_suffix(".json")
                .is_some_and(|digits| digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()))
        })
}

impl fmt::Display for Counted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(out)
    }
}

#[async_trait]
impl ObjectStore for Counted {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let bytes = payload.content_length() as u64;
        let result = self.count("put", self.inner.put_opts(location, payload, options).await);
        if result.is_ok() {
            self.metrics.written_bytes.inc_by(bytes);
        }
        result
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.count("put", self.inner.put_multipart_opts(location, options).await)
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let entry = is_entry(location, &options);
        if entry && let Some(response) = self.remembered(location) {
            return Ok(response);
        }
        let is_head = options.head;
        let mut result = self.count("get", self.inner.get_opts(location, options).await)?;
        let length = result.range.end.saturating_sub(result.range.start);
        self.metrics.read_bytes.inc_by(length);
        if !is_head && let GetResultPayload::Stream(stream) = result.payload {
            result.payload = GetResultPayload::Stream(check_length(stream, length, location, self.metrics.clone()));
        }
        if !entry {
            return Ok(result);
        }
        let meta = result.meta.clone();
        let bytes = result.bytes().await?;
        self.remember(&meta, &bytes);
        Ok(result_of(meta, bytes))
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let result = self.count("get", self.inner.get_ranges(location, ranges).await)?;
        let bytes = result.iter().map(|part| part.len() as u64).sum();
        self.metrics.read_bytes.inc_by(bytes);
        Ok(result)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let metrics = self.metrics.clone();
        self.inner
            .delete_stream(locations)
            .inspect(move |result| metrics.count("delete", result.as_ref().err()))
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.metrics.count("list", None);
        let metrics = self.metrics.clone();
        self.inner
            .list(prefix)
            .inspect_err(move |error| metrics.failed("list", error))
            .boxed()
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.metrics.count("list", None);
        let metrics = self.metrics.clone();
        self.inner
            .list_with_offset(prefix, offset)
            .inspect_err(move |error| metrics.failed("list", error))
            .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.count("list", self.inner.list_with_delimiter(prefix).await)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.count("copy", self.inner.copy_opts(from, to, options).await)
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.count("copy", self.inner.rename_opts(from, to, options).await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tables::bucket::metrics::Operation;

    #[tokio::test]
    async fn what_is_shorter_than_its_answer_says_is_an_error_and_counted() {
        let metrics = BucketMetrics::default();
        let read = |lengths: [usize; 2]| {
            let pieces = lengths.map(|length| Ok(Bytes::from(vec![0; length])));
            let pieces = check_length(stream::iter(pieces).boxed(), 5, &Path::from("a"), metrics.clone());
            pieces.try_collect::<Vec<Bytes>>()
        };
        assert_eq!(read([2, 3]).await.unwrap().concat().len(), 5);
        let error = read([2, 2]).await.unwrap_err().to_string();
        assert!(error.contains("a was cut short"), "{error}");
        let failed = metrics.failures.get_or_create(&Operation { operation: "get" }).get();
        assert_eq!(failed, 1);
    }
}
