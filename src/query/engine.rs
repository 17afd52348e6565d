//! The query engine: runs each query with its tenants, a time limit and a snapshot.
//!
//! In: a [`SnapshotSource`] and [`QueryLimits`]. Out: results as plain values. Each kind of query has its own module;
//! SQL is in `sql`. Every future may be dropped at any time, which stops its scans.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;

use crate::query::common::error::QueryError;
use crate::query::common::sql_result::{Deadline, SqlResult};
use crate::query::common::types::{
    Detail, HeatmapLine, HeatmapQuery, KeptProfile, ProfilesQuery, QueryLimits, SeriesPoints, SeriesQuery, StackQuery,
    TimeRange,
};
use crate::query::decoded::context::{Context, Contexts, Purpose};
use crate::query::holdings::impact;
use crate::query::holdings::impact::Impact;
use crate::query::holdings::stored::{Holdings, holdings};
use crate::query::pprof::export;
use crate::query::resources::cache::FORGET_INTERVAL;
use crate::query::series::selection::Charged;
use crate::query::series::{selection, stored_profiles};
use crate::query::sql::session::{Sessions, SqlSession};
use crate::query::sql::statement;
use crate::query::sql::statement::Template;
use crate::query::stacks::flame;
use crate::query::stacks::flame::MergedStacks;
use crate::query::timeline::{heatmap, lines};
use crate::store::tables::snapshot::SnapshotSource;
use crate::store::tables::stats::Bounds;
use alluvium_base::BoxFuture;
use alluvium_base::pressure::MemoryPart;
use alluvium_profile::flamegraph::{CallGraph, DiffGraph, FlameGraph, Tree};
use alluvium_profile::pprof::Profile;
use alluvium_profile::selector::Matcher;
use alluvium_profile::{Labels, ProfileType, TenantId, Tenants};

/// Runs queries over a source. Clones share caches and limits.
#[derive(Clone)]
pub struct QueryEngine {
    shared: Arc<Shared>,
}

struct Shared {
    contexts: Arc<Contexts>,
    template: Arc<Template>,
    /// Slots of queries that are not SQL.
    slots: Semaphore,
    /// Created with the first session, so that a server without the PostgreSQL listener uses no memory for sessions.
    sessions: OnceLock<Arc<Sessions>>,
}

/// Numbers of Parquet files that all queries read and skipped since the program started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanStats {
    /// Files that scans read, from disk or from a cache.
    pub files_read: u64,
    /// Files that scans skipped, because of their statistics or because all their rows were cached.
    pub files_pruned: u64,
}

impl QueryEngine {
    /// Creates an engine over `source`. Fails if DataFusion refuses the settings of the engine, which would be a bug.
    pub fn new(source: Arc<dyn SnapshotSource>, limits: QueryLimits) -> Result<Self, QueryError> {
        let slots = Semaphore::new(limits.max_concurrent_queries.max(1));
        let contexts = Contexts::new(source, limits)?;
        Ok(Self {
            shared: Arc::new(Shared {
                template: Arc::new(Template::new(&contexts.runtime, &contexts.limits)),
                contexts: Arc::new(contexts),
                slots,
                sessions: OnceLock::new(),
            }),
        })
    }

    /// Runs a query of any kind except SQL in one of the slots for these queries. Waits for a slot for at most the time
    /// limit of a query, and then runs `work` with the same limit. `work` should include the parsing of the request
    /// (regular expressions, for example), so that it is limited too.
    pub async fn admitted<T, E: From<QueryError>>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let limits = self.limits();
        let permit = Deadline::after(limits.timeout)
            .enforce(self.shared.slots.acquire())
            .await;
        let Ok(Ok(_slot)) = permit else {
            return Err(QueryError::Busy(format!(
                "{} queries are already running, and none ended in time: retry later, or raise \
                 sql.max_concurrent_queries in the server's configuration",
                limits.max_concurrent_queries
            ))
            .into());
        };
        Deadline::after(limits.timeout).enforce(work).await?
    }

    /// Returns the limits of this engine.
    pub fn limits(&self) -> &QueryLimits {
        &self.shared.contexts.limits
    }

    /// Drops decoded rows that were not used for some minutes. Checks once a minute until the future is dropped.
    pub(crate) async fn forget_unused(&self) {
        loop {
            tokio::time::sleep(FORGET_INTERVAL).await;
            self.shared.contexts.forget_unused();
        }
    }

    /// Drops everything that is cached between queries. Later queries read it again.
    pub(crate) fn forget_all(&self) {
        self.shared.contexts.forget_all();
    }

    /// Returns the memory in use and its limit, in bytes, for each part of the engine that has a limit.
    pub(crate) fn memory(&self) -> [MemoryPart; 2] {
        self.shared.contexts.memory()
    }

    /// Returns the counters of scans for metrics.
    pub fn stats(&self) -> ScanStats {
        let runtime = &self.shared.contexts.runtime;
        ScanStats {
            files_read: runtime.files_read.load(Ordering::Relaxed),
            files_pruned: runtime.files_pruned.load(Ordering::Relaxed),
        }
    }

    /// Returns the profile types that occur in `range`, sorted. Without a range, returns all stored types.
    pub async fn profile_types(
        &self,
        tenants: &Tenants,
        range: Option<TimeRange>,
    ) -> Result<Vec<ProfileType>, QueryError> {
        if let Some(range) = range {
            range.check(self.limits().max_query_length)?;
        }
        let time = range.map(TimeRange::micros);
        self.limited(selection::types(self.context(tenants), time)).await
    }

    /// Returns the names of the labels of the series that the matchers select, sorted.
    pub async fn label_names(
        &self,
        tenants: &Tenants,
        matchers: &[Vec<Matcher>],
        range: TimeRange,
    ) -> Result<Vec<String>, QueryError> {
        if !matchers.iter().all(Vec::is_empty) {
            let sets = self.label_sets(tenants, matchers, range).await?;
            return self.limited(selection::names(sets, Vec::new())).await;
        }
        // Without matchers, it does not matter which type occurs with which series. A type adds the same synthetic
        // labels to every series, so it is enough to add them to one series. All types are added, because a type
        // without a period has fewer labels than others.
        let (series_labels, types) = self.occurring_series(tenants, range).await?;
        let first = series_labels.first().cloned();
        let with = |of_type| Some(selection::Synthetic::of(of_type).with(first.as_ref()?));
        let synthetic_labels = types.iter().filter_map(with).collect();
        self.limited(selection::names(series_labels, synthetic_labels)).await
    }

    /// Returns the values of one label over the series that the matchers select, sorted.
    pub async fn label_values(
        &self,
        tenants: &Tenants,
        name: &str,
        matchers: &[Vec<Matcher>],
        range: TimeRange,
    ) -> Result<Vec<String>, QueryError> {
        if name.is_empty() {
            return Err(QueryError::invalid("name is required"));
        }
        let sets = if matchers.iter().all(Vec::is_empty) && !name.starts_with("__") {
            self.occurring_series(tenants, range).await?.0
        } else {
            self.label_sets(tenants, matchers, range).await?
        };
        self.limited(selection::values(sets, name.to_owned())).await
    }

    /// Returns the distinct label sets of the series that the matchers select, sorted. If `label_names` is not empty,
    /// each set is reduced to these labels.
    pub async fn series(
        &self,
        tenants: &Tenants,
        matchers: &[Vec<Matcher>],
        label_names: &[String],
        range: TimeRange,
    ) -> Result<Charged<Labels>, QueryError> {
        let sets = self.label_sets(tenants, matchers, range).await?;
        self.limited(selection::distinct_label_sets(sets, label_names.to_vec()))
            .await
    }

    /// Returns the totals of profiles as series of points over time.
    pub async fn select_series(&self, tenants: &Tenants, query: SeriesQuery) -> Result<Vec<SeriesPoints>, QueryError> {
        query.range.check(self.limits().max_query_length)?;
        self.limited(lines::select(self.context(tenants), query)).await
    }

    /// Returns, for each step and each range of values, the number of profiles or spans with a value in the range.
    pub async fn select_heatmap(&self, tenants: &Tenants, query: HeatmapQuery) -> Result<Vec<HeatmapLine>, QueryError> {
        query.range.check(self.limits().max_query_length)?;
        self.limited(heatmap::select(self.context(tenants), query)).await
    }

    /// Returns the tree of all stacks of a query.
    pub async fn merge_stacktraces(&self, tenants: &Tenants, query: StackQuery) -> Result<Tree, QueryError> {
        let merged = self.merge_stacks(tenants, query)?;
        let tree = async { Ok(flame::tree(merged.await?).await?.tree) };
        self.limited(tree).await
    }

    /// Returns the flame graph of all stacks of a query with about `max_nodes` nodes (0 for all).
    pub async fn flamegraph(
        &self,
        tenants: &Tenants,
        query: StackQuery,
        max_nodes: usize,
        detail: Detail,
    ) -> Result<FlameGraph, QueryError> {
        let merged = self.merge_stacks(tenants, query)?;
        let graph = async { flame::graph(merged.await?, max_nodes, detail).await };
        self.limited(graph).await
    }

    /// Returns the difference between the stacks of two queries with about `max_nodes` nodes (0 for all). Functions are
    /// identified by name alone.
    pub async fn diff(
        &self,
        tenants: &Tenants,
        left: StackQuery,
        right: StackQuery,
        max_nodes: usize,
    ) -> Result<DiffGraph, QueryError> {
        left.range.check_of("left.", self.limits().max_query_length)?;
        right.range.check_of("right.", self.limits().max_query_length)?;
        let context = self.context(tenants);
        let (left, right) = (flame::merge(context.clone(), left), flame::merge(context, right));
        let graph = async { flame::diff(left.await?, right.await?, max_nodes).await };
        self.limited(graph).await
    }

    /// Returns the call graph of all stacks of a query with `max_functions` functions (0 for all). Functions are
    /// identified by name alone.
    pub(crate) async fn call_graph(
        &self,
        tenants: &Tenants,
        query: StackQuery,
        max_functions: usize,
    ) -> Result<CallGraph, QueryError> {
        let merged = self.merge_stacks(tenants, query)?;
        let graph = async { flame::call_graph(merged.await?, max_functions).await };
        self.limited(graph).await
    }

    /// Merges the stacks of a query into a pprof profile, and returns the result of `write` for this profile.
    pub async fn merge_profile<T: Send + 'static>(
        &self,
        tenants: &Tenants,
        query: StackQuery,
        write: fn(&Profile<'_>) -> T,
    ) -> Result<T, QueryError> {
        query.range.check(self.limits().max_query_length)?;
        self.limited(export::merge_profile(self.context(tenants), query, write))
            .await
    }

    /// Returns the stored profiles that a query selects and that have an id, oldest first. If the query has ids, its
    /// range has no maximum length.
    pub(crate) async fn kept_profiles(
        &self,
        tenants: &Tenants,
        query: ProfilesQuery,
    ) -> Result<Vec<KeptProfile>, QueryError> {
        if query.ids.is_empty() {
            query.range.check(self.limits().max_query_length)?;
        }
        self.limited(stored_profiles::find(self.context(tenants), query)).await
    }

    /// Returns the times of the first and the last profile of the tenants in microseconds since 1970; `None` if there
    /// are no profiles.
    pub(crate) async fn profile_times(&self, tenants: &Tenants) -> Result<Option<Bounds<i64>>, QueryError> {
        self.limited(impact::profile_times(self.context(tenants))).await
    }

    /// Returns the sizes of the tenants' files by table and by day.
    pub(crate) fn holdings(&self, tenants: &Tenants) -> Holdings {
        holdings(&self.shared.contexts.snapshot(), tenants)
    }

    /// Estimates the amount of data that a query for stacks would read, without reading the data.
    pub(crate) async fn impact(&self, tenants: &Tenants, query: StackQuery) -> Result<Impact, QueryError> {
        query.range.check(self.limits().max_query_length)?;
        self.limited(impact::impact(self.context(tenants), query)).await
    }

    /// Runs one read-only SQL query over the tables of the tenants. The time limit applies until the stream of the
    /// result ends.
    pub async fn sql(&self, tenants: &Tenants, text: &str) -> Result<SqlResult, QueryError> {
        let context = self.context(tenants);
        statement::run(&self.shared.template, context, self.limits(), text).await
    }

    /// Creates a session in PostgreSQL's dialect over the tables of the tenant.
    pub(crate) fn session(&self, tenant: &TenantId) -> Result<SqlSession, QueryError> {
        let sessions = if let Some(sessions) = self.shared.sessions.get() {
            sessions.clone()
        } else {
            let sessions = Sessions::new(self.shared.contexts.clone(), self.shared.template.clone())?;
            self.shared.sessions.get_or_init(|| Arc::new(sessions)).clone()
        };
        SqlSession::new(sessions, tenant)
    }

    fn context(&self, tenants: &Tenants) -> Arc<Context> {
        self.shared.contexts.open(tenants, Purpose::Answer)
    }

    async fn occurring_series(
        &self,
        tenants: &Tenants,
        range: TimeRange,
    ) -> Result<(Charged<Labels>, Vec<ProfileType>), QueryError> {
        range.check(self.limits().max_query_length)?;
        self.limited(selection::occurring_series(self.context(tenants), range))
            .await
    }

    async fn label_sets(
        &self,
        tenants: &Tenants,
        matchers: &[Vec<Matcher>],
        range: TimeRange,
    ) -> Result<Charged<Labels>, QueryError> {
        range.check(self.limits().max_query_length)?;
        let context = self.context(tenants);
        let sets = selection::label_sets(context, matchers.to_vec(), range);
        self.limited(sets).await
    }

    fn merge_stacks(
        &self,
        tenants: &Tenants,
        query: StackQuery,
    ) -> Result<BoxFuture<'static, Result<MergedStacks, QueryError>>, QueryError> {
        query.range.check(self.limits().max_query_length)?;
        Ok(flame::merge(self.context(tenants), query))
    }

    async fn limited<T>(&self, work: impl Future<Output = Result<T, QueryError>>) -> Result<T, QueryError> {
        Deadline::after(self.limits().timeout).enforce(work).await?
    }
}
