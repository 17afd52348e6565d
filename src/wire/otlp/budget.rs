//! Limit on the memory of the profiles of one request.
//!
//! It follows from the size of the request, and is charged before the memory is used.

use crate::wire::otlp::error::ExportError;

/// Most bytes of memory for a byte of a request. A sample of 20 bytes that refers to a stack of 100 frames is charged
/// with a kilobyte, and a small profile with the names of frames that it shares with others.
const EXPANSION: usize = 128;

/// Bytes of memory that any request may take.
const FREE_BYTES: usize = 1 << 20;

/// Most bytes of memory for any request. Collectors send less than four megabytes.
const MAX_BYTES: usize = 128 << 20;

/// Most bytes of memory that the profiles of a request of `size` bytes may take.
pub(super) fn max_bytes(size: usize) -> usize {
    size.saturating_mul(EXPANSION).saturating_add(FREE_BYTES).min(MAX_BYTES)
}

/// Memory that the profiles of a request may still take.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
    limit: usize,
}

impl Budget {
    /// Budget for a request of `size` bytes as protobuf.
    pub(super) fn of_request(size: usize) -> Self {
        let limit = max_bytes(size);
        Self { left: limit, limit }
    }

    /// Charges `count` times `bytes` bytes of memory; fails when they exceed the budget.
    #[inline]
    pub(super) fn take(&mut self, count: usize, bytes: usize) -> Result<(), ExportError> {
        self.left = self
            .left
            .checked_sub(count.saturating_mul(bytes))
            .ok_or(ExportError::Memory { limit: self.limit })?;
        Ok(())
    }
}
