//! The vacuum job, which deletes files that no table uses any more. One pass covers all tables. The job remembers the
//! log entries that it has read, so the next pass reads only new entries.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::store::common::error::StoreError;
use crate::store::common::metrics::JobLabel;
use crate::store::common::schema::Table;
use crate::store::maintenance::report::{Report, Vacuumed};
use crate::store::maintenance::retention::vacuum::{Removals, dead_files, delete, trim_log};
use crate::store::maintenance::worker::Worker;
use alluvium_telemetry::memory;

/// For each table, the removal times of its files, according to the log entries that the job has read.
#[derive(Default)]
pub(in crate::store::maintenance) struct Vacuum {
    removals: HashMap<Table, Removals>,
}

impl Vacuum {
    /// Deletes the files that were removed from their table more than `grace` ago, and old files that no table has ever
    /// contained.
    pub(in crate::store::maintenance) fn run(
        &mut self,
        worker: &mut Worker,
        grace: Duration,
        report: &mut Report,
    ) -> Result<(), StoreError> {
        worker.tables.resolve_uncertain()?;
        worker.begin("vacuum")?;
        let start = Instant::now();
        let label = JobLabel { job: "vacuum" };
        let faults = &worker.config.faults;
        let now = worker.config.clock.now();
        let root = &worker.published.root;
        let mut vacuumed = Vacuumed::default();
        let result = worker.tables.tables_mut().try_for_each(|delta| {
            let table = delta.table();
            delta.reload()?;
            let live = delta.files()?;
            let live: HashSet<&str> = live.iter().map(|file| file.path.as_str()).collect();
            let removals = self.removals.entry(table).or_default();
            let dead = dead_files(root, table, &live, removals)?;
            delete(root, &dead, table, (now, grace), faults, &mut vacuumed)?;
            trim_log(root, table, now, faults, &mut vacuumed)
        });
        let metrics = &worker.metrics;
        if let Err(error) = result {
            metrics.job_errors.get_or_create(&label).inc();
            return Err(error);
        }
        metrics.job_runs.get_or_create(&label).inc();
        metrics.job_bytes_in.get_or_create(&label).inc_by(vacuumed.bytes);
        metrics
            .job_seconds
            .get_or_create(&label)
            .observe(start.elapsed().as_secs_f64());
        metrics.dead_files.set(vacuumed.waiting as i64);
        if vacuumed.files + vacuumed.entries > 0 {
            tracing::info!(
                files = vacuumed.files,
                bytes = vacuumed.bytes,
                entries = vacuumed.entries,
                "deleted files that no reader needs"
            );
        }
        report.vacuumed = vacuumed;
        // Returns memory that was freed since the last pass to the operating system.
        memory::release_unused_memory();
        Ok(())
    }
}
