//! The open store: opens the data folder, starts the threads, accepts profiles, flushes and closes.
//!
//! In: a [`StoreConfig`], and profiles of tenants. Out: refusals, snapshots for queries, and the results of flushes and
//! maintenance. Each part of the work has its own source folder; this file creates the parts and connects them.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use object_store::ObjectStore;
use parking_lot::Mutex;

use crate::store::common::error::StoreError;
use crate::store::common::expected_clock::ExpectedClock;
use crate::store::common::lifecycle::{self, Lifecycle};
use crate::store::common::metrics::Metrics;
use crate::store::common::schema::Table;
use crate::store::config::StoreConfig;
use crate::store::flush::commits::Commits;
use crate::store::flush::files::FileName;
use crate::store::flush::flushes::Flushes;
use crate::store::flush::published::Published;
use crate::store::flush::sync;
use crate::store::flush::write::Tables;
use crate::store::head::KnownStacks;
use crate::store::head::repeats::Repeats;
use crate::store::intake::append::{self, Intake, PendingGroup, ReceivedProfile};
use crate::store::intake::budget::Budget;
use crate::store::log::wal::Log;
use crate::store::maintenance::{self, Maintainer, Report, Requests, Work};
use crate::store::open::applier::Applier;
use crate::store::open::flusher::Flusher;
use crate::store::open::folder::Folder;
use crate::store::open::read_only::ReadOnlyStore;
use crate::store::open::replay;
use crate::store::quota::Quotas;
use crate::store::rules::limits::Limits;
use crate::store::tables::bucket::Bucket;
use crate::store::tables::bucket::metrics::BucketMetrics;
use crate::store::tables::root::{DataLocation, Root};
use crate::store::tables::shelf::Shelf;
use crate::store::tables::snapshot::{Snapshot, SnapshotSource};
use alluvium_base::BoxFuture;
use alluvium_base::pressure::MemoryPart;
use alluvium_profile::sink::Receiver;
use alluvium_profile::{DecodedProfile, ProfileSink, RawProfile, RefusedProfile, TenantId};
use alluvium_telemetry::metrics::Scope;

/// Maximum number of groups of durable profiles that wait for the head. Their memory is charged to the budget.
const MAX_PENDING_EVENTS: usize = 256;
/// Interval at which a close checks whether the threads have ended.
const END_POLL: Duration = Duration::from_millis(5);

/// An open store. Dropping it stops its threads without a flush; the next start replays the log.
pub struct Store {
    pub(in crate::store) intake: Arc<Intake>,
    pub(in crate::store) published: Arc<Published>,
    log: Arc<Log<PendingGroup>>,
    flushes: Arc<Flushes>,
    maintenance: Arc<Requests>,
    pub(in crate::store) lifecycle: Arc<Lifecycle>,
    threads: Mutex<Vec<(&'static str, JoinHandle<()>)>>,
    shelf: Shelf,
    /// The data folder, with its lock.
    folder: Folder,
}

impl Store {
    /// Opens the data folder: locks it, finishes a flush that a crash interrupted, and replays the log. Blocks until
    /// the replay has ended.
    pub fn open(config: StoreConfig, scope: &Scope) -> Result<Arc<Self>, StoreError> {
        let metrics = Metrics::new(scope);
        let bucket_metrics = config.bucket.as_ref().map(|_| BucketMetrics::new(scope));
        // The start needs a thread of its own: inside a runtime, `object_store` would move its work to that runtime.
        std::thread::scope(|threads| {
            std::thread::Builder::new()
                .name("store-open".to_owned())
                .spawn_scoped(threads, || Self::open_here(config, metrics, bucket_metrics))
                .map_err(StoreError::io("start a thread for", Path::new("the store")))?
                .join()
                .unwrap_or_else(|panic| Err(StoreError::Panicked(lifecycle::message(panic.as_ref()))))
        })
    }

    /// Opens a data folder read-only, without locking or changing it.
    pub fn open_read_only<'a>(location: impl Into<DataLocation<'a>>) -> Result<ReadOnlyStore, StoreError> {
        let location = location.into();
        std::thread::scope(|threads| {
            threads
                .spawn(|| ReadOnlyStore::open(location))
                .join()
                .unwrap_or_else(|panic| Err(StoreError::Panicked(lifecycle::message(panic.as_ref()))))
        })
    }

    fn open_here(
        config: StoreConfig,
        metrics: Metrics,
        bucket: Option<BucketMetrics>,
    ) -> Result<Arc<Self>, StoreError> {
        let folder = Folder::open(&config.dir, &config.faults)?;
        let root = match (&config.bucket, bucket) {
            (Some(options), Some(metrics)) => {
                Root::Bucket(Arc::new(Bucket::open(options, Some(&config.dir), metrics)?))
            }
            _ => Root::Folder(folder.tables.clone()),
        };
        let shelf = Shelf::new(&config.dir, &root);
        let commits = Commits::open(&config.dir, &folder.writer, config.faults.clone())?;
        let mut tables = Tables::open(
            &root,
            (folder.writer.clone(), commits),
            config.checkpoint_interval,
            config.faults.recording_waits(&metrics.waits.flush),
        )?;
        let known = Arc::<KnownStacks>::default();
        let repeats = Repeats::new(config.clock.clone());
        let recovered = replay::recover(&folder.log, &mut tables, &known, (&metrics, &repeats))?;
        let mut files = sync::files_at_start(&root, &mut tables)?;
        let live: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        for table in Table::ALL {
            maintenance::remove_unnamed(&root, table, &folder.writer, &live, &config.faults)?;
        }
        if let Some(frozen) = &recovered.frozen {
            // Until all tables contain the profiles of the frozen head, queries must find them only in memory.
            files.retain(|file| FileName::segment_of(&file.path, &folder.writer) != Some(frozen.last_segment));
        }
        let (tx, rx) = sync_channel(MAX_PENDING_EVENTS);
        let log = Log::open(
            &folder.log,
            recovered.next_segment,
            config.sync,
            config.faults.clone(),
            metrics.clone(),
            tx,
        )?;
        let config = Arc::new(config);
        let log = Arc::new(log);
        let flushes = Arc::<Flushes>::default();
        let maintenance = Arc::<Requests>::default();
        let lifecycle = Arc::<Lifecycle>::default();
        tables.lifecycle = lifecycle.clone();
        let published = Arc::new(Published::new(
            root,
            folder.writer.clone(),
            known,
            metrics.clone(),
            files,
            recovered.head,
        ));
        if let Some(frozen) = recovered.frozen {
            published.replace_frozen(frozen);
        }
        let maintainer = Maintainer::open(
            config.clone(),
            metrics.clone(),
            published.clone(),
            maintenance.clone(),
            flushes.clone(),
            lifecycle.clone(),
            repeats.clone(),
        )?;
        let applier = Applier {
            config: config.clone(),
            metrics: metrics.clone(),
            published: published.clone(),
            flushes: flushes.clone(),
        };
        let flusher = Flusher {
            config: config.clone(),
            metrics: metrics.clone(),
            published: published.clone(),
            log: log.clone(),
            log_folder: folder.log.clone(),
            flushes: flushes.clone(),
            lifecycle: lifecycle.clone(),
            tables,
        };
        let intake = Arc::new(Intake {
            quotas: Quotas::new(config.clock.clone(), config.tenants.clone(), {
                let published = published.clone();
                move || published.tenants()
            }),
            repeats,
            steady: ExpectedClock::new(&config.clock),
            budget: Budget::new(config.intake_bytes),
            config,
            metrics,
            log: log.clone(),
            published: published.clone(),
            flushes: flushes.clone(),
            lifecycle: lifecycle.clone(),
        });
        let mut store = Self {
            intake,
            published,
            log,
            flushes,
            maintenance,
            lifecycle,
            threads: Mutex::default(),
            shelf,
            folder,
        };
        store.spawn("store-apply", move || applier.run(&rx))?;
        store.spawn("store-flush", move || flusher.run())?;
        store.spawn("store-maintain", move || maintainer.run())?;
        Ok(Arc::new(store))
    }

    /// Starts a thread. If the thread panics, callers that wait for it receive an error.
    fn spawn(&mut self, name: &'static str, body: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
        let (lifecycle, flushes, maintenance) =
            (self.lifecycle.clone(), self.flushes.clone(), self.maintenance.clone());
        let release = {
            let lifecycle = lifecycle.clone();
            move || {
                flushes.end(|| lifecycle.ended());
                maintenance.close();
            }
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || lifecycle.watch(name, body, release))
            .map_err(StoreError::io("start a thread for", &self.folder.log))?;
        self.threads.get_mut().push((name, thread));
        Ok(())
    }

    /// Stores profiles. Returns the refused profiles once all other profiles are durable and queryable. Each profile is
    /// accepted or refused independently. Dropping the future neither undoes nor loses queued profiles. Needs a tokio
    /// runtime.
    pub fn append(&self, tenant: &TenantId, profiles: Vec<RawProfile>) -> BoxFuture<'static, Vec<RefusedProfile>> {
        self.append_all(tenant, profiles.into_iter().map(ReceivedProfile::Packed).collect())
    }

    fn append_all(&self, tenant: &TenantId, profiles: Vec<ReceivedProfile>) -> BoxFuture<'static, Vec<RefusedProfile>> {
        Box::pin(append::append(self.intake.clone(), tenant.clone(), profiles))
    }

    /// Flushes: writes to the tables every profile that was acknowledged before this call.
    pub fn flush(&self) -> BoxFuture<'static, Result<(), StoreError>> {
        let lifecycle = self.lifecycle.clone();
        if lifecycle.failure().is_some() {
            return Box::pin(async move { Err(lifecycle.ended()) });
        }
        let receiver = self.flushes.request();
        Box::pin(async move { receiver.await.unwrap_or_else(|_| Err(lifecycle.ended())) })
    }

    /// Returns the memory in use and its limit, in bytes, for each part of the store that has a limit.
    pub(crate) fn memory(&self) -> [MemoryPart; 3] {
        let Intake { config, metrics, .. } = self.intake.as_ref();
        let part = |name, used, limit| MemoryPart { name, used, limit };
        let names = u64::try_from(metrics.maintenance_bytes.get()).unwrap_or(0);
        [
            part("heads", self.published.head_bytes(), config.head_limit_bytes),
            part("decoding", self.intake.budget.used() as u64, config.intake_bytes as u64),
            part("maintenance", names, config.maintenance.memory_bytes as u64),
        ]
    }

    /// Runs maintenance at once and returns a report of the work.
    pub fn maintain(&self, work: Work) -> BoxFuture<'static, Result<Report, StoreError>> {
        let receiver = self.maintenance.request(work);
        let lifecycle = self.lifecycle.clone();
        Box::pin(async move { receiver.await.unwrap_or_else(|_| Err(lifecycle.ended())) })
    }

    /// Begins to refuse profiles, and runs a last flush. Then ends the threads and unlocks the folder. If the flush
    /// takes longer than `deadline`, the store stops the flush, and the log keeps the remaining profiles. If the disk
    /// does not respond to a thread within `stuck_after`, the store no longer waits for the thread, and the close fails
    /// with [`StoreError::Stuck`]. The folder then stays locked until the process ends.
    pub fn close(&self, deadline: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        self.lifecycle.close();
        self.flushes.release_appends();
        Box::pin(async move {
            let flushed = tokio::time::timeout(deadline, self.flush()).await;
            self.end().await?;
            flushed.unwrap_or(Err(StoreError::Deadline(deadline)))
        })
    }

    /// Ends the threads, then unlocks the folder.
    async fn end(&self) -> Result<(), StoreError> {
        self.begin_stop();
        let limit = self.intake.config.stuck_after;
        let deadline = Instant::now() + limit;
        loop {
            let mut waiting: Vec<&str> = Vec::new();
            waiting.extend((!self.log.has_ended()).then_some("store-log"));
            let is_running = |(_, thread): &&(&'static str, JoinHandle<()>)| !thread.is_finished();
            waiting.extend(self.threads.lock().iter().filter(is_running).map(|(name, _)| *name));
            if waiting.is_empty() {
                self.stop();
                self.folder.release();
                return Ok(());
            }
            if Instant::now() >= deadline {
                let threads = waiting.join(", ");
                // A drop of the store does not wait for these threads either.
                self.log.give_up();
                self.threads.lock().clear();
                self.folder.keep_locked();
                return Err(StoreError::Stuck { after: limit, threads });
            }
            tokio::time::sleep(END_POLL).await;
        }
    }

    /// Returns the limits of `tenant` at this moment.
    pub(crate) fn limits(&self, tenant: &TenantId) -> Arc<Limits> {
        self.intake.config.limits.of(tenant)
    }

    /// Returns why the store accepts no profiles at the moment, or why a flush makes no progress. Returns `None` if the
    /// store is healthy.
    pub fn unavailable(&self) -> Option<String> {
        let intake = &self.intake;
        let refuses = intake.unavailable().map(|(_, message)| message);
        let flush_is_stuck = || {
            // For tables in a bucket, the result is `None`: requests to a bucket have timeouts, and their failures are
            // counted.
            self.published.root.folder()?;
            intake.metrics.waits.flush_is_stuck(4 * intake.config.stuck_after)
        };
        refuses.or_else(flush_is_stuck)
    }

    /// Returns the shelf, which stores settings and uploaded files of users.
    pub fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// Returns a sink that stores the profiles of one tenant.
    pub fn sink(self: &Arc<Self>, tenant: &TenantId) -> Receiver {
        Arc::new(TenantSink {
            store: self.clone(),
            tenant: tenant.clone(),
        })
    }

    fn begin_stop(&self) {
        self.lifecycle.stop();
        self.flushes.wake();
        self.maintenance.wake();
        // This also ends the applier thread, which receives no more events.
        self.log.begin_stop();
    }

    fn stop(&self) {
        self.begin_stop();
        self.log.stop();
        for (_, thread) in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the store panicked");
            }
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.stop();
    }
}

impl SnapshotSource for Store {
    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::new(self.published.snapshot())
    }

    fn object_store(&self) -> Option<Arc<dyn ObjectStore>> {
        self.published.root.object_store()
    }
}

/// A sink that stores profiles of one tenant.
struct TenantSink {
    store: Arc<Store>,
    tenant: TenantId,
}

impl ProfileSink for TenantSink {
    fn append(&self, profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<RefusedProfile>> {
        self.store.append(&self.tenant, profiles)
    }

    fn append_decoded(&self, profiles: Vec<DecodedProfile>) -> BoxFuture<'_, Vec<RefusedProfile>> {
        self.store.append_all(
            &self.tenant,
            profiles.into_iter().map(ReceivedProfile::Decoded).collect(),
        )
    }
}
