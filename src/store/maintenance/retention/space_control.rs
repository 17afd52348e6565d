//! Keeps the tables below their size limits, and the free space of the disk above its floor, round by round.
//!
//! In: the live files and the free space. Out: the oldest files are removed from their tables. The metrics count a
//! removal as the job `retention_size` or `free_space`. Removed files stay on disk for the deletion delay. If the disk
//! is nearly full, they are deleted after a minute.

use std::time::Instant;

use crate::store::common::error::StoreError;
use crate::store::maintenance::report::Report;
use crate::store::maintenance::retention::space::{ExcessFiles, FreeFloor, oldest};
use crate::store::maintenance::retention::vacuum_job::Vacuum;
use crate::store::maintenance::worker::Worker;

/// State of earlier rounds that the next round needs.
#[derive(Default)]
pub(in crate::store::maintenance) struct SpaceControl {
    /// Time by which the files of the last removal for the job `free_space` are deleted from the disk. Until then, this
    /// job removes no more files.
    relieved_at: Option<Instant>,
    /// True if the files that must stay exceeded a limit in the last round, so the warning was already logged.
    has_warned: bool,
}

impl SpaceControl {
    /// Removes the oldest files beyond the limits on size. If `may_delete` is true, also restores the floor of free
    /// space.
    pub(in crate::store::maintenance) fn enforce_limits(
        &mut self,
        worker: &mut Worker,
        vacuum: &mut Vacuum,
        may_delete: bool,
        report: &mut Report,
    ) -> Result<(), StoreError> {
        let config = worker.config.clone();
        let space = &config.maintenance.space;
        let mut remaining_bytes = 0;
        for excess in space.excess_files(&worker.published.files()) {
            remaining_bytes += excess.remaining_bytes;
            remove(worker, excess, "retention_size", report)?;
        }
        // Files of a bucket are not on this disk. While the clock cannot be trusted, files that look old are not
        // deleted.
        if let Some(floor) = space.floor
            && may_delete
            && worker.published.root.bucket().is_none()
        {
            remaining_bytes += self.restore_free_space(worker, vacuum, &floor, report)?;
        }
        self.warn(remaining_bytes);
        Ok(())
    }

    /// If free space is missing, deletes files that were removed from their tables. If this does not suffice, removes
    /// the oldest live files from their tables. Returns the bytes that are still missing because the other files stay.
    fn restore_free_space(
        &mut self,
        worker: &mut Worker,
        vacuum: &mut Vacuum,
        floor: &FreeFloor,
        report: &mut Report,
    ) -> Result<u64, StoreError> {
        let config = worker.config.clone();
        let missing = || {
            let missing = floor.missing_bytes(&config.dir);
            missing.map_err(StoreError::io("measure the free space of", &config.dir))
        };
        if missing()? == 0 {
            return Ok(0);
        }
        let delay = config.maintenance.deletion_delay.min(FreeFloor::DELAY);
        vacuum.run(worker, delay, report)?;
        let is_waiting = self.relieved_at.is_some_and(|time| Instant::now() < time);
        let missing = missing()?;
        if missing == 0 || is_waiting {
            return Ok(0);
        }
        let files = worker.published.files();
        let total: u64 = files.iter().map(|file| file.size).sum();
        let Some(excess) = oldest(files.iter(), total.saturating_sub(missing)) else {
            return Ok(0);
        };
        self.relieved_at = Some(Instant::now() + delay + config.maintenance.interval);
        let remaining_bytes = excess.remaining_bytes;
        remove(worker, excess, "free_space", report)?;
        Ok(remaining_bytes)
    }

    /// Logs a warning if the files that must stay exceed the limit. A later call logs the warning again only if the
    /// files were within the limit in between.
    fn warn(&mut self, remaining_bytes: u64) {
        if remaining_bytes > 0 && !self.has_warned {
            tracing::warn!(
                bytes = remaining_bytes,
                "profiles of the newest hour, and stacks and series of two days, exceed the space limit but must stay"
            );
        }
        self.has_warned = remaining_bytes > 0;
    }
}

fn remove(
    worker: &mut Worker,
    excess: ExcessFiles,
    reason: &'static str,
    report: &mut Report,
) -> Result<(), StoreError> {
    if excess.bytes == 0 {
        return Ok(());
    }
    let newest = chrono::DateTime::from_timestamp_micros(excess.newest_us).unwrap_or_default();
    tracing::info!(
        reason,
        bytes = excess.bytes,
        until = newest.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        "removing the oldest profiles to make room"
    );
    worker.remove(excess.files, reason, report)
}
