//! Limits on reading a recording: bytes of memory, and steps. Steps are limited because some values take no bytes of
//! the file.
//!
//! Both limits follow from the size of the file. Memory and steps are charged before they are used.

use crate::jfr::error::JfrErrorKind;

/// Limits the memory for data that stays until the profiles are made: this many bytes for each byte of the recording,
/// in addition to [`FREE_BYTES`]. Recordings of real programs take 1 to 4.
const KEPT_BYTES_PER_BYTE: usize = 12;

/// Limits the memory for the types and constants of a chunk, which are freed after the chunk: this many bytes for each
/// byte of the chunk, in addition to [`FREE_BYTES`].
const CHUNK_BYTES_PER_BYTE: usize = 8;

/// Number of bytes of memory that every recording, and every chunk, may take regardless of its size.
const FREE_BYTES: usize = 256 << 10;

/// Maximum number of steps per byte of a recording. A skipped value or a frame is one step, and almost all of them take
/// at least one byte.
const STEPS_PER_BYTE: u64 = 4;

/// Number of steps that every recording may take regardless of its size.
const FREE_STEPS: u64 = 1 << 16;

/// Returns the maximum memory for reading a recording of `size` bytes, in bytes and without the recording itself.
pub fn max_bytes(size: usize) -> usize {
    size.saturating_mul(KEPT_BYTES_PER_BYTE + CHUNK_BYTES_PER_BYTE)
        .saturating_add(2 * FREE_BYTES)
}

/// Remaining memory and steps.
pub(super) struct Budget {
    bytes: usize,
    max_bytes: usize,
    steps: u64,
    max_steps: u64,
}

impl Budget {
    /// Creates the budget for data that stays until the profiles of a recording of `size` bytes are made.
    pub(super) fn of_recording(size: usize) -> Self {
        Self::new(size, KEPT_BYTES_PER_BYTE)
    }

    /// Creates the budget for data that is needed while a chunk of `size` bytes is read.
    pub(super) fn of_chunk(size: usize) -> Self {
        Self::new(size, CHUNK_BYTES_PER_BYTE)
    }

    fn new(size: usize, expansion: usize) -> Self {
        let max_bytes = size.saturating_mul(expansion).saturating_add(FREE_BYTES);
        let max_steps = (size as u64).saturating_mul(STEPS_PER_BYTE).saturating_add(FREE_STEPS);
        Self {
            bytes: max_bytes,
            max_bytes,
            steps: max_steps,
            max_steps,
        }
    }

    /// Charges bytes of memory. Fails if they exceed the budget.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), JfrErrorKind> {
        self.bytes = self
            .bytes
            .checked_sub(bytes)
            .ok_or(JfrErrorKind::Memory { limit: self.max_bytes })?;
        Ok(())
    }

    /// Charges one step. Fails if no steps are left.
    #[inline]
    pub(super) fn step(&mut self) -> Result<(), JfrErrorKind> {
        self.steps = self.steps.checked_sub(1).ok_or(JfrErrorKind::Work(self.max_steps))?;
        Ok(())
    }
}
