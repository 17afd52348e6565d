//! How long each thread of the store has waited for the disk, so that a disk that never answers is seen.
//!
//! In: the begin, the steps and the end of a thread's work. Out: the time since its last step, as a metric and for
//! health checks. A call into a dead disk does not return, so nobody but another thread can notice it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

/// The last step of one thread's work; `None` while it has none. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiskWait(Arc<Mutex<Option<Instant>>>);

/// Work in progress; it ends when this is dropped.
pub(crate) struct Working(DiskWait);

impl DiskWait {
    /// Begins a piece of work.
    pub(crate) fn begin(&self) -> Working {
        *self.0.lock() = Some(Instant::now());
        Working(self.clone())
    }

    /// The work has come one step further. Without work in progress it does nothing.
    pub(crate) fn step(&self) {
        if let Some(last) = self.0.lock().as_mut() {
            *last = Instant::now();
        }
    }

    /// Time since the last step; zero while there is no work.
    pub(crate) fn time(&self) -> Duration {
        self.0.lock().map_or(Duration::ZERO, |last| last.elapsed())
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}

/// The waits of the threads that write.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiskWaits {
    pub(crate) log: DiskWait,
    pub(crate) flush: DiskWait,
    pub(crate) maintenance: DiskWait,
}

impl DiskWaits {
    /// What is wrong when one step of the log takes `limit` or longer.
    pub(crate) fn log_is_stuck(&self, limit: Duration) -> Option<String> {
        let waited = self.log.time();
        (waited >= limit).then(|| {
            format!(
                "the disk does not answer: a write or sync of the write-ahead log has not ended for {} s",
                waited.as_secs()
            )
        })
    }

    /// What is wrong when one step of a flush takes `limit` or longer.
    pub(crate) fn flush_is_stuck(&self, limit: Duration) -> Option<String> {
        let waited = self.flush.time();
        (waited >= limit).then(|| {
            format!(
                "the disk does not answer: a flush has not come any further for {} s",
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
