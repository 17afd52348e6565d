//! Retention by size: chooses the files to remove if the tables exceed their limit, or if the disk is nearly full. All
//! functions are pure, except the function that measures the disk.
//!
//! The oldest files are removed first, and only whole files. For each limit, every file whose last profile is not later
//! than a certain moment is removed, as if the retention period ended at this moment. Series and stacks of a day stay a
//! day longer, as in `aging`, because a late profile may need them.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::store::common::schema::Table;
use crate::store::tables::snapshot::FileEntry;
use alluvium_profile::time::{DAY_US, HOUR_US};
use alluvium_profile::{TenantId, TimeSpan};

/// Limits on the size of the tables. Without a limit, tables grow until retention deletes profiles or the disk is full.
#[derive(Debug, Clone, Default)]
pub struct SpaceLimits {
    /// Maximum number of bytes of the files of all tables; the option `--retention-size`.
    pub whole: Option<u64>,
    /// Maximum number of bytes of the files of single tenants.
    pub tenants: BTreeMap<TenantId, u64>,
    /// Free space to keep on the disk of the data folder.
    pub floor: Option<FreeFloor>,
}

/// Minimum of free space. The oldest profiles are removed to restore the minimum.
#[derive(Debug, Clone, Copy)]
pub struct FreeFloor {
    pub bytes: u64,
    /// Measures the free bytes in the file system of a folder.
    pub measure: fn(&Path) -> io::Result<u64>,
}

impl FreeFloor {
    /// Returns a floor for the free space that the operating system reports.
    pub fn of_disk(bytes: u64) -> Self {
        Self {
            bytes,
            measure: |folder| {
                let disk = rustix::fs::statvfs(folder)?;
                Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
            },
        }
    }

    /// How long removed files stay if space is short. The delay protects Alluvium's queries that read the files, but
    /// not other programs that read them.
    pub(crate) const DELAY: Duration = Duration::from_mins(1);

    /// Returns the number of bytes by which the free space of the file system of `folder` is below the floor.
    pub(crate) fn missing_bytes(&self, folder: &Path) -> io::Result<u64> {
        Ok(self.bytes.saturating_sub((self.measure)(folder)?))
    }
}

/// Files to remove so that the remaining files stay within a limit.
#[derive(Debug)]
pub(crate) struct ExcessFiles {
    pub(crate) files: BTreeMap<Table, Vec<FileEntry>>,
    pub(crate) bytes: u64,
    /// Time of the newest row to remove, in microseconds since 1970.
    pub(crate) newest_us: i64,
    /// Number of bytes by which the remaining files still exceed the limit. If it is above 0, each remaining file ends
    /// within an hour of the newest row of all files, or holds stacks or series of recent days.
    pub(crate) remaining_bytes: u64,
}

impl SpaceLimits {
    /// Returns the files to remove for the limits of tenants and for the limit of all tables. Files of a tenant that
    /// exceeds its own limit are removed first.
    pub(crate) fn excess_files(&self, files: &[FileEntry]) -> Vec<ExcessFiles> {
        let mut groups = Vec::new();
        let mut left: Vec<&FileEntry> = files.iter().collect();
        for (tenant, max) in &self.tenants {
            let own = left.iter().copied().filter(|file| file.tenant == *tenant);
            let Some(excess) = oldest(own, *max) else {
                continue;
            };
            left.retain(|file| !excess.has(file));
            groups.push(excess);
        }
        groups.extend(self.whole.and_then(|max| oldest(left, max)));
        groups
    }
}

impl ExcessFiles {
    fn has(&self, file: &FileEntry) -> bool {
        let files = self.files.get(&file.table).map(Vec::as_slice).unwrap_or_default();
        files.iter().any(|removed| removed.path == file.path)
    }
}

/// Returns the files to remove so that the other files have at most `max` bytes; `None` if all files fit.
pub(crate) fn oldest<'a>(files: impl IntoIterator<Item = &'a FileEntry>, max: u64) -> Option<ExcessFiles> {
    let mut total = 0;
    let mut newest = i64::MIN;
    // Each file with the time of its last row. For stacks and series, this is one day after the end of the file's day.
    let mut in_order: Vec<(i64, &FileEntry)> = Vec::new();
    for file in files {
        total += file.size;
        let end_us = match file.time {
            Some(time) => {
                newest = newest.max(time.max);
                time.max
            }
            None => TimeSpan::of_day(file.day).end.saturating_add(DAY_US),
        };
        in_order.push((end_us, file));
    }
    if total <= max {
        return None;
    }
    in_order.sort_by_key(|(end_us, _)| *end_us);
    let kept_from = newest.saturating_sub(HOUR_US);
    let mut excess = ExcessFiles {
        files: BTreeMap::new(),
        bytes: 0,
        newest_us: i64::MIN,
        remaining_bytes: 0,
    };
    for (end_us, file) in in_order {
        let is_enough = total - excess.bytes <= max;
        // Samples and profiles of one flush end at the same moment, and are removed together.
        if end_us >= kept_from || is_enough && end_us > excess.newest_us {
            break;
        }
        excess.newest_us = end_us;
        excess.bytes += file.size;
        excess.files.entry(file.table).or_default().push(file.clone());
    }
    excess.remaining_bytes = (total - excess.bytes).saturating_sub(max);
    Some(excess)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tables::stats::Bounds;
    use alluvium_testing::tenant_id;

    /// Returns a file of 10 bytes. `hours` are the hours of day 100 at which its rows begin and end.
    fn file(table: Table, tenant: &str, name: &str, hours: Option<(i64, i64)>) -> FileEntry {
        let start = 100 * DAY_US;
        FileEntry {
            table,
            path: format!("{}/tenant={tenant}/{name}", table.name()),
            size: 10,
            rows: 1,
            tenant: tenant_id(tenant),
            day: hours.map_or(100, |(begin, _)| (100 + begin.div_euclid(24)) as i32),
            time: hours.map(|(begin, end)| Bounds::new(start + begin * HOUR_US, start + end * HOUR_US)),
            profile_type: None,
            series: None,
            checksum: None,
        }
    }

    /// Returns one file of an hour for each of the tables samples and profiles.
    fn rows(tenant: &str, hour: i64) -> [FileEntry; 2] {
        let name = format!("{hour}.parquet");
        [Table::Samples, Table::Profiles].map(|table| file(table, tenant, &name, Some((hour, hour + 1))))
    }

    fn names(crowded: &ExcessFiles) -> Vec<&str> {
        let mut paths: Vec<&str> = crowded.files.values().flatten().map(|file| &*file.path).collect();
        paths.sort_unstable();
        paths
    }

    #[test]
    fn the_oldest_rows_go_in_both_tables_and_no_more_than_must() {
        let mut files: Vec<FileEntry> = (0..5).flat_map(|hour| rows("t", hour)).collect();
        files.push(file(Table::Stacks, "t", "names.parquet", None));
        assert!(oldest(&files, 110).is_none());
        let excess = oldest(&files, 95).unwrap();
        let first = ["profiles/tenant=t/0.parquet", "samples/tenant=t/0.parquet"];
        assert_eq!(
            (names(&excess), excess.bytes, excess.remaining_bytes),
            (first.to_vec(), 20, 0)
        );
        assert_eq!(excess.newest_us, 100 * DAY_US + HOUR_US);
        assert_eq!(oldest(&files, 90).unwrap().bytes, 20);
        assert_eq!(oldest(&files, 89).unwrap().bytes, 40);
    }

    #[test]
    fn the_newest_hour_and_names_that_may_be_needed_stay_whatever_the_limit() {
        let mut files: Vec<FileEntry> = (0..5).flat_map(|hour| rows("t", hour)).collect();
        files.push(file(Table::Stacks, "t", "names.parquet", None));
        let excess = oldest(&files, 0).unwrap();
        // The fourth hour ends at the moment at which the newest hour begins.
        assert_eq!((excess.bytes, excess.remaining_bytes), (60, 50));
        files.extend(rows("t", 72));
        let excess = oldest(&files, 25).unwrap();
        assert!(names(&excess).contains(&"stacks/tenant=t/names.parquet"));
        assert_eq!((excess.bytes, excess.remaining_bytes), (110, 0));
    }

    #[test]
    fn a_tenant_over_its_own_limit_gives_way_before_others() {
        let mut files: Vec<FileEntry> = (0..3).flat_map(|hour| rows("old", hour)).collect();
        files.extend((10..16).flat_map(|hour| rows("large", hour)));
        let limits = SpaceLimits {
            whole: Some(140),
            tenants: BTreeMap::from([(tenant_id("large"), 80)]),
            floor: None,
        };
        let excess = limits.excess_files(&files);
        assert_eq!(excess.len(), 1, "{excess:?}");
        assert!(names(&excess[0]).iter().all(|path| path.contains("tenant=large")));
        assert_eq!(excess[0].bytes, 40);
        let limits = SpaceLimits {
            whole: Some(100),
            ..limits
        };
        let excess = limits.excess_files(&files);
        assert!(names(&excess[1]).iter().all(|path| path.contains("tenant=old")));
        assert_eq!(excess.iter().map(|excess| excess.bytes).sum::<u64>(), 80);
    }

    #[test]
    fn a_disk_has_free_space() {
        let folder = tempfile::tempdir().unwrap();
        let floor = FreeFloor::of_disk(u64::MAX);
        let missing = floor.missing_bytes(folder.path()).unwrap();
        assert!(0 < missing && missing < u64::MAX, "{missing}");
        assert_eq!(FreeFloor::of_disk(1).missing_bytes(folder.path()).unwrap(), 0);
        assert!(floor.missing_bytes(&folder.path().join("nowhere")).is_err());
    }
}
