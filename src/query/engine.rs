//! The engine: Pyroscope's questions with a tenant, a time limit and a snapshot each.
//!
//! In: a [`SnapshotSource`] and [`QueryLimits`]. Out: answers as plain values. How each question is answered stands in the module of its name;
//! SQL is in `sql`. Every future may be dropped at any time, which stops its scans.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::base::BoxFuture;
use crate::profile::flamegraph::{DiffGraph, FlameGraph, Tree};
use crate::profile::pprof::Profile;
use crate::profile::selector::Matcher;
use crate::profile::{Labels, ProfileType};
use crate::query::answer::Deadline;
use crate::query::blocks::BlockCache;
use crate::query::flame::Merged;
use crate::query::runtime::Runtime;
use crate::query::series::{self, SeriesCache};
use crate::query::session::{self, SqlSession};
use crate::query::sql::{self, SqlResult};
use crate::query::stacks::StackCache;
use crate::query::totals::TotalsCache;
use crate::query::{
    QueryError, QueryLimits, SeriesPoints, SeriesQuery, StackQuery, TimeRange, export, flame, timeline, unused,
};
use crate::store::snapshot::{FileEntry, Snapshot, SnapshotSource};

/// Answers questions about what a source holds. Clones share caches and limits.
#[derive(Clone)]
pub struct QueryEngine {
    shared: Arc<Shared>,
}

struct Shared {
    source: Arc<dyn SnapshotSource>,
    limits: QueryLimits,
    runtime: Arc<Runtime>,
    stacks: Arc<StackCache>,
    series: Arc<SeriesCache>,
    blocks: Arc<BlockCache>,
    totals: Arc<TotalsCache>,
    template: sql::Template,
    /// Of questions that are not SQL.
    places: Semaphore,
    sessions: std::sync::OnceLock<Arc<session::Shared>>,
    /// The files of the last question.
    files: Mutex<Arc<[FileEntry]>>,
}

impl Shared {
    /// Drops what is remembered of files that were merged or deleted since the last question: a question that still has them reads them again.
    fn forget_gone(&self, snapshot: &Snapshot) {
        let mut last = self.files.lock();
        if Arc::ptr_eq(&last, &snapshot.files) {
            return;
        }
        let before = std::mem::replace(&mut *last, snapshot.files.clone());
        drop(last);
        let live: HashSet<&str> = snapshot.files.iter().map(|file| file.path.as_str()).collect();
        self.blocks.retain(&live);
        self.totals.retain(&live);
        self.series.retain(&live);
        for gone in before.iter().filter(|file| !live.contains(file.path.as_str())) {
            // A path without a location was never opened.
            if let Ok(location) = snapshot.root.location(&gone.path) {
                self.runtime.forget_footer(&location);
            }
        }
    }
}

/// Parquet files since the start, over all queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanStats {
    /// Files read, from the disk or from what is remembered of them.
    pub files_read: u64,
    /// Files left out by what the snapshot knows of them, or remembered whole.
    pub files_pruned: u64,
}

/// One question: whose, over which data, with which memory.
pub(crate) struct Context {
    /// Its memory pool is the question's own.
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) stacks: Arc<StackCache>,
    pub(crate) series: Arc<SeriesCache>,
    pub(crate) blocks: Arc<BlockCache>,
    pub(crate) totals: Arc<TotalsCache>,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) tenant: Arc<str>,
    /// The question is not to be answered, only described: parameters may still be without values.
    pub(crate) describing: bool,
}

impl QueryEngine {
    /// An engine over `source`. Fails when the settings are refused by DataFusion, which would be a fault of ours.
    pub fn new(source: Arc<dyn SnapshotSource>, limits: QueryLimits) -> Result<Self, QueryError> {
        let runtime = Arc::new(Runtime::new(&limits, source.object_store())?);
        Ok(Self {
            shared: Arc::new(Shared {
                source,
                template: sql::Template::new(&runtime, &limits),
                runtime,
                stacks: Arc::new(StackCache::new(limits.stack_cache_bytes)),
                series: Arc::new(SeriesCache::default()),
                sessions: std::sync::OnceLock::new(),
                places: Semaphore::new(limits.max_concurrent_queries.max(1)),
                blocks: Arc::new(BlockCache::new(limits.block_cache_bytes)),
                totals: Arc::new(TotalsCache::new(limits.totals_cache_bytes)),
                files: Mutex::default(),
                limits,
            }),
        })
    }

    /// Runs a question that is not SQL with one of the places of those: it waits for a place as long as a query may
    /// take, and then has as long for `work`. What reading the question takes (its regular expressions, say) belongs
    /// into `work`, so that it is bounded as well.
    pub async fn admitted<T, E: From<QueryError>>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let limits = &self.shared.limits;
        let place = Deadline::after(limits.timeout).hold(self.shared.places.acquire()).await;
        let Ok(Ok(_place)) = place else {
            return Err(QueryError::Busy(format!(
                "{} questions are being answered already and none ended in time: ask again later, or raise \
                 sql.max_concurrent_queries in the server's configuration",
                limits.max_concurrent_queries
            ))
            .into());
        };
        Deadline::after(limits.timeout).hold(work).await?
    }

    /// The limits it was made with.
    pub fn limits(&self) -> &QueryLimits {
        &self.shared.limits
    }

    /// Drops decoded rows that nobody has asked for in some minutes, once a minute until the future is dropped.
    pub async fn forget_unused(&self) {
        loop {
            tokio::time::sleep(unused::EVERY).await;
            self.shared.blocks.forget_unused();
            self.shared.totals.forget_unused();
        }
    }

    /// What was read so far, for metrics.
    pub fn stats(&self) -> ScanStats {
        ScanStats {
            files_read: self.shared.runtime.files_read.load(Ordering::Relaxed),
            files_pruned: self.shared.runtime.files_pruned.load(Ordering::Relaxed),
        }
    }

    /// The types that occur in `range`, or ever, sorted.
    pub async fn profile_types(&self, tenant: &str, range: Option<TimeRange>) -> Result<Vec<ProfileType>, QueryError> {
        if let Some(range) = range {
            range.check(self.shared.limits.max_query_length)?;
        }
        let context = self.context(tenant);
        let time = range.map(TimeRange::micros);
        let active = series::active(context, time);
        let mut ids: Vec<Arc<str>> = self
            .limited(active)
            .await?
            .into_iter()
            .map(|pair| pair.profile_type)
            .collect();
        // They ascend.
        ids.dedup();
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// Names of the labels of the series that the matchers select, sorted.
    pub async fn label_names(
        &self,
        tenant: &str,
        matchers: &[Vec<Matcher>],
        range: TimeRange,
    ) -> Result<Vec<String>, QueryError> {
        let sets = if matchers.iter().all(Vec::is_empty) {
            // Without matchers nobody asks which type goes with which series: one series with one type has all names that types make.
            let (mut own, types) = self.occurring(tenant, range).await?;
            if let (Some(first), Some(of_type)) = (own.first_mut(), types.first()) {
                *first = series::Synthetic::of(of_type).with(first);
            }
            own
        } else {
            self.label_sets(tenant, matchers, range).await?
        };
        let names: BTreeSet<&str> = sets
            .iter()
            .flat_map(|labels| labels.iter().map(|(name, _)| name))
            .collect();
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    /// Values of one label over the series that the matchers select, sorted.
    pub async fn label_values(
        &self,
        tenant: &str,
        name: &str,
        matchers: &[Vec<Matcher>],
        range: TimeRange,
    ) -> Result<Vec<String>, QueryError> {
        if name.is_empty() {
            return Err(QueryError::invalid("name is required"));
        }
        let sets = if matchers.iter().all(Vec::is_empty) && !name.starts_with("__") {
            self.occurring(tenant, range).await?.0
        } else {
            self.label_sets(tenant, matchers, range).await?
        };
        let values: BTreeSet<&str> = sets.iter().filter_map(|labels| labels.get(name)).collect();
        Ok(values.into_iter().map(str::to_owned).collect())
    }

    /// Distinct label sets of the series that the matchers select, cut down to `label_names` unless that is empty; sorted.
    pub async fn series(
        &self,
        tenant: &str,
        matchers: &[Vec<Matcher>],
        label_names: &[String],
        range: TimeRange,
    ) -> Result<Vec<Labels>, QueryError> {
        let sets = self.label_sets(tenant, matchers, range).await?;
        let sets = series::narrowed(sets, label_names);
        series::check_texts(&self.context(tenant).runtime, &sets)?;
        Ok(sets)
    }

    /// Time lines of the totals of profiles.
    pub async fn select_series(&self, tenant: &str, query: SeriesQuery) -> Result<Vec<SeriesPoints>, QueryError> {
        query.range.check(self.shared.limits.max_query_length)?;
        self.limited(timeline::select(self.context(tenant), query)).await
    }

    /// The tree of all stacks that the question is about.
    pub async fn merge_stacktraces(&self, tenant: &str, query: StackQuery) -> Result<Tree, QueryError> {
        let merged = self.merged(tenant, query)?;
        let tree = async { Ok(flame::tree(merged.await?).await?.tree) };
        self.limited(tree).await
    }

    /// The flame graph of all stacks that the question is about, functions told apart by name alone, with about `max_nodes` nodes (0: all).
    pub async fn flamegraph(
        &self,
        tenant: &str,
        query: StackQuery,
        max_nodes: usize,
    ) -> Result<FlameGraph, QueryError> {
        let merged = self.merged(tenant, query)?;
        let graph = async { flame::graph(merged.await?, max_nodes).await };
        self.limited(graph).await
    }

    /// The same with functions told apart by file as well, and with files, lines and binaries.
    pub async fn detailed_flamegraph(
        &self,
        tenant: &str,
        query: StackQuery,
        max_nodes: usize,
    ) -> Result<FlameGraph, QueryError> {
        let merged = self.merged(tenant, query)?;
        let graph = async { flame::detailed_graph(merged.await?, max_nodes).await };
        self.limited(graph).await
    }

    /// The difference of the stacks of two questions, functions told apart by name alone, with about `max_nodes` nodes (0: all).
    pub async fn diff(
        &self,
        tenant: &str,
        left: StackQuery,
        right: StackQuery,
        max_nodes: usize,
    ) -> Result<DiffGraph, QueryError> {
        left.range.check(self.shared.limits.max_query_length)?;
        right.range.check(self.shared.limits.max_query_length)?;
        let context = self.context(tenant);
        let (left, right) = (flame::merge(context.clone(), left), flame::merge(context, right));
        let graph = async { flame::diff(left.await?, right.await?, max_nodes).await };
        self.limited(graph).await
    }

    /// The same as a pprof profile, in the form that `write` gives it.
    pub async fn merge_profile<T: Send + 'static>(
        &self,
        tenant: &str,
        query: StackQuery,
        write: fn(&Profile<'_>) -> T,
    ) -> Result<T, QueryError> {
        query.range.check(self.shared.limits.max_query_length)?;
        self.limited(export::merge_profile(self.context(tenant), query, write))
            .await
    }

    /// Runs one read-only SQL query over the tables of the tenant. The time limit holds until the stream of the answer ends.
    pub async fn sql(&self, tenant: &str, text: &str) -> Result<SqlResult, QueryError> {
        let context = self.context(tenant);
        sql::run(&self.shared.template, context, &self.shared.limits, text).await
    }

    /// A session in PostgreSQL's dialect over the tables of the tenant.
    pub fn session(&self, tenant: &str) -> Result<SqlSession, QueryError> {
        let shared = match self.shared.sessions.get() {
            Some(shared) => shared.clone(),
            None => {
                let made = Arc::new(session::Shared::new(&self.shared.template)?);
                self.shared.sessions.get_or_init(|| made).clone()
            }
        };
        SqlSession::new(self.clone(), shared, tenant)
    }

    pub(crate) fn template(&self) -> &sql::Template {
        &self.shared.template
    }

    async fn occurring(&self, tenant: &str, range: TimeRange) -> Result<(Vec<Labels>, Vec<ProfileType>), QueryError> {
        range.check(self.shared.limits.max_query_length)?;
        self.limited(series::occurring(self.context(tenant), range)).await
    }

    async fn label_sets(
        &self,
        tenant: &str,
        matchers: &[Vec<Matcher>],
        range: TimeRange,
    ) -> Result<Vec<Labels>, QueryError> {
        range.check(self.shared.limits.max_query_length)?;
        let context = self.context(tenant);
        let sets = series::label_sets(context, matchers.to_vec(), range);
        self.limited(sets).await
    }

    pub(crate) fn context(&self, tenant: &str) -> Arc<Context> {
        Arc::new(self.new_context(tenant, false))
    }

    /// A context for planning alone.
    pub(crate) fn describing(&self, tenant: &str) -> Arc<Context> {
        Arc::new(self.new_context(tenant, true))
    }

    fn new_context(&self, tenant: &str, describing: bool) -> Context {
        let snapshot = self.shared.source.snapshot();
        self.shared.forget_gone(&snapshot);
        Context {
            runtime: self
                .shared
                .runtime
                .for_one_query(self.shared.limits.max_query_memory_bytes),
            stacks: self.shared.stacks.clone(),
            series: self.shared.series.clone(),
            blocks: self.shared.blocks.clone(),
            totals: self.shared.totals.clone(),
            snapshot,
            tenant: tenant.into(),
            describing,
        }
    }

    fn merged(
        &self,
        tenant: &str,
        query: StackQuery,
    ) -> Result<BoxFuture<'static, Result<Merged, QueryError>>, QueryError> {
        query.range.check(self.shared.limits.max_query_length)?;
        Ok(flame::merge(self.context(tenant), query))
    }

    async fn limited<T>(&self, work: impl Future<Output = Result<T, QueryError>>) -> Result<T, QueryError> {
        Deadline::after(self.shared.limits.timeout).hold(work).await?
    }
}
