//! Walks over the rows of a partition in steps. Each step is short and runs under the lock. The next step continues
//! where the last step ended.
//!
//! In: a partition behind its lock, a filter, and the number of profiles in the reader's view of the head, which
//! contains the profiles that were applied before its creation. Out: pieces of groups. A walk visits each selected row
//! once, even if profiles are applied between two steps, because partitions only grow.

use std::ops::Range;

use crate::store::head::intern::TextId;
use crate::store::head::partition::{Group, Partition};
use crate::store::tables::snapshot::ScanFilter;

/// Maximum number of rows, profiles and groups that a step visits. A step takes some tens of microseconds. Tests use a
/// small number, so that scans of small heads have several steps.
pub(super) const STEP: usize = if cfg!(test) { 61 } else { 8 << 10 };

/// The number of units of a step that a profile uses. A step has [`STEP`] units.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// One unit for the profile, and one for each of its rows. Several steps may visit the rows of one profile.
    Rows,
    /// One unit, regardless of the number of rows of the profile.
    Profiles,
}

/// The position of a walk over the groups of a partition.
pub(super) struct Walk<'a> {
    filter: &'a ScanFilter,
    /// Number of profiles in the view.
    applied: u64,
    count: Count,
    profile_type: Option<TextId>,
    /// Number of groups at the start of the walk. Later groups contain no profile of the view.
    groups: usize,
    group: usize,
    profile: usize,
    /// Number of visited rows of the profile.
    row: usize,
}

impl<'a> Walk<'a> {
    /// Creates a walk over the rows that the filter selects. The tenants of the filter are ignored. Returns `None` if
    /// the partition has no profile of the filter's type.
    pub(super) fn new(partition: &Partition, filter: &'a ScanFilter, applied: u64, count: Count) -> Option<Self> {
        let profile_type = match &filter.profile_type {
            Some(type_id) => Some(partition.texts.find(type_id.as_str())?),
            None => None,
        };
        Some(Self {
            filter,
            applied,
            count,
            profile_type,
            groups: partition.groups.len(),
            group: 0,
            profile: 0,
            row: 0,
        })
    }

    /// Passes the next rows to `visit`: the group, the index of the profile in the group, and rows of that profile.
    /// Returns true if there may be more rows.
    pub(super) fn step(&mut self, partition: &Partition, mut visit: impl FnMut(&Group, usize, Range<usize>)) -> bool {
        let mut left = STEP;
        while self.group < self.groups {
            let group = &partition.groups[self.group];
            if self.selects(group) {
                while let Some(profile) = group.profiles.get(self.profile)
                    && profile.number < self.applied
                {
                    if left == 0 {
                        return true;
                    }
                    left -= 1;
                    if self.filter.time.is_none_or(|span| span.contains(profile.time_us)) {
                        let rows = group.rows_of(self.profile);
                        let start = rows.start + self.row;
                        let end = match self.count {
                            Count::Rows => rows.end.min(start + left),
                            Count::Profiles => rows.end,
                        };
                        visit(group, self.profile, start..end);
                        if end < rows.end {
                            self.row += end - start;
                            return true;
                        }
                        if self.count == Count::Rows {
                            left -= end - start;
                        }
                    }
                    self.row = 0;
                    self.profile += 1;
                }
            }
            self.group += 1;
            self.profile = 0;
            left = left.saturating_sub(1);
            if left == 0 && self.group < self.groups {
                return true;
            }
        }
        false
    }

    fn selects(&self, group: &Group) -> bool {
        let series = self.filter.series.as_ref();
        series.is_none_or(|ids| ids.contains(&group.series))
            && self.profile_type.is_none_or(|type_id| type_id == group.profile_type)
    }
}
