//! The memory that connections of the port hold between messages: prepared statements, portals, large messages.
//!
//! In: how many bytes are wanted. Out: [`HeldBytes`] that count until they are dropped, or PostgreSQL's error when the
//! port has no memory left. The budget belongs to all connections together.

use crate::base::bytes::{ByteBudget, HeldBytes};
use crate::base::pressure::MemoryPart;
use crate::server::postgres::failure::Failure;

/// Memory of an entry in a table beside the values that it holds, in bytes.
pub(super) const ENTRY_BYTES: usize = 512;

/// Rows of up to this many bytes hold no memory of the port.
const FREE_ROWS: usize = 64 << 10;

/// The budget of the port. Clones share it.
#[derive(Clone)]
pub(super) struct Memory(ByteBudget);

impl Memory {
    /// A budget with this size in bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self(ByteBudget::new(bytes))
    }

    /// Takes the memory of `what`, or fails at once.
    pub(super) fn take(&self, what: &str, bytes: usize) -> Result<HeldBytes, Failure> {
        self.0.try_take(bytes).ok_or_else(|| {
            Failure::error(
                "53200",
                format!(
                    "the connections hold nearly all of the {} KiB that they may, and {what} needs {bytes} bytes: \
                        close prepared statements and portals, or raise the server's --memory-limit",
                    self.total() >> 10
                ),
            )
        })
    }

    /// Takes the memory of rows of a query, which the client may leave unread when the query has ended. It is at most a
    /// quarter of the budget, so that rows of any size can be sent.
    pub(super) fn take_rows(&self, bytes: usize) -> Result<Option<HeldBytes>, Failure> {
        if bytes <= FREE_ROWS {
            return Ok(None);
        }
        let charged = bytes.min(self.total() / 4);
        self.take("a part of the rows", charged).map(Some)
    }

    /// Bytes of the whole budget.
    pub(super) fn total(&self) -> usize {
        self.0.total()
    }

    /// What all connections together hold.
    pub(super) fn part(&self) -> MemoryPart {
        MemoryPart {
            name: "postgres",
            used: self.0.used() as u64,
            limit: self.0.total() as u64,
        }
    }
}
