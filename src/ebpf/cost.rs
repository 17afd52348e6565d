//! CPU cost of profiling, and the governor that lowers the rate if the cost is too high.
#![allow(unsafe_code, reason = "no crate in use wraps the CPU time of a thread")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// CPU time of the profiler's threads. Each thread reports its own CPU time from time to time.
#[derive(Debug, Clone, Default)]
pub struct CostAccount {
    threads: Arc<Mutex<Vec<Arc<AtomicU64>>>>,
}

/// CPU time account of one thread.
#[derive(Debug)]
pub struct ThreadCost {
    nanos: Arc<AtomicU64>,
    /// CPU time of the thread before it started to work for the profiler.
    initial_nanos: u64,
}

impl CostAccount {
    /// Opens an account for the calling thread.
    pub fn thread(&self) -> ThreadCost {
        let nanos = Arc::new(AtomicU64::new(0));
        self.threads.lock().push(nanos.clone());
        ThreadCost {
            nanos,
            initial_nanos: thread_nanos(),
        }
    }

    /// Returns the CPU time in nanoseconds that all threads have reported.
    pub(crate) fn nanos(&self) -> u64 {
        self.threads
            .lock()
            .iter()
            .map(|nanos| nanos.load(Ordering::Relaxed))
            .sum()
    }
}

impl ThreadCost {
    /// Reports the CPU time of the thread so far. The caller must be that thread.
    pub fn note(&self) {
        self.nanos
            .store(thread_nanos().saturating_sub(self.initial_nanos), Ordering::Relaxed);
    }
}

fn thread_nanos() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for the duration of the call.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    if status != 0 {
        return 0;
    }
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    u64::try_from(time.tv_sec)
        .unwrap_or(0)
        .saturating_mul(1_000_000_000)
        .saturating_add(nanos)
}

/// The governor never lowers the rate below this value. A lower rate would save little, because other costs, such as
/// the work for new processes and mappings, do not depend on the rate.
const MIN_HERTZ: u32 = 10;

/// Chooses the rate so that the cost stays within a share of one CPU. Has no side effects.
#[derive(Debug)]
pub(crate) struct Governor {
    wanted_hertz: u32,
    /// Limit as a share of one CPU; `None` for no limit.
    limit: Option<f64>,
    /// Smoothed cost of the recent intervals. The newest interval has a weight of one half.
    smoothed: Option<f64>,
}

impl Governor {
    /// Creates a governor that starts at `hertz` ticks per second.
    pub(crate) fn new(hertz: u32, limit: Option<f64>) -> Self {
        Self {
            wanted_hertz: hertz.max(1),
            limit,
            smoothed: None,
        }
    }

    /// Returns the rate for the next interval, after an interval at `hertz` that used the share `cost` of one CPU.
    pub(crate) fn next(&mut self, hertz: u32, cost: f64) -> u32 {
        let Some(limit) = self.limit else {
            return self.wanted_hertz;
        };
        let smoothed = self.smoothed.map_or(cost, |before| f64::midpoint(before, cost));
        self.smoothed = Some(smoothed);
        // Between the two thresholds the rate stays the same, to prevent oscillation.
        let next = if smoothed > limit {
            (f64::from(hertz) * (limit / smoothed).max(0.25) * 0.9).floor()
        } else if smoothed < limit * 0.7 && hertz < self.wanted_hertz {
            (f64::from(hertz) * 1.25).ceil()
        } else {
            return hertz;
        };
        // The value lies between the lowest and the wanted rate, so the conversion is lossless.
        let next = next.clamp(
            f64::from(self.wanted_hertz.min(MIN_HERTZ)),
            f64::from(self.wanted_hertz),
        ) as u32;
        // The smoothed cost is scaled, because it was measured at another rate.
        self.smoothed = Some(smoothed * f64::from(next) / f64::from(hertz.max(1)));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a machine where a tick per second costs the share `per_hertz` of a CPU, in addition to the share
    /// `fixed`.
    fn settle(per_hertz: f64, fixed: f64, wanted_hertz: u32, limit: f64, from: u32) -> u32 {
        let mut governor = Governor::new(wanted_hertz, Some(limit));
        let mut hertz = from;
        for _ in 0..100 {
            hertz = governor.next(hertz, f64::from(hertz) * per_hertz + fixed);
        }
        hertz
    }

    #[test]
    fn the_rate_settles_below_the_limit_and_not_far_below() {
        let hertz = settle(0.0001, 0.0, 997, 0.005, 997);
        assert!((30..=50).contains(&hertz), "{hertz}");
    }

    #[test]
    fn a_cheap_machine_keeps_the_wanted_rate_and_comes_back_to_it() {
        assert_eq!(settle(0.000_01, 0.0, 99, 0.005, 99), 99);
        assert_eq!(settle(0.000_01, 0.0, 99, 0.005, 3), 99);
    }

    #[test]
    fn a_limit_that_cannot_be_held_ends_at_the_least_rate() {
        assert_eq!(settle(0.0, 0.5, 99, 0.001, 99), MIN_HERTZ);
        assert_eq!(settle(0.0, 0.5, 3, 0.001, 3), 3);
    }

    #[test]
    fn without_a_limit_the_rate_is_the_wanted_one() {
        assert_eq!(Governor::new(99, None).next(99, 5.0), 99);
    }
}
