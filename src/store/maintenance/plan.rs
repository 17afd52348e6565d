//! Plans merges: makes a list of jobs from the live files and the time. All functions are pure.
//!
//! Merges take place in three steps. A few flushed files (level 0) become one file for each hour (level 1). The files
//! of an hour that is over become one file (level 2). The hours of a day that is over become files of the target size
//! (level 3). So a query of an hour reads little more than the rows of that hour, and a quiet tenant has few files.
//! Stacks and series are merged by size. Each row is written about three times in its life.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::store::common::schema::Table;
use crate::store::maintenance::merge::rewrite::{Change, FULL_NAMES, Job, MergedName};
use crate::store::tables::snapshot::FileEntry;
use alluvium_profile::time::HOUR_US;
use alluvium_profile::{TenantId, TimeSpan};

/// Factor by which a merge shrinks flushed files, because the files repeat stacks and times (docs/adr/0004).
const FLUSHED_SHRINKS: u64 = 3;

/// Rules that decide when files are merged.
#[derive(Debug, Clone)]
pub struct Policy {
    /// When a partition has this many flushed files, they are merged, even if their hour and their day are not over.
    pub min_files: usize,
    /// Maximum number of files in one merge. Each file needs memory while it is read.
    pub max_inputs: usize,
    /// Files of a day that is over are merged up to this size in bytes.
    pub target_bytes: u64,
    /// If a merge of samples reads at least this many bytes, each profile type gets its own file.
    pub split_bytes: u64,
    /// If true, files of the profiles table are split by type too. This is only useful if types have their own
    /// retention. Otherwise each file would repeat the ids of profiles, because all types of a profile share its id.
    pub split_profiles: bool,
    /// An hour is considered over when this time has passed after its end. Late profiles of the hour may arrive until
    /// then.
    pub settle: Duration,
    /// If true, every hour and day is considered over.
    pub is_eager: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            min_files: 8,
            max_inputs: 32,
            target_bytes: 16 << 20,
            split_bytes: 4 << 20,
            split_profiles: false,
            settle: Duration::from_mins(15),
            is_eager: false,
        }
    }
}

impl Policy {
    /// Returns the same rules, but with separate files for each profile type, whatever their size.
    #[must_use]
    pub fn by_type(&self) -> Self {
        Self {
            split_bytes: 0,
            split_profiles: true,
            ..self.clone()
        }
    }

    /// Returns the same rules, but with every hour and day considered over, and with merges of two or more files.
    #[must_use]
    pub(crate) fn eager(&self) -> Self {
        Self {
            min_files: 2,
            is_eager: true,
            ..self.clone()
        }
    }
}

/// The files of each partition. A partition is a table, a tenant and a day.
pub(crate) type Partitions<'a> = BTreeMap<(Table, TenantId, i32), Vec<&'a FileEntry>>;

/// Groups files by table, tenant and day.
pub(crate) fn partitions(files: &[FileEntry]) -> Partitions<'_> {
    let mut partitions = Partitions::new();
    for file in files {
        partitions
            .entry((file.table, file.tenant.clone(), file.day))
            .or_default()
            .push(file);
    }
    partitions
}

/// Returns the merges that are due at `now_us`. The jobs of one call share no files.
pub(crate) fn compactions(files: &[FileEntry], now_us: i64, policy: &Policy) -> Vec<Job> {
    let settled_us = if policy.is_eager {
        i64::MAX
    } else {
        now_us.saturating_sub(policy.settle.as_micros() as i64)
    };
    let mut jobs = Vec::new();
    for ((table, tenant, day), files) in partitions(files) {
        let job = |merge: Merge<'_>| {
            let bytes: u64 = merge.inputs.iter().map(|file| file.size).sum();
            Job {
                table,
                tenant: tenant.clone(),
                day,
                change: Change::default(),
                level: merge.level,
                resolution: resolution_of(&merge.inputs),
                by_hour: merge.by_hour,
                by_type: match table {
                    Table::Samples => bytes >= policy.split_bytes,
                    Table::Profiles => policy.split_profiles,
                    Table::Stacks | Table::Series => false,
                },
                inputs: merge.inputs.into_iter().cloned().collect(),
                reason: "compact",
            }
        };
        let day_end = TimeSpan::of_day(day).end;
        let day = Day {
            files: &files,
            policy,
            settled_us,
            is_over: day_end.saturating_add(HOUR_US) <= settled_us,
        };
        match table {
            Table::Stacks | Table::Series => jobs.extend(day.merge_of_names().map(job)),
            Table::Samples | Table::Profiles => jobs.extend(day.merges_of_rows().into_iter().map(job)),
        }
    }
    jobs
}

/// Returns the resolution of a merge of these inputs, in seconds. It is the finest resolution of the inputs: the rows
/// of coarser inputs stay unchanged, and a later job downsamples the other rows.
pub(crate) fn resolution_of(inputs: &[&FileEntry]) -> u32 {
    let resolutions = inputs.iter().map(|file| MergedName::of(&file.path).resolution);
    resolutions.min().unwrap_or(0)
}

/// Files to merge, and the level of the result.
struct Merge<'a> {
    inputs: Vec<&'a FileEntry>,
    level: u8,
    /// If true, the output is one file per hour.
    by_hour: bool,
}

/// The files of a partition, and how much of its day is over.
struct Day<'a> {
    files: &'a [&'a FileEntry],
    policy: &'a Policy,
    /// Time in microseconds since 1970 before which no more profiles are expected.
    settled_us: i64,
    is_over: bool,
}

impl<'a> Day<'a> {
    /// Plans a merge of files of stacks or series. The merge takes flushed files first, then merged files in ascending
    /// order of size. It stops before a merged file that is more than twice as large as all files before it together.
    /// If the day is over, it takes files of any size.
    fn merge_of_names(&self) -> Option<Merge<'a>> {
        let mut sorted = self.files.to_vec();
        sorted.retain(|file| level(file) < FULL_NAMES);
        sorted.sort_by_key(|file| (level(file) > 0, file.size));
        let flushed = sorted.iter().filter(|file| level(file) == 0).count();
        if flushed < self.policy.min_files && !(self.is_over && sorted.len() > 1) {
            return None;
        }
        let mut bytes = 0;
        let mut inputs = Vec::new();
        for (index, file) in sorted.into_iter().enumerate() {
            let is_large = index >= flushed && !self.is_over && file.size > 2 * bytes;
            if is_large || inputs.len() == self.policy.max_inputs {
                break;
            }
            bytes += file.size;
            inputs.push(file);
        }
        (inputs.len() > 1).then_some(Merge {
            inputs,
            level: 1,
            by_hour: false,
        })
    }

    /// Plans the merges of samples or of profiles.
    fn merges_of_rows(&self) -> Vec<Merge<'a>> {
        let max_inputs = self.policy.max_inputs;
        // If an eager merge can read all files at once, it merges them as after the end of the day. A merge by
        // hour would only write intermediate files, which would be merged again immediately.
        if self.policy.is_eager && self.files.len() <= max_inputs {
            return self.merges_of_day();
        }
        let mut flushed: Vec<&FileEntry> = self.files.iter().copied().filter(|file| level(file) == 0).collect();
        if flushed.len() >= self.policy.min_files {
            flushed.sort_by_key(|file| (file.time, file.path.clone()));
            flushed.truncate(max_inputs);
            return vec![Merge {
                inputs: flushed,
                level: 1,
                by_hour: true,
            }];
        }
        let hour_of = |file: &FileEntry| {
            let time = file.time?;
            let hour = time.min.div_euclid(HOUR_US);
            (hour == time.max.div_euclid(HOUR_US)).then_some(hour)
        };
        let mut hours: BTreeMap<i64, Vec<&FileEntry>> = BTreeMap::new();
        for file in self.files {
            if let Some(hour) = hour_of(file) {
                hours.entry(hour).or_default().push(file);
            }
        }
        let mut merges = Vec::new();
        for (hour, mut inputs) in hours {
            let is_over = hour.saturating_add(1).saturating_mul(HOUR_US) <= self.settled_us;
            if is_over && inputs.iter().any(|file| level(file) < 2) {
                inputs.sort_by_key(|file| (level(file), file.path.clone()));
                inputs.truncate(max_inputs);
                if inputs.len() > 1 {
                    merges.push(Merge {
                        inputs,
                        level: 2,
                        by_hour: false,
                    });
                }
            }
        }
        if !merges.is_empty() || !self.is_over {
            return merges;
        }
        self.merges_of_day()
    }

    /// Plans merges of all files of the day, up to the target size.
    fn merges_of_day(&self) -> Vec<Merge<'a>> {
        let policy = self.policy;
        let merged_size = |file: &FileEntry| match level(file) {
            0 => file.size / FLUSHED_SHRINKS,
            _ => file.size,
        };
        // If types are split, files of a single type are merged only with the same type. A merge with other types
        // would leave as many files as before.
        let profile_type = |file: &'a FileEntry| {
            let types = file.profile_type.as_ref().filter(|_| policy.split_profiles)?;
            types.single()
        };
        let mut sorted = self.files.to_vec();
        sorted.sort_by_key(|file| (profile_type(file), file.time, file.path.clone()));
        let mut merges = Vec::new();
        let mut group: Vec<&FileEntry> = Vec::new();
        let mut close = |group: &mut Vec<&'a FileEntry>| {
            let inputs = std::mem::take(group);
            if inputs.len() > 1 && inputs.iter().any(|file| level(file) < 3) {
                merges.push(Merge {
                    inputs,
                    level: 3,
                    by_hour: false,
                });
            }
        };
        for file in sorted {
            let bytes: u64 = group.iter().map(|file| merged_size(file)).sum();
            let is_other = group
                .first()
                .is_some_and(|first| profile_type(first) != profile_type(file));
            let is_full = bytes + merged_size(file) > policy.target_bytes || group.len() == policy.max_inputs;
            if !group.is_empty() && (is_other || is_full) {
                close(&mut group);
            }
            group.push(file);
        }
        close(&mut group);
        merges
    }
}

fn level(file: &FileEntry) -> u8 {
    MergedName::of(&file.path).level
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tables::stats::Bounds;
    use alluvium_profile::time::DAY_US;
    use alluvium_testing::tenant_id;

    fn file(table: Table, name: &str, minutes: (i64, i64), size: u64) -> FileEntry {
        FileEntry {
            table,
            path: format!("{}/tenant=t/day=2026-11-21/{name}", table.name()),
            size,
            rows: 1,
            tenant: tenant_id("t"),
            day: 20_778,
            time: Some(Bounds::new(time_at(minutes.0), time_at(minutes.1))),
            profile_type: None,
            series: None,
            checksum: None,
        }
    }

    fn time_at(minutes: i64) -> i64 {
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
        assert_eq!(summary(&compactions(&files, time_at(40), &policy)), []);
        files.push(file(Table::Samples, "000000000008-1-w.parquet", (35, 40), 100));
        assert_eq!(summary(&compactions(&files, time_at(40), &policy)), [(8, 1, true)]);
    }

    #[test]
    fn an_hour_that_is_over_becomes_one_file_and_stays() {
        let policy = Policy::default();
        let files = [
            file(Table::Samples, "c1-0-a-w.parquet", (0, 40), 100),
            file(Table::Samples, "000000000009-1-w.parquet", (40, 58), 100),
            file(Table::Samples, "000000000010-1-w.parquet", (61, 70), 100),
        ];
        assert_eq!(summary(&compactions(&files, time_at(70), &policy)), []);
        assert_eq!(summary(&compactions(&files, time_at(76), &policy)), [(2, 2, false)]);
        let merged = [file(Table::Samples, "c2-0-a-w.parquet", (0, 58), 200)];
        assert_eq!(summary(&compactions(&merged, time_at(600), &policy)), []);
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
        let now = time_at(26 * 60);
        assert_eq!(summary(&compactions(&files, time_at(23 * 60), &policy)), []);
        let jobs = compactions(&files, now, &policy);
        assert_eq!(
            summary(&jobs),
            [(5, 3, false); 4]
                .into_iter()
                .chain([(4, 3, false)])
                .collect::<Vec<_>>()
        );
        let merged: Vec<FileEntry> = (0..5)
            .map(|part| {
                file(
                    Table::Samples,
                    &format!("c3-0-{part}-w.parquet"),
                    (part * 300, part * 300 + 299),
                    3 << 20,
                )
            })
            .collect();
        assert_eq!(summary(&compactions(&merged, now, &policy)), []);
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
        assert_eq!(summary(&compactions(&files, time_at(40), &policy)), [(20, 3, false)]);
        let merged = [file(Table::Samples, "c3-0-a-w.parquet", (0, 80), 13 << 20)];
        assert_eq!(summary(&compactions(&merged, time_at(40), &policy)), []);
    }

    #[test]
    fn large_names_are_not_written_again_for_small_ones() {
        let policy = Policy::default();
        let mut files: Vec<FileEntry> = (0..8)
            .map(|flush| file(Table::Stacks, &format!("{flush:012}-1-w.parquet"), (0, 0), 100))
            .collect();
        files.push(file(Table::Stacks, "c1-0-a-w.parquet", (0, 0), 1500));
        files.push(file(Table::Stacks, "c1-0-b-w.parquet", (0, 0), 1 << 20));
        assert_eq!(summary(&compactions(&files, time_at(40), &policy)), [(9, 1, false)]);
    }
}
