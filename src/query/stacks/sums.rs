//! Sums values by stack, the basis of every flame graph.
//!
//! In: a filter. Out: stacks with their sums. If the cache can hold the rows that a query needs from a file, these rows
//! come from cached blocks (module `blocks`), and missing blocks are built from the file. The rows of all other files
//! are summed without the cache. Heads sum their own rows. Rows are processed as integers, without strings.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::HashMap;

use crate::query::common::error::QueryError;
use crate::query::common::stream::BatchStream;
use crate::query::common::{checked, stream};
use crate::query::decoded::block_cache::{Key, Missing};
use crate::query::decoded::blocks::{Block, Builder, Chunk};
use crate::query::decoded::context::Context;
use crate::query::resources::runtime::Runtime;
use crate::query::scan::{heads, read};
use crate::store::common::schema;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{SERIES, STACK, TIME, VALUE};
use crate::store::tables::snapshot::{FileEntry, ScanFilter};
use crate::store::tables::stats::Bounds;
use alluvium_base::BoxFuture;
use alluvium_profile::{ProfileTypeId, SeriesId, StackId, TimeSpan};

type StackSums = HashMap<StackId, i64>;

/// Memory in bytes of an entry in the map of sums, with a share of the map's empty slots.
const SUM_BYTES: usize = 24;
/// Approximate size of a row in a cached block, in bytes.
const ROW_BYTES: u64 = 7;
/// Total size in bytes above which the collected blocks are summed and dropped. Without this limit, the blocks of a
/// long range could exhaust the memory.
const MAX_COLLECTED_BYTES: usize = 64 << 20;
/// Number of rows that one thread sums in about a millisecond.
const ROWS_PER_TASK: usize = 500_000;
/// If a query requests at most this number of series, their rows are considered a small part of a file.
const FEW_SERIES: usize = 64;

/// Sums in progress. Their memory is charged to the query.
pub(crate) struct Sums {
    values: StackSums,
    memory: MemoryReservation,
}

/// Sums in ascending order of stack. Their memory is charged to the query until this value is dropped.
pub(crate) struct SortedSums {
    pub(crate) values: Vec<(StackId, i64)>,
    _memory: MemoryReservation,
}

/// Returns the sums of values by stack over all rows of `samples` that pass the filter, in ascending order of stack.
pub(crate) fn sorted_by_stack(
    context: &Arc<Context>,
    filter: &ScanFilter,
) -> BoxFuture<'static, Result<SortedSums, QueryError>> {
    let sums = by_stack(context, filter);
    Box::pin(async move { sums.await?.sorted() })
}

fn by_stack(context: &Arc<Context>, filter: &ScanFilter) -> BoxFuture<'static, Result<Sums, QueryError>> {
    let (context, filter) = (context.clone(), filter.clone());
    Box::pin(async move {
        let (Some(profile_type), Some(time), None) = (&filter.profile_type, filter.time, &filter.stacks) else {
            return by_scan(&context, &filter, None).await;
        };
        let (mut blocks, mut gathered, mut scanned) = (Vec::new(), 0, Vec::new());
        let mut sums = Sums::new(&context.runtime);
        for file in read::choose(&context.runtime, &context.snapshot, Table::Samples, &filter) {
            match file.time {
                Some(bounds) if is_small(&context, file, bounds, time, &filter) => {
                    let file_blocks = blocks_of(&context, file, bounds, profile_type, time, &filter).await?;
                    gathered += file_blocks.iter().map(|block| block.bytes()).sum::<usize>();
                    blocks.extend(file_blocks);
                    if gathered > MAX_COLLECTED_BYTES {
                        gathered = 0;
                        sums.merge_all(sum_blocks(std::mem::take(&mut blocks), time).await?)?;
                    }
                }
                _ => scanned.push(file.clone()),
            }
        }
        if !scanned.is_empty() {
            sums.merge(by_scan(&context, &filter, Some(scanned)).await?.values)?;
        }
        sums.merge_all(sum_blocks(blocks, time).await?)?;
        for head in &context.snapshot.heads {
            if let Some(part) = heads::sums_of(&context.runtime, head.clone(), &filter).await? {
                sums.merge(part)?;
            } else {
                let streams =
                    heads::one_head_stream(&context.runtime, head.clone(), Table::Samples, &filter, &[STACK, VALUE])?;
                sums.merge(fold(&context, vec![streams], Sums::add).await?.values)?;
            }
        }
        Ok(sums)
    })
}

/// Scans `files` and sums the values of their rows by stack. If `files` is `None`, scans all files that pass the
/// filter, and the heads.
fn by_scan(
    context: &Arc<Context>,
    filter: &ScanFilter,
    files: Option<Vec<FileEntry>>,
) -> BoxFuture<'static, Result<Sums, QueryError>> {
    let columns = [STACK, VALUE];
    let (runtime, snapshot) = (&context.runtime, &context.snapshot);
    let streams = match files {
        None => read::open(runtime, snapshot, Table::Samples, filter, &columns),
        Some(files) => {
            let files: Vec<&FileEntry> = files.iter().collect();
            read::open_files(runtime, snapshot, Table::Samples, &files, filter, &columns)
        }
    };
    let context = context.clone();
    Box::pin(async move { fold(&context, streams?, Sums::add).await })
}

/// Folds the batches of streams into sums with `step`.
pub(crate) async fn fold(
    context: &Context,
    streams: Vec<BatchStream>,
    step: impl Fn(&mut Sums, &RecordBatch) -> Result<(), QueryError> + Send + Sync + 'static,
) -> Result<Sums, QueryError> {
    let parts = stream::fold(streams, || Sums::new(&context.runtime), step).await?;
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap_or_else(|| Sums::new(&context.runtime));
    for part in parts {
        all.merge(part.values)?;
    }
    Ok(all)
}

/// Adds `values` to the sums of `all`. Fails if a sum does not fit in 64 bits.
fn add(all: &mut StackSums, values: impl IntoIterator<Item = (StackId, i64)>) -> Result<(), QueryError> {
    values
        .into_iter()
        .try_for_each(|(stack, value)| checked::add(all.entry(stack).or_default(), value))
}

impl Sums {
    fn new(runtime: &Runtime) -> Self {
        Self {
            values: StackSums::new(),
            memory: runtime.reservation("sums by stack"),
        }
    }

    /// Adds the rows of a batch for which `keep` is true.
    pub(crate) fn add_where(&mut self, batch: &RecordBatch, keep: impl Fn(usize) -> bool) -> Result<(), QueryError> {
        let stacks = schema::integers(batch, STACK)?;
        let values = schema::integers(batch, VALUE)?;
        let rows = (0..batch.num_rows()).filter(|row| keep(*row));
        self.merge(rows.map(|row| (StackId(stacks[row]), values[row])))
    }

    /// Returns the sums sorted by stack, so that the same query always results in the same trees and pprof bytes. Fails
    /// if the sum of any subset of the values could overflow 64 bits. Therefore, the totals of a tree always fit.
    pub(crate) fn sorted(self) -> Result<SortedSums, QueryError> {
        checked::check_total(self.values.values().copied())?;
        let memory = self.memory;
        memory.try_grow(self.values.len() * size_of::<(StackId, i64)>())?;
        let mut values: Vec<(StackId, i64)> = self.values.into_iter().collect();
        values.sort_unstable();
        memory.try_resize(values.capacity() * size_of::<(StackId, i64)>())?;
        Ok(SortedSums {
            values,
            _memory: memory,
        })
    }

    fn merge_all(&mut self, parts: Vec<StackSums>) -> Result<(), QueryError> {
        parts.into_iter().try_for_each(|part| self.merge(part))
    }

    fn merge(&mut self, values: impl IntoIterator<Item = (StackId, i64)>) -> Result<(), QueryError> {
        add(&mut self.values, values)?;
        Ok(self.memory.try_resize(self.values.capacity() * SUM_BYTES)?)
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        let stacks = schema::integers(batch, STACK)?.iter().map(|id| StackId(*id));
        let values = schema::integers(batch, VALUE)?;
        // Files sorted by stack have runs of rows with one stack. Each run costs one hash lookup.
        let mut run: Option<(StackId, i64)> = None;
        for (stack, value) in stacks.zip(values) {
            match &mut run {
                Some((current, sum)) if *current == stack => checked::add(sum, *value)?,
                _ => add(&mut self.values, run.replace((stack, *value)))?,
            }
        }
        add(&mut self.values, run)?;
        Ok(self.memory.try_resize(self.values.capacity() * SUM_BYTES)?)
    }
}

/// Returns true if the cache can hold the rows of a file for this query without evicting everything else.
fn is_small(context: &Context, file: &FileEntry, bounds: Bounds<i64>, time: TimeSpan, filter: &ScanFilter) -> bool {
    let length = (bounds.max - bounds.min).max(0) as u64 + 1;
    let read = chunks(bounds, time).map_or(0, |(first, last)| {
        let span = first.span_to(last);
        (span.end.saturating_sub(span.start) as u64).min(length)
    });
    let rows = (u128::from(file.rows) * u128::from(read) / u128::from(length)) as u64;
    // A file has rows of several types, and the query requests one type. The divisors are estimates.
    let rows = match &filter.series {
        Some(series) if series.len() <= FEW_SERIES => rows / 8,
        _ => rows / 2,
    };
    rows * ROW_BYTES <= context.blocks().limit() as u64 / 2
}

/// Returns the first and the last chunk of a file within a time span.
fn chunks(bounds: Bounds<i64>, time: TimeSpan) -> Option<(Chunk, Chunk)> {
    let first = Chunk::of(bounds.min.max(time.start));
    let last = Chunk::of(bounds.max.min(time.end.saturating_sub(1)));
    (first <= last).then_some((first, last))
}

/// Returns the blocks of a file with rows that pass the filter. A block covers a whole [`Chunk`] of time, so it may
/// also contain rows outside of `time`.
async fn blocks_of(
    context: &Arc<Context>,
    file: &FileEntry,
    bounds: Bounds<i64>,
    profile_type: &ProfileTypeId,
    time: TimeSpan,
    filter: &ScanFilter,
) -> Result<Vec<Arc<Block>>, QueryError> {
    let path: Arc<str> = file.path.as_str().into();
    let key = |chunk| Key {
        file: path.clone(),
        profile_type: profile_type.clone(),
        chunk,
    };
    let mut blocks = Vec::new();
    let Some((first, last)) = chunks(bounds, time) else {
        return Ok(blocks);
    };
    let mut missing_parts: Vec<(Chunk, Missing)> = Vec::new();
    for chunk in (first.0..=last.0).map(Chunk) {
        let cached = context.blocks().get(&key(chunk), filter.series.as_deref());
        blocks.extend(cached.blocks);
        if cached.missing != Missing::None {
            missing_parts.push((chunk, cached.missing));
        }
    }
    let (Some((first, _)), Some((last, _))) = (missing_parts.first(), missing_parts.last()) else {
        return Ok(blocks);
    };
    // All missing rows are read at once, because they are in nearby chunks and nearly always of the same series.
    let mut series: Option<HashSet<SeriesId>> = Some(HashSet::new());
    for (_, missing_series) in &missing_parts {
        match (missing_series, &mut series) {
            (Missing::Some(ids), Some(series)) => series.extend(ids),
            (Missing::All, _) => series = None,
            _ => {}
        }
    }
    let missing_filter = ScanFilter {
        time: Some(first.span_to(*last)),
        series: series.clone().map(Arc::new),
        ..filter.clone()
    };
    let read = read(context, file, missing_filter).await?;
    let requested: Option<Vec<SeriesId>> = series.map(|series| series.into_iter().collect());
    let mut by_chunk: HashMap<Chunk, Vec<(SeriesId, Arc<Block>)>> = HashMap::new();
    for (series, chunk, block) in read {
        by_chunk.entry(chunk).or_default().push((series, block));
    }
    for (chunk, missing_series) in missing_parts {
        let read = by_chunk.remove(&chunk).unwrap_or_default();
        let needed = |series: &SeriesId| match &missing_series {
            Missing::Some(ids) => ids.contains(series),
            _ => true,
        };
        blocks.extend(
            read.iter()
                .filter(|(series, _)| needed(series))
                .map(|(_, block)| block.clone()),
        );
        context.blocks().insert(&key(chunk), read, requested.as_deref());
    }
    Ok(blocks)
}

/// Reads all rows of a file that pass the filter, and returns the blocks with their series and chunks.
async fn read(
    context: &Arc<Context>,
    file: &FileEntry,
    filter: ScanFilter,
) -> Result<Vec<(SeriesId, Chunk, Arc<Block>)>, QueryError> {
    let columns = [SERIES, TIME, STACK, VALUE];
    let streams = read::open_files(
        &context.runtime,
        &context.snapshot,
        Table::Samples,
        &[file],
        &filter,
        &columns,
    )?;
    let make = || Rows {
        series: HashMap::new(),
        memory: context.runtime.reservation("sample rows"),
    };
    let mut parts = stream::fold(streams, make, Rows::add).await?.into_iter();
    let Some(mut all) = parts.next() else {
        return Ok(Vec::new());
    };
    for part in parts {
        for (series, builder) in part.series {
            match all.series.get_mut(&series) {
                Some(existing) => existing.extend(&builder),
                None => drop(all.series.insert(series, builder)),
            }
        }
    }
    let finished = tokio::task::spawn_blocking(move || {
        let blocks = all.series.into_iter().flat_map(|(series, builder)| {
            let blocks = builder.finish().into_iter();
            blocks.map(move |(chunk, block)| (series, chunk, Arc::new(block)))
        });
        blocks.collect()
    });
    finished
        .await
        .map_err(|error| QueryError::internal(format!("cannot sort sample rows: {error}")))
}

struct Rows {
    series: HashMap<SeriesId, Builder>,
    memory: MemoryReservation,
}

impl Rows {
    fn add(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        let series = schema::integers(batch, SERIES)?;
        let times = schema::times(batch, TIME)?;
        let stacks = schema::integers(batch, STACK)?;
        let values = schema::integers(batch, VALUE)?;
        let mut start = 0;
        for run in series.chunk_by(|left, right| left == right) {
            let end = start + run.len();
            let builder = self.series.entry(SeriesId(run[0])).or_default();
            for row in start..end {
                builder.push(times[row], StackId(stacks[row]), values[row]);
            }
            start = end;
        }
        let bytes = self.series.values().map(Builder::bytes).sum();
        Ok(self.memory.try_resize(bytes)?)
    }
}

/// Sums the rows of blocks within a time span by stack. Returns one map for each task.
async fn sum_blocks(blocks: Vec<Arc<Block>>, time: TimeSpan) -> Result<Vec<StackSums>, QueryError> {
    let sum = move |blocks: Vec<Arc<Block>>| {
        let (mut sums, mut scratch) = (StackSums::new(), Vec::new());
        for block in blocks {
            block.add_to(time, &mut sums, &mut scratch)?;
        }
        Ok::<_, QueryError>(sums)
    };
    let rows: usize = blocks.iter().map(|block| block.rows_between(time)).sum();
    if rows < ROWS_PER_TASK / 10 {
        return Ok(vec![sum(blocks)?]);
    }
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let tasks = (rows / ROWS_PER_TASK + 1).min(cores);
    let mut parts: Vec<Vec<Arc<Block>>> = (0..tasks).map(|_| Vec::new()).collect();
    for (index, block) in blocks.into_iter().enumerate() {
        parts[index % tasks].push(block);
    }
    let running: Vec<_> = parts
        .into_iter()
        .map(|part| tokio::task::spawn_blocking(move || sum(part)))
        .collect();
    let mut sums = Vec::with_capacity(tasks);
    for task in running {
        let part = task.await;
        sums.push(part.map_err(|error| QueryError::internal(format!("cannot sum stacks: {error}")))??);
    }
    Ok(sums)
}
