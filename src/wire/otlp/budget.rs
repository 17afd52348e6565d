//! Limits the memory of the profiles of one request.
//!
//! The limit follows from the size of the request. Memory is charged before it is used.

use crate::otlp::error::ExportError;

/// Maximum number of bytes of memory for each byte of a request. The factor is large, because valid requests refer to
/// shared data: a sample of 20 bytes with a stack of 100 frames is charged with a kilobyte, and a small profile is also
/// charged with the names of frames that it shares with other profiles.
const EXPANSION: usize = 128;

/// Number of bytes of memory that any request may take in addition.
const FREE_BYTES: usize = 1 << 20;

/// Maximum number of bytes of memory for any request. Collectors send less than four megabytes.
const MAX_BYTES: usize = 128 << 20;

/// Returns the maximum number of bytes that the profiles of a request of `size` bytes may take in memory.
pub(super) fn max_bytes(size: usize) -> usize {
    size.saturating_mul(EXPANSION).saturating_add(FREE_BYTES).min(MAX_BYTES)
}

/// Memory that is left for the profiles of a request.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
    limit: usize,
}

impl Budget {
    /// Creates the budget for a request of `size` bytes as protobuf.
    pub(super) fn of_request(size: usize) -> Self {
        let limit = max_bytes(size);
        Self { left: limit, limit }
    }

    /// Charges `count` times `bytes` bytes of memory. Fails when this exceeds the budget.
    #[inline]
    pub(super) fn take(&mut self, count: usize, bytes: usize) -> Result<(), ExportError> {
        self.left = self
            .left
            .checked_sub(count.saturating_mul(bytes))
            .ok_or(ExportError::Memory { limit: self.limit })?;
        Ok(())
    }
}
