//! Runs one job: rewrites files, exchanges them, and counts the work.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::store::common::error::StoreError;
use crate::store::common::fault::FaultPoint;
use crate::store::common::lifecycle::Lifecycle;
use crate::store::common::metrics::{JobLabel, Metrics};
use crate::store::common::schema::Table;
use crate::store::config::StoreConfig;
use crate::store::flush::files::{MERGED, SETTLED};
use crate::store::flush::published::Published;
use crate::store::head::repeats::Repeats;
use crate::store::maintenance::exchange::{Exchange, Exchanger};
use crate::store::maintenance::merge::rewrite;
use crate::store::maintenance::merge::rewrite::{Environment, Job};
use crate::store::maintenance::report::Report;
use crate::store::tables::delta::{NewFile, Operation};
use crate::store::tables::snapshot::FileEntry;

/// Length of a period of work between two waits.
const WORK_PERIOD: Duration = Duration::from_millis(20);
/// Maximum number of times that requested work starts again because another server has replaced its files.
const MAX_RESTARTS: usize = 10;

pub(super) struct Worker {
    pub(super) config: Arc<StoreConfig>,
    pub(super) metrics: Metrics,
    pub(super) published: Arc<Published>,
    pub(super) lifecycle: Arc<Lifecycle>,
    /// Keys of the recently stored profiles, by tenant. A deletion clears the keys of its tenant.
    pub(super) repeats: Arc<Repeats>,
    pub(super) tables: Exchanger,
    /// Live files that are known to be damaged.
    pub(super) damaged: HashSet<PathBuf>,
}

impl Worker {
    /// Returns the time in microseconds since 1970.
    pub(super) fn now_us(&self) -> i64 {
        self.config.clock.micros()
    }

    /// Runs one job, from reading its files to publishing the result.
    pub(super) fn run(&mut self, job: &Job, cpu_share: f64, report: &mut Report) -> Result<(), StoreError> {
        let start = Instant::now();
        let result = self
            .begin(job.reason)
            .and_then(|()| self.rewrite(job, cpu_share))
            .and_then(|added| {
                let exchange = Exchange::of(job, added);
                self.tables.exchange(std::slice::from_ref(&exchange))?;
                Ok(exchange)
            })
            .map_err(|error| self.tables.explained(job.table, error))
            .inspect_err(|error| self.report_damage(error));
        let exchange = self.count_failure(job.reason, result)?;
        self.count(&exchange, job.reason, start, report);
        Ok(())
    }

    /// Removes files from their tables. Files of samples and profiles are removed first. Files of series and stacks
    /// stay if a remaining row may refer to them.
    pub(super) fn remove(
        &mut self,
        files: BTreeMap<Table, Vec<FileEntry>>,
        reason: &'static str,
        report: &mut Report,
    ) -> Result<(), StoreError> {
        for (table, removed) in files {
            let start = Instant::now();
            let removed = match table {
                Table::Profiles | Table::Samples => removed,
                Table::Stacks | Table::Series => self.published.unneeded_names(removed),
            };
            if removed.is_empty() {
                continue;
            }
            let exchange = Exchange {
                table,
                removed,
                added: Vec::new(),
                operation: Operation::Delete,
            };
            let result = self
                .begin(reason)
                .and_then(|()| self.tables.exchange(std::slice::from_ref(&exchange)));
            self.count_failure(reason, result)?;
            self.count(&exchange, reason, start, report);
        }
        Ok(())
    }

    /// Runs work. If another server has replaced the files of the work, repeats it on the new state of the tables.
    pub(super) fn retry<T>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        for _ in 0..MAX_RESTARTS {
            match work(self) {
                Err(StoreError::Outdated(_)) => self.tables.resolve_uncertain()?,
                result => return result,
            }
        }
        work(self)
    }

    /// Counts and logs a damaged file, once.
    pub(super) fn report_damage(&mut self, error: &StoreError) {
        let StoreError::Damaged { path, .. } = error else {
            return;
        };
        let files = self.published.files();
        let live: HashSet<PathBuf> = files.iter().map(|file| self.published.root.name(&file.path)).collect();
        self.damaged.retain(|path| live.contains(path));
        if live.contains(path) && self.damaged.insert(path.clone()) {
            self.metrics.damaged_files.inc();
            tracing::error!(%error, path = %path.display(), "a file is damaged, it stays unchanged");
        }
    }

    /// Marks the start of a job. Tests make the job fail here.
    pub(super) fn begin(&self, reason: &'static str) -> Result<(), StoreError> {
        let config = &self.config;
        let result = config.faults.run(FaultPoint::Job(reason), || Ok(()));
        result.map_err(StoreError::io("work on", &config.dir))
    }

    /// Returns the result of a job, and counts the failure if the result is an error.
    pub(super) fn count_failure<T>(
        &self,
        reason: &'static str,
        result: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Err(error) = &result
            && !matches!(error, StoreError::Closed | StoreError::Outdated(_))
        {
            let label = JobLabel { job: reason };
            self.metrics.job_errors.get_or_create(&label).inc();
        }
        result
    }

    /// Counts a job that has succeeded.
    pub(super) fn count(&self, exchange: &Exchange, reason: &'static str, start: Instant, report: &mut Report) {
        let (removed, added) = (&exchange.removed, &exchange.added);
        let bytes_in = removed.iter().map(|file| file.size).sum::<u64>();
        let bytes_out = added.iter().map(|file| file.size).sum::<u64>();
        let metrics = &self.metrics;
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

    /// Writes the new files of a job, and uses at most the share `cpu_share` of one core.
    pub(super) fn rewrite(&self, job: &Job, cpu_share: f64) -> Result<Vec<NewFile>, StoreError> {
        let mut budget = Budget::new(cpu_share);
        let mut throttle = || {
            if self.lifecycle.is_stopped() {
                return Err(StoreError::Closed);
            }
            budget.throttle();
            Ok(())
        };
        let mut environment = Environment {
            root: &self.published.root,
            writer: &self.published.writer,
            effort: match (job.table, job.level) {
                (Table::Samples, 0 | 1) => MERGED,
                _ => SETTLED,
            },
            faults: &self.config.faults,
            memory_bytes: self.config.maintenance.memory_bytes,
            memory_used: &self.metrics.maintenance_bytes,
            throttle: &mut throttle,
        };
        rewrite::run(job, &mut environment)
    }
}

/// Returns the worse of two results. [`StoreError::Outdated`], which means that another server has replaced the files,
/// is worse than success. Every other error is worse than `Outdated`.
pub(super) fn worse_result<T>(one: Result<T, StoreError>, other: Result<(), StoreError>) -> Result<T, StoreError> {
    match (one, other) {
        (one @ Err(StoreError::Closed), _) => one,
        (Ok(_) | Err(StoreError::Outdated(_)), Err(error)) => Err(error),
        (one, _) => one,
    }
}

/// Limits work to a share of the time.
struct Budget {
    share: f64,
    start: Instant,
}

impl Budget {
    fn new(share: f64) -> Self {
        Self {
            share: share.clamp(0.01, 1.0),
            start: Instant::now(),
        }
    }

    /// If the work has lasted for [`WORK_PERIOD`], waits until the work is within its share of the time. The wait takes
    /// at most one second.
    fn throttle(&mut self) {
        let worked = self.start.elapsed();
        if self.share < 1.0 && worked >= WORK_PERIOD {
            std::thread::sleep(worked.mul_f64(1.0 / self.share - 1.0).min(Duration::from_secs(1)));
            self.start = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_worse_than_giving_way_and_that_is_worse_than_success() {
        let result = |name: &str| match name {
            "ok" => Ok(()),
            "gave way" => Err(StoreError::Outdated(Table::Samples)),
            "closed" => Err(StoreError::Closed),
            name => Err(StoreError::Request(name.to_owned())),
        };
        for (one, other, expected) in [
            ("ok", "ok", "ok"),
            ("ok", "gave way", "gave way"),
            ("gave way", "ok", "gave way"),
            ("gave way", "failed", "failed"),
            ("failed", "gave way", "failed"),
            ("failed", "failed later", "failed"),
            ("failed", "ok", "failed"),
            ("closed", "failed", "closed"),
        ] {
            let worse = worse_result(result(one), result(other));
            assert_eq!(
                format!("{worse:?}"),
                format!("{:?}", result(expected)),
                "{one}, {other}"
            );
        }
    }
}
