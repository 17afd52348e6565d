//! The maintenance thread: runs regular rounds, and work that callers request.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::store::common::error::StoreError;
use crate::store::common::lifecycle::Lifecycle;
use crate::store::common::metrics::Metrics;
use crate::store::config::StoreConfig;
use crate::store::flush::flushes::Flushes;
use crate::store::flush::published::Published;
use crate::store::head::repeats::Repeats;
use crate::store::maintenance::deletion::job::Deletions;
use crate::store::maintenance::exchange::Exchanger;
use crate::store::maintenance::jobs::Jobs;
use crate::store::maintenance::report::Report;
use crate::store::maintenance::requests::{Requests, Work};
use crate::store::maintenance::retention::aging;
use crate::store::maintenance::retention::clock_watch::ClockWatch;
use crate::store::maintenance::retention::space_control::SpaceControl;
use crate::store::maintenance::retention::vacuum_job::Vacuum;
use crate::store::maintenance::worker::{Worker, worse_result};

/// Additional wait after a round that failed.
const FAILURE_DELAY: Duration = Duration::from_secs(30);

/// State of the maintenance thread.
pub(crate) struct Maintainer {
    worker: Worker,
    requests: Arc<Requests>,
    flushes: Arc<Flushes>,
    next_vacuum: Instant,
    jobs: Jobs,
    deletions: Deletions,
    vacuum: Vacuum,
    room: SpaceControl,
    watch: ClockWatch,
}

impl Maintainer {
    pub(crate) fn open(
        config: Arc<StoreConfig>,
        metrics: Metrics,
        published: Arc<Published>,
        requests: Arc<Requests>,
        flushes: Arc<Flushes>,
        lifecycle: Arc<Lifecycle>,
        repeats: Arc<Repeats>,
    ) -> Result<Self, StoreError> {
        let config = Arc::new(StoreConfig {
            faults: config.faults.recording_waits(&metrics.waits.maintenance),
            ..(*config).clone()
        });
        let tables = Exchanger::open(published.clone(), config.checkpoint_interval, config.faults.clone())?;
        Ok(Self {
            next_vacuum: Instant::now() + config.maintenance.vacuum_interval.min(Duration::from_mins(1)),
            watch: ClockWatch::open(&config.dir, &config.clock),
            worker: Worker {
                config,
                metrics,
                published,
                lifecycle,
                repeats,
                tables,
                damaged: HashSet::new(),
            },
            requests,
            flushes,
            jobs: Jobs::default(),
            deletions: Deletions::default(),
            vacuum: Vacuum::default(),
            room: SpaceControl::default(),
        })
    }

    /// Body of the thread. Ends when the store stops.
    pub(crate) fn run(mut self) {
        let (requests, lifecycle) = (self.requests.clone(), self.worker.lifecycle.clone());
        let waits = self.worker.metrics.waits.maintenance.clone();
        let config = self.worker.config.clone();
        let config = &config.maintenance;
        let mut next_round = Instant::now() + config.interval;
        let wait = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        while let Some(requests) = requests.next(|| lifecycle.is_stopped(), || wait(next_round)) {
            let _working = waits.begin();
            if requests.is_empty() {
                next_round = Instant::now() + config.interval;
                match self.round(config.cpu_share, false) {
                    Ok(_) | Err(StoreError::Closed) => {}
                    Err(error @ StoreError::Outdated(_)) => {
                        tracing::info!(
                            reason = %error,
                            "another server has replaced the same files, maintenance continues in its next round"
                        );
                    }
                    Err(error) => {
                        tracing::error!(error = %error, "maintenance failed, trying again");
                        next_round += FAILURE_DELAY;
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
            Work::Due => self.round(1.0, true),
            Work::Compact => {
                let mut report = Report::default();
                self.jobs.forget_unreadable();
                self.worker.tables.resolve_uncertain()?;
                let deleted = (self.worker).retry(|worker| {
                    let (hold, deleted) = self.deletions.finish(worker, true, &mut report);
                    self.jobs.hold(hold);
                    deleted
                });
                let policy = self.worker.config.maintenance.merging().eager();
                let merged = (self.worker).retry(|worker| self.jobs.compact(worker, &policy, 1.0, &mut report));
                worse_result(deleted, merged).map(|()| report)
            }
            Work::Delete(deletion) => Deletions::take(&mut self.worker, &self.flushes, deletion),
            Work::Vacuum(grace) => {
                let mut report = Report::default();
                self.vacuum.run(&mut self.worker, *grace, &mut report)?;
                Ok(report)
            }
        }
    }

    /// Does all work that is due. If `requested` is true, deletions that wait for a file are tried again at once.
    fn round(&mut self, cpu_share: f64, requested: bool) -> Result<Report, StoreError> {
        let config = self.worker.config.clone();
        let mut report = Report::default();
        self.worker.tables.resolve_uncertain()?;
        let may_delete = self.watch.check(&config.clock, &self.worker.metrics);
        let config = &config.maintenance;
        // A failure must not prevent the other tasks. Otherwise one unreadable file would let the tables grow without
        // end.
        let (hold, deleted) = self.deletions.finish(&mut self.worker, requested, &mut report);
        self.jobs.hold(hold);
        let mut retired = Ok(());
        if may_delete {
            retired = self.apply_retention(cpu_share, &mut report);
        }
        let relieved = self
            .room
            .enforce_limits(&mut self.worker, &mut self.vacuum, may_delete, &mut report);
        let mut merged = Ok(());
        if config.compaction {
            merged = (self.jobs).compact(&mut self.worker, &config.merging(), cpu_share, &mut report);
        }
        let mut vacuumed = Ok(());
        if may_delete && Instant::now() >= self.next_vacuum {
            self.next_vacuum = Instant::now() + config.vacuum_interval;
            vacuumed = (self.vacuum).run(&mut self.worker, config.deletion_delay, &mut report);
        }
        worse_result(
            worse_result(worse_result(worse_result(deleted, retired), relieved), merged),
            vacuumed,
        )
        .map(|()| report)
    }

    /// Applies retention and downsampling.
    fn apply_retention(&mut self, cpu_share: f64, report: &mut Report) -> Result<(), StoreError> {
        let (worker, jobs) = (&mut self.worker, &mut self.jobs);
        let config = worker.config.clone();
        let config = &config.maintenance;
        let expired = aging::expired(&worker.published.files(), worker.now_us(), &config.aging);
        worker.remove(expired.files, "retention", report)?;
        let mut splits = expired.splits;
        splits.retain(|job| job.inputs.iter().all(|file| jobs.may_rewrite(file)));
        let split = jobs.run(worker, splits, cpu_share, report);
        let files = jobs.rewritable(worker);
        let coarser = aging::downsamples(&files, worker.now_us(), &config.aging, &config.merging());
        let downsampled = jobs.run(worker, coarser, cpu_share, report);
        worse_result(split, downsampled.map(|_| ())).map(|_| ())
    }
}
