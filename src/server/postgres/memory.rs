//! The memory that connections of the port hold between messages: prepared statements, portals, and large messages.
//!
//! In: a number of bytes. Out: [`HeldBytes`], which stay charged to the budget until they are dropped, or PostgreSQL's
//! error if the port has no memory left. All connections share the budget.

use crate::server::postgres::failure::Failure;
use alluvium_base::bytes::{ByteBudget, HeldBytes};
use alluvium_base::pressure::MemoryPart;

/// Memory in bytes of an entry in the tables of statements and portals, without its name and its values.
pub(super) const ENTRY_BYTES: usize = 512;

/// Rows of up to this size in bytes are not charged.
const FREE_ROWS: usize = 64 << 10;

/// The budget of the port. Clones share it.
#[derive(Clone)]
pub(super) struct Memory(ByteBudget);

impl Memory {
    /// Creates a budget of this size in bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self(ByteBudget::new(bytes))
    }

    /// Takes memory, or fails at once. In the error, `purpose` names the purpose of the memory.
    pub(super) fn take(&self, purpose: &str, bytes: usize) -> Result<HeldBytes, Failure> {
        self.0.try_take(bytes).ok_or_else(|| {
            Failure::error(
                "53200",
                format!(
                    "the connections hold nearly all of their memory of {} KiB, and {purpose} needs {bytes} bytes: \
                        close prepared statements and portals, or raise the server's --memory-limit",
                    self.total() >> 10
                ),
            )
        })
    }

    /// Takes the memory for rows of a query, which the client may leave unread after the query has ended. The charge is
    /// at most a quarter of the budget, so that rows of any size can be sent.
    pub(super) fn take_rows(&self, bytes: usize) -> Result<Option<HeldBytes>, Failure> {
        if bytes <= FREE_ROWS {
            return Ok(None);
        }
        let charged = bytes.min(self.total() / 4);
        self.take("a part of the rows", charged).map(Some)
    }

    /// Returns the size of the whole budget in bytes.
    pub(super) fn total(&self) -> usize {
        self.0.total()
    }

    /// Returns the memory that all connections together hold.
    pub(super) fn part(&self) -> MemoryPart {
        MemoryPart {
            name: "postgres",
            used: self.0.used() as u64,
            limit: self.0.total() as u64,
        }
    }
}
