//! The thread of maintenance: rounds, requests, commits and publication, within a budget of CPU.
//!
//! Only this thread takes files out of tables. It commits and publishes under the lock that a flush holds too, so every view has each row once.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::store::StoreError;
use crate::store::delta::{DeltaTable, NewFile, UpdateTableOperation};
use crate::store::engine::Shared;
use crate::store::fault::Place;
use crate::store::files::{MERGED, SETTLED};
use crate::store::maintenance::aging;
use crate::store::maintenance::exchange::Exchange;
use crate::store::maintenance::plan::{self, Policy};
use crate::store::maintenance::rewrite::{self, Bench, Job};
use crate::store::maintenance::vacuum::Removals;
use crate::store::maintenance::watch::Watch;
use crate::store::maintenance::{Report, Work};
use crate::store::metrics::JobLabel;
use crate::store::schema::Table;
use crate::store::snapshot::FileEntry;

/// A stretch of work between waits.
const STRETCH: Duration = Duration::from_millis(20);
/// Waits between rounds that fail.
const FAILURE_WAIT: Duration = Duration::from_secs(30);
/// How long a file that could not be read is left out of merging and downsampling.
const UNREADABLE_WAIT: Duration = Duration::from_secs(600);

/// Attempts of work that was asked for and had to give way to another server.
const GIVE_WAY_ATTEMPTS: usize = 10;

/// The thread's state.
pub struct Maintainer {
    pub(super) shared: Arc<Shared>,
    pub(super) tables: Vec<DeltaTable>,
    pub(super) writer: String,
    /// Tables of which a commit failed: whether it is there must be read.
    pub(super) unsure: BTreeSet<Table>,
    next_vacuum: Instant,
    /// Files that a job could not read, and when that may be tried again.
    unreadable: HashMap<String, Instant>,
    /// When files left their tables, as far as the logs were read.
    pub(super) removals: HashMap<Table, Removals>,
    watch: Watch,
}

/// Of two results that which must be told: an error rather than that work gave way to another server, and that rather than success.
pub(super) fn graver<T>(one: Result<T, StoreError>, other: Result<(), StoreError>) -> Result<T, StoreError> {
    match (one, other) {
        (one @ Err(StoreError::Closed), _) => one,
        (Ok(_) | Err(StoreError::Outdated(_)), Err(error)) => Err(error),
        (one, _) => one,
    }
}

impl Maintainer {
    /// Opens the tables and removes what an earlier process has left half done.
    pub fn open(shared: Arc<Shared>, writer: String) -> Result<Self, StoreError> {
        let tables = Table::ALL
            .into_iter()
            .map(|table| {
                Ok(DeltaTable::open(&shared.root, table)?
                    .with_checkpoint_interval(shared.config.checkpoint_interval)
                    .with_faults(shared.config.faults.clone()))
            })
            .collect::<Result<_, StoreError>>()?;
        let next_vacuum = Instant::now() + shared.config.maintenance.vacuum_interval.min(Duration::from_secs(60));
        let watch = Watch::open(&shared.config.dir, &shared.config.clock);
        Ok(Self {
            shared,
            tables,
            writer,
            unsure: BTreeSet::new(),
            next_vacuum,
            unreadable: HashMap::new(),
            removals: HashMap::new(),
            watch,
        })
    }

    /// Body of the thread; ends when the store stops.
    pub fn run(mut self) {
        let shared = self.shared.clone();
        let config = &shared.config.maintenance;
        let mut next_round = Instant::now() + config.interval;
        loop {
            let requests = {
                let mut requests = shared.maintenance.requests.lock();
                loop {
                    if shared.stopped.load(Ordering::Acquire) {
                        requests.closed = true;
                        requests.waiting.clear();
                        return;
                    }
                    if !requests.waiting.is_empty() {
                        break std::mem::take(&mut requests.waiting);
                    }
                    let wait = next_round.saturating_duration_since(Instant::now());
                    if wait.is_zero() {
                        break Vec::new();
                    }
                    shared.maintenance.wake.wait_for(&mut requests, wait);
                }
            };
            if requests.is_empty() {
                next_round = Instant::now() + config.interval;
                match self.round(config.cpu_share) {
                    Ok(_) | Err(StoreError::Closed) => {}
                    Err(error @ StoreError::Outdated(_)) => {
                        tracing::info!(reason = %error, "gave way in maintenance");
                    }
                    Err(error) => {
                        tracing::error!(error = %error, "maintenance failed, it is tried again");
                        next_round += FAILURE_WAIT;
                    }
                }
            }
            for request in requests {
                let result = self.work(&request.work);
                let _ = request.reply.send(result);
            }
        }
    }

    fn work(&mut self, work: &Work) -> Result<Report, StoreError> {
        match work {
            Work::Due => self.round(1.0),
            Work::Compact => {
                let mut report = Report::default();
                // Somebody may have mended what could not be read.
                self.unreadable.clear();
                self.settle()?;
                // Before files are mixed with later ones that the requests do not cover.
                self.again(|own| own.finish_deletions(&mut report))?;
                self.again(|own| own.compact_all(true, 1.0, &mut report))?;
                Ok(report)
            }
            Work::Delete(deletion) => self.take_deletion(deletion),
            Work::Vacuum(grace) => {
                let mut report = Report::default();
                self.vacuum(*grace, &mut report)?;
                Ok(report)
            }
        }
    }

    /// Does work again that gave way to another server, on what that one has left.
    pub(super) fn again<T>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        for _ in 0..GIVE_WAY_ATTEMPTS {
            match work(self) {
                Err(StoreError::Outdated(_)) => self.settle()?,
                result => return result,
            }
        }
        work(self)
    }

    /// Everything that is due.
    fn round(&mut self, cpu_share: f64) -> Result<Report, StoreError> {
        let shared = self.shared.clone();
        let config = &shared.config.maintenance;
        let mut report = Report::default();
        self.settle()?;
        let may_delete = self.watch.look(&shared.config.clock, &shared.metrics);
        // What fails must not keep the rest from its turn: a file that cannot be read would let all others grow without end.
        let deleted = self.finish_deletions(&mut report);
        let retired = if may_delete {
            self.retire(cpu_share, &mut report)
        } else {
            Ok(())
        };
        let merged = match config.compaction && deleted.is_ok() {
            true => self.compact_all(false, cpu_share, &mut report),
            false => Ok(()),
        };
        let mut vacuumed = Ok(());
        if may_delete && Instant::now() >= self.next_vacuum {
            self.next_vacuum = Instant::now() + config.vacuum_interval;
            vacuumed = self.vacuum(config.deletion_delay, &mut report);
        }
        graver(graver(graver(deleted, retired), merged), vacuumed).map(|()| report)
    }

    fn compact_all(&mut self, eager: bool, cpu_share: f64, report: &mut Report) -> Result<(), StoreError> {
        let mut result = Ok(());
        // One merge makes the next possible; each makes fewer files.
        loop {
            let left_out = self.unreadable.len();
            match self.compact(eager, cpu_share, report) {
                Ok(0) => return result,
                Ok(_) => {}
                // Without the files that were left out there may be more to do.
                Err(error) if self.unreadable.len() > left_out && !matches!(error, StoreError::Closed) => {
                    result = graver(result, Err(error));
                }
                Err(error) => return graver(result, Err(error)),
            }
        }
    }

    /// One pass of merging. Returns how many jobs were done.
    fn compact(&mut self, eager: bool, cpu_share: f64, report: &mut Report) -> Result<usize, StoreError> {
        let policy = self.policy();
        let policy = if eager { policy.eager() } else { policy };
        let jobs = plan::compactions(&self.readable(), self.now_us(), &policy, eager);
        self.run_jobs(jobs, cpu_share, report)
    }

    /// Microseconds since 1970.
    fn now_us(&self) -> i64 {
        self.shared.config.clock.micros()
    }

    fn policy(&self) -> Policy {
        let config = &self.shared.config.maintenance;
        match config.aging.by_type() {
            true => config.policy.by_type(),
            false => config.policy.clone(),
        }
    }

    pub(super) fn files(&self) -> Arc<[FileEntry]> {
        self.shared.published.read().files.clone()
    }

    /// The files without those that could not be read.
    fn readable(&self) -> Vec<FileEntry> {
        let files = self.files();
        files.iter().filter(|file| self.is_readable(file)).cloned().collect()
    }

    fn is_readable(&self, file: &FileEntry) -> bool {
        let until = self.unreadable.get(&file.path);
        until.is_none_or(|until| Instant::now() >= *until)
    }

    /// Runs jobs that share no files. One that fails does not stop the others; of their errors the first that is graver than giving way is returned.
    fn run_jobs(&mut self, jobs: Vec<Job>, cpu_share: f64, report: &mut Report) -> Result<usize, StoreError> {
        let count = jobs.len();
        let mut result = Ok(count);
        for (index, job) in jobs.into_iter().enumerate() {
            self.shared.metrics.jobs_waiting.set((count - index) as i64);
            match self.run_job(&job, cpu_share, report) {
                Ok(()) => {}
                Err(error) if matches!(error, StoreError::Closed) => return Err(error),
                Err(error) => {
                    self.leave_out(&job, &error);
                    result = graver(result, Err(error));
                }
            }
        }
        self.shared.metrics.jobs_waiting.set(0);
        result
    }

    /// A file that is not there, and that the table does not name any more, was replaced by another server whose readers need it no longer.
    pub(super) fn explained(&mut self, table: Table, error: StoreError) -> StoreError {
        let missing = match &error {
            StoreError::Io { path, source, .. } if source.kind() == io::ErrorKind::NotFound => path,
            _ => return error,
        };
        let root = self.shared.root.clone();
        let Some(delta) = self.tables.iter_mut().find(|delta| delta.table() == table) else {
            return error;
        };
        let live = delta.reload().and_then(|()| delta.files());
        match live.is_ok_and(|live| !live.iter().any(|file| root.name(&file.path) == *missing)) {
            true => {
                // Who has replaced files of one table has seldom left the others.
                self.unsure.extend(Table::ALL);
                StoreError::Outdated(table)
            }
            false => error,
        }
    }

    /// An input that cannot be read is left out of further jobs for a while, so that the files beside it are still merged. A bucket that does not answer says
    /// nothing of the file.
    fn leave_out(&mut self, job: &Job, error: &StoreError) {
        let path = match error {
            StoreError::Damaged { path, .. } => path,
            StoreError::Io { path, source, .. }
                if self.shared.root.bucket().is_none() || source.kind() == io::ErrorKind::NotFound =>
            {
                path
            }
            _ => return,
        };
        let input = job
            .inputs
            .iter()
            .find(|file| self.shared.root.name(&file.path) == *path);
        if let Some(file) = input {
            tracing::error!(error = %error, path = file.path, "a file cannot be read, it is left as it is");
            self.unreadable
                .insert(file.path.clone(), Instant::now() + UNREADABLE_WAIT);
        }
    }

    fn run_job(&mut self, job: &Job, cpu_share: f64, report: &mut Report) -> Result<(), StoreError> {
        let start = Instant::now();
        let result = self
            .begin(job.reason)
            .and_then(|()| self.rewrite(job, cpu_share))
            .and_then(|added| {
                let exchange = Exchange::of(job, added);
                self.exchange(std::slice::from_ref(&exchange))?;
                Ok(exchange)
            })
            .map_err(|error| self.explained(job.table, error));
        let exchange = self.counted(job.reason, result)?;
        self.count(&exchange, job.reason, start, report);
        Ok(())
    }

    pub(super) fn begin(&self, reason: &'static str) -> Result<(), StoreError> {
        let shared = &self.shared;
        shared
            .config
            .faults
            .run(Place::Job(reason), || Ok(()))
            .map_err(StoreError::io("work on", &shared.config.dir))
    }

    /// Counts a failure of a job.
    pub(super) fn counted<T>(&self, reason: &'static str, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &result
            && !matches!(error, StoreError::Closed | StoreError::Outdated(_))
        {
            let label = JobLabel { job: reason };
            self.shared.metrics.job_errors.get_or_create(&label).inc();
        }
        result
    }

    /// Counts a job that was done.
    pub(super) fn count(&self, exchange: &Exchange, reason: &'static str, start: Instant, report: &mut Report) {
        let (removed, added) = (&exchange.removed, &exchange.added);
        let bytes_in = removed.iter().map(|file| file.size).sum::<u64>();
        let bytes_out = added.iter().map(|file| file.size).sum::<u64>();
        let metrics = &self.shared.metrics;
        let label = JobLabel { job: reason };
        metrics.job_runs.get_or_create(&label).inc();
        metrics.job_bytes_in.get_or_create(&label).inc_by(bytes_in);
        metrics.job_bytes_out.get_or_create(&label).inc_by(bytes_out);
        metrics
            .job_seconds
            .get_or_create(&label)
            .observe(start.elapsed().as_secs_f64());
        report.jobs += 1;
        report.files_in += removed.len() as u64;
        report.files_out += added.len() as u64;
        report.bytes_in += bytes_in;
        report.bytes_out += bytes_out;
        report.rows_in += removed.iter().map(|file| file.rows).sum::<u64>();
        report.rows_out += added.iter().map(|file| file.stats.rows).sum::<u64>();
        tracing::info!(
            job = reason,
            table = exchange.table.name(),
            files_in = removed.len(),
            files_out = added.len(),
            bytes_in,
            bytes_out,
            milliseconds = start.elapsed().as_millis() as u64,
            "replaced files"
        );
    }

    /// Retention and downsampling.
    fn retire(&mut self, cpu_share: f64, report: &mut Report) -> Result<(), StoreError> {
        let shared = self.shared.clone();
        let config = &shared.config.maintenance;
        let expired = aging::expired(&self.files(), self.now_us(), &config.aging);
        for (table, removed) in expired.files {
            let start = Instant::now();
            let exchange = Exchange {
                table,
                removed,
                added: Vec::new(),
                operation: UpdateTableOperation::Delete,
                changes_data: true,
            };
            let result = self
                .begin("retention")
                .and_then(|()| self.exchange(std::slice::from_ref(&exchange)));
            self.counted("retention", result)?;
            self.count(&exchange, "retention", start, report);
        }
        let splits = expired.splits.into_iter();
        let splits = splits.filter(|job| job.inputs.iter().all(|file| self.is_readable(file)));
        let splits = splits.collect();
        let split = self.run_jobs(splits, cpu_share, report);
        let jobs = aging::downsamples(&self.readable(), self.now_us(), &config.aging, &self.policy());
        let thinned = self.run_jobs(jobs, cpu_share, report);
        graver(split, thinned.map(|_| ())).map(|_| ())
    }

    /// Waits until what is in memory is in files.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        let (reply, mut answer) = oneshot::channel();
        self.shared.requests.lock().push(reply);
        self.shared.wake.notify_one();
        loop {
            match answer.try_recv() {
                Ok(result) => return result,
                Err(oneshot::error::TryRecvError::Closed) => return Err(StoreError::Closed),
                Err(oneshot::error::TryRecvError::Empty) => {
                    // The flusher does not answer any more once it is stopped.
                    if self.shared.stopped.load(Ordering::Acquire) {
                        return Err(StoreError::Closed);
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }

    pub(super) fn rewrite(&self, job: &Job, cpu_share: f64) -> Result<Vec<NewFile>, StoreError> {
        let shared = &self.shared;
        let mut budget = Budget::new(cpu_share);
        let mut pace = || {
            if shared.stopped.load(Ordering::Acquire) {
                return Err(StoreError::Closed);
            }
            budget.keep();
            Ok(())
        };
        let mut bench = Bench {
            root: &shared.root,
            writer: &self.writer,
            effort: match (job.table, job.level) {
                (Table::Samples, 0 | 1) => MERGED,
                _ => SETTLED,
            },
            faults: &shared.config.faults,
            pace: &mut pace,
        };
        rewrite::run(job, &mut bench)
    }
}

/// Keeps work to a share of the time.
struct Budget {
    share: f64,
    since: Instant,
}

impl Budget {
    fn new(share: f64) -> Self {
        Self {
            share: share.clamp(0.01, 1.0),
            since: Instant::now(),
        }
    }

    /// Waits when the last stretch of work has used up its share.
    fn keep(&mut self) {
        let worked = self.since.elapsed();
        if self.share < 1.0 && worked >= STRETCH {
            std::thread::sleep(worked.mul_f64(1.0 / self.share - 1.0).min(Duration::from_secs(1)));
            self.since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_rather_than_that_work_gave_way_and_that_rather_than_success() {
        let result = |name: &str| match name {
            "ok" => Ok(()),
            "gave way" => Err(StoreError::Outdated(Table::Samples)),
            "closed" => Err(StoreError::Closed),
            name => Err(StoreError::Request(name.to_owned())),
        };
        for (one, other, told) in [
            ("ok", "ok", "ok"),
            ("ok", "gave way", "gave way"),
            ("gave way", "ok", "gave way"),
            ("gave way", "failed", "failed"),
            ("failed", "gave way", "failed"),
            ("failed", "failed later", "failed"),
            ("failed", "ok", "failed"),
            ("closed", "failed", "closed"),
        ] {
            let found = graver(result(one), result(other));
            assert_eq!(format!("{found:?}"), format!("{:?}", result(told)), "{one}, {other}");
        }
    }
}
