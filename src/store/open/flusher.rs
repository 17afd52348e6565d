//! The flush thread. It flushes one frozen generation (a head, and the log segments with the same profiles) at a time,
//! and retries until it succeeds. Between flushes, and after a flush if its caller requests that, the thread polls for
//! the commits of other servers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::store::common::error::StoreError;
use crate::store::common::fault::FaultPoint;
use crate::store::common::lifecycle::Lifecycle;
use crate::store::common::metrics::Metrics;
use crate::store::config::StoreConfig;
use crate::store::flush::flushes::{Caller, Flushes};
use crate::store::flush::isolate;
use crate::store::flush::published::Published;
use crate::store::flush::sync::Sync;
use crate::store::flush::write::{Generation, Progress, Tables};
use crate::store::intake::append::PendingGroup;
use crate::store::log::wal::Log;

/// Wait times between the attempts of a flush that fails. The last wait time repeats.
const RETRY_WAITS: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
];

/// State of the flush thread.
pub(crate) struct Flusher {
    pub(crate) config: Arc<StoreConfig>,
    pub(crate) metrics: Metrics,
    /// Holds the head to flush, and publishes the files that contain its rows after the flush.
    pub(crate) published: Arc<Published>,
    /// The log, which is rotated before a flush.
    pub(crate) log: Arc<Log<PendingGroup>>,
    /// The folder that has the log's segments.
    pub(crate) log_folder: PathBuf,
    pub(crate) flushes: Arc<Flushes>,
    pub(crate) lifecycle: Arc<Lifecycle>,
    /// The tables, open for writing.
    pub(crate) tables: Tables,
}

enum Due {
    Flush,
    Sync,
    End,
}

impl Flusher {
    /// Body of the thread. Ends when the store stops.
    pub(crate) fn run(mut self) {
        let mut progress = Progress::new();
        let mut failures = 0usize;
        let mut not_before = Instant::now();
        let mut sync = Sync::new(&self.published.root);
        loop {
            let (due, callers) = self.flushes.next(|is_asked| {
                if self.lifecycle.is_stopped() {
                    Some(Due::End)
                } else if is_asked || (Instant::now() >= not_before && self.is_due()) {
                    Some(Due::Flush)
                } else {
                    sync.is_due().then_some(Due::Sync)
                }
            });
            match due {
                Due::End => return,
                Due::Sync => {
                    // `run` logs a failure, and the next poll tries again.
                    let _ = sync.run(&self.published, &mut self.tables);
                    continue;
                }
                Due::Flush => {}
            }
            let start = Instant::now();
            let working = self.metrics.waits.flush.begin();
            let result = self.flush(&mut progress);
            drop(working);
            match &result {
                Ok(()) => failures = 0,
                Err(StoreError::Closed) => tracing::debug!("the stop of the store ended the flush"),
                Err(error) => {
                    self.metrics.flush_failures.inc();
                    tracing::error!(error = %error, failures, "flush failed, trying again");
                    let wait = RETRY_WAITS[failures.min(RETRY_WAITS.len() - 1)];
                    not_before = start + wait;
                    failures += 1;
                }
            }
            let wants_sync = |caller: &Caller| result.is_ok() && caller.wants_sync;
            let (waiting, callers) = callers.into_iter().partition::<Vec<Caller>, _>(wants_sync);
            self.flushes.finish(callers, result);
            if !waiting.is_empty() {
                Flushes::respond(waiting, sync.run(&self.published, &mut self.tables));
            }
        }
    }

    fn is_due(&self) -> bool {
        let active = self.published.active();
        let is_old = || {
            let first = active.first_applied();
            first.is_some_and(|first| first.elapsed() >= self.config.flush_age)
        };
        active.bytes() >= self.config.flush_bytes || is_old() || self.published.frozen().is_some()
    }

    /// Flushes the frozen generation, if any, and then the active head.
    fn flush(&mut self, progress: &mut Progress) -> Result<(), StoreError> {
        self.flush_frozen(progress)?;
        if self.published.active().profiles() == 0 {
            return Ok(());
        }
        self.log.rotate()?;
        self.flush_frozen(progress)
    }

    /// Flushes the frozen generation, if any. Saves records that prevent the flush in files beside the log, and
    /// flushes the other records.
    fn flush_frozen(&mut self, progress: &mut Progress) -> Result<(), StoreError> {
        let Some(generation) = self.published.frozen() else {
            return Ok(());
        };
        match self.flush_generation(&generation, progress) {
            Err(error) if error.may_be_data_error() => {
                // The tables already contain the older segments, which may still exist because their deletion failed.
                let first = self.tables.committed()?.into_iter().min().unwrap_or(0) + 1;
                let Some(rest) = self.rebuild_generation(&generation, first)? else {
                    return Err(error);
                };
                self.flush_generation(&rest, progress)
            }
            result => result,
        }
    }

    /// Rebuilds the generation from the log without the records that cannot be written, and publishes it to queries.
    /// Returns `None` if there are no such records.
    fn rebuild_generation(&self, generation: &Generation, first: u64) -> Result<Option<Generation>, StoreError> {
        let range = first..=generation.last_segment;
        let damaged_records = isolate::isolate(&self.log_folder, &range, &self.config.faults)?;
        if damaged_records.is_empty() {
            return Ok(None);
        }
        let head = isolate::head_without(
            &self.log_folder,
            &range,
            self.published.known(),
            &damaged_records,
            &self.metrics,
        )?;
        let rest = Generation {
            head: Arc::new(head),
            last_segment: generation.last_segment,
        };
        self.published.replace_frozen(rest.clone());
        Ok(Some(rest))
    }

    fn flush_generation(&mut self, generation: &Generation, progress: &mut Progress) -> Result<(), StoreError> {
        let start = Instant::now();
        let faults = &self.config.faults;
        faults
            .check(FaultPoint::FlushStart)
            .map_err(StoreError::io("flush to", &self.published.root.name("")))?;
        let publication = self.published.begin();
        self.tables.commit(generation, progress)?;
        let lists = self.tables.lists(progress)?;
        publication.flushed(progress, lists);
        // This call must come after the publication. A head omits the frames of remembered stacks, so queries must see
        // the files that contain them. The call must come before the publication guard is dropped. The next holder of
        // the guard may remove these files and forget their stacks. If the stacks were remembered after that, the store
        // would not write them again, although no file contains them.
        generation.head.remember_stacks();
        drop(publication);
        self.metrics.head_bytes.set(self.published.head_bytes() as i64);
        self.metrics.flushes.inc();
        self.metrics.flush_seconds.observe(start.elapsed().as_secs_f64());
        tracing::info!(
            profiles = generation.head.profiles(),
            segment = generation.last_segment,
            milliseconds = start.elapsed().as_millis() as u64,
            "flushed"
        );
        // The tables contain all profiles. The next flush or start deletes a segment that cannot be deleted here.
        if let Err(error) = self.tables.delete_segments(&self.log_folder, generation.last_segment) {
            tracing::warn!(error = %error, "cannot delete flushed segments");
        }
        Ok(())
    }
}
