//! Durable profiles: write-ahead log, head in memory, Parquet in Delta tables. The only user of parquet and delta_kernel.
//!
//! A profile is checked and decoded ([`limits`], `ingest`), written to the log and synced ([`wal`]), applied to the head
//! (`head`), acknowledged; later the head is flushed to the tables (`flush`, `files`, `delta`) and its part of the log is deleted.
//! After a crash `replay` brings log and tables in agreement. `docs/store.md` has the layout and the argument.

pub mod bucket;
pub mod clock;
mod config;
mod delta;
mod engine;
pub mod error;
pub mod fault;
mod files;
mod flush;
mod folder;
mod head;
mod ingest;
pub mod inspect;
pub mod limits;
pub mod maintenance;
mod metrics;
mod read_only;
mod record;
mod references;
pub mod repair;
mod replay;
pub mod root;
pub mod schema;
pub mod snapshot;
mod split;
mod sync;
mod wal;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use object_store::ObjectStore;
use parking_lot::{Condvar, Mutex, RwLock};
use tokio::sync::{Notify, Semaphore, oneshot};

use crate::base::BoxFuture;
use crate::profile::sink::Receiver;
use crate::profile::{ProfileSink, RawProfile, SinkError, SinkErrorKind};
use crate::store::bucket::Bucket;
use crate::store::bucket::metrics::BucketMetrics;
use crate::store::engine::{Pending, Published, Shared};
use crate::store::flush::Tables;
use crate::store::folder::Folder;
use crate::store::head::KnownStacks;
use crate::store::maintenance::{Desk, Maintainer, Report, Work};
use crate::store::metrics::{Metrics, Reason};
use crate::store::root::{At, Root};
use crate::store::schema::Table;
use crate::store::snapshot::{Snapshot, SnapshotSource};
use crate::store::wal::{Log, Refused};
use crate::telemetry::metrics::Scope;

pub use config::StoreConfig;
pub use error::StoreError;
pub use limits::Limits;
pub use read_only::ReadOnlyStore;
pub use wal::SyncMode;

/// Errors of an append, with the index of the profile in the batch.
pub type AppendErrors = Vec<(usize, SinkError)>;

/// Profiles of fewer compressed bytes together are decoded at once: it takes less than the half millisecond that a change of threads is worth.
const HEAVY_FROM_BYTES: usize = 32 << 10;

/// Longest time that an append waits for a flush to make room; after it, the limit on all heads decides.
const ROOM_WAIT: Duration = Duration::from_secs(5);

/// An open store. Dropping it stops its threads and flushes nothing: what is in the log is replayed at the next start.
pub struct Store {
    shared: Arc<Shared>,
    /// Bounds the profiles that are decoded at once.
    decoding: Arc<Semaphore>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Held for its lock.
    _folder: Folder,
}

impl Store {
    /// Opens the data folder: locks it, finishes what a crash interrupted, replays the log. Blocks for the time of the replay.
    pub fn open(config: StoreConfig, scope: &Scope) -> Result<Arc<Self>, StoreError> {
        let metrics = Metrics::new(scope);
        let bucket_metrics = config.bucket.as_ref().map(|_| BucketMetrics::new(scope));
        // On a thread of its own: under a runtime `object_store` would move its work to that runtime.
        std::thread::scope(|threads| {
            std::thread::Builder::new()
                .name("store-open".to_owned())
                .spawn_scoped(threads, || Self::open_here(config, metrics, bucket_metrics))
                .map_err(StoreError::io("start a thread for", Path::new("the store")))?
                .join()
                .unwrap_or(Err(StoreError::Closed))
        })
    }

    /// A view of a data folder without locking or changing it.
    pub fn open_read_only<'a>(at: impl Into<At<'a>>) -> Result<ReadOnlyStore, StoreError> {
        let at = at.into();
        std::thread::scope(|threads| {
            threads
                .spawn(|| ReadOnlyStore::open(at))
                .join()
                .unwrap_or(Err(StoreError::Closed))
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
        let mut tables = Tables::open(
            &root,
            folder.writer.clone(),
            config.checkpoint_interval,
            config.faults.clone(),
        )?;
        let known = Arc::<KnownStacks>::default();
        let recovered = replay::recover(&folder.log, &mut tables, &known, &metrics)?;
        let files = tables.files()?;
        let live: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        for table in Table::ALL {
            maintenance::remove_unnamed(&root, table, &folder.writer, &live, &config.faults)?;
        }
        metrics.files.set(files.len() as i64);
        metrics.head_bytes.set(recovered.head.bytes() as i64);
        let (tx, rx) = channel();
        let log = Log::open(
            &folder.log,
            recovered.next_segment,
            config.sync,
            config.faults.clone(),
            metrics.clone(),
            tx,
        )?;
        let shared = Arc::new(Shared {
            metrics,
            log_folder: folder.log.clone(),
            root,
            log,
            published: RwLock::new(Published {
                files: files.into(),
                active: Arc::new(recovered.head),
                frozen: None,
            }),
            known,
            closing: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            room: Notify::new(),
            flush_fails: AtomicBool::new(false),
            requests: Mutex::default(),
            wake: Condvar::new(),
            writer: folder.writer.clone(),
            committing: Mutex::default(),
            maintenance: Desk::default(),
            config,
        });
        let maintainer = Maintainer::open(shared.clone(), folder.writer.clone())?;
        let (applier, flusher) = (shared.clone(), shared.clone());
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(body)
                .map_err(StoreError::io("start a thread for", &folder.log))
        };
        let threads = vec![
            spawn("store-apply", Box::new(move || applier.run_applier(&rx)))?,
            spawn("store-flush", Box::new(move || flusher.run_flusher(tables)))?,
            spawn("store-maintain", Box::new(move || maintainer.run()))?,
        ];
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Ok(Arc::new(Self {
            shared,
            decoding: Arc::new(Semaphore::new(cores * 2)),
            threads: Mutex::new(threads),
            _folder: folder,
        }))
    }

    /// Stores profiles. Returns when those that are taken are durable and queryable, with the errors of the others. Each profile is taken
    /// or refused for itself; dropping the future neither undoes nor loses what was queued. Needs a tokio runtime.
    pub fn append(&self, tenant: &str, profiles: Vec<RawProfile>) -> BoxFuture<'static, AppendErrors> {
        let shared = self.shared.clone();
        let decoding = self.decoding.clone();
        let tenant: Arc<str> = Arc::from(tenant);
        Box::pin(async move {
            let count = profiles.len();
            let all = |error: SinkError| (0..count).map(|index| (index, error.clone())).collect::<Vec<_>>();
            if let Err(error) = shared.may_append(&tenant, count) {
                return all(error);
            }
            let closed = || SinkError::new(SinkErrorKind::Unavailable, "the store is closing");
            if shared.is_crowded() {
                // Back pressure: senders slow down to the speed of the flush before memory grows to the limit.
                let _ = tokio::time::timeout(ROOM_WAIT, shared.wait_for_room()).await;
            }
            let Ok(permit) = decoding.acquire_owned().await else {
                return all(closed());
            };
            let bytes: usize = profiles.iter().map(|profile| profile.pprof.len()).sum();
            let accepted = if bytes < HEAVY_FROM_BYTES {
                Ok(shared.accept(tenant, profiles))
            } else {
                tokio::task::spawn_blocking(move || shared.accept(tenant, profiles)).await
            };
            drop(permit);
            let Ok((mut errors, waiting)) = accepted else {
                return all(SinkError::new(SinkErrorKind::Internal, "the decoder failed"));
            };
            if let Some((indices, durable)) = waiting {
                let error = match durable.await {
                    Ok(Ok(())) => None,
                    Ok(Err(error)) => Some(error),
                    Err(_) => Some(closed()),
                };
                if let Some(error) = error {
                    errors.extend(indices.into_iter().map(|index| (index, error.clone())));
                    errors.sort_by_key(|(index, _)| *index);
                }
            }
            errors
        })
    }

    /// Moves everything that was acknowledged before the call to the tables.
    pub fn flush(&self) -> BoxFuture<'static, Result<(), StoreError>> {
        let (tx, rx) = oneshot::channel();
        self.shared.requests.lock().push(tx);
        self.shared.wake.notify_one();
        Box::pin(async move { rx.await.unwrap_or(Err(StoreError::Closed)) })
    }

    /// Does maintenance at once and returns what was done.
    pub fn maintain(&self, work: Work) -> BoxFuture<'static, Result<Report, StoreError>> {
        let answer = self.shared.maintenance.ask(work);
        Box::pin(async move { answer.await.unwrap_or(Err(StoreError::Closed)) })
    }

    /// Refuses further profiles, flushes, and ends the threads. After `deadline` it gives up on the flush; the log keeps what is left.
    pub fn close(&self, deadline: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        self.shared.closing.store(true, Ordering::Release);
        self.shared.room.notify_waiters();
        Box::pin(async move {
            let flushed = tokio::time::timeout(deadline, self.flush()).await;
            match flushed {
                Ok(result) => {
                    // The flusher is idle: the threads end at once.
                    self.stop();
                    result
                }
                Err(_) => {
                    self.shared.stopped.store(true, Ordering::Release);
                    Err(StoreError::Deadline(deadline))
                }
            }
        })
    }

    /// Why the store takes no profiles at the moment, if so: for health checks.
    pub fn unavailable(&self) -> Option<String> {
        if self.shared.closing.load(Ordering::Acquire) {
            return Some("the store is closing".to_owned());
        }
        self.shared.log.failure().map(|reason| reason.to_string())
    }

    /// The store as a sink for the profiles of one tenant.
    pub fn sink(self: &Arc<Self>, tenant: &str) -> Receiver {
        Arc::new(TenantSink {
            store: self.clone(),
            tenant: tenant.to_owned(),
        })
    }

    fn stop(&self) {
        self.shared.closing.store(true, Ordering::Release);
        self.shared.stopped.store(true, Ordering::Release);
        // As in `Desk::wake`: not between the flusher's look and its wait.
        drop(self.shared.requests.lock());
        self.shared.wake.notify_all();
        self.shared.maintenance.wake();
        // Ends the applier too: its events stop.
        self.shared.log.stop();
        for thread in self.threads.lock().drain(..) {
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
        Arc::new(self.shared.snapshot())
    }

    fn object_store(&self) -> Option<Arc<dyn ObjectStore>> {
        self.shared.root.object_store()
    }
}

impl Shared {
    /// Whether profiles are taken now.
    fn may_append(&self, tenant: &str, count: usize) -> Result<(), SinkError> {
        let refuse = |reason: &'static str, error: SinkError| {
            self.metrics
                .rejected
                .get_or_create(&Reason { reason })
                .inc_by(count as u64);
            Err(error)
        };
        if let Err(rejection) = limits::check_tenant(tenant) {
            return refuse(rejection.reason, rejection.error);
        }
        let unavailable = |message: String| SinkError::new(SinkErrorKind::Unavailable, message);
        if self.closing.load(Ordering::Acquire) {
            return refuse("closing", unavailable("the store is closing".to_owned()));
        }
        if let Some(reason) = self.log.failure() {
            return refuse("log_unavailable", unavailable(reason.to_string()));
        }
        let (held, limit) = (self.head_bytes(), self.config.head_limit_bytes);
        if held > limit {
            let message =
                format!("profiles in memory hold {held} bytes, at most {limit} are allowed until a flush succeeds");
            return refuse("head_limit", unavailable(message));
        }
        Ok(())
    }

    /// Checks, decodes and queues profiles; returns errors, and who to wait for with the indices that wait.
    #[expect(clippy::type_complexity, reason = "one caller, which takes it apart at once")]
    fn accept(
        &self,
        tenant: Arc<str>,
        profiles: Vec<RawProfile>,
    ) -> (
        AppendErrors,
        Option<(Vec<usize>, oneshot::Receiver<Result<(), SinkError>>)>,
    ) {
        let received_ms = self.config.clock.millis();
        let limits = &self.config.limits;
        let (mut errors, mut indices) = (Vec::new(), Vec::new());
        let (mut prepared, mut headers, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
        for (index, profile) in profiles.iter().enumerate() {
            match ingest::prepare(profile, received_ms, limits) {
                Ok(accepted) => {
                    let dropped = |reason, count| {
                        if count > 0 {
                            self.metrics
                                .dropped_values
                                .get_or_create(&Reason { reason })
                                .inc_by(count);
                        }
                    };
                    dropped("zero", accepted.zero_values);
                    dropped("negative", accepted.negative_values);
                    headers.push(record::encode_header(&tenant, received_ms, limits, profile));
                    bodies.push(profile.pprof.clone());
                    prepared.push(accepted);
                    indices.push(index);
                }
                Err(rejection) => {
                    let reason = rejection.reason;
                    self.metrics.rejected.get_or_create(&Reason { reason }).inc();
                    errors.push((index, rejection.error));
                }
            }
        }
        if prepared.is_empty() {
            return (errors, None);
        }
        let records: Vec<[&[u8]; 2]> = headers
            .iter()
            .zip(&bodies)
            .map(|(header, body)| [header.as_slice(), body.as_ref()])
            .collect();
        let (reply, durable) = oneshot::channel();
        let pending = Pending {
            tenant,
            profiles: prepared,
            reply,
        };
        if let Err(Refused(pending, reason)) = self.log.append(&records, pending) {
            let error = SinkError::new(SinkErrorKind::Unavailable, reason.as_ref());
            let _ = pending.reply.send(Err(error));
        }
        (errors, Some((indices, durable)))
    }
}

/// The store for one tenant.
struct TenantSink {
    store: Arc<Store>,
    tenant: String,
}

impl ProfileSink for TenantSink {
    fn append(&self, profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<(usize, SinkError)>> {
        self.store.append(&self.tenant, profiles)
    }
}

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod tests;
