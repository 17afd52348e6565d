//! The thread that applies durable profiles to the head.
//!
//! The thread receives the log's events in the order of the log. So a rotation splits the profiles between two heads
//! exactly as between two segments, and no profile is queryable before it is durable.

use std::sync::Arc;

use crate::store::common::fault::FaultPoint;
use crate::store::common::metrics::Metrics;
use crate::store::config::StoreConfig;
use crate::store::flush::flushes::Flushes;
use crate::store::flush::published::Published;
use crate::store::head::repeats::Claim;
use crate::store::intake::append::PendingGroup;
use crate::store::log::wal::{LogEvent, LogEvents};
use alluvium_profile::{SinkError, SinkErrorKind};

/// State of the applier thread.
pub(crate) struct Applier {
    pub(crate) config: Arc<StoreConfig>,
    /// Counts the applied profiles.
    pub(crate) metrics: Metrics,
    /// Holds the head that receives the profiles.
    pub(crate) published: Arc<Published>,
    /// Wakes the flush thread when the head is full.
    pub(crate) flushes: Arc<Flushes>,
}

impl Applier {
    /// Body of the thread. Ends when the log ends.
    pub(crate) fn run(&self, events: &LogEvents<PendingGroup>) {
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
                    self.published.freeze(last_segment);
                    let _ = reply.send(last_segment);
                }
            }
        }
    }

    fn apply(&self, items: Vec<PendingGroup>) {
        // Only this thread replaces the head, so the head cannot change during the loop.
        let head = self.published.active();
        for item in items {
            for profile in &item.profiles {
                let rows = head.apply(&item.tenant, profile);
                self.metrics.profiles.inc();
                self.metrics.samples.inc_by(rows);
                self.metrics.profile_bytes.inc_by(profile.size as u64);
            }
            item.claims.into_iter().for_each(Claim::keep);
            self.config.faults.done(FaultPoint::Acknowledge);
            let _ = item.reply.send(Ok(()));
        }
        self.metrics.head_bytes.set(self.published.head_bytes() as i64);
        if head.bytes() >= self.config.flush_bytes {
            self.flushes.wake();
        }
    }
}
