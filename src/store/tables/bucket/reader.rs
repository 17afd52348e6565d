//! The object store for queries. It reads objects in blocks through the local cache.
//!
//! In: ranges of an object. Out: their bytes, from the cache if possible. One request fetches neighbouring missing
//! blocks. Only reads of bounded ranges use the cache. All other operations go directly to the bucket's client.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::runtime::Handle;

use crate::store::tables::bucket::cache::{BLOCK_BYTES, BlockCache, BlockKey};
use crate::store::tables::bucket::metrics::BucketMetrics;

/// Number of locks for fetches. With the locks, two queries that miss the same block fetch it only once.
const STRIPES: usize = 64;

/// An object store with a cache.
pub(crate) struct CachedReads {
    inner: Arc<dyn ObjectStore>,
    cache: Arc<BlockCache>,
    metrics: BucketMetrics,
    handle: Handle,
    stripes: Vec<tokio::sync::Mutex<()>>,
}

impl CachedReads {
    /// Reads `inner` through `cache`. Disk reads of the cache run in the runtime of `handle`.
    pub(super) fn new(
        inner: Arc<dyn ObjectStore>,
        cache: Arc<BlockCache>,
        metrics: BucketMetrics,
        handle: Handle,
    ) -> Self {
        metrics.cache_bytes.set(cache.bytes() as i64);
        Self {
            inner,
            cache,
            metrics,
            handle,
            stripes: std::iter::repeat_with(tokio::sync::Mutex::default)
                .take(STRIPES)
                .collect(),
        }
    }

    /// Returns the bytes of `range`, or fewer if the object ends earlier.
    pub(super) async fn read(&self, location: &Path, range: Range<u64>) -> Result<Bytes> {
        if range.start >= range.end {
            return Ok(Bytes::new());
        }
        let first = range.start / BLOCK_BYTES;
        let count = (range.end - 1) / BLOCK_BYTES - first + 1;
        let mut blocks = self.cached(location, first, count).await;
        let hits = blocks.iter().filter(|block| block.is_some()).count() as u64;
        self.metrics.cache_hits.inc_by(hits);
        self.metrics.cache_misses.inc_by(count - hits);
        if blocks.contains(&None) {
            let stripe = xxhash_rust::xxh3::xxh3_64(location.as_ref().as_bytes()) as usize % STRIPES;
            let _alone = match self.stripes.get(stripe) {
                Some(stripe) => Some(stripe.lock().await),
                None => None,
            };
            // Another reader may have fetched the blocks while this reader waited for the lock.
            blocks = self.cached(location, first, count).await;
            self.fetch(location, first, &mut blocks).await?;
        }
        Ok(assemble(&blocks, first * BLOCK_BYTES, &range))
    }

    async fn cached(&self, location: &Path, first: u64, count: u64) -> Vec<Option<Bytes>> {
        let (cache, path) = (self.cache.clone(), location.to_string());
        let read = self.handle.spawn_blocking(move || {
            (first..first + count)
                .map(|block| cache.get(BlockKey::new(&path, block as u32)))
                .collect::<Vec<_>>()
        });
        read.await.unwrap_or_else(|_| vec![None; count as usize])
    }

    /// Fetches the missing blocks.
    async fn fetch(&self, location: &Path, first: u64, blocks: &mut [Option<Bytes>]) -> Result<()> {
        let mut position = 0;
        while position < blocks.len() {
            if blocks[position].is_some() {
                position += 1;
                continue;
            }
            let missing = blocks[position..].iter().take_while(|block| block.is_none()).count();
            let start = (first + position as u64) * BLOCK_BYTES;
            let data = self
                .inner
                .get_range(location, start..start + missing as u64 * BLOCK_BYTES)
                .await?;
            for (index, block) in blocks[position..position + missing].iter_mut().enumerate() {
                let from = (index * BLOCK_BYTES as usize).min(data.len());
                let to = (from + BLOCK_BYTES as usize).min(data.len());
                *block = Some(data.slice(from..to));
            }
            self.keep(
                location,
                first + position as u64,
                blocks[position..position + missing].to_vec(),
            );
            position += missing;
        }
        Ok(())
    }

    /// Caches blocks in the background.
    fn keep(&self, location: &Path, first: u64, blocks: Vec<Option<Bytes>>) {
        let (cache, path, metrics) = (self.cache.clone(), location.to_string(), self.metrics.clone());
        self.handle.spawn_blocking(move || {
            for (block, data) in (first..).zip(blocks) {
                if let Some(data) = data.filter(|data| !data.is_empty()) {
                    cache.put(BlockKey::new(&path, block as u32), &data);
                }
            }
            metrics.cache_bytes.set(cache.bytes() as i64);
        });
    }
}

/// Copies the bytes of `range` out of blocks that begin at byte `base`.
fn assemble(blocks: &[Option<Bytes>], base: u64, range: &Range<u64>) -> Bytes {
    let mut parts = Vec::with_capacity(blocks.len());
    let mut start = base;
    for block in blocks.iter().flatten() {
        let length = block.len() as u64;
        let from = range.start.saturating_sub(start).min(length);
        let to = range.end.saturating_sub(start).min(length);
        if from < to {
            parts.push(block.slice(from as usize..to as usize));
        }
        start += BLOCK_BYTES;
    }
    if parts.len() == 1 {
        return parts.swap_remove(0);
    }
    let mut all = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
    parts.iter().for_each(|part| all.extend_from_slice(part));
    all.freeze()
}

impl fmt::Debug for CachedReads {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CachedReads")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for CachedReads {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(out)
    }
}

#[async_trait]
impl ObjectStore for CachedReads {
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
        let Some(GetRange::Bounded(range)) = options.range.clone() else {
            return self.inner.get_opts(location, options).await;
        };
        let bytes = self.read(location, range.clone()).await?;
        let end = range.start + bytes.len() as u64;
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream::once(async move { Ok(bytes) }).boxed()),
            meta: ObjectMeta {
                location: location.clone(),
                last_modified: chrono::DateTime::UNIX_EPOCH,
                size: end,
                e_tag: None,
                version: None,
            },
            range: range.start..end,
            attributes: object_store::Attributes::default(),
        })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        // Ranges in the same or neighbouring blocks become one read.
        object_store::coalesce_ranges(ranges, |range| self.read(location, range), BLOCK_BYTES).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn ranges_come_from_the_cache_once_they_were_read() {
        let dir = tempfile::tempdir().unwrap();
        let bucket: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let data: Vec<u8> = (0..3 * BLOCK_BYTES + 100).map(|index| (index / 7) as u8).collect();
        let location = Path::from("samples/x.parquet");
        bucket.put(&location, data.clone().into()).await.unwrap();
        let cache = Arc::new(BlockCache::open(dir.path(), 64 << 20).unwrap());
        let metrics = BucketMetrics::default();
        let reads = CachedReads::new(bucket.clone(), cache.clone(), metrics.clone(), Handle::current());
        let ranges = [
            0..1,
            BLOCK_BYTES - 1..BLOCK_BYTES + 1,
            5..3 * BLOCK_BYTES + 100,
            3 * BLOCK_BYTES + 99..3 * BLOCK_BYTES + 100,
            7..7,
        ];
        let expected = |range: &Range<u64>| data[range.start as usize..range.end as usize].to_vec();
        for range in &ranges {
            assert_eq!(
                reads.get_range(&location, range.clone()).await.unwrap(),
                expected(range)
            );
        }
        let all = reads.get_ranges(&location, &ranges[..4]).await.unwrap();
        for (bytes, range) in all.iter().zip(&ranges) {
            assert_eq!(*bytes, expected(range));
        }
        // The reader caches blocks in the background.
        let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
        while cache.written_bytes() < data.len() as u64 {
            assert!(
                std::time::Instant::now() < deadline,
                "timed out: only {} of {} cached bytes are readable",
                cache.written_bytes(),
                cache.bytes()
            );
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        // Without the object, the cache returns the same bytes.
        bucket.delete(&location).await.unwrap();
        for range in &ranges {
            assert_eq!(
                reads.get_range(&location, range.clone()).await.unwrap(),
                expected(range)
            );
        }
        assert!(metrics.cache_hits.get() > 0 && metrics.cache_misses.get() > 0);
    }

    #[tokio::test]
    async fn without_room_everything_is_read_from_the_bucket() {
        let bucket: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let location = Path::from("x");
        bucket.put(&location, vec![1; 10].into()).await.unwrap();
        let reads = CachedReads::new(
            bucket,
            Arc::new(BlockCache::disabled()),
            BucketMetrics::default(),
            Handle::current(),
        );
        for _ in 0..2 {
            assert_eq!(reads.get_range(&location, 2..5).await.unwrap(), vec![1u8; 3]);
        }
        assert!(reads.get_range(&Path::from("y"), 0..1).await.is_err());
    }
}
