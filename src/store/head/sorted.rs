//! Reads one table of one partition of a head as sorted batches, from which a flush writes files, and computes their
//! statistics for the Delta log.
//!
//! Samples are sorted by profile type, series, stack and time. Equal stacks are therefore adjacent, and a query of one
//! type reads one contiguous range of the file. Batches are small, so a whole table is never in memory twice.

use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;

use crate::store::common::schema::{PARTITION_COLUMNS, Table};
use crate::store::head::generation::Head;
use crate::store::head::partition::{Group, Link, Partition};
use crate::store::head::rows::{self, ProfileOfType, ProfileRows, SampleRow, SampleRows, Shared, StackRows};
use crate::store::tables::stats::{FileStats, extend, extend_type};
use alluvium_profile::{Labels, SeriesId, TenantId};

const BATCH_ROWS: usize = 16 << 10;
const BATCH_FRAMES: usize = 32 << 10;

#[derive(Debug, thiserror::Error)]
pub(crate) enum BatchError<E> {
    /// Building a batch failed.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    #[error("{0}")]
    Receiver(E),
}

impl Head {
    /// Passes the sorted batches of a partition's table to `receive`, without the partition columns. If there are no
    /// rows, `receive` is not called. The call holds the lock of the partition, so the head must be frozen.
    pub(crate) fn sorted<E>(
        &self,
        table: Table,
        tenant: &TenantId,
        day: i32,
        mut receive: impl FnMut(&RecordBatch) -> Result<(), E>,
    ) -> Result<FileStats, BatchError<E>> {
        let Some(partition) = self.partition(&(tenant.clone(), day)) else {
            return Ok(FileStats::default());
        };
        let partition = &*partition.read();
        let columns: Vec<usize> = (PARTITION_COLUMNS..table.schema().fields().len()).collect();
        let shared = Shared {
            tenant,
            day,
            texts: partition.texts.shared(),
            projection: Some(&columns),
        };
        let mut stats = FileStats::default();
        let mut receive = |batch: Result<RecordBatch, ArrowError>| receive(&batch?).map_err(BatchError::Receiver);
        match table {
            Table::Samples => samples(partition, shared, &mut stats, &mut receive)?,
            Table::Profiles => profiles(partition, shared, &mut stats, &mut receive)?,
            Table::Stacks => stacks(partition, shared, &mut stats, &mut receive)?,
            Table::Series => series(partition, shared, &mut stats, &mut receive)?,
        }
        Ok(stats)
    }
}

fn samples<E>(
    partition: &Partition,
    shared: Shared<'_>,
    stats: &mut FileStats,
    receive: &mut impl FnMut(Result<RecordBatch, ArrowError>) -> Result<(), BatchError<E>>,
) -> Result<(), BatchError<E>> {
    let mut rows = SampleRows::default();
    let mut order = Order::new(partition);
    for group in group_order(partition) {
        let (series, profile_type) = (group.series, group.profile_type);
        if group.values.is_empty() {
            continue;
        }
        order.sort(partition, group);
        stats.rows += order.rows.len() as u64;
        extend(&mut stats.series, [series]);
        extend_type(&mut stats.profile_type, partition.texts.get(profile_type));
        for (index, profile) in group.profiles.iter().enumerate() {
            if !group.rows_of(index).is_empty() {
                extend(&mut stats.time, [profile.time_us]);
            }
        }
        for &stack in &order.stacks {
            let stack = &partition.stacks[stack as usize];
            extend(&mut stats.stack, [stack.id]);
        }
        for &(row, time) in &order.rows {
            let link = if group.links.is_empty() {
                Link::NONE
            } else {
                link_of(group, row)
            };
            let row = SampleRow {
                time,
                series,
                profile_type,
                stack: partition.stacks[group.stacks[row as usize] as usize].id,
                value: group.values[row as usize],
                link,
            };
            rows.push(row, shared.texts);
            if rows.is_full(BATCH_ROWS) {
                receive(rows.take(shared))?;
            }
        }
    }
    if rows.len() > 0 {
        receive(rows.take(shared))?;
    }
    Ok(())
}

fn link_of(group: &Group, row: u32) -> Link {
    match group.links.binary_search_by_key(&row, |(row, _)| *row) {
        Ok(index) => group.links[index].1,
        Err(_) => Link::NONE,
    }
}

/// Sorts the rows of groups by stack id and time. A counting sort over the stacks of a group is enough, because the
/// profiles of the group, and with them their rows, are visited in the order of time.
struct Order {
    /// For each stack of the partition, its rank by id among all stacks.
    ranks: Vec<u32>,
    /// For each stack of the partition, its index in `stacks`, or [`UNSEEN`] if the group lacks the stack. Between two
    /// groups, all places are [`UNSEEN`].
    places: Vec<u32>,
    /// Stacks of the group, sorted by id.
    stacks: Vec<u32>,
    /// For each index in `stacks`, the position of its next row.
    next: Vec<u32>,
    /// Rows of the group with their times, sorted.
    rows: Vec<(u32, i64)>,
}

/// Marks a stack that has not occurred in this group.
const UNSEEN: u32 = u32::MAX;

impl Order {
    fn new(partition: &Partition) -> Self {
        let mut by_id: Vec<u32> = (0..partition.stacks.len() as u32).collect();
        by_id.sort_unstable_by_key(|stack| partition.stacks[*stack as usize].id);
        let mut ranks = vec![0; by_id.len()];
        for (rank, stack) in by_id.into_iter().enumerate() {
            ranks[stack as usize] = rank as u32;
        }
        Self {
            places: vec![UNSEEN; ranks.len()],
            ranks,
            stacks: Vec::new(),
            next: Vec::new(),
            rows: Vec::new(),
        }
    }

    fn sort(&mut self, partition: &Partition, group: &Group) {
        debug_assert_eq!(partition.stacks.len(), self.ranks.len());
        self.stacks.clear();
        self.next.clear();
        for &stack in &group.stacks {
            let slot = &mut self.places[stack as usize];
            if *slot == UNSEEN {
                *slot = self.stacks.len() as u32;
                self.stacks.push(stack);
            }
        }
        self.stacks.sort_unstable_by_key(|stack| self.ranks[*stack as usize]);
        for (slot, &stack) in self.stacks.iter().enumerate() {
            self.places[stack as usize] = slot as u32;
        }
        self.next.resize(self.stacks.len(), 0);
        for &stack in &group.stacks {
            self.next[self.places[stack as usize] as usize] += 1;
        }
        let mut start = 0;
        for next in &mut self.next {
            start += std::mem::replace(next, start);
        }
        self.rows.clear();
        self.rows.resize(group.stacks.len(), (0, 0));
        let mut profiles: Vec<usize> = (0..group.profiles.len()).collect();
        // The sort is stable, so profiles of the same time keep their order of arrival.
        profiles.sort_by_key(|profile| group.profiles[*profile].time_us);
        for profile in profiles {
            let time = group.profiles[profile].time_us;
            for row in group.rows_of(profile) {
                let next = &mut self.next[self.places[group.stacks[row] as usize] as usize];
                self.rows[*next as usize] = (row as u32, time);
                *next += 1;
            }
        }
        for &stack in &self.stacks {
            self.places[stack as usize] = UNSEEN;
        }
    }
}

fn profiles<E>(
    partition: &Partition,
    shared: Shared<'_>,
    stats: &mut FileStats,
    receive: &mut impl FnMut(Result<RecordBatch, ArrowError>) -> Result<(), BatchError<E>>,
) -> Result<(), BatchError<E>> {
    let mut rows = ProfileRows::default();
    for group in group_order(partition) {
        let (series, profile_type) = (group.series, group.profile_type);
        let mut order: Vec<usize> = (0..group.profiles.len()).collect();
        order.sort_by_key(|index| group.profiles[*index].time_us);
        extend(&mut stats.series, [series]);
        extend_type(&mut stats.profile_type, partition.texts.get(profile_type));
        for index in order {
            let profile = group.profiles[index];
            extend(&mut stats.time, [profile.time_us]);
            stats.rows += 1;
            let samples = group.rows_of(index).len() as i64;
            let row = ProfileOfType {
                series,
                profile_type,
                profile,
                samples,
            };
            rows.push(row, shared.texts);
            if rows.is_full(BATCH_ROWS) {
                receive(rows.take(shared))?;
            }
        }
    }
    if !rows.is_empty() {
        receive(rows.take(shared))?;
    }
    Ok(())
}

fn stacks<E>(
    partition: &Partition,
    shared: Shared<'_>,
    stats: &mut FileStats,
    receive: &mut impl FnMut(Result<RecordBatch, ArrowError>) -> Result<(), BatchError<E>>,
) -> Result<(), BatchError<E>> {
    let mut order: Vec<u32> = (0..partition.stacks.len() as u32).collect();
    order.sort_unstable_by_key(|index| partition.stacks[*index as usize].id);
    let mut rows = StackRows::default();
    for index in order {
        let stack = &partition.stacks[index as usize];
        let Some(frames) = partition.frames(stack) else {
            continue;
        };
        rows.push(stack.id, frames, shared.texts);
        stats.rows += 1;
        extend(&mut stats.stack, [stack.id]);
        if rows.is_full(BATCH_FRAMES) {
            receive(rows.take(shared))?;
        }
    }
    if rows.len() > 0 {
        receive(rows.take(shared))?;
    }
    Ok(())
}

fn series<E>(
    partition: &Partition,
    shared: Shared<'_>,
    stats: &mut FileStats,
    receive: &mut impl FnMut(Result<RecordBatch, ArrowError>) -> Result<(), BatchError<E>>,
) -> Result<(), BatchError<E>> {
    let mut rows: Vec<(SeriesId, &Labels)> = partition.series.iter().map(|(id, labels)| (*id, labels)).collect();
    rows.sort_unstable_by_key(|(id, _)| *id);
    for (id, _) in &rows {
        extend(&mut stats.series, [*id]);
    }
    stats.rows = rows.len() as u64;
    for rows in rows::series_chunks(&rows, BATCH_ROWS) {
        receive(rows::series_batch(shared, rows))?;
    }
    Ok(())
}

/// Returns the groups ordered by the text of their profile type, then by series.
fn group_order(partition: &Partition) -> Vec<&Group> {
    let mut order: Vec<&Group> = partition.groups.iter().collect();
    order.sort_unstable_by(|left, right| {
        let text = |group: &Group| partition.texts.get(group.profile_type);
        text(left).cmp(text(right)).then(left.series.cmp(&right.series))
    });
    order
}
