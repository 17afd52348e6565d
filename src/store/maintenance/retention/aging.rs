//! Ageing of data: samples are downsampled after a while, and profiles are deleted after their retention. All functions
//! are pure.
//!
//! Only whole files are deleted, so a profile may stay up to a day longer than its period. If periods differ by profile
//! type, files of several types are split first. Downsampling changes only samples: profiles and their totals stay
//! unchanged.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::store::common::schema::Table;
use crate::store::maintenance::merge::rewrite::{Change, Job, MergedName};
use crate::store::maintenance::plan::{Policy, partitions};
use crate::store::tables::snapshot::FileEntry;
use alluvium_profile::time::DAY_US;
use alluvium_profile::{ProfileTypeId, TenantId, TimeSpan};

/// Settings of ageing. A period of zero means that profiles are kept forever.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aging {
    /// How long profiles are kept; the setting `retention_period`.
    pub retention: Duration,
    /// Retention of single tenants, which overrides `retention`.
    pub tenants: BTreeMap<TenantId, Duration>,
    /// Retention of profile types, which overrides the retention of the tenant. The key is a whole type id or its first
    /// part, such as `memory`.
    pub types: BTreeMap<String, Duration>,
    /// Retention of profile types for single tenants, which overrides all other periods.
    pub tenant_types: BTreeMap<TenantId, BTreeMap<String, Duration>>,
    /// Steps of downsampling. Older samples are summed over longer intervals.
    pub downsample: Vec<Downsampling>,
}

/// One step of downsampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Downsampling {
    /// Samples are summed when they reach this age.
    pub after: Duration,
    /// Length of the intervals over which samples are summed.
    pub interval: Duration,
}

impl Aging {
    /// Returns how long profiles of a tenant and type are kept; `None` means forever.
    fn period(&self, tenant: &TenantId, profile_type: &ProfileTypeId) -> Option<Duration> {
        let find_period = |types: &BTreeMap<String, Duration>| {
            let id = profile_type.as_str();
            let name = id.split_once(':').map_or(id, |(name, _)| name);
            types.get(id).or_else(|| types.get(name)).copied()
        };
        let own = self.tenant_types.get(tenant).and_then(find_period);
        let period = own
            .or_else(|| find_period(&self.types))
            .or_else(|| self.tenants.get(tenant).copied())
            .unwrap_or(self.retention);
        (!period.is_zero()).then_some(period)
    }

    /// Returns true if any type has a period of its own.
    pub fn by_type(&self) -> bool {
        !self.types.is_empty() || self.tenant_types.values().any(|types| !types.is_empty())
    }

    /// Returns all periods that may apply to profiles of a tenant.
    fn periods(&self, tenant: &TenantId) -> impl Iterator<Item = Duration> {
        let own = self.tenants.get(tenant).unwrap_or(&self.retention);
        let tenant_periods = self.tenant_types.get(tenant).into_iter().flat_map(BTreeMap::values);
        std::iter::once(own)
            .chain(self.types.values())
            .chain(tenant_periods)
            .copied()
    }

    /// Returns the longest period of any profile of a tenant; `None` means forever.
    fn longest(&self, tenant: &TenantId) -> Option<Duration> {
        if self.periods(tenant).any(|period| period.is_zero()) {
            None
        } else {
            self.periods(tenant).max()
        }
    }

    /// Returns the shortest period of any profile of a tenant.
    fn shortest(&self, tenant: &TenantId) -> Option<Duration> {
        self.periods(tenant).filter(|period| !period.is_zero()).min()
    }
}

/// The files that retention deletes or splits at one moment.
#[derive(Debug, Default)]
pub(crate) struct Expired {
    /// Files to delete, by table.
    pub files: BTreeMap<Table, Vec<FileEntry>>,
    /// Jobs that split files of several types, because some of the types may have to be deleted.
    pub splits: Vec<Job>,
}

/// Returns the files whose period is over at `now_us`, and the jobs that split files of several types.
pub(crate) fn expired(files: &[FileEntry], now_us: i64, aging: &Aging) -> Expired {
    let cutoff = |period: Duration| now_us.saturating_sub(period.as_micros().min(i64::MAX as u128) as i64);
    let mut expired = Expired::default();
    let mut left: BTreeMap<(TenantId, i32), usize> = BTreeMap::new();
    for file in files {
        let (Some(time), Some(types)) = (file.time, &file.profile_type) else {
            continue;
        };
        let is_over = |period| time.max < cutoff(period);
        let file_period = match types.single() {
            Some(profile_type) => aging.period(&file.tenant, profile_type),
            None => aging.longest(&file.tenant),
        };
        if file_period.is_some_and(is_over) {
            expired.files.entry(file.table).or_default().push(file.clone());
            continue;
        }
        *left.entry((file.tenant.clone(), file.day)).or_default() += 1;
        let is_mixed = aging.by_type() && types.single().is_none();
        if is_mixed && aging.shortest(&file.tenant).is_some_and(is_over) {
            let name = MergedName::of(&file.path);
            expired.splits.push(Job {
                table: file.table,
                tenant: file.tenant.clone(),
                day: file.day,
                inputs: vec![file.clone()],
                change: Change::default(),
                level: name.level.max(1),
                resolution: name.resolution,
                by_hour: false,
                by_type: true,
                reason: "retention",
            });
        }
    }
    // Series and stacks of a day are deleted once no rows of the day are left and a late profile of the day would be
    // too old to keep.
    for file in files {
        let day_end = TimeSpan::of_day(file.day).end;
        let is_expired = aging
            .longest(&file.tenant)
            .is_some_and(|period| day_end.saturating_add(DAY_US) < cutoff(period));
        if file.time.is_none() && is_expired && !left.contains_key(&(file.tenant.clone(), file.day)) {
            expired.files.entry(file.table).or_default().push(file.clone());
        }
    }
    expired
}

/// Returns the jobs for samples that are due for downsampling at `now_us`.
pub(crate) fn downsamples(files: &[FileEntry], now_us: i64, aging: &Aging, policy: &Policy) -> Vec<Job> {
    let mut jobs = Vec::new();
    for ((table, tenant, day), files) in partitions(files) {
        if table != Table::Samples {
            continue;
        }
        let mut groups: BTreeMap<u32, Vec<&FileEntry>> = BTreeMap::new();
        for file in files {
            let Some(time) = file.time else {
                continue;
            };
            let age = Duration::from_micros(now_us.saturating_sub(time.max).max(0) as u64);
            let due_resolution = aging
                .downsample
                .iter()
                .filter(|step| age >= step.after)
                .map(|step| step.interval.as_secs() as u32)
                .max()
                .unwrap_or(0);
            if due_resolution > MergedName::of(&file.path).resolution {
                groups.entry(due_resolution).or_default().push(file);
            }
        }
        for (resolution, mut files) in groups {
            files.sort_by_key(|file| (file.time, file.path.clone()));
            for inputs in files.chunks(policy.max_inputs) {
                let bytes: u64 = inputs.iter().map(|file| file.size).sum();
                jobs.push(Job {
                    table,
                    tenant: tenant.clone(),
                    day,
                    inputs: inputs.iter().copied().cloned().collect(),
                    change: Change {
                        drop: None,
                        interval_us: i64::from(resolution) * 1_000_000,
                    },
                    level: 3,
                    resolution,
                    by_hour: false,
                    by_type: bytes >= policy.split_bytes,
                    reason: "downsample",
                });
            }
        }
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tables::stats::Bounds;
    use alluvium_testing::tenant_id;

    const DAY: Duration = Duration::from_hours(24);

    fn file(table: Table, name: &str, day: i32, types: Option<(&str, &str)>) -> FileEntry {
        let start = i64::from(day) * DAY_US;
        FileEntry {
            table,
            path: format!("{}/tenant=t/day={day}/{name}", table.name()),
            size: 10,
            rows: 1,
            tenant: tenant_id("t"),
            day,
            time: types.map(|_| Bounds::new(start, start + 1000)),
            profile_type: types.map(|(min, max)| Bounds::new(min.into(), max.into())),
            series: None,
            checksum: None,
        }
    }

    #[test]
    fn whole_files_go_when_their_last_profile_is_too_old_and_names_after_them() {
        let aging = Aging {
            retention: DAY * 7,
            ..Aging::default()
        };
        let files = [
            file(
                Table::Samples,
                "a.parquet",
                100,
                Some(("cpu:a:b:c:d", "memory:a:b:c:d")),
            ),
            file(Table::Stacks, "b.parquet", 100, None),
            file(Table::Samples, "c.parquet", 106, Some(("cpu:a:b:c:d", "cpu:a:b:c:d"))),
            file(Table::Stacks, "d.parquet", 106, None),
        ];
        let time_on = |day: i64| day * DAY_US + 2000;
        assert!(expired(&files, time_on(106), &aging).files.is_empty());
        let expired_files = expired(&files, time_on(107), &aging).files;
        assert_eq!(expired_files[&Table::Samples].len(), 1);
        // Stacks are deleted a day later than the rows, because a late profile of that day may still arrive.
        assert!(!expired_files.contains_key(&Table::Stacks));
        let expired_files = expired(&files, time_on(110), &aging).files;
        assert_eq!(expired_files[&Table::Stacks][0].day, 100);
        assert!(expired(&files, time_on(9999), &Aging::default()).files.is_empty());
    }

    #[test]
    fn types_with_a_period_of_their_own_are_split_off_first() {
        let aging = Aging {
            types: BTreeMap::from([("memory".to_owned(), DAY * 2)]),
            ..Aging::default()
        };
        let now = 103 * DAY_US;
        let mixed = [file(
            Table::Samples,
            "a.parquet",
            100,
            Some(("cpu:a:b:c:d", "memory:a:b:c:d")),
        )];
        let result = expired(&mixed, now, &aging);
        assert!(result.files.is_empty() && result.splits.len() == 1 && result.splits[0].by_type);
        let split = [
            file(
                Table::Samples,
                "c1-0-a-w.parquet",
                100,
                Some(("cpu:a:b:c:d", "cpu:a:b:c:d")),
            ),
            file(
                Table::Samples,
                "c1-0-b-w.parquet",
                100,
                Some(("memory:a:b:c:d", "memory:a:b:c:d")),
            ),
        ];
        let result = expired(&split, now, &aging);
        assert!(result.splits.is_empty());
        assert_eq!(result.files[&Table::Samples][0].path, split[1].path);
    }

    #[test]
    fn a_tenant_and_type_has_the_period_that_is_said_most_exactly() {
        let aging = Aging {
            retention: DAY * 30,
            tenants: BTreeMap::from([(tenant_id("own"), DAY * 7)]),
            types: BTreeMap::from([("memory".to_owned(), DAY * 2)]),
            tenant_types: BTreeMap::from([(
                tenant_id("own"),
                BTreeMap::from([
                    ("memory:inuse:b:c:d".to_owned(), DAY),
                    ("cpu".to_owned(), Duration::ZERO),
                ]),
            )]),
            downsample: Vec::new(),
        };
        for (tenant, profile_type, period) in [
            ("any", "mutex:a:b:c:d", Some(30)),
            ("any", "memory:a:b:c:d", Some(2)),
            ("own", "mutex:a:b:c:d", Some(7)),
            ("own", "memory:a:b:c:d", Some(2)),
            ("own", "memory:inuse:b:c:d", Some(1)),
            ("own", "cpu:a:b:c:d", None),
        ] {
            assert_eq!(
                aging.period(&tenant_id(tenant), &profile_type.into()),
                period.map(|days| DAY * days),
                "{tenant} {profile_type}"
            );
        }
        assert_eq!(
            (aging.longest(&tenant_id("any")), aging.longest(&tenant_id("own"))),
            (Some(DAY * 30), None)
        );
        assert_eq!(
            (aging.shortest(&tenant_id("any")), aging.shortest(&tenant_id("own"))),
            (Some(DAY * 2), Some(DAY))
        );
    }

    #[test]
    fn samples_become_coarser_step_by_step() {
        let aging = Aging {
            downsample: vec![
                Downsampling {
                    after: DAY,
                    interval: Duration::from_mins(5),
                },
                Downsampling {
                    after: DAY * 5,
                    interval: Duration::from_hours(1),
                },
            ],
            ..Aging::default()
        };
        let resolutions = |name: &str, day: i64| {
            let files = [file(Table::Samples, name, 100, Some(("a", "a")))];
            downsamples(&files, day * DAY_US, &aging, &Policy::default())
                .iter()
                .map(|job| job.resolution)
                .collect::<Vec<_>>()
        };
        assert_eq!(resolutions("c2-0-a-w.parquet", 100), [0; 0]);
        assert_eq!(resolutions("c2-0-a-w.parquet", 102), [300]);
        assert_eq!(resolutions("c3-300-a-w.parquet", 102), [0; 0]);
        assert_eq!(resolutions("c3-300-a-w.parquet", 106), [3600]);
    }
}
