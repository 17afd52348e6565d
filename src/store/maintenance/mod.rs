//! Maintenance: small files become large sorted ones, old data becomes coarser or goes, and what nobody needs is deleted.
//!
//! One thread works in rounds: it looks at the live files ([`plan`]), rewrites some of them ([`rewrite`]), commits the exchange to the table in one
//! entry and publishes it. Readers keep the files of their view until [`vacuum`] deletes them after a grace period. A round that
//! fails or is cut off leaves files that no table names; they are removed, and the next round plans anew.

pub mod aging;
pub mod deletion;
mod deletion_job;
mod exchange;
mod input;
mod names;
mod parts;
pub mod plan;
mod profiles;
pub mod rewrite;
mod runner;
mod samples;
pub mod vacuum;
mod watch;

use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::store::StoreError;
use aging::Aging;
use deletion::Deletion;
use plan::Policy;
use vacuum::Vacuumed;

pub use exchange::remove_unnamed;
#[cfg(test)]
pub use parts::file_schema;
pub use runner::Maintainer;

/// Settings of maintenance.
#[derive(Debug, Clone)]
pub struct MaintenanceConfig {
    /// Whether files are merged. On.
    pub compaction: bool,
    /// When merging is worth it.
    pub policy: Policy,
    /// Time between rounds, 10 seconds.
    pub interval: Duration,
    /// Share of one core that the thread may use, 0.5. 1 for no bound.
    pub cpu_share: f64,
    /// How long a file that left its table stays for readers that opened the table before, 1 hour.
    pub deletion_delay: Duration,
    /// Retention and downsampling. Off.
    pub aging: Aging,
    /// Time between looks for files to delete, 10 minutes.
    pub vacuum_interval: Duration,
}

impl Default for MaintenanceConfig {
    fn default() -> Self {
        Self {
            compaction: true,
            policy: Policy::default(),
            interval: Duration::from_secs(10),
            cpu_share: 0.5,
            deletion_delay: Duration::from_secs(3600),
            aging: Aging::default(),
            vacuum_interval: Duration::from_secs(600),
        }
    }
}

/// What to do at once, without the bound on the CPU.
#[derive(Debug, Clone)]
pub enum Work {
    /// What is due.
    Due,
    /// Everything that can be merged, as if every hour and day were over.
    Compact,
    /// Delete files that left their table so long ago.
    Vacuum(Duration),
    /// Delete profiles.
    Delete(Deletion),
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Rewrites that were committed.
    pub jobs: u64,
    /// Files that left the tables.
    pub files_in: u64,
    /// Files that came.
    pub files_out: u64,
    /// Bytes of the files that left.
    pub bytes_in: u64,
    /// Bytes of the files that came.
    pub bytes_out: u64,
    /// Rows of the files that left.
    pub rows_in: u64,
    /// Rows of the files that came.
    pub rows_out: u64,
    /// What was deleted.
    pub vacuumed: Vacuumed,
}

/// Who waits for which work, and what wakes the thread.
#[derive(Default)]
pub struct Desk {
    requests: Mutex<Requests>,
    wake: Condvar,
}

#[derive(Default)]
struct Requests {
    waiting: Vec<Request>,
    /// The thread has ended: nobody would answer.
    closed: bool,
}

struct Request {
    work: Work,
    reply: oneshot::Sender<Result<Report, StoreError>>,
}

impl Desk {
    /// Asks for work.
    pub fn ask(&self, work: Work) -> oneshot::Receiver<Result<Report, StoreError>> {
        let (reply, answer) = oneshot::channel();
        let mut requests = self.requests.lock();
        if !requests.closed {
            requests.waiting.push(Request { work, reply });
        }
        drop(requests);
        self.wake.notify_one();
        answer
    }

    /// Takes no requests any more, and lets nobody wait for an answer.
    pub fn close(&self) {
        let mut requests = self.requests.lock();
        requests.closed = true;
        requests.waiting.clear();
    }

    /// Wakes the thread, so that it sees that it must end.
    pub fn wake(&self) {
        // The thread looks whether it must end while it holds the lock. A call between that look and its wait would be lost, and the wait is long.
        drop(self.requests.lock());
        self.wake.notify_one();
    }
}

#[cfg(test)]
mod clock_tests;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod flush_fault_tests;
#[cfg(test)]
mod growth_tests;
#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod tests;
