//! Which files are worth merging: from the list of live files and the time to a list of jobs. Pure.
//!
//! Flushed files (level 0) are merged some at a time into files of an hour (level 1), the files of an hour that is
//! over into one (level 2), and hours of a day that is over into files of the target size (level 3), so that a
//! question of an hour reads little more than that hour and a quiet tenant has few files. Names are merged by size.
//! Each row is written some three times in its life.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::profile::TimeSpan;
use crate::profile::time::HOUR_US;
use crate::store::maintenance::rewrite::{Change, Job, MergedName};
use crate::store::schema::Table;
use crate::store::snapshot::FileEntry;

/// A flushed file becomes so many times smaller by merging: its stacks and times repeat in the others (docs/adr/0004).
const FLUSHED_SHRINKS: u64 = 3;

/// When merging is worth it.
#[derive(Debug, Clone)]
pub struct Policy {
    /// So many flushed files of a partition are merged.
    pub min_files: usize,
    /// At most so many files at once: each costs memory while it is read.
    pub max_inputs: usize,
    /// Files of a day that is over are merged up to this size in bytes.
    pub target_bytes: u64,
    /// From this size in bytes on each profile type gets a file of samples of its own.
    pub split_bytes: u64,
    /// Profiles are split by type too: where types have retentions of their own. Otherwise the ids of profiles, which
    /// their types share, would be in each file again.
    pub split_profiles: bool,
    /// An hour is over so long after its end: until then profiles of it may be under way.
    pub settle: Duration,
    /// Every hour and day is taken for over.
    pub eager: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            min_files: 8,
            max_inputs: 32,
            target_bytes: 16 << 20,
            split_bytes: 4 << 20,
            split_profiles: false,
            settle: Duration::from_secs(15 * 60),
            eager: false,
        }
    }
}

impl Policy {
    /// Keeps profile types apart, whatever the size.
    #[must_use]
    pub fn by_type(&self) -> Self {
        Self {
            split_bytes: 0,
            split_profiles: true,
            ..self.clone()
        }
    }

    /// Merges whatever can be merged, as if every hour and day were over.
    #[must_use]
    pub fn eager(&self) -> Self {
        Self {
            min_files: 2,
            eager: true,
            ..self.clone()
        }
    }
}

/// Files of a tenant's day in one table.
pub type Partitions<'a> = BTreeMap<(Table, Arc<str>, i32), Vec<&'a FileEntry>>;

/// The files by table, tenant and day.
pub fn partitions(files: &[FileEntry]) -> Partitions<'_> {
    let mut partitions = Partitions::new();
    for file in files {
        partitions
            .entry((file.table, file.tenant.clone(), file.day))
            .or_default()
            .push(file);
    }
    partitions
}

/// The merges that are due at `now_us`. Jobs of one call do not share files.
pub fn compactions(files: &[FileEntry], now_us: i64, policy: &Policy) -> Vec<Job> {
    let settled_us = if policy.eager {
        i64::MAX
    } else {
        now_us.saturating_sub(policy.settle.as_micros() as i64)
    };
    let mut jobs = Vec::new();
    for ((table, tenant, day), files) in partitions(files) {
        let job = |inputs: Vec<&FileEntry>, level, by_hour, reason| {
            let bytes: u64 = inputs.iter().map(|file| file.size).sum();
            Job {
                table,
                tenant: tenant.clone(),
                day,
                change: Change::default(),
                level,
                resolution: resolution_of(&inputs),
                by_hour,
                by_kind: match table {
                    Table::Samples => bytes >= policy.split_bytes,
                    Table::Profiles => policy.split_profiles,
                    Table::Stacks | Table::Series => false,
                },
                inputs: inputs.into_iter().cloned().collect(),
                reason,
            }
        };
        let day_end = TimeSpan::of_day(day).end;
        let day_over = day_end.saturating_add(HOUR_US) <= settled_us;
        match table {
            Table::Stacks | Table::Series => {
                if let Some(inputs) = names(&files, policy, day_over) {
                    jobs.push(job(inputs, 1, false, "compact"));
                }
            }
            Table::Samples | Table::Profiles => {
                for (inputs, level, by_hour) in rows(&files, policy, settled_us, day_over) {
                    jobs.push(job(inputs, level, by_hour, "compact"));
                }
            }
        }
    }
    jobs
}

/// The coarsest resolution that all inputs have.
pub fn resolution_of(inputs: &[&FileEntry]) -> u32 {
    let resolutions = inputs.iter().map(|file| MergedName::of(&file.path).resolution);
    resolutions.min().unwrap_or(0)
}

/// Names: all flushed files, and the merged ones that are not much larger than what comes to them.
fn names<'a>(files: &[&'a FileEntry], policy: &Policy, day_over: bool) -> Option<Vec<&'a FileEntry>> {
    let mut sorted = files.to_vec();
    sorted.sort_by_key(|file| (MergedName::of(&file.path).level > 0, file.size));
    let flushed = sorted
        .iter()
        .filter(|file| MergedName::of(&file.path).level == 0)
        .count();
    if flushed < policy.min_files && !(day_over && files.len() > 1) {
        return None;
    }
    let mut bytes = 0;
    let mut chosen = Vec::new();
    for (index, file) in sorted.into_iter().enumerate() {
        if chosen.len() == policy.max_inputs || (index >= flushed && !day_over && file.size > 2 * bytes) {
            break;
        }
        bytes += file.size;
        chosen.push(file);
    }
    (chosen.len() > 1).then_some(chosen)
}

/// Samples and profiles: inputs, level, and whether the output is one file an hour.
fn rows<'a>(
    files: &[&'a FileEntry],
    policy: &Policy,
    settled_us: i64,
    day_over: bool,
) -> Vec<(Vec<&'a FileEntry>, u8, bool)> {
    let level = |file: &FileEntry| MergedName::of(&file.path).level;
    // As if the day were over, and few enough for one merge: no file is written only to be merged again.
    if policy.eager && files.len() <= policy.max_inputs {
        return of_day(files, policy);
    }
    let mut flushed: Vec<&FileEntry> = files.iter().copied().filter(|file| level(file) == 0).collect();
    if flushed.len() >= policy.min_files {
        flushed.sort_by_key(|file| (file.time, file.path.clone()));
        flushed.truncate(policy.max_inputs);
        return vec![(flushed, 1, true)];
    }
    let hour_of = |file: &FileEntry| {
        let time = file.time?;
        let hour = time.least.div_euclid(HOUR_US);
        (hour == time.most.div_euclid(HOUR_US)).then_some(hour)
    };
    let mut hours: BTreeMap<i64, Vec<&FileEntry>> = BTreeMap::new();
    for file in files {
        if let Some(hour) = hour_of(file) {
            hours.entry(hour).or_default().push(file);
        }
    }
    let mut jobs = Vec::new();
    for (hour, mut files) in hours {
        let over = hour.saturating_add(1).saturating_mul(HOUR_US) <= settled_us;
        if over && files.len() > 1 && files.iter().any(|file| level(file) < 2) {
            files.sort_by_key(|file| (level(file), file.path.clone()));
            files.truncate(policy.max_inputs);
            if files.len() > 1 {
                jobs.push((files, 2, false));
            }
        }
    }
    if !jobs.is_empty() || !day_over {
        return jobs;
    }
    of_day(files, policy)
}

/// The files of a day that is over, merged up to the target size.
fn of_day<'a>(files: &[&'a FileEntry], policy: &Policy) -> Vec<(Vec<&'a FileEntry>, u8, bool)> {
    let level = |file: &FileEntry| MergedName::of(&file.path).level;
    let merged_size = |file: &FileEntry| match level(file) {
        0 => file.size / FLUSHED_SHRINKS,
        _ => file.size,
    };
    // Files of one type each are merged by type: others would be as many afterwards as before.
    let kind = |file: &'a FileEntry| {
        let kinds = file.profile_type.as_ref().filter(|_| policy.split_profiles)?;
        kinds.single()
    };
    let mut sorted = files.to_vec();
    sorted.sort_by_key(|file| (kind(file), file.time, file.path.clone()));
    let mut jobs = Vec::new();
    let mut group: Vec<&FileEntry> = Vec::new();
    let mut close = |group: &mut Vec<&'a FileEntry>| {
        let group = std::mem::take(group);
        if group.len() > 1 && group.iter().any(|file| level(file) < 3) {
            jobs.push((group, 3, false));
        }
    };
    for file in sorted {
        let bytes: u64 = group.iter().map(|file| merged_size(file)).sum();
        let is_other = group.first().is_some_and(|first| kind(first) != kind(file));
        let is_full = bytes + merged_size(file) > policy.target_bytes || group.len() == policy.max_inputs;
        if !group.is_empty() && (is_other || is_full) {
            close(&mut group);
        }
        group.push(file);
    }
    close(&mut group);
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::time::DAY_US;
    use crate::store::stats::Bounds;

    fn file(table: Table, name: &str, minutes: (i64, i64), size: u64) -> FileEntry {
        FileEntry {
            table,
            path: format!("{}/tenant=t/day=2026-11-21/{name}", table.name()),
            size,
            rows: 1,
            tenant: "t".into(),
            day: 20_778,
            time: Some(Bounds::new(at(minutes.0), at(minutes.1))),
            profile_type: None,
            series: None,
            checksum: None,
        }
    }

    fn at(minutes: i64) -> i64 {
        20_778 * DAY_US + minutes * 60_000_000
    }

    fn summary(jobs: &[Job]) -> Vec<(usize, u8, bool)> {
        jobs.iter()
            .map(|job| (job.inputs.len(), job.level, job.by_hour))
            .collect()
    }

    #[test]
    fn flushed_files_are_merged_when_there_are_enough() {
        let policy = Policy::default();
        let mut files: Vec<FileEntry> = (0..7)
            .map(|flush| {
                file(
                    Table::Samples,
                    &format!("{flush:012}-1-w.parquet"),
                    (flush * 5, flush * 5 + 5),
                    100,
                )
            })
            .collect();
        assert_eq!(summary(&compactions(&files, at(40), &policy)), []);
        files.push(file(Table::Samples, "000000000008-1-w.parquet", (35, 40), 100));
        assert_eq!(summary(&compactions(&files, at(40), &policy)), [(8, 1, true)]);
    }

    #[test]
    fn an_hour_that_is_over_becomes_one_file_and_stays() {
        let policy = Policy::default();
        let files = [
            file(Table::Samples, "c1-0-a-w.parquet", (0, 40), 100),
            file(Table::Samples, "000000000009-1-w.parquet", (40, 58), 100),
            file(Table::Samples, "000000000010-1-w.parquet", (61, 70), 100),
        ];
        assert_eq!(summary(&compactions(&files, at(70), &policy)), []);
        assert_eq!(summary(&compactions(&files, at(76), &policy)), [(2, 2, false)]);
        let merged = [file(Table::Samples, "c2-0-a-w.parquet", (0, 58), 200)];
        assert_eq!(summary(&compactions(&merged, at(600), &policy)), []);
    }

    #[test]
    fn quiet_hours_of_a_day_that_is_over_share_files_of_the_target_size() {
        let policy = Policy::default();
        let files: Vec<FileEntry> = (0..24)
            .map(|hour| {
                file(
                    Table::Samples,
                    &format!("c2-0-{hour}-w.parquet"),
                    (hour * 60, hour * 60 + 59),
                    3 << 20,
                )
            })
            .collect();
        let now = at(26 * 60);
        assert_eq!(summary(&compactions(&files, at(23 * 60), &policy)), []);
        let jobs = compactions(&files, now, &policy);
        assert_eq!(
            summary(&jobs),
            [(5, 3, false); 4]
                .into_iter()
                .chain([(4, 3, false)])
                .collect::<Vec<_>>()
        );
        let done: Vec<FileEntry> = (0..5)
            .map(|part| {
                file(
                    Table::Samples,
                    &format!("c3-0-{part}-w.parquet"),
                    (part * 300, part * 300 + 299),
                    3 << 20,
                )
            })
            .collect();
        assert_eq!(summary(&compactions(&done, now, &policy)), []);
    }

    #[test]
    fn an_eager_merge_of_few_files_is_one_step() {
        let policy = Policy::default().eager();
        let files: Vec<FileEntry> = (0..20)
            .map(|flush| {
                file(
                    Table::Samples,
                    &format!("{flush:012}-1-w.parquet"),
                    (flush * 4, flush * 4 + 4),
                    2 << 20,
                )
            })
            .collect();
        assert_eq!(summary(&compactions(&files, at(40), &policy)), [(20, 3, false)]);
        let merged = [file(Table::Samples, "c3-0-a-w.parquet", (0, 80), 13 << 20)];
        assert_eq!(summary(&compactions(&merged, at(40), &policy)), []);
    }

    #[test]
    fn large_names_are_not_written_again_for_small_ones() {
        let policy = Policy::default();
        let mut files: Vec<FileEntry> = (0..8)
            .map(|flush| file(Table::Stacks, &format!("{flush:012}-1-w.parquet"), (0, 0), 100))
            .collect();
        files.push(file(Table::Stacks, "c1-0-a-w.parquet", (0, 0), 1500));
        files.push(file(Table::Stacks, "c1-0-b-w.parquet", (0, 0), 1 << 20));
        assert_eq!(summary(&compactions(&files, at(40), &policy)), [(9, 1, false)]);
    }
}
