//! Walks over the rows of a partition in steps: each is short and holds the lock, and the next goes on where it ended.
//!
//! In: a partition behind its lock, a filter, the number of profiles that the view has. Out: pieces of groups. A walk
//! sees each of its rows once, whatever is applied between two steps, because partitions only grow.

use std::ops::Range;

use crate::store::head::intern::TextId;
use crate::store::head::partition::{Group, Partition};
use crate::store::tables::snapshot::ScanFilter;

/// Number of rows, profiles and groups that a step visits: some tens of microseconds. Few in tests, so that scans of
/// small heads have several steps.
pub(super) const STEP: usize = if cfg!(test) { 61 } else { 8 << 10 };

/// What a walk counts against [`STEP`] for a profile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// Its rows. The rows of one profile may be visited in several steps.
    Rows,
    /// One, however many rows it has.
    Profiles,
}

/// Where a walk over the groups of a partition is.
pub(super) struct Walk<'a> {
    filter: &'a ScanFilter,
    /// Number of profiles that the view has.
    applied: u64,
    count: Count,
    profile_type: Option<TextId>,
    /// Groups that were there at the start. Later ones have no profile of the view.
    groups: usize,
    group: usize,
    profile: usize,
    /// Number of rows of the profile that were visited.
    row: usize,
}

impl<'a> Walk<'a> {
    /// A walk over the rows that the filter selects, except for its tenants; `None` when there are none.
    pub(super) fn new(partition: &Partition, filter: &'a ScanFilter, applied: u64, count: Count) -> Option<Self> {
        let profile_type = match &filter.profile_type {
            Some(wanted) => Some(partition.texts.find(wanted.as_str())?),
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

    /// Passes the next rows to `visit`: group, index of the profile in it, and rows of that profile. Returns true when
    /// there may be more.
    pub(super) fn step(&mut self, partition: &Partition, mut visit: impl FnMut(&Group, usize, Range<usize>)) -> bool {
        let mut left = STEP;
        while self.group < self.groups {
            let group = &partition.groups[self.group];
            if self.wants(group) {
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

    fn wants(&self, group: &Group) -> bool {
        let series = self.filter.series.as_ref();
        series.is_none_or(|wanted| wanted.contains(&group.series))
            && self.profile_type.is_none_or(|wanted| wanted == group.profile_type)
    }
}
