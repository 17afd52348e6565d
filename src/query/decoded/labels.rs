//! Caches labels of series between queries. The labels of a series id never change, and files never change. If all
//! series of a query are cached, the query therefore reads no Parquet file for labels. A query is charged for the
//! labels that it reads and holds, even if the cache is too small for them.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use arrow::array::Array;
use arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use parking_lot::Mutex;

use crate::query::common::error::QueryError;
use crate::query::common::stream;
use crate::query::resources::cache::{Bytes, Cache};
use crate::query::resources::runtime::Runtime;
use crate::query::scan::{heads, read};
use crate::store::common::schema;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{LABELS, SERIES};
use crate::store::tables::snapshot::{FileEntry, ScanFilter, Snapshot};
use alluvium_base::BoxFuture;
use alluvium_profile::{Labels, SeriesId, Tenants, TimeSpan};

/// The cached series, by the set of tenants of a query.
pub(crate) type SeriesCache = Cache<Tenants, Arc<Mutex<KnownSeries>>>;

/// Cached rows of the `series` table.
#[derive(Default)]
pub(crate) struct KnownSeries {
    labels: HashMap<SeriesId, Labels>,
    /// Series ids in each file, by the path of the file.
    files: HashMap<String, Arc<[SeriesId]>>,
    strings: HashSet<Arc<str>>,
    /// Estimated memory of labels and strings in bytes.
    bytes: usize,
}

/// Estimated overhead of a map entry and an allocation in bytes.
const ENTRY_BYTES: usize = 64;
/// Memory of an entry of [`SeriesLabels`] with its share of the empty slots, in bytes.
const LABELS_BYTES: usize = 32;

/// Labels of series by id. While a query holds this value, the query is charged for the labels.
#[derive(Default)]
pub(crate) struct SeriesLabels {
    labels: HashMap<SeriesId, Labels>,
    memory: Option<Arc<MemoryReservation>>,
}

impl SeriesLabels {
    /// Returns the number of bytes that the query is charged for the labels.
    pub(crate) fn charged(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.size())
    }
}

impl Deref for SeriesLabels {
    type Target = HashMap<SeriesId, Labels>;

    fn deref(&self) -> &Self::Target {
        &self.labels
    }
}

impl Bytes for Mutex<KnownSeries> {
    /// Returns 0 while a query fills the value. At its end, the query makes the cache compute the size again.
    fn bytes(&self) -> usize {
        self.try_lock().map_or(0, |series| {
            let ids: usize = series
                .files
                .values()
                .map(|ids| ENTRY_BYTES + size_of_val::<[SeriesId]>(ids))
                .sum();
            series.bytes + ids
        })
    }
}

impl KnownSeries {
    /// Drops the ids of all files except `files`.
    pub(crate) fn retain(&mut self, files: &HashSet<&str>) {
        self.files.retain(|path, _| files.contains(path.as_str()));
    }
}

/// Returns the labels of the tenants' series by series id. Includes all series of the days that overlap `time`.
pub(crate) fn load(
    runtime: Arc<Runtime>,
    cache: Arc<SeriesCache>,
    snapshot: Arc<Snapshot>,
    tenants: Tenants,
    time: TimeSpan,
) -> BoxFuture<'static, Result<SeriesLabels, QueryError>> {
    Box::pin(async move {
        let known = cache.change(&tenants, |series| series.clone());
        let loaded = read(&runtime, known, &snapshot, &tenants, time).await;
        // Makes the cache compute the size of the grown value again. If the value exceeds the limit, the cache evicts
        // it, and the next query starts with an empty value.
        cache.change(&tenants, |_| ());
        loaded
    })
}

/// Reads the labels that `known` lacks.
fn read(
    runtime: &Arc<Runtime>,
    known: Arc<Mutex<KnownSeries>>,
    snapshot: &Arc<Snapshot>,
    tenants: &Tenants,
    time: TimeSpan,
) -> BoxFuture<'static, Result<SeriesLabels, QueryError>> {
    let (runtime, snapshot, tenants) = (runtime.clone(), snapshot.clone(), tenants.clone());
    Box::pin(async move {
        let memory = Arc::new(runtime.reservation("labels of series"));
        let insert = |target: Arc<Mutex<KnownSeries>>| {
            let memory = memory.clone();
            move |ids: &mut Vec<SeriesId>, batch: &RecordBatch| {
                let grown = target.lock().insert(batch, ids)?;
                // For a moment, a second list holds the ids as well.
                Ok(memory.try_grow(grown + 2 * batch.num_rows() * size_of::<SeriesId>())?)
            }
        };
        let filter = ScanFilter {
            tenants: Some(tenants.clone()),
            time: Some(time),
            ..ScanFilter::default()
        };
        let mut missing_files: Vec<&FileEntry> = Vec::new();
        // Clone the ids now, because a query with a newer snapshot may drop them from the cache meanwhile.
        let mut ids: Vec<Arc<[SeriesId]>> = Vec::new();
        {
            let known = known.lock();
            for file in read::live_files(&snapshot, Table::Series, &filter) {
                match known.files.get(&file.path) {
                    Some(file_ids) => ids.push(file_ids.clone()),
                    None => missing_files.push(file),
                }
            }
        }
        runtime.count_files(ids.len(), missing_files.len());
        for file in missing_files {
            let streams = read::open_files(&runtime, &snapshot, Table::Series, &[file], &filter, &[SERIES, LABELS])?;
            let file_ids = stream::fold(streams, Vec::new, insert(known.clone())).await?;
            let file_ids: Arc<[SeriesId]> = file_ids.concat().into();
            known.lock().files.insert(file.path.clone(), file_ids.clone());
            ids.push(file_ids);
        }
        if !snapshot.heads.is_empty() {
            let streams = vec![heads::head_stream(
                &runtime,
                &snapshot,
                Table::Series,
                &filter,
                &[SERIES, LABELS],
            )?];
            let head_ids = stream::fold(streams, Vec::new, insert(known.clone())).await?;
            ids.push(head_ids.concat().into());
        }
        let mut labels_by_series: HashMap<SeriesId, Labels> = HashMap::new();
        let series = known.lock();
        for id in ids.iter().flat_map(|ids| ids.iter()) {
            if labels_by_series.len() == labels_by_series.capacity() {
                let additional = labels_by_series.capacity().max(64);
                memory.try_grow(additional * LABELS_BYTES)?;
                labels_by_series.reserve(additional);
            }
            if let Entry::Vacant(entry) = labels_by_series.entry(*id)
                && let Some(labels) = series.labels.get(id)
            {
                entry.insert(labels.clone());
            }
        }
        drop(series);
        Ok(SeriesLabels {
            labels: labels_by_series,
            memory: Some(memory),
        })
    })
}

impl KnownSeries {
    /// Adds a batch of the columns `series` and `labels` and collects its ids. Returns the number of bytes by which the
    /// cached value has grown.
    fn insert(&mut self, batch: &RecordBatch, ids: &mut Vec<SeriesId>) -> Result<usize, QueryError> {
        let before = self.bytes;
        let column = schema::integers(batch, SERIES)?.iter().map(|id| SeriesId(*id));
        let (maps, keys, values) = schema::maps(batch, LABELS)?;
        let offsets = maps.value_offsets();
        ids.extend(column.clone());
        for (row, id) in column.enumerate() {
            if self.labels.contains_key(&id) {
                continue;
            }
            let pairs: Vec<(Arc<str>, Arc<str>)> = (offsets[row] as usize..offsets[row + 1] as usize)
                .filter(|index| values.is_valid(*index))
                .map(|index| (self.intern(keys.value(index)), self.intern(values.value(index))))
                .collect();
            self.bytes += ENTRY_BYTES + size_of_val::<[_]>(&pairs);
            self.labels.insert(id, Labels::from_pairs(pairs));
        }
        Ok(self.bytes - before)
    }

    fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.strings.get(text) {
            return shared.clone();
        }
        let text: Arc<str> = text.into();
        self.bytes += ENTRY_BYTES + text.len();
        self.strings.insert(text.clone());
        text
    }
}
