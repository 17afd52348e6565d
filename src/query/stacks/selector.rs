//! Selects stacks by their functions: by those with which they begin at the root, and by the names of all functions.
//!
//! In: a table of stacks, and the conditions of a query. Out: whether a stack is selected. The filter sees each
//! distinct frame once, because comparing regular expressions is slow.

use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::HashMap;

use crate::query::common::error::QueryError;
use crate::query::common::frame_filter::{FrameFilter, Verdict};
use crate::query::decoded::stack_table::StackTable;
use alluvium_profile::StackId;

/// Memory in bytes of the verdict on a frame, with a share of the empty slots of the map.
const VERDICT_BYTES: usize = 64;

/// Selects stacks of one table.
pub(crate) struct StackSelector<'a> {
    table: &'a StackTable,
    call_site: &'a [String],
    filter: &'a FrameFilter,
    /// The filter's verdicts, by the number of the frame.
    verdicts: HashMap<u32, Verdict>,
    /// The included conditions that a function of the current stack meets.
    met: Vec<bool>,
    memory: MemoryReservation,
}

impl<'a> StackSelector<'a> {
    /// `memory` is charged for the verdicts until the selector is dropped.
    pub(crate) fn new(
        table: &'a StackTable,
        call_site: &'a [String],
        filter: &'a FrameFilter,
        memory: MemoryReservation,
    ) -> Self {
        Self {
            table,
            call_site,
            filter,
            verdicts: HashMap::new(),
            met: vec![false; filter.conditions()],
            memory,
        }
    }

    /// Returns true if the stack begins with the functions of the call site and passes the filter.
    pub(crate) fn selects(&mut self, stack: StackId) -> Result<bool, QueryError> {
        let Some(frames) = self.table.stack(stack) else {
            return Ok(false);
        };
        if !self.begins_with_call_site(frames) {
            return Ok(false);
        }
        if self.filter.is_empty() {
            return Ok(true);
        }
        self.met.fill(false);
        let mut missing = self.met.len();
        for number in frames {
            let capacity = self.verdicts.capacity();
            let verdict = self
                .verdicts
                .entry(*number)
                .or_insert_with(|| self.filter.verdict(self.table.name(*number)));
            if verdict.is_excluded {
                return Ok(false);
            }
            for condition in &verdict.met {
                if !std::mem::replace(&mut self.met[*condition], true) {
                    missing -= 1;
                }
            }
            if self.verdicts.capacity() != capacity {
                self.memory.try_resize(self.verdicts.capacity() * VERDICT_BYTES)?;
            }
        }
        Ok(missing == 0 && !frames.is_empty())
    }

    fn begins_with_call_site(&self, frames: &[u32]) -> bool {
        frames.len() >= self.call_site.len()
            && frames
                .iter()
                .rev()
                .zip(self.call_site)
                .all(|(index, name)| self.table.name(*index).as_ref() == name)
    }
}
