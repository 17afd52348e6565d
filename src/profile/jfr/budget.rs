//! Limits on reading a recording: bytes of memory, and steps over values that take no bytes of the file.
//!
//! Both follow from the size of the file, and are charged before they are used.

use crate::profile::jfr::error::JfrErrorKind;

/// Most bytes of memory for a byte of a recording that stay until its profiles are made, beyond [`FREE_BYTES`]. Those
/// of real programs take 1 to 4.
const KEPT: usize = 12;

/// Most bytes of memory per byte of a chunk that are freed after it: types and constants.
const PASSING: usize = 8;

/// Bytes of memory that any recording or chunk may take.
const FREE_BYTES: usize = 256 << 10;

/// Steps per byte of a recording. A field is one step, and almost always takes a byte.
const STEPS: u64 = 4;

/// Steps that any recording may take.
const FREE_STEPS: u64 = 1 << 16;

/// Most bytes of memory that reading a recording of `size` bytes takes, without its own bytes.
pub(crate) fn max_bytes(size: usize) -> usize {
    size.saturating_mul(KEPT + PASSING).saturating_add(2 * FREE_BYTES)
}

/// Remaining memory and steps.
pub(super) struct Budget {
    bytes: usize,
    max_bytes: usize,
    steps: u64,
    max_steps: u64,
}

impl Budget {
    /// Budget for what stays of a recording of `size` bytes.
    pub(super) fn of_recording(size: usize) -> Self {
        Self::new(size, KEPT)
    }

    /// Budget for what is needed while a chunk of `size` bytes is read.
    pub(super) fn of_chunk(size: usize) -> Self {
        Self::new(size, PASSING)
    }

    fn new(size: usize, expansion: usize) -> Self {
        let max_bytes = size.saturating_mul(expansion).saturating_add(FREE_BYTES);
        let max_steps = (size as u64).saturating_mul(STEPS).saturating_add(FREE_STEPS);
        Self {
            bytes: max_bytes,
            max_bytes,
            steps: max_steps,
            max_steps,
        }
    }

    /// Charges bytes of memory; fails when they exceed the budget.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), JfrErrorKind> {
        self.bytes = self
            .bytes
            .checked_sub(bytes)
            .ok_or(JfrErrorKind::Memory { limit: self.max_bytes })?;
        Ok(())
    }

    /// Charges one step; fails when none is left.
    #[inline]
    pub(super) fn step(&mut self) -> Result<(), JfrErrorKind> {
        self.steps = self.steps.checked_sub(1).ok_or(JfrErrorKind::Work(self.max_steps))?;
        Ok(())
    }
}
