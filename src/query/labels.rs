//! Caches labels of series between queries. Neither the labels of a series id nor files ever change: a warm query reads
//! no Parquet for them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::Array;
use arrow::record_batch::RecordBatch;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use parking_lot::Mutex;

use crate::base::BoxFuture;
use crate::profile::{Labels, SeriesId, Tenants, TimeSpan};
use crate::query::cache::{Bytes, Cache};
use crate::query::runtime::Runtime;
use crate::query::{QueryError, heads, scan, stream};
use crate::store::schema::column::{LABELS, SERIES};
use crate::store::schema::{self, Table};
use crate::store::snapshot::{FileEntry, ScanFilter, Snapshot};

/// The cached series, by the set of tenants that is asked for.
pub(crate) type SeriesCache = Cache<Tenants, Arc<Mutex<KnownSeries>>>;

/// Cached rows of the `series` table.
#[derive(Default)]
pub(crate) struct KnownSeries {
    labels: HashMap<SeriesId, Labels>,
    /// Ids in a file, by path.
    files: HashMap<String, Arc<[SeriesId]>>,
    strings: HashSet<Arc<str>>,
    /// Estimated memory of labels and strings in bytes.
    bytes: usize,
}

/// Estimated overhead of a map entry and an allocation in bytes.
const ENTRY_BYTES: usize = 64;

impl Bytes for Mutex<KnownSeries> {
    /// 0 while a query fills the value; it is weighed again when that is done.
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
    /// Drops the ids of all other files.
    pub(crate) fn retain(&mut self, files: &HashSet<&str>) {
        self.files.retain(|path, _| files.contains(path.as_str()));
    }
}

/// The labels of all series of the tenants on the days of `time`, by id.
pub(crate) fn load(
    runtime: Arc<Runtime>,
    cache: Arc<SeriesCache>,
    snapshot: Arc<Snapshot>,
    tenants: Tenants,
    time: TimeSpan,
) -> BoxFuture<'static, Result<HashMap<SeriesId, Labels>, QueryError>> {
    Box::pin(async move {
        let filter = ScanFilter {
            tenants: Some(tenants.clone()),
            time: Some(time),
            ..ScanFilter::default()
        };
        let known = cache.change(&tenants, |series| series.clone());
        let mut missing: Vec<&FileEntry> = Vec::new();
        // Clone the ids now: a query with a newer snapshot may drop them from the cache meanwhile.
        let mut ids: Vec<Arc<[SeriesId]>> = Vec::new();
        {
            let known = known.lock();
            for file in scan::live_files(&snapshot, Table::Series, &filter) {
                match known.files.get(&file.path) {
                    Some(found) => ids.push(found.clone()),
                    None => missing.push(file),
                }
            }
        }
        runtime.count_files(ids.len(), missing.len());
        for file in missing {
            let streams = scan::open_files(&runtime, &snapshot, Table::Series, &[file], &filter, &[SERIES, LABELS])?;
            let target = known.clone();
            let found = stream::fold(streams, Vec::new, move |ids: &mut Vec<SeriesId>, batch| {
                target.lock().insert(batch, ids)
            })
            .await?;
            let found: Arc<[SeriesId]> = found.concat().into();
            known.lock().files.insert(file.path.clone(), found.clone());
            ids.push(found);
        }
        if !snapshot.heads.is_empty() {
            let streams = vec![heads::head_stream(
                &runtime,
                &snapshot,
                Table::Series,
                &filter,
                &[SERIES, LABELS],
            )?];
            let target = known.clone();
            let found = stream::fold(streams, Vec::new, move |ids: &mut Vec<SeriesId>, batch| {
                target.lock().insert(batch, ids)
            })
            .await?;
            ids.push(found.concat().into());
        }
        let mut found = HashMap::new();
        let series = known.lock();
        for id in ids.iter().flat_map(|ids| ids.iter()) {
            if let Entry::Vacant(place) = found.entry(*id)
                && let Some(labels) = series.labels.get(id)
            {
                place.insert(labels.clone());
            }
        }
        drop(series);
        // Weighs the grown value again. Above the limit it is evicted, and the next query starts with an empty one.
        cache.change(&tenants, |_| ());
        Ok(found)
    })
}

impl KnownSeries {
    /// Adds a batch of the columns `series` and `labels`, and collects its ids.
    fn insert(&mut self, batch: &RecordBatch, ids: &mut Vec<SeriesId>) -> Result<(), QueryError> {
        let column = schema::integers(batch, SERIES)?.iter().map(|id| SeriesId(*id));
        let (maps, keys, values) = schema::maps(batch, LABELS)?;
        let offsets = maps.value_offsets();
        ids.extend(column.clone());
        for (row, id) in column.enumerate() {
            if self.labels.contains_key(&id) {
                continue;
            }
            let pairs: Vec<(Arc<str>, Arc<str>)> = (offsets[row] as usize..offsets[row + 1] as usize)
                .filter(|at| values.is_valid(*at))
                .map(|at| (self.intern(keys.value(at)), self.intern(values.value(at))))
                .collect();
            self.bytes += ENTRY_BYTES + size_of_val::<[_]>(&pairs);
            self.labels.insert(id, Labels::from_pairs(pairs));
        }
        Ok(())
    }

    fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.strings.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        self.bytes += ENTRY_BYTES + text.len();
        self.strings.insert(text.clone());
        text
    }
}
