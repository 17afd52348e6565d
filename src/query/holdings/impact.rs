//! Computes two results from statistics: the times of the first and last profile of tenants, and the amount of data
//! that a query would read.
//!
//! In: the files of the snapshot with their statistics, and the few rows of `profiles` in heads. Out: bounds and
//! counts. Only two kinds of files are read: files of `series` that are not cached yet, and files of `profiles` without
//! times in their statistics.

use std::collections::HashSet;
use std::sync::Arc;

use crate::query::common::error::QueryError;
use crate::query::common::stream;
use crate::query::common::types::StackQuery;
use crate::query::decoded::context::Context;
use crate::query::scan::{heads, read};
use crate::query::stacks::flame;
use crate::store::common::schema;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{SAMPLE_COUNT, SERIES, TIME};
use crate::store::tables::snapshot::{FileEntry, ScanFilter};
use crate::store::tables::stats::{Bounds, extend};
use alluvium_base::BoxFuture;
use alluvium_profile::SeriesId;

/// The data that a query would read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Impact {
    /// The data in Parquet files according to their statistics. All rows of each file are counted.
    pub(crate) files: ReadEstimate,
    /// The data in memory. These numbers are exact.
    pub(crate) heads: ReadEstimate,
    /// Number of series that match the query on the days of its range.
    pub(crate) series: u64,
}

/// The data that a query would read in files or in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReadEstimate {
    /// Number of files in all tables, or number of heads.
    pub(crate) blocks: u64,
    /// Number of series that may have rows in these files or heads.
    pub(crate) series: u64,
    /// Number of rows of the table `profiles`.
    pub(crate) profiles: u64,
    /// Number of rows of the table `samples`.
    pub(crate) samples: u64,
    /// Size of the files of `series` and `profiles` in bytes.
    pub(crate) index_bytes: u64,
    /// Size of the files of `samples` in bytes.
    pub(crate) sample_bytes: u64,
    /// Size of the files of `stacks` in bytes.
    pub(crate) symbol_bytes: u64,
}

impl ReadEstimate {
    /// Returns the size of all files in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.index_bytes + self.sample_bytes + self.symbol_bytes
    }
}

/// Returns the times of the first and the last profile of the tenants in microseconds since 1970; `None` if there are
/// no profiles.
pub(crate) fn profile_times(context: Arc<Context>) -> BoxFuture<'static, Result<Option<Bounds<i64>>, QueryError>> {
    Box::pin(async move {
        let filter = ScanFilter {
            tenants: Some(context.tenants.clone()),
            ..ScanFilter::default()
        };
        let (runtime, snapshot) = (&context.runtime, &context.snapshot);
        let files = read::live_files(snapshot, Table::Profiles, &filter);
        let mut bounds = None;
        let file_times = files.iter().filter_map(|file| file.time);
        file_times.for_each(|times| extend(&mut bounds, [times.min, times.max]));
        let unknown: Vec<&FileEntry> = files.into_iter().filter(|file| file.time.is_none()).collect();
        let mut streams = read::open_files(runtime, snapshot, Table::Profiles, &unknown, &filter, &[TIME])?;
        if !snapshot.heads.is_empty() {
            streams.push(heads::head_stream(
                runtime,
                snapshot,
                Table::Profiles,
                &filter,
                &[TIME],
            )?);
        }
        let read = stream::fold(
            streams,
            || None,
            |bounds: &mut Option<Bounds<i64>>, batch| {
                extend(bounds, schema::times(batch, TIME)?.iter().copied());
                Ok(())
            },
        )
        .await?;
        for times in read.into_iter().flatten() {
            extend(&mut bounds, [times.min, times.max]);
        }
        Ok(bounds)
    })
}

/// Returns the amount of data that a query for stacks would read.
pub(crate) fn impact(context: Arc<Context>, query: StackQuery) -> BoxFuture<'static, Result<Impact, QueryError>> {
    Box::pin(async move {
        let filter = flame::filter(&context, &query).await?;
        let series = match &filter.series {
            Some(series) => series.len(),
            None => context.labels(query.range.micros()).await?.len(),
        };
        let mut impact = Impact {
            series: series as u64,
            ..Impact::default()
        };
        for table in Table::ALL {
            for file in read::live_files(&context.snapshot, table, &filter) {
                impact.files.blocks += 1;
                match table {
                    Table::Profiles => {
                        impact.files.profiles += file.rows;
                        impact.files.index_bytes += file.size;
                    }
                    Table::Series => impact.files.index_bytes += file.size,
                    Table::Samples => {
                        impact.files.samples += file.rows;
                        impact.files.sample_bytes += file.size;
                    }
                    Table::Stacks => impact.files.symbol_bytes += file.size,
                }
            }
        }
        if impact.files.blocks > 0 {
            impact.files.series = impact.series;
        }
        let mut in_heads = HashSet::new();
        for head in &context.snapshot.heads {
            let columns = [SERIES, SAMPLE_COUNT];
            let rows = heads::one_head_stream(&context.runtime, head.clone(), Table::Profiles, &filter, &columns)?;
            let parts = stream::fold(vec![rows], Rows::default, Rows::add).await?;
            for rows in parts.into_iter().filter(|rows| rows.profiles > 0) {
                impact.heads.blocks += 1;
                impact.heads.profiles += rows.profiles;
                impact.heads.samples += rows.samples;
                in_heads.extend(rows.series);
            }
        }
        impact.heads.series = in_heads.len() as u64;
        Ok(impact)
    })
}

/// The rows of a head that a query selects.
#[derive(Default)]
struct Rows {
    profiles: u64,
    samples: u64,
    series: HashSet<SeriesId>,
}

impl Rows {
    fn add(&mut self, batch: &arrow::record_batch::RecordBatch) -> Result<(), QueryError> {
        self.profiles += batch.num_rows() as u64;
        let counts = schema::integers(batch, SAMPLE_COUNT)?;
        self.samples += counts.iter().map(|count| (*count).max(0) as u64).sum::<u64>();
        let series = schema::integers(batch, SERIES)?.iter();
        self.series.extend(series.map(|id| SeriesId(*id)));
        Ok(())
    }
}
