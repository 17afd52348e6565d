//! Measures how long each thread of the store has waited for the disk, to detect a disk that never responds.
//!
//! In: the start, the steps and the end of a thread's work. Out: the time since its last step, as a metric and for
//! health checks. A call to a dead disk does not return, so only another thread can detect the dead disk.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

/// Time of the last step of one thread's work; `None` while the thread is idle. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiskWait(Arc<Mutex<Option<Instant>>>);

/// Work in progress. The work ends when this guard is dropped.
pub(crate) struct WorkGuard(DiskWait);

impl DiskWait {
    /// Marks the start of a piece of work.
    pub(crate) fn begin(&self) -> WorkGuard {
        *self.0.lock() = Some(Instant::now());
        WorkGuard(self.clone())
    }

    /// Records a step of the work in progress. Does nothing if no work is in progress.
    pub(crate) fn step(&self) {
        if let Some(last) = self.0.lock().as_mut() {
            *last = Instant::now();
        }
    }

    /// Returns the time since the last step, or zero while the thread is idle.
    pub(crate) fn time(&self) -> Duration {
        self.0.lock().map_or(Duration::ZERO, |last| last.elapsed())
    }
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}

/// The waits of the threads that write to the disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiskWaits {
    pub(crate) log: DiskWait,
    pub(crate) flush: DiskWait,
    pub(crate) maintenance: DiskWait,
}

impl DiskWaits {
    /// Returns a description of the failure if the log has made no step for `limit` or longer.
    pub(crate) fn log_is_stuck(&self, limit: Duration) -> Option<String> {
        let waited = self.log.time();
        (waited >= limit).then(|| {
            format!(
                "the disk does not respond: a write or sync of the write-ahead log has not finished for {} s",
                waited.as_secs()
            )
        })
    }

    /// Returns a description of the failure if a flush has made no step for `limit` or longer.
    pub(crate) fn flush_is_stuck(&self, limit: Duration) -> Option<String> {
        let waited = self.flush.time();
        (waited >= limit).then(|| {
            format!(
                "the disk does not respond: a flush has made no progress for {} s",
                waited.as_secs()
            )
        })
    }
}

impl EncodeMetric for DiskWaits {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        for (thread, wait) in [
            ("log", &self.log),
            ("flush", &self.flush),
            ("maintenance", &self.maintenance),
        ] {
            encoder
                .encode_family(&[("thread", thread)])?
                .encode_gauge(&wait.time().as_secs_f64())?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_work_in_progress_waits_and_each_step_begins_anew() {
        let wait = DiskWait::default();
        wait.step();
        assert_eq!(wait.time(), Duration::ZERO);
        let working = wait.begin();
        let begun = *wait.0.lock();
        while wait.time().is_zero() {
            std::thread::yield_now();
        }
        wait.step();
        assert!(*wait.0.lock() > begun);
        drop(working);
        assert_eq!(wait.time(), Duration::ZERO);
    }
}
