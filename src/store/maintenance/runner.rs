//! The thread of maintenance: rounds, requests, commits and publication, within a budget of CPU.
//!
//! Only this thread takes files out of tables. It commits and publishes under the lock that a flush holds too, so every view has each row once.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;

use crate::store::delta::{DeltaTable, NewFile, Replaced, UpdateTableOperation};
use crate::store::engine::Shared;
use crate::store::fault::{Faults, Place};
use crate::store::files::{FileName, MERGED, SETTLED};
use crate::store::maintenance::aging;
use crate::store::maintenance::deletion::{self, Deletion};
use crate::store::maintenance::plan::{self, Policy};
use crate::store::maintenance::rewrite::{self, Bench, Job, MergedName};
use crate::store::maintenance::vacuum::{self, Vacuumed};
use crate::store::maintenance::{Report, Work};
use crate::store::metrics::JobLabel;
use crate::store::root::Root;
use crate::store::schema::Table;
use crate::store::snapshot::FileEntry;
use crate::store::{StoreError, sync};

/// A stretch of work between waits.
const STRETCH: Duration = Duration::from_millis(20);
/// Waits between rounds that fail.
const FAILURE_WAIT: Duration = Duration::from_secs(30);
/// Attempts to commit an exchange of files.
const COMMIT_ATTEMPTS: usize = 3;

/// Attempts of work that was asked for and had to give way to another server.
const GIVE_WAY_ATTEMPTS: usize = 10;

/// Files that leave a table and files that come for them.
struct Exchange {
    table: Table,
    removed: Vec<FileEntry>,
    added: Vec<NewFile>,
    operation: UpdateTableOperation,
    changes_data: bool,
}

impl Exchange {
    fn of(job: &Job, added: Vec<NewFile>) -> Self {
        Self {
            table: job.table,
            removed: job.inputs.clone(),
            added,
            operation: match job.reason {
                "delete" => UpdateTableOperation::Delete,
                _ => UpdateTableOperation::Optimize,
            },
            changes_data: job.change.drop.is_some() || job.change.interval_us > 0,
        }
    }

    /// Whether as many rows come as leave.
    fn keeps_rows(&self) -> bool {
        let removed: u64 = self.removed.iter().map(|file| file.rows).sum();
        removed == self.added.iter().map(|file| file.stats.rows).sum::<u64>()
    }

    /// Removes the files that were to come.
    fn discard(&self, root: &Root) {
        for file in &self.added {
            let path = format!("{}/{}", self.table.name(), file.path);
            if let Err(error) = root.remove(&path) {
                tracing::debug!(error = %error, path, "cannot remove a file that is not needed");
            }
        }
    }
}

/// The thread's state.
pub struct Maintainer {
    shared: Arc<Shared>,
    tables: Vec<DeltaTable>,
    writer: String,
    /// Tables of which a commit failed: whether it is there must be read.
    unsure: BTreeSet<Table>,
    next_vacuum: Instant,
    /// Files that a job could not read, until the next start.
    unreadable: HashSet<String>,
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
        Ok(Self {
            shared,
            tables,
            writer,
            unsure: BTreeSet::new(),
            next_vacuum,
            unreadable: HashSet::new(),
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
                self.settle()?;
                // Before files are mixed with later ones that the requests do not cover.
                self.again(|own| own.finish_deletions(&mut report))?;
                self.again(|own| own.compact_all(true, 1.0, &mut report))?;
                Ok(report)
            }
            Work::Delete(deletion) => {
                deletion.check().map_err(StoreError::Request)?;
                // What was acknowledged before is in files afterwards, and the request covers these and no later ones.
                self.flush()?;
                let deletion = deletion.clone().up_to(self.committed()?);
                let config = &self.shared.config;
                let request = deletion.write(&config.dir, &config.faults)?;
                let mut report = Report::default();
                self.again(|own| own.delete(&deletion, &request, &mut report))?;
                Ok(report)
            }
            Work::Vacuum(grace) => {
                let mut report = Report::default();
                self.vacuum(*grace, &mut report)?;
                Ok(report)
            }
        }
    }

    /// Does work again that gave way to another server, on what that one has left.
    fn again<T>(&mut self, mut work: impl FnMut(&mut Self) -> Result<T, StoreError>) -> Result<T, StoreError> {
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
        // What fails must not keep the rest from its turn: a file that cannot be read would let all others grow without end.
        let deleted = self.finish_deletions(&mut report);
        let retired = self.retire(cpu_share, &mut report);
        let merged = match config.compaction && deleted.is_ok() {
            true => self.compact_all(false, cpu_share, &mut report),
            false => Ok(()),
        };
        if Instant::now() >= self.next_vacuum {
            self.next_vacuum = Instant::now() + config.vacuum_interval;
            self.vacuum(config.deletion_delay, &mut report)?;
        }
        deleted.and(retired).and(merged).map(|()| report)
    }

    /// Carries out the requests for deletions that an earlier attempt has left.
    fn finish_deletions(&mut self, report: &mut Report) -> Result<(), StoreError> {
        let mut result = Ok(());
        for request in deletion::pending(&self.shared.config.dir)? {
            tracing::info!(request = %request.display(), "finishing a deletion");
            let deletion = match Deletion::read(&request) {
                Ok(deletion) => deletion,
                // Nobody can say what it was for; `alluvium store check` names it.
                Err(error @ StoreError::Damaged { .. }) => {
                    tracing::error!(error = %error, "a request for a deletion is passed over");
                    continue;
                }
                Err(error) => return Err(error),
            };
            result = result.and(self.delete(&deletion, &request, report));
        }
        result
    }

    /// The last segment of the log of which the tables have everything.
    fn committed(&mut self) -> Result<u64, StoreError> {
        let mut least = u64::MAX;
        for delta in &mut self.tables {
            delta.reload()?;
            let version = delta
                .committed(&self.writer)?
                .map_or(0, |version| version.max(0) as u64);
            least = least.min(version);
        }
        Ok(least)
    }

    fn compact_all(&mut self, eager: bool, cpu_share: f64, report: &mut Report) -> Result<(), StoreError> {
        // One merge makes the next possible; each makes fewer files.
        while self.compact(eager, cpu_share, report)? > 0 {}
        Ok(())
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

    fn files(&self) -> Arc<[FileEntry]> {
        self.shared.published.read().files.clone()
    }

    /// The files without those that could not be read.
    fn readable(&self) -> Vec<FileEntry> {
        let files = self.files();
        let readable = files.iter().filter(|file| !self.unreadable.contains(&file.path));
        readable.cloned().collect()
    }

    /// Runs jobs that share no files. One that fails does not stop the others; the first error is returned.
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
                    result = result.and(Err(error));
                }
            }
        }
        self.shared.metrics.jobs_waiting.set(0);
        result
    }

    /// An input that is damaged is left out of further jobs until the next start, so that the files beside it are still merged.
    fn leave_out(&mut self, job: &Job, error: &StoreError) {
        let path = match error {
            StoreError::Damaged { path, .. } | StoreError::Parquet { path, .. } | StoreError::Io { path, .. } => path,
            _ => return,
        };
        let input = job
            .inputs
            .iter()
            .find(|file| self.shared.root.name(&file.path) == *path);
        if let Some(file) = input
            && self.unreadable.insert(file.path.clone())
        {
            tracing::error!(error = %error, path = file.path, "a file cannot be read, it is left as it is");
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
            });
        let exchange = self.counted(job.reason, result)?;
        self.count(&exchange, job.reason, start, report);
        Ok(())
    }

    fn begin(&self, reason: &'static str) -> Result<(), StoreError> {
        let shared = &self.shared;
        shared
            .config
            .faults
            .run(Place::Job(reason), || Ok(()))
            .map_err(StoreError::io("work on", &shared.config.dir))
    }

    /// Counts a failure of a job.
    fn counted<T>(&self, reason: &'static str, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &result
            && !matches!(error, StoreError::Closed | StoreError::Outdated(_))
        {
            let label = JobLabel { job: reason };
            self.shared.metrics.job_errors.get_or_create(&label).inc();
        }
        result
    }

    /// Counts a job that was done.
    fn count(&self, exchange: &Exchange, reason: &'static str, start: Instant, report: &mut Report) {
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
        let readable = |file: &FileEntry| !self.unreadable.contains(&file.path);
        let splits = expired.splits.into_iter().filter(|job| job.inputs.iter().all(readable));
        let splits = splits.collect();
        let split = self.run_jobs(splits, cpu_share, report);
        let jobs = aging::downsamples(&self.readable(), self.now_us(), &config.aging, &self.policy());
        let thinned = self.run_jobs(jobs, cpu_share, report);
        split.and(thinned).map(|_| ())
    }

    /// Carries a request out: files with such profiles are written again without them, and all tables change in one step for readers.
    fn delete(&mut self, deletion: &Deletion, request: &Path, report: &mut Report) -> Result<(), StoreError> {
        let shared = self.shared.clone();
        let start = Instant::now();
        self.settle()?;
        self.begin("delete")?;
        let mut exchanges: Vec<Exchange> = Vec::new();
        let files = self.files();
        let covered = files.iter().filter(|file| deletion.covers(file, &self.writer));
        let covered: Vec<FileEntry> = covered.cloned().collect();
        for job in deletion.jobs(&shared.root, &covered)? {
            let result = self.rewrite(&job, 1.0);
            let added = match self.counted("delete", result) {
                Ok(added) => added,
                Err(error) => {
                    exchanges.iter().for_each(|exchange| exchange.discard(&shared.root));
                    return Err(error);
                }
            };
            let exchange = Exchange::of(&job, added);
            // Statistics let a file through that has no such row.
            if exchange.keeps_rows() {
                exchange.discard(&shared.root);
                continue;
            }
            match exchanges.iter_mut().find(|other| other.table == job.table) {
                Some(other) => {
                    other.removed.extend(exchange.removed);
                    other.added.extend(exchange.added);
                }
                None => exchanges.push(exchange),
            }
        }
        if !exchanges.is_empty() {
            let result = self.exchange(&exchanges);
            self.counted("delete", result)?;
            for exchange in &exchanges {
                self.count(exchange, "delete", start, report);
            }
        }
        shared
            .config
            .faults
            .run(Place::RequestRemove, || fs::remove_file(request))
            .map_err(StoreError::io("remove", request))
    }

    /// Waits until what is in memory is in files.
    fn flush(&self) -> Result<(), StoreError> {
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

    fn rewrite(&self, job: &Job, cpu_share: f64) -> Result<Vec<NewFile>, StoreError> {
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

    /// Commits exchanges one after the other and publishes them in one step for every reader.
    fn exchange(&mut self, exchanges: &[Exchange]) -> Result<(), StoreError> {
        let shared = self.shared.clone();
        let _committing = shared.committing.lock();
        if let Err(error) = exchanges.iter().try_for_each(|exchange| self.commit(exchange)) {
            // What is committed and not published is found by reading the tables.
            self.unsure.extend(exchanges.iter().map(|exchange| exchange.table));
            return Err(error);
        }
        let mut published = shared.published.write();
        let gone: HashSet<&str> = exchanges
            .iter()
            .flat_map(|exchange| exchange.removed.iter().map(|file| file.path.as_str()))
            .collect();
        let added = exchanges
            .iter()
            .flat_map(|exchange| exchange.added.iter().map(|file| file.entry(exchange.table)));
        let files: Vec<FileEntry> = published
            .files
            .iter()
            .filter(|file| !gone.contains(file.path.as_str()))
            .cloned()
            .chain(added)
            .collect();
        shared.metrics.files.set(files.len() as i64);
        published.files = files.into();
        Ok(())
    }

    fn commit(&mut self, exchange: &Exchange) -> Result<(), StoreError> {
        let table = exchange.table;
        let gone: HashSet<String> = exchange.removed.iter().map(|file| file.path.clone()).collect();
        let Some(delta) = self.tables.iter_mut().find(|delta| delta.table() == table) else {
            return Err(StoreError::Closed);
        };
        let mut attempt = 1;
        let replaced = loop {
            match delta.replace(
                &gone,
                &exchange.added,
                exchange.operation.clone(),
                exchange.changes_data,
            ) {
                Ok(replaced) => break replaced,
                Err(error) if attempt < COMMIT_ATTEMPTS => {
                    tracing::warn!(error = %error, attempt, "cannot commit an exchange of files, trying again");
                    attempt += 1;
                }
                Err(error) => {
                    // It may have become visible: the next round reads the table and keeps or removes the files.
                    self.unsure.insert(table);
                    return Err(error);
                }
            }
        };
        delta.checkpoint_if_due();
        if replaced == Replaced::Stale {
            exchange.discard(&self.shared.root);
            self.unsure.insert(table);
            return Err(StoreError::Outdated(table));
        }
        Ok(())
    }

    /// After a commit of unknown outcome: publishes what the table says and removes our files that it does not name.
    fn settle(&mut self) -> Result<(), StoreError> {
        let shared = self.shared.clone();
        for table in self.unsure.clone() {
            let _committing = shared.committing.lock();
            let Some(delta) = self.tables.iter_mut().find(|delta| delta.table() == table) else {
                continue;
            };
            delta.reload()?;
            let live = delta.files()?;
            let paths: HashSet<&str> = live.iter().map(|file| file.path.as_str()).collect();
            {
                let mut published = shared.published.write();
                let known: HashSet<String> = published.files.iter().map(|file| file.path.clone()).collect();
                // What other servers have flushed is published when all of it is there, by the look for it.
                let shown = live.iter().filter(|file| {
                    let name = file.path.rsplit('/').next().unwrap_or_default();
                    known.contains(&file.path)
                        || FileName::parse(name).is_none_or(|flushed| flushed.writer == self.writer)
                });
                let shown = shown.cloned().collect();
                sync::publish(&mut published, table, shown, &self.writer);
            }
            remove_unnamed(&shared.root, table, &self.writer, &paths, &shared.config.faults)?;
            self.unsure.remove(&table);
        }
        Ok(())
    }

    fn vacuum(&mut self, grace: Duration, report: &mut Report) -> Result<(), StoreError> {
        let shared = self.shared.clone();
        self.settle()?;
        self.begin("vacuum")?;
        let start = Instant::now();
        let label = JobLabel { job: "vacuum" };
        let faults = &shared.config.faults;
        let now = shared.config.clock.now();
        let mut done = Vacuumed::default();
        let result = self.tables.iter_mut().try_for_each(|delta| {
            let table = delta.table();
            delta.reload()?;
            let live = delta.files()?;
            let live: HashSet<&str> = live.iter().map(|file| file.path.as_str()).collect();
            let dead = vacuum::dead_files(&shared.root, table, &live)?;
            vacuum::delete(&shared.root, &dead, table, (now, grace), faults, &mut done)?;
            vacuum::trim_log(&shared.root, table, now, faults, &mut done)
        });
        let metrics = &shared.metrics;
        if let Err(error) = result {
            metrics.job_errors.get_or_create(&label).inc();
            return Err(error);
        }
        metrics.job_runs.get_or_create(&label).inc();
        metrics.job_bytes_in.get_or_create(&label).inc_by(done.bytes);
        metrics
            .job_seconds
            .get_or_create(&label)
            .observe(start.elapsed().as_secs_f64());
        metrics.dead_files.set(done.waiting as i64);
        if done.files + done.entries > 0 {
            tracing::info!(
                files = done.files,
                bytes = done.bytes,
                entries = done.entries,
                "deleted files that nobody needs"
            );
        }
        report.vacuumed = done;
        Ok(())
    }
}

/// Removes merged files of `writer` that the table does not name and whose removal its log does not know either: what a crash left.
pub fn remove_unnamed(
    root: &Root,
    table: Table,
    writer: &str,
    live: &HashSet<&str>,
    faults: &Faults,
) -> Result<u64, StoreError> {
    let mut done = Vacuumed::default();
    let ours = |file: &vacuum::Dead| {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        file.removed.is_none() && MergedName::is_of(name, writer)
    };
    let mut dead = vacuum::dead_files(root, table, live)?;
    dead.retain(ours);
    for file in &mut dead {
        file.modified = SystemTime::UNIX_EPOCH;
    }
    vacuum::delete(
        root,
        &dead,
        table,
        (SystemTime::now(), Duration::ZERO),
        faults,
        &mut done,
    )?;
    Ok(done.files)
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
