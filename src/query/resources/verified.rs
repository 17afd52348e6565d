//! Reads Parquet files for queries and verifies every byte that it reads. A query of a damaged file fails instead of
//! returning altered values.
//!
//! In: a file of a plan with its [`Seal`]. Out: verified ranges, and metadata through the footer cache. Files of
//! earlier versions have no checksums of their blocks and are read without verification.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::Result as PlanResult;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::parquet::{CachedParquetFileReaderFactory, CachedParquetMetaData};
use datafusion::execution::cache::cache_manager::{CachedFileMetadataEntry, FileMetadataCache};
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::{ParquetError, Result};
use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt as _;
use object_store::{ObjectMeta, ObjectStore};

use crate::query::common::error::QueryError;
use crate::store::tables::checksums;
use crate::store::tables::checksums::{AlteredBytes, BlockChecksums};
use crate::store::tables::snapshot::Tail;
use alluvium_base::BoxFuture;

/// The data that is needed to verify the bytes of a file. If a file has checksums of its blocks, the plan of a query
/// attaches the seal to the file as an extension.
#[derive(Debug, Clone)]
pub(crate) struct Seal {
    pub(crate) tail: Tail,
    /// Path or address of the file, for errors.
    pub(crate) name: PathBuf,
}

/// Creates the readers of all files.
#[derive(Debug)]
pub(crate) struct Readers {
    plain: CachedParquetFileReaderFactory,
    cache: Arc<FileMetadataCache>,
}

impl Readers {
    /// Creates readers of files in `store`. `cache` holds the metadata of the files.
    pub(crate) fn new(store: Arc<dyn ObjectStore>, cache: Arc<FileMetadataCache>) -> Self {
        Self {
            plain: CachedParquetFileReaderFactory::new(store, cache.clone()),
            cache,
        }
    }
}

impl ParquetFileReaderFactory for Readers {
    fn create_reader(
        &self,
        partition_index: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> PlanResult<Box<dyn AsyncFileReader + Send>> {
        let seal = file.extension::<Seal>().cloned();
        let object = file.object_meta.clone();
        let plain = (self.plain).create_reader(partition_index, file, metadata_size_hint, metrics)?;
        Ok(match seal {
            Some(seal) => Box::new(VerifiedReader {
                plain,
                object,
                seal,
                cache: self.cache.clone(),
                sums: None,
            }),
            None => plain,
        })
    }
}

struct VerifiedReader {
    plain: Box<dyn AsyncFileReader + Send>,
    object: ObjectMeta,
    seal: Seal,
    cache: Arc<FileMetadataCache>,
    /// The checksums of the file's blocks. The first read loads them from the metadata of the file.
    sums: Option<Arc<BlockChecksums>>,
}

impl VerifiedReader {
    fn altered(&self, error: &AlteredBytes) -> ParquetError {
        let name = self.seal.name.display();
        let text = format!("the file {name} is damaged: {error}; `alluvium store check` lists damaged files");
        ParquetError::External(Box::new(QueryError::internal(text)))
    }

    async fn metadata(&mut self, policy: PageIndexPolicy) -> Result<Arc<ParquetMetaData>> {
        let cached = self.cache.get(&self.object.location);
        let cached = cached
            .filter(|entry| entry.is_valid_for(&self.object))
            .and_then(|entry| {
                let cached_metadata = entry.file_metadata.as_any().downcast_ref::<CachedParquetMetaData>()?;
                Some(cached_metadata.parquet_metadata().clone())
            });
        if let Some(metadata) = cached {
            let has_index = metadata.column_index().is_some() && metadata.offset_index().is_some();
            if has_index || policy == PageIndexPolicy::Skip {
                return Ok(metadata);
            }
        }
        let (size, tail) = (self.object.size, self.seal.tail);
        let bytes = self.plain.get_bytes(tail.start..size).await?;
        checksums::verify_tail(&bytes, tail).map_err(|error| self.altered(&error))?;
        let metadata = Arc::new(checksums::metadata_of(&bytes, size, policy)?);
        let kept = CachedFileMetadataEntry::new(
            self.object.clone(),
            Arc::new(CachedParquetMetaData::new(metadata.clone())),
        );
        self.cache.put(&self.object.location, kept);
        Ok(metadata)
    }

    async fn sums(&mut self) -> Result<Arc<BlockChecksums>> {
        if let Some(sums) = &self.sums {
            return Ok(sums.clone());
        }
        let metadata = self.metadata(PageIndexPolicy::Skip).await?;
        let sums = BlockChecksums::of(&metadata, self.object.size, self.seal.tail);
        let sums = Arc::new(sums.map_err(|error| self.altered(&error))?);
        self.sums = Some(sums.clone());
        Ok(sums)
    }

    async fn read(&mut self, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>> {
        let sums = self.sums().await?;
        let covers = sums.verified_ranges(&ranges);
        let pieces = self.plain.get_byte_ranges(covers.clone()).await?;
        for (cover, piece) in covers.iter().zip(&pieces) {
            let is_whole = piece.len() as u64 == cover.end - cover.start;
            let verified = if is_whole {
                sums.verify(cover.start, piece)
            } else {
                Err(AlteredBytes::at(cover.start))
            };
            verified.map_err(|error| self.altered(&error))?;
        }
        let extract = |range: Range<u64>| {
            if range.is_empty() {
                return Ok(Bytes::new());
            }
            let index = covers.partition_point(|cover| cover.end < range.end);
            let pair = covers.get(index).zip(pieces.get(index));
            let pair = pair.filter(|(cover, _)| cover.start <= range.start);
            let (cover, piece) = pair.ok_or_else(|| ParquetError::EOF(format!("no bytes at {range:?}")))?;
            Ok(piece.slice((range.start - cover.start) as usize..(range.end - cover.start) as usize))
        };
        ranges.into_iter().map(extract).collect()
    }
}

impl AsyncFileReader for VerifiedReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        async move { Ok(self.read(vec![range]).await?.swap_remove(0)) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        self.read(ranges).boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>>> {
        let policy = options.map_or(PageIndexPolicy::Optional, ArrowReaderOptions::column_index_policy);
        self.metadata(policy).boxed()
    }
}
