//! Labels of series, kept between questions. Labels of a series id never change, and neither do files: a warm question reads no Parquet for them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use parking_lot::Mutex;

use crate::base::BoxFuture;
use crate::profile::Labels;
use crate::query::runtime::Runtime;
use crate::query::{QueryError, heads, scan, stream};
use crate::store::schema::Table;
use crate::store::snapshot::{FileEntry, ScanFilter, Snapshot};

/// What was read of the `series` table before.
#[derive(Default)]
pub(crate) struct SeriesCache(Mutex<HashMap<Arc<str>, Arc<Mutex<TenantSeries>>>>);

#[derive(Default)]
struct TenantSeries {
    labels: HashMap<i64, Labels>,
    /// Ids in a file, by path.
    files: HashMap<String, Arc<[i64]>>,
    strings: HashSet<Arc<str>>,
}

/// Entries after which a tenant's memory starts anew.
const MAX_REMEMBERED: usize = 1_000_000;

/// Tenants after which those without series are forgotten.
const MAX_TENANTS: usize = 1000;

impl SeriesCache {
    /// Keeps only what is remembered of these files.
    pub(crate) fn retain(&self, files: &HashSet<&str>) {
        for tenant in self.0.lock().values() {
            tenant.lock().files.retain(|path, _| files.contains(path.as_str()));
        }
    }
}

/// The labels of all series of a tenant on the days of `time` (microseconds), by id.
pub(crate) fn load(
    runtime: Arc<Runtime>,
    cache: Arc<SeriesCache>,
    snapshot: Arc<Snapshot>,
    tenant: Arc<str>,
    time: (i64, i64),
) -> BoxFuture<'static, Result<HashMap<i64, Labels>, QueryError>> {
    Box::pin(async move {
        let filter = ScanFilter {
            tenant: Some(tenant.clone()),
            time: Some(time),
            ..ScanFilter::default()
        };
        let known = {
            let mut tenants = cache.0.lock();
            // Anyone may name any tenant: those that have nothing are forgotten.
            if tenants.len() > MAX_TENANTS {
                tenants.retain(|_, series| series.try_lock().is_none_or(|series| !series.labels.is_empty()));
            }
            tenants.entry(tenant.clone()).or_default().clone()
        };
        let mut missing: Vec<&FileEntry> = Vec::new();
        // Taken along now: a question that has a newer snapshot may drop them from the cache meanwhile.
        let mut ids: Vec<Arc<[i64]>> = Vec::new();
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
            let streams = scan::open_files(
                &runtime,
                &snapshot,
                Table::Series,
                &[file],
                &filter,
                &["series", "labels"],
            )?;
            let target = known.clone();
            let found = stream::fold(streams, Vec::new, move |ids: &mut Vec<i64>, batch| {
                target.lock().insert(batch, ids)
            })
            .await?;
            let found: Arc<[i64]> = found.concat().into();
            known.lock().files.insert(file.path.clone(), found.clone());
            ids.push(found);
        }
        if !snapshot.heads.is_empty() {
            let streams = vec![heads::head_stream(
                &runtime,
                &snapshot,
                Table::Series,
                &filter,
                &["series", "labels"],
            )?];
            let target = known.clone();
            let found = stream::fold(streams, Vec::new, move |ids: &mut Vec<i64>, batch| {
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
        let remembered = series.labels.len() + series.files.values().map(|ids| ids.len()).sum::<usize>();
        drop(series);
        if remembered > MAX_REMEMBERED {
            // Others who hold it read on in what they have.
            let mut tenants = cache.0.lock();
            if tenants.get(&tenant).is_some_and(|now| Arc::ptr_eq(now, &known)) {
                tenants.remove(&tenant);
            }
        }
        Ok(found)
    })
}

impl TenantSeries {
    /// Takes in a batch of the columns `series` and `labels` and notes the ids in it.
    fn insert(&mut self, batch: &RecordBatch, ids: &mut Vec<i64>) -> Result<(), QueryError> {
        let column = batch.column(0).as_primitive::<Int64Type>().values();
        let maps = batch.column(1).as_map();
        let texts = |column: &dyn Array| column.as_string_opt::<i32>().cloned();
        let (Some(keys), Some(values)) = (texts(maps.keys().as_ref()), texts(maps.values().as_ref())) else {
            return Err(QueryError::internal("the labels of a series are not a map of text"));
        };
        let offsets = maps.value_offsets();
        ids.extend_from_slice(column);
        for (row, id) in column.iter().enumerate() {
            if self.labels.contains_key(id) {
                continue;
            }
            let pairs: Vec<(Arc<str>, Arc<str>)> = (offsets[row] as usize..offsets[row + 1] as usize)
                .filter(|at| values.is_valid(*at))
                .map(|at| (self.intern(keys.value(at)), self.intern(values.value(at))))
                .collect();
            self.labels.insert(*id, Labels::from_pairs(pairs));
        }
        Ok(())
    }

    fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.strings.get(text) {
            return known.clone();
        }
        let text: Arc<str> = text.into();
        self.strings.insert(text.clone());
        text
    }
}
