//! Shortens stacks to the locations nearest to the leaf, for the profile-guided optimization of Go's compiler.

use crate::query::common::types::GoPgo;
use crate::query::decoded::stack_table::StackTable;

impl GoPgo {
    /// Returns the frames of the locations that are kept, leaf first.
    pub(crate) fn trim<'a>(self, table: &StackTable, frames: &'a [u32]) -> &'a [u32] {
        if self.keep_locations == 0 {
            return frames;
        }
        let mut ends = (0..frames.len()).filter(|index| table.ends_location(frames, *index));
        match ends.nth(self.keep_locations - 1) {
            Some(last) => &frames[..=last],
            None => frames,
        }
    }
}
