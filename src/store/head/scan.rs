//! Scans of the head for queries: unsorted batches of the rows that a filter selects.

use std::ops::ControlFlow;

use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use hashbrown::HashMap;

use crate::profile::{Labels, SeriesId, StackId, TimeSpan};
use crate::store::head::generation::HeadView;
use crate::store::head::identity::Identity;
use crate::store::head::intern::TextId;
use crate::store::head::partition::{Group, Link, Partition, ProfileRow};
use crate::store::head::rows::{self, ProfileOfType, ProfileRows, SampleRow, SampleRows, Shared, StackRows};
use crate::store::schema::Table;
use crate::store::snapshot::{HeadScan, Receive, ScanFilter};

const BATCH_ROWS: usize = 64 << 10;
/// Frames in a batch of stacks: a few megabytes of names.
const BATCH_FRAMES: usize = 64 << 10;

/// Why a scan ends before its last row.
enum Stop {
    /// The reader asked to stop.
    Asked,
    Failed(ArrowError),
}

impl From<ArrowError> for Stop {
    fn from(error: ArrowError) -> Self {
        Self::Failed(error)
    }
}

/// Hands a batch to the reader.
type Give<'a> = dyn FnMut(RecordBatch) -> Result<(), Stop> + 'a;

impl HeadScan for HeadView {
    fn scan_with(&self, table: Table, filter: &ScanFilter, receive: &mut Receive<'_>) {
        let mut give = |batch| match receive(batch) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::Asked),
        };
        for ((tenant, day), partition) in self.head.partitions.read().iter() {
            if filter.tenants.as_ref().is_some_and(|wanted| !wanted.has(tenant)) || !day_matches(*day, filter) {
                continue;
            }
            let shared = Shared {
                tenant,
                day: *day,
                texts: &partition.texts,
                projection: filter.projection.as_deref(),
            };
            let result = match table {
                Table::Samples => samples(partition, shared, filter, self.applied, &mut give),
                Table::Profiles => profiles(partition, shared, filter, self.applied, &mut give),
                Table::Stacks => stacks(partition, shared, filter, &mut give),
                Table::Series => series(partition, shared, filter, &mut give),
            };
            match result {
                Ok(()) => {}
                Err(Stop::Asked) => return,
                // The columns are built to match the schema, so an error here is a bug.
                Err(Stop::Failed(error)) => {
                    tracing::error!(error = %error, table = table.name(), "cannot build batches of the head");
                }
            }
        }
    }

    fn sum_stacks(&self, filter: &ScanFilter) -> Option<Vec<(StackId, i64)>> {
        let mut all: HashMap<StackId, i64, Identity> = HashMap::default();
        let mut sums: Vec<i64> = Vec::new();
        for ((tenant, day), partition) in self.head.partitions.read().iter() {
            if filter.tenants.as_ref().is_some_and(|wanted| !wanted.has(tenant)) || !day_matches(*day, filter) {
                continue;
            }
            sums.clear();
            sums.resize(partition.stacks.len(), 0);
            for (_, _, group) in groups(partition, filter) {
                for (index, profile) in visible(group, self.applied) {
                    if !time_matches(profile.time_us, filter) {
                        continue;
                    }
                    let rows = group.rows_of(index);
                    for (stack, value) in group.stacks[rows.clone()].iter().zip(&group.values[rows]) {
                        let sum = &mut sums[*stack as usize];
                        *sum = sum.saturating_add(*value);
                    }
                }
            }
            for (stack, value) in partition.stacks.iter().zip(&sums).filter(|(_, value)| **value != 0) {
                let wanted = filter.stacks.as_ref().is_none_or(|wanted| wanted.contains(&stack.id));
                if wanted {
                    let sum = all.entry(stack.id).or_default();
                    *sum = sum.saturating_add(*value);
                }
            }
        }
        Some(all.into_iter().collect())
    }

    fn is_exact(&self) -> bool {
        true
    }
}

fn samples(
    partition: &Partition,
    shared: Shared<'_>,
    filter: &ScanFilter,
    applied: u64,
    give: &mut Give<'_>,
) -> Result<(), Stop> {
    let mut rows = SampleRows::default();
    for (series, profile_type, group) in groups(partition, filter) {
        let mut links = group.links.iter().peekable();
        for (index, profile) in visible(group, applied) {
            if !time_matches(profile.time_us, filter) {
                continue;
            }
            for row in group.rows_of(index) {
                while links.next_if(|link| (link.0 as usize) < row).is_some() {}
                let link = match links.next_if(|link| link.0 as usize == row) {
                    Some((_, link)) => *link,
                    None => Link::NONE,
                };
                let row = SampleRow {
                    time: profile.time_us,
                    series,
                    profile_type,
                    stack: partition.stacks[group.stacks[row] as usize].id,
                    value: group.values[row],
                    link,
                };
                rows.push(row, shared.texts);
                if rows.is_full(BATCH_ROWS) {
                    give(rows.take(shared)?)?;
                }
            }
        }
    }
    if rows.len() > 0 {
        give(rows.take(shared)?)?;
    }
    Ok(())
}

fn profiles(
    partition: &Partition,
    shared: Shared<'_>,
    filter: &ScanFilter,
    applied: u64,
    give: &mut Give<'_>,
) -> Result<(), Stop> {
    let mut rows = ProfileRows::default();
    for (series, profile_type, group) in groups(partition, filter) {
        for (index, profile) in visible(group, applied) {
            if time_matches(profile.time_us, filter) {
                let samples = group.rows_of(index).len() as i64;
                let row = ProfileOfType {
                    series,
                    profile_type,
                    profile: *profile,
                    samples,
                };
                rows.push(row, shared.texts);
            }
            if rows.is_full(BATCH_ROWS) {
                give(rows.take(shared)?)?;
            }
        }
    }
    if !rows.is_empty() {
        give(rows.take(shared)?)?;
    }
    Ok(())
}

fn stacks(partition: &Partition, shared: Shared<'_>, filter: &ScanFilter, give: &mut Give<'_>) -> Result<(), Stop> {
    let mut rows = StackRows::default();
    for stack in &partition.stacks {
        if filter.stacks.as_ref().is_some_and(|wanted| !wanted.contains(&stack.id)) {
            continue;
        }
        let Some(frames) = partition.frames(stack) else {
            continue;
        };
        rows.push(stack.id, frames, shared.texts);
        if rows.is_full(BATCH_FRAMES) {
            give(rows.take(shared)?)?;
        }
    }
    if rows.len() > 0 {
        give(rows.take(shared)?)?;
    }
    Ok(())
}

fn series(partition: &Partition, shared: Shared<'_>, filter: &ScanFilter, give: &mut Give<'_>) -> Result<(), Stop> {
    let wanted = |id: &SeriesId| filter.series.as_ref().is_none_or(|wanted| wanted.contains(id));
    let rows: Vec<(SeriesId, &Labels)> = partition
        .series
        .iter()
        .filter(|(id, _)| wanted(id))
        .map(|(id, labels)| (*id, labels))
        .collect();
    for rows in rows::series_chunks(&rows, BATCH_ROWS) {
        give(rows::series_batch(shared, rows)?)?;
    }
    Ok(())
}

/// Groups that the filter selects, as series, profile type and rows.
fn groups<'a>(partition: &'a Partition, filter: &'a ScanFilter) -> impl Iterator<Item = (SeriesId, TextId, &'a Group)> {
    partition
        .groups
        .iter()
        .map(|((series, profile_type), group)| (*series, *profile_type, group))
        .filter(|(series, profile_type, _)| {
            filter.series.as_ref().is_none_or(|wanted| wanted.contains(series))
                && filter
                    .profile_type
                    .as_ref()
                    .is_none_or(|wanted| partition.texts.get(*profile_type) == wanted.as_str())
        })
}

/// Profiles of a group that were there when the view was made.
fn visible(group: &Group, applied: u64) -> impl Iterator<Item = (usize, &ProfileRow)> {
    let count = group.profiles.partition_point(|profile| profile.number < applied);
    group.profiles[..count].iter().enumerate()
}

fn time_matches(time_us: i64, filter: &ScanFilter) -> bool {
    filter.time.is_none_or(|span| span.contains(time_us))
}

fn day_matches(day: i32, filter: &ScanFilter) -> bool {
    let day = TimeSpan::of_day(day);
    filter
        .time
        .is_none_or(|span| span.start < day.end && day.start < span.end)
}
