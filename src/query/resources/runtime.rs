//! State that all queries of an engine share: the memory pool, the footer cache, the one object store, and the settings
//! of sessions.
//!
//! Queries can access only the files of the store. The registry of object stores contains only this store, and the disk
//! manager is off (queries spill nothing). The session has no listing tables and no external tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::common::{Result as PlanResult, plan_datafusion_err};
use datafusion::execution::TaskContext;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryReservation};
use datafusion::execution::object_store::{ObjectStoreRegistry, ObjectStoreUrl};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::SessionConfig;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use tokio::sync::Semaphore;
use url::Url;

use crate::query::common::error::QueryError;
use crate::query::common::types::QueryLimits;
use crate::query::resources::memory;
use crate::query::resources::verified::Readers;

/// The address of the store in plans. Users cannot use it as a URL.
pub(crate) const STORE_URL: &str = "alluvium://store";

/// Number of rows of a batch. Larger batches cause CPU cache misses when a query aggregates their rows; smaller batches
/// cause more calls.
pub(crate) const BATCH_ROWS: usize = 8192;

/// State that all queries of one engine share. Each query has its own copy with its own memory pool
/// ([`Runtime::for_one_query`]).
pub(crate) struct Runtime {
    pub(crate) environment: Arc<RuntimeEnv>,
    pub(crate) task: Arc<TaskContext>,
    pub(crate) config: SessionConfig,
    pub(crate) url: ObjectStoreUrl,
    pub(crate) readers: Arc<Readers>,
    pub(crate) parallelism: usize,
    /// Limits the number of concurrent scans of heads.
    pub(crate) head_scans: Arc<Semaphore>,
    pub(crate) files_pruned: Arc<AtomicU64>,
    pub(crate) files_read: Arc<AtomicU64>,
}

impl Runtime {
    /// Creates a runtime for files of `store`, or of the local disk if `store` is `None`.
    pub(crate) fn new(limits: &QueryLimits, store: Option<Arc<dyn ObjectStore>>) -> Result<Self, QueryError> {
        let store = store.unwrap_or_else(|| Arc::new(LocalFileSystem::new()));
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(GreedyMemoryPool::new(limits.memory_bytes)))
            .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
            .with_object_store_registry(Arc::new(StoreOnlyRegistry(store.clone())))
            .with_metadata_cache_limit(limits.footer_cache_bytes)
            .build_arc()?;
        let parallelism = match limits.parallelism {
            0 => std::thread::available_parallelism().map_or(2, usize::from),
            count => count,
        };
        let mut config = SessionConfig::new()
            .with_target_partitions(parallelism)
            .with_batch_size(BATCH_ROWS)
            .with_information_schema(false)
            .with_default_catalog_and_schema("alluvium", "public")
            .with_create_default_catalog_and_schema(false);
        let options = config.options_mut();
        options.execution.parquet.pushdown_filters = true;
        options.execution.parquet.reorder_filters = true;
        // Some clients do not support Arrow's view types, such as `Utf8View`.
        options.optimizer.expand_views_at_output = true;
        options.execution.time_zone = Some("+00:00".to_owned());
        let task = Arc::new(TaskContext::new(
            None,
            "alluvium".to_owned(),
            config.clone(),
            Default::default(),
            Default::default(),
            Default::default(),
            Default::default(),
            environment.clone(),
        ));
        let readers = Arc::new(Readers::new(store, environment.cache_manager.get_file_metadata_cache()));
        Ok(Self {
            environment,
            task,
            config,
            url: ObjectStoreUrl::parse(STORE_URL)?,
            readers,
            parallelism,
            head_scans: Arc::new(Semaphore::new(parallelism.max(2))),
            files_pruned: Arc::default(),
            files_read: Arc::default(),
        })
    }

    /// Returns the same runtime with its own memory pool of `bytes` bytes. The memory of a query is charged to this
    /// pool and to the pool of all queries.
    pub(crate) fn for_one_query(&self, bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            environment: memory::for_one_query(&self.environment, bytes),
            task: self.task.clone(),
            config: self.config.clone(),
            url: self.url.clone(),
            readers: self.readers.clone(),
            parallelism: self.parallelism,
            head_scans: self.head_scans.clone(),
            files_pruned: self.files_pruned.clone(),
            files_read: self.files_read.clone(),
        })
    }

    /// Returns an empty reservation in the memory pool. The pool's errors show `name`.
    pub(crate) fn reservation(&self, name: &str) -> MemoryReservation {
        MemoryConsumer::new(name).register(&self.environment.memory_pool)
    }

    /// Drops the footer of a deleted file from the cache.
    pub(crate) fn forget_footer(&self, location: &Path) {
        self.environment
            .cache_manager
            .get_file_metadata_cache()
            .remove(location);
    }

    /// Drops the footers of all files from the cache.
    pub(crate) fn forget_footers(&self) {
        self.environment.cache_manager.get_file_metadata_cache().clear();
    }

    /// Adds the numbers of files that a scan skips and reads to the counters.
    pub(crate) fn count_files(&self, pruned: usize, read: usize) {
        self.files_pruned.fetch_add(pruned as u64, Ordering::Relaxed);
        self.files_read.fetch_add(read as u64, Ordering::Relaxed);
    }
}

/// A registry that has only the store of this program, so that no plan can reach a file or address that a user chooses.
#[derive(Debug)]
struct StoreOnlyRegistry(Arc<dyn ObjectStore>);

impl ObjectStoreRegistry for StoreOnlyRegistry {
    fn register_store(&self, _url: &Url, _store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, url: &Url) -> PlanResult<Arc<dyn ObjectStore>> {
        if url.scheme() == "alluvium" {
            return Ok(self.0.clone());
        }
        Err(plan_datafusion_err!(
            "cannot read `{url}`: queries can only read the tables of Alluvium"
        ))
    }
}
