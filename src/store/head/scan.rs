//! Scans of the head for queries: unsorted batches of the rows that a filter selects.
//!
//! Under the lock of a partition, a scan copies some thousand rows, in which texts are only numbers. Without the lock,
//! it looks up the texts, builds batches and passes them to the reader. A reader that processes a batch blocks no other
//! thread.

use std::ops::{ControlFlow, Range};
use std::vec::Drain;

use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use hashbrown::HashMap;
use parking_lot::RwLock;

use crate::store::common::schema::Table;
use crate::store::head::frames::Frame;
use crate::store::head::generation::{HeadView, Key};
use crate::store::head::identity::Identity;
use crate::store::head::intern::SharedTexts;
use crate::store::head::partition::{Group, Link, Partition};
use crate::store::head::rows::{self, ProfileOfType, ProfileRows, SampleRow, SampleRows, Shared, StackRows};
use crate::store::head::walk::{Count, STEP, Walk};
use crate::store::tables::snapshot::{HeadScan, Receive, ScanFilter};
use alluvium_profile::{Labels, SeriesId, StackId, TimeSpan};

const BATCH_ROWS: usize = 64 << 10;
/// Number of frames in a batch of stacks: a few megabytes of names.
const BATCH_FRAMES: usize = 64 << 10;

/// The reason why a scan ends before its last row.
enum Stop {
    /// The reader requested the stop.
    Requested,
    Failed(ArrowError),
}

impl From<ArrowError> for Stop {
    fn from(error: ArrowError) -> Self {
        Self::Failed(error)
    }
}

/// Passes a batch to the reader.
type Give<'a> = dyn FnMut(RecordBatch) -> Result<(), Stop> + 'a;

/// A partition, and the filter and the view that select the rows to read.
struct Source<'a> {
    key: &'a Key,
    partition: &'a RwLock<Partition>,
    filter: &'a ScanFilter,
    /// Number of profiles in the view.
    applied: u64,
}

impl HeadScan for HeadView {
    fn scan_with(&self, table: Table, filter: &ScanFilter, receive: &mut Receive<'_>) {
        let mut give = |batch| match receive(batch) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::Requested),
        };
        for (key, partition) in self.head.all().filter(|(key, _)| selects(filter, key)) {
            let source = Source {
                key: &key,
                partition: &partition,
                filter,
                applied: self.applied,
            };
            let result = match table {
                Table::Samples => source.samples(&mut give),
                Table::Profiles => source.profiles(&mut give),
                Table::Stacks => source.stacks(&mut give),
                Table::Series => source.series(&mut give),
            };
            match result {
                Ok(()) => {}
                Err(Stop::Requested) => return,
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
        for (key, partition) in self.head.all().filter(|(key, _)| selects(filter, key)) {
            let source = Source {
                key: &key,
                partition: &partition,
                filter,
                applied: self.applied,
            };
            source.sum_stacks(&mut sums, &mut all)?;
        }
        Some(all.into_iter().collect())
    }

    fn is_exact(&self) -> bool {
        true
    }
}

/// Returns true if the filter selects a tenant and day.
fn selects(filter: &ScanFilter, (tenant, day): &Key) -> bool {
    let day = TimeSpan::of_day(*day);
    filter.tenants.as_ref().is_none_or(|tenants| tenants.has(tenant))
        && filter
            .time
            .is_none_or(|span| span.start < day.end && day.start < span.end)
}

impl Source<'_> {
    fn shared<'a>(&'a self, texts: &'a SharedTexts) -> Shared<'a> {
        Shared {
            tenant: &self.key.0,
            day: self.key.1,
            texts,
            projection: self.filter.projection.as_deref(),
        }
    }

    /// Visits the rows that the filter selects, step by step. `copy` runs under the lock for each piece of rows.
    /// `build` runs after each step, without the lock, with the copied rows and their texts. Returns the texts of all
    /// copied rows.
    fn walk<T>(
        &self,
        count: Count,
        mut copy: impl FnMut(&Partition, &Group, usize, Range<usize>, &mut Vec<T>),
        mut build: impl FnMut(Drain<'_, T>, &SharedTexts) -> Result<(), Stop>,
    ) -> Result<SharedTexts, Stop> {
        let mut texts = SharedTexts::default();
        let Some(mut walk) = Walk::new(&self.partition.read(), self.filter, self.applied, count) else {
            return Ok(texts);
        };
        let mut copied = Vec::new();
        let mut has_more = true;
        while has_more {
            {
                let partition = &*self.partition.read();
                has_more = walk.step(partition, |group, profile, rows| {
                    copy(partition, group, profile, rows, &mut copied);
                });
                texts.follow(partition.texts.shared());
            }
            build(copied.drain(..), &texts)?;
        }
        Ok(texts)
    }

    fn samples(&self, give: &mut Give<'_>) -> Result<(), Stop> {
        let mut rows = SampleRows::default();
        let texts = self.walk(Count::Rows, copy_samples, |copied, texts| {
            for row in copied {
                rows.push(row, texts);
                if rows.is_full(BATCH_ROWS) {
                    give(rows.take(self.shared(texts))?)?;
                }
            }
            Ok(())
        })?;
        if rows.len() > 0 {
            give(rows.take(self.shared(&texts))?)?;
        }
        Ok(())
    }

    fn profiles(&self, give: &mut Give<'_>) -> Result<(), Stop> {
        let mut rows = ProfileRows::default();
        let texts = self.walk(Count::Profiles, copy_profile, |copied, texts| {
            for row in copied {
                rows.push(row, texts);
                if rows.is_full(BATCH_ROWS) {
                    give(rows.take(self.shared(texts))?)?;
                }
            }
            Ok(())
        })?;
        if !rows.is_empty() {
            give(rows.take(self.shared(&texts))?)?;
        }
        Ok(())
    }

    fn stacks(&self, give: &mut Give<'_>) -> Result<(), Stop> {
        let is_selected = |id: &StackId| {
            self.filter
                .stacks
                .as_ref()
                .is_none_or(|is_selected| is_selected.contains(id))
        };
        let end = self.partition.read().stacks.len();
        let mut texts = SharedTexts::default();
        let mut rows = StackRows::default();
        let (mut ids, mut frames): (Vec<(StackId, usize)>, Vec<Frame>) = (Vec::new(), Vec::new());
        let mut index = 0;
        while index < end {
            {
                let partition = &*self.partition.read();
                let stop = end.min(index + STEP);
                while index < stop && frames.len() < STEP {
                    let stack = &partition.stacks[index];
                    index += 1;
                    if let Some(own) = partition.frames(stack).filter(|_| is_selected(&stack.id)) {
                        frames.extend(own.copied());
                        ids.push((stack.id, frames.len()));
                    }
                }
                texts.follow(partition.texts.shared());
            }
            let mut start = 0;
            for (id, end) in ids.drain(..) {
                rows.push(id, frames[start..end].iter(), &texts);
                start = end;
                if rows.is_full(BATCH_FRAMES) {
                    give(rows.take(self.shared(&texts))?)?;
                }
            }
            frames.clear();
        }
        if rows.len() > 0 {
            give(rows.take(self.shared(&texts))?)?;
        }
        Ok(())
    }

    fn series(&self, give: &mut Give<'_>) -> Result<(), Stop> {
        let is_selected = |id: &SeriesId| {
            self.filter
                .series
                .as_ref()
                .is_none_or(|is_selected| is_selected.contains(id))
        };
        let end = self.partition.read().series.len();
        let texts = SharedTexts::default();
        for start in (0..end).step_by(STEP) {
            let copied: Vec<(SeriesId, Labels)> = {
                let all = &self.partition.read().series[start..end.min(start + STEP)];
                all.iter().filter(|(id, _)| is_selected(id)).cloned().collect()
            };
            let rows: Vec<(SeriesId, &Labels)> = copied.iter().map(|(id, labels)| (*id, labels)).collect();
            for rows in rows::series_chunks(&rows, BATCH_ROWS) {
                give(rows::series_batch(self.shared(&texts), rows)?)?;
            }
        }
        Ok(())
    }

    /// Adds the selected values of the partition to `all`, summed by stack. `sums` is a reused buffer. Returns `None`
    /// if a sum overflows.
    fn sum_stacks(&self, sums: &mut Vec<i64>, all: &mut HashMap<StackId, i64, Identity>) -> Option<()> {
        let (walk, stacks) = {
            let partition = &*self.partition.read();
            let walk = Walk::new(partition, self.filter, self.applied, Count::Rows);
            (walk, partition.stacks.len())
        };
        let Some(mut walk) = walk else {
            return Some(());
        };
        let mut fits = true;
        sums.clear();
        sums.resize(stacks, 0);
        let mut add = |group: &Group, _: usize, rows: Range<usize>| {
            for (stack, value) in group.stacks[rows.clone()].iter().zip(&group.values[rows]) {
                let (sum, is_too_large) = sums[*stack as usize].overflowing_add(*value);
                sums[*stack as usize] = sum;
                fits &= !is_too_large;
            }
        };
        while walk.step(&self.partition.read(), &mut add) {}
        if !fits {
            return None;
        }
        for (step, sums) in sums.chunks(STEP).enumerate() {
            let ids: Vec<StackId> = {
                let stacks = &self.partition.read().stacks[step * STEP..];
                stacks[..sums.len()].iter().map(|stack| stack.id).collect()
            };
            for (stack, value) in ids.iter().zip(sums).filter(|(_, value)| **value != 0) {
                if self
                    .filter
                    .stacks
                    .as_ref()
                    .is_none_or(|selected| selected.contains(stack))
                {
                    let sum = all.entry(*stack).or_default();
                    *sum = sum.checked_add(*value)?;
                }
            }
        }
        Some(())
    }
}

/// Copies some rows of a profile.
fn copy_samples(partition: &Partition, group: &Group, profile: usize, rows: Range<usize>, copied: &mut Vec<SampleRow>) {
    let time = group.profiles[profile].time_us;
    let first = group.links.partition_point(|(row, _)| (*row as usize) < rows.start);
    let mut links = group.links[first..].iter().peekable();
    copied.extend(rows.map(|row| SampleRow {
        time,
        series: group.series,
        profile_type: group.profile_type,
        stack: partition.stacks[group.stacks[row] as usize].id,
        value: group.values[row],
        link: match links.next_if(|(linked, _)| *linked as usize == row) {
            Some((_, link)) => *link,
            None => Link::NONE,
        },
    }));
}

/// Copies a profile. `rows` are all of its rows.
fn copy_profile(_: &Partition, group: &Group, profile: usize, rows: Range<usize>, copied: &mut Vec<ProfileOfType>) {
    copied.push(ProfileOfType {
        series: group.series,
        profile_type: group.profile_type,
        profile: group.profiles[profile],
        samples: rows.len() as i64,
    });
}
