//! The context of one query: tenants, snapshot, memory, and caches that queries share.
//!
//! In: a [`SnapshotSource`] and [`QueryLimits`]. Out: a [`Context`] for each query. Other modules run the queries.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::query::common::error::QueryError;
use crate::query::common::types::QueryLimits;
use crate::query::decoded::block_cache::BlockCache;
use crate::query::decoded::labels;
use crate::query::decoded::labels::{SeriesCache, SeriesLabels};
use crate::query::decoded::stacks;
use crate::query::decoded::stacks::{Loaded, Missing, StackCache};
use crate::query::decoded::totals;
use crate::query::decoded::totals::{SelectedRuns, TotalsCache};
use crate::query::resources::runtime::Runtime;
use crate::store::tables::snapshot::{FileEntry, ScanFilter, Snapshot, SnapshotSource};
use alluvium_base::BoxFuture;
use alluvium_base::pressure::MemoryPart;
use alluvium_profile::{StackId, Tenants, TimeSpan};

/// The tenants, data, memory and caches of one query.
pub(crate) struct Context {
    /// The runtime with the memory pool of this query.
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) tenants: Tenants,
    pub(crate) purpose: Purpose,
    caches: Arc<Caches>,
}

/// The purpose for which a query is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Answer,
    /// The query does not run. Only the columns of its result are described, and parameters may have no values yet.
    Describe,
}

/// Caches that queries share.
struct Caches {
    stacks: Arc<StackCache>,
    series: Arc<SeriesCache>,
    blocks: BlockCache,
    totals: Arc<TotalsCache>,
}

/// Creates the contexts of queries over one source.
pub(crate) struct Contexts {
    pub(crate) limits: QueryLimits,
    pub(crate) runtime: Arc<Runtime>,
    source: Arc<dyn SnapshotSource>,
    caches: Arc<Caches>,
    /// The files of the last query's snapshot.
    files: Mutex<Arc<[FileEntry]>>,
}

impl Context {
    /// Returns the labels of the tenants' series by series id. Includes all series of the days that overlap `time`.
    pub(crate) fn labels(&self, time: TimeSpan) -> BoxFuture<'static, Result<SeriesLabels, QueryError>> {
        labels::load(
            self.runtime.clone(),
            self.caches.series.clone(),
            self.snapshot.clone(),
            self.tenants.clone(),
            time,
        )
    }

    /// Returns a table with the frames of all stacks `ids` that occur on the days that overlap `time`.
    pub(crate) fn frames(&self, time: TimeSpan, ids: Vec<StackId>) -> BoxFuture<'static, Result<Loaded, QueryError>> {
        self.load(time, ids, Missing::Frames)
    }

    /// Like [`Context::frames`], and also reads the lines at which functions start, if the store has them.
    pub(crate) fn frames_with_start_lines(
        &self,
        time: TimeSpan,
        ids: Vec<StackId>,
    ) -> BoxFuture<'static, Result<Loaded, QueryError>> {
        self.load(time, ids, Missing::StartLines)
    }

    fn load(
        &self,
        time: TimeSpan,
        ids: Vec<StackId>,
        missing: Missing,
    ) -> BoxFuture<'static, Result<Loaded, QueryError>> {
        stacks::load(
            self.runtime.clone(),
            self.caches.stacks.clone(),
            self.snapshot.clone(),
            self.tenants.clone(),
            time,
            (ids, missing),
        )
    }

    /// Returns the runs (times and totals of profiles) that may contain profiles that pass the filter.
    pub(crate) fn totals(&self, filter: ScanFilter) -> BoxFuture<'static, Result<SelectedRuns, QueryError>> {
        totals::load(
            self.runtime.clone(),
            self.caches.totals.clone(),
            self.snapshot.clone(),
            filter,
        )
    }

    /// Returns the cached blocks of all tenants.
    pub(crate) fn blocks(&self) -> &BlockCache {
        &self.caches.blocks
    }
}

impl Contexts {
    pub(crate) fn new(source: Arc<dyn SnapshotSource>, limits: QueryLimits) -> Result<Self, QueryError> {
        Ok(Self {
            runtime: Arc::new(Runtime::new(&limits, source.object_store())?),
            caches: Arc::new(Caches {
                stacks: Arc::new(StackCache::new(limits.stack_cache_bytes)),
                series: Arc::new(SeriesCache::new(limits.series_cache_bytes)),
                blocks: BlockCache::new(limits.block_cache_bytes),
                totals: Arc::new(TotalsCache::new(limits.totals_cache_bytes)),
            }),
            files: Mutex::default(),
            source,
            limits,
        })
    }

    /// Returns the current snapshot.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.source.snapshot()
    }

    /// Creates the context of a new query of some tenants over the current data.
    pub(crate) fn open(&self, tenants: &Tenants, purpose: Purpose) -> Arc<Context> {
        let snapshot = self.source.snapshot();
        self.forget_gone(&snapshot);
        Arc::new(Context {
            runtime: self.runtime.for_one_query(self.limits.max_query_memory_bytes),
            snapshot,
            tenants: tenants.clone(),
            purpose,
            caches: self.caches.clone(),
        })
    }

    /// Drops decoded rows that were not used for some minutes.
    pub(crate) fn forget_unused(&self) {
        self.caches.blocks.forget_unused();
        self.caches.totals.forget_unused();
    }

    /// Returns the memory in bytes of running queries, and of the caches that queries share (without Parquet footers).
    pub(crate) fn memory(&self) -> [MemoryPart; 2] {
        let (caches, limits) = (&self.caches, &self.limits);
        let cached = [
            caches.stacks.bytes(),
            caches.series.bytes(),
            caches.blocks.bytes(),
            caches.totals.bytes(),
        ];
        let max = [
            limits.stack_cache_bytes,
            limits.series_cache_bytes,
            limits.block_cache_bytes,
            limits.totals_cache_bytes,
        ];
        [
            MemoryPart {
                name: "queries",
                used: self.runtime.environment.memory_pool.reserved() as u64,
                limit: limits.memory_bytes as u64,
            },
            MemoryPart {
                name: "caches",
                used: cached.iter().sum(),
                limit: max.iter().sum::<usize>() as u64,
            },
        ]
    }

    /// Drops all data in the caches.
    pub(crate) fn forget_all(&self) {
        self.caches.stacks.clear();
        self.caches.series.clear();
        self.caches.blocks.clear();
        self.caches.totals.clear();
        self.runtime.forget_footers();
    }

    /// Drops cached data of files that were merged or deleted since the last query. A running query that still uses
    /// such a file reads it again.
    fn forget_gone(&self, snapshot: &Snapshot) {
        let mut last = self.files.lock();
        if Arc::ptr_eq(&last, &snapshot.files) {
            return;
        }
        let before = std::mem::replace(&mut *last, snapshot.files.clone());
        drop(last);
        let live: HashSet<&str> = snapshot.files.iter().map(|file| file.path.as_str()).collect();
        self.caches.blocks.retain(&live);
        self.caches.totals.retain(|path| live.contains(path.as_str()));
        self.caches.series.for_each(|series| series.lock().retain(&live));
        for removed_file in before.iter().filter(|file| !live.contains(file.path.as_str())) {
            // If a path has no valid location, the file was never opened.
            if let Ok(location) = snapshot.root.location(&removed_file.path) {
                self.runtime.forget_footer(&location);
            }
        }
    }
}
