//! The running parts of a store: what is published, the thread that applies durable profiles, and the thread that flushes.
//!
//! The applier receives the log's events in the order of the log, so a rotation splits profiles exactly as the segments do, and no
//! profile is queryable before it is durable. The flusher works on one frozen generation at a time, again until it succeeds.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, RwLock};
use tokio::sync::{Notify, oneshot};

use crate::profile::{SinkError, SinkErrorKind};
use crate::store::StoreError;
use crate::store::budget::{Budget, Charge};
use crate::store::config::StoreConfig;
use crate::store::fault::Place;
use crate::store::flush::{self, Generation, Progress, Tables};
use crate::store::head::{Head, KnownStacks};
use crate::store::health::Health;
use crate::store::ingest::Prepared;
use crate::store::isolate;
use crate::store::maintenance::Desk;
use crate::store::metrics::Metrics;
use crate::store::root::Root;
use crate::store::snapshot::{FileEntry, HeadScan, Snapshot};
use crate::store::sync::Sync;
use crate::store::wal::{Log, LogEvent, LogEvents};

/// How often the flusher looks at the age of the head.
const TICK: Duration = Duration::from_millis(500);
/// Waits between attempts of a flush that fails.
const RETRY_WAITS: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
];

/// Accepted profiles of one append, on their way through the log.
pub struct Pending {
    /// Tenant.
    pub tenant: Arc<str>,
    /// The profiles whose records were queued.
    pub profiles: Vec<Prepared>,
    /// Who waits.
    pub reply: oneshot::Sender<Result<(), SinkError>>,
    /// Their part of the budget, held until the head has them.
    pub _charge: Charge,
}

/// What readers see.
pub struct Published {
    /// Live files.
    pub files: Arc<[FileEntry]>,
    /// The head that is filled.
    pub active: Arc<Head>,
    /// The generation that is being flushed.
    pub frozen: Option<Generation>,
}

/// Shared by the store and its threads.
pub struct Shared {
    /// Settings.
    pub config: StoreConfig,
    /// Metric handles.
    pub metrics: Metrics,
    /// Memory of profiles on their way to the head.
    pub budget: Budget,
    /// Threads that have ended.
    pub health: Health,
    /// `wal/`.
    pub log_folder: PathBuf,
    /// Where the tables lie.
    pub root: Root,
    /// The log.
    pub log: Log<Pending>,
    /// What readers see.
    pub published: RwLock<Published>,
    /// Stacks in committed files.
    pub known: Arc<KnownStacks>,
    /// True once the store takes no more profiles.
    pub closing: AtomicBool,
    /// True once the flusher must end.
    pub stopped: AtomicBool,
    /// Wakes appends that wait for a flush to make room.
    pub room: Notify,
    /// True while flushes fail: nobody waits for them.
    pub flush_fails: AtomicBool,
    /// Identity of the writer in transactions and file names.
    pub writer: String,
    /// Held from a commit to its publication.
    pub committing: Mutex<()>,
    /// Requests for maintenance and what wakes its thread.
    pub maintenance: Desk,
    /// Who waits for a flush.
    pub requests: Mutex<Vec<oneshot::Sender<Result<(), StoreError>>>>,
    /// Wakes the flusher.
    pub wake: Condvar,
}

impl Shared {
    /// A consistent view.
    pub fn snapshot(&self) -> Snapshot {
        let published = self.published.read();
        let mut heads: Vec<Arc<dyn HeadScan>> = vec![Arc::new(published.active.view())];
        if let Some(frozen) = &published.frozen {
            heads.push(Arc::new(frozen.head.view()));
        }
        Snapshot {
            root: self.root.clone(),
            files: published.files.clone(),
            heads,
        }
    }

    /// Why the store takes no profiles, if so: a word of the metric's label `reason`, and a text.
    pub fn unavailable(&self) -> Option<(&'static str, String)> {
        if self.closing.load(Ordering::Acquire) {
            return Some(("closing", "the store is closing".to_owned()));
        }
        if let Some(failure) = self.health.failure() {
            return Some(("thread_ended", failure));
        }
        let failure = self.log.failure()?;
        Some(("log_unavailable", failure.to_string()))
    }

    /// Runs the body of a thread. When it panics, nobody who waits for it waits on.
    pub fn run_watched(&self, thread: &'static str, body: impl FnOnce()) {
        if self.health.watch(thread, body) {
            return;
        }
        self.room.notify_waiters();
        for request in std::mem::take(&mut *self.requests.lock()) {
            let _ = request.send(Err(self.ended()));
        }
        self.maintenance.close();
    }

    /// The error for whoever asks a store of which a thread has ended.
    pub fn ended(&self) -> StoreError {
        self.health
            .failure()
            .map_or(StoreError::Closed, StoreError::ThreadEnded)
    }

    /// Bytes of all heads.
    pub fn head_bytes(&self) -> u64 {
        let published = self.published.read();
        published.active.bytes() + published.frozen.as_ref().map_or(0, |frozen| frozen.head.bytes())
    }

    /// True while appends should wait: the heads hold the active one and more, and a flush is about to make room.
    pub fn is_crowded(&self) -> bool {
        self.head_bytes() > self.config.flush_bytes.saturating_mul(2)
            && !self.flush_fails.load(Ordering::Acquire)
            && self.unavailable().is_none()
    }

    /// Returns when there is room, or when there is no point in waiting.
    pub async fn wait_for_room(&self) {
        loop {
            let mut notified = std::pin::pin!(self.room.notified());
            notified.as_mut().enable();
            if !self.is_crowded() {
                return;
            }
            notified.await;
        }
    }

    /// Body of the applier's thread; ends when the log does.
    pub fn run_applier(&self, events: &LogEvents<Pending>) {
        while let Ok(event) = events.recv() {
            match event {
                LogEvent::Durable(items) => self.apply(items),
                LogEvent::Failed(items, reason) => {
                    for item in items {
                        let error = SinkError::new(SinkErrorKind::Unavailable, reason.as_ref());
                        let _ = item.reply.send(Err(error));
                    }
                }
                LogEvent::Rotated(last_segment, reply) => {
                    let mut published = self.published.write();
                    let next = Arc::new(Head::new(self.known.clone()));
                    let head = std::mem::replace(&mut published.active, next);
                    published.frozen = Some(Generation { head, last_segment });
                    drop(published);
                    let _ = reply.send(last_segment);
                }
            }
        }
    }

    fn apply(&self, items: Vec<Pending>) {
        // Only this thread replaces the head, so it cannot change under the loop.
        let head = self.published.read().active.clone();
        for item in items {
            for profile in &item.profiles {
                let rows = head.apply(&item.tenant, profile);
                self.metrics.profiles.inc();
                self.metrics.samples.inc_by(rows);
                self.metrics.profile_bytes.inc_by(profile.size as u64);
            }
            self.config.faults.done(Place::Acknowledge);
            let _ = item.reply.send(Ok(()));
        }
        self.metrics.head_bytes.set(self.head_bytes() as i64);
        if head.bytes() >= self.config.flush_bytes {
            self.wake.notify_one();
        }
    }

    /// Body of the flusher's thread.
    pub fn run_flusher(&self, mut tables: Tables) {
        let mut progress = Progress::new();
        let mut failures = 0usize;
        let mut not_before = Instant::now();
        let mut sync = Sync::new(&self.root);
        loop {
            let requests = {
                let mut requests = self.requests.lock();
                loop {
                    if self.stopped.load(Ordering::Acquire) {
                        return;
                    }
                    if !requests.is_empty() || (Instant::now() >= not_before && self.is_due()) {
                        break Some(std::mem::take(&mut *requests));
                    }
                    if sync.is_due() {
                        break None;
                    }
                    self.wake.wait_for(&mut requests, TICK);
                }
            };
            let Some(requests) = requests else {
                sync.run(self, &mut tables);
                continue;
            };
            let start = Instant::now();
            let result = self.flush(&mut tables, &mut progress);
            self.flush_fails.store(result.is_err(), Ordering::Release);
            self.room.notify_waiters();
            match &result {
                Ok(()) => failures = 0,
                Err(error) => {
                    self.metrics.flush_failures.inc();
                    tracing::error!(error = %error, failures, "flush failed, it is tried again");
                    let wait = RETRY_WAITS[failures.min(RETRY_WAITS.len() - 1)];
                    not_before = start + wait;
                    failures += 1;
                }
            }
            self.answer(requests, result);
        }
    }

    fn answer(&self, requests: Vec<oneshot::Sender<Result<(), StoreError>>>, result: Result<(), StoreError>) {
        let mut result = Some(result);
        for request in requests {
            // Errors are not cloned: the first asker gets the details, the others that the log shows them.
            let answer = match result.take() {
                Some(first) => {
                    result = first.is_ok().then_some(Ok(()));
                    first
                }
                None => Err(StoreError::LogUnavailable("the flush failed, see the log".to_owned())),
            };
            let _ = request.send(answer);
        }
    }

    fn is_due(&self) -> bool {
        let published = self.published.read();
        let old = published
            .active
            .first_applied()
            .is_some_and(|first| first.elapsed() >= self.config.flush_age);
        published.frozen.is_some() || old || published.active.bytes() >= self.config.flush_bytes
    }

    /// Flushes the generation that is frozen, if any, and then the active head.
    fn flush(&self, tables: &mut Tables, progress: &mut Progress) -> Result<(), StoreError> {
        self.flush_frozen(tables, progress)?;
        if self.published.read().active.profiles() == 0 {
            return Ok(());
        }
        self.log.rotate()?;
        self.flush_frozen(tables, progress)
    }

    /// Flushes the generation that is frozen, if any. Records that keep it from being written are put aside.
    fn flush_frozen(&self, tables: &mut Tables, progress: &mut Progress) -> Result<(), StoreError> {
        let Some(generation) = self.published.read().frozen.clone() else {
            return Ok(());
        };
        match self.flush_generation(&generation, tables, progress) {
            Err(error) if error.may_be_the_data() => {
                // Older segments may be there because they could not be deleted; the tables have them.
                let first = tables.committed()?.into_iter().min().unwrap_or(0) + 1;
                let Some(rest) = self.without_bad_records(&generation, first)? else {
                    return Err(error);
                };
                self.flush_generation(&rest, tables, progress)
            }
            result => result,
        }
    }

    /// The generation anew from the log, without the records that cannot be written; `None` when there are none. Queries see it from
    /// now on.
    fn without_bad_records(&self, generation: &Generation, first: u64) -> Result<Option<Generation>, StoreError> {
        let range = first..=generation.last_segment;
        let bad = isolate::isolate(&self.log_folder, &range, &self.config.faults)?;
        if bad.is_empty() {
            return Ok(None);
        }
        let head = isolate::without(&self.log_folder, &range, &self.known, &bad, &self.metrics)?;
        let rest = Generation {
            head: Arc::new(head),
            last_segment: generation.last_segment,
        };
        self.published.write().frozen = Some(rest.clone());
        Ok(Some(rest))
    }

    fn flush_generation(
        &self,
        generation: &Generation,
        tables: &mut Tables,
        progress: &mut Progress,
    ) -> Result<(), StoreError> {
        let start = Instant::now();
        let faults = &self.config.faults;
        faults
            .check(Place::FlushStart)
            .map_err(StoreError::io("flush to", &self.root.name("")))?;
        // Maintenance commits and publishes under this lock: neither may publish a list that the other has outdated.
        let committing = self.committing.lock();
        tables.commit(generation, progress)?;
        let lists = tables.lists(progress)?;
        let files = {
            let mut published = self.published.write();
            published.files = flush::published(&published.files, progress, lists);
            published.frozen = None;
            published.files.len()
        };
        drop(committing);
        // After the publication: a head that leaves out these stacks is only seen together with their files.
        generation.head.remember_stacks();
        self.metrics.files.set(files as i64);
        self.metrics.head_bytes.set(self.head_bytes() as i64);
        self.metrics.flushes.inc();
        self.metrics.flush_seconds.observe(start.elapsed().as_secs_f64());
        tracing::info!(
            profiles = generation.head.profiles(),
            segment = generation.last_segment,
            milliseconds = start.elapsed().as_millis() as u64,
            "flushed"
        );
        // The tables have it all; a segment that cannot be deleted now is deleted by the next flush or start.
        if let Err(error) = flush::delete_segments(&self.log_folder, generation.last_segment, faults) {
            tracing::warn!(error = %error, "cannot delete flushed segments");
        }
        Ok(())
    }
}
