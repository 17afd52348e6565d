//! The memory budget of profiles between their arrival and the head: while they are decoded, wait for the log, and wait
//! for the head.
//!
//! Before a profile is decompressed, the budget is charged with the maximum memory for decoding ([`Budget::reserve`]).
//! After decoding, the charge is reduced to the memory that the profile uses ([`Budget::adjust`]). The charge ends when
//! the head contains the profile. Reservations are served in order of arrival.
//!
//! The budget cannot deadlock, because a profile with a charge never waits for more bytes of the budget. A few profiles
//! need more than their reservation, for example a small profile with very deep stacks. The excess is not charged,
//! because profiles that hold bytes and wait for more could block each other. Instead, only one profile at a time may
//! exceed its reservation. Once a profile may do so, it waits only for the log and the head.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use alluvium_base::bytes::{ByteBudget, HeldBytes};

#[derive(Clone)]
pub(crate) struct Budget {
    bytes: ByteBudget,
    overflow: Arc<Semaphore>,
}

/// A charge on the budget. Dropping it releases the bytes.
pub(crate) struct Charge {
    held: HeldBytes,
    overflow: Option<OwnedSemaphorePermit>,
}

impl Budget {
    /// Creates a budget of `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            bytes: ByteBudget::new(bytes),
            overflow: Arc::new(Semaphore::new(1)),
        }
    }

    /// Waits for `bytes`, or for the whole budget if `bytes` exceeds it.
    pub(crate) async fn reserve(&self, bytes: usize) -> Charge {
        let held = self.bytes.take(bytes).await;
        Charge { held, overflow: None }
    }

    /// Reduces `charge` to `bytes`. If `bytes` exceeds the reservation, the charge stays, and the function waits for
    /// the permission to exceed the reservation.
    pub(crate) async fn adjust(&self, mut charge: Charge, bytes: usize) -> Charge {
        if bytes > charge.held.bytes() {
            // The semaphore is never closed, so the result is always a permit.
            charge.overflow = self.overflow.clone().acquire_owned().await.ok();
        } else {
            charge.held.keep(bytes);
        }
        charge
    }

    /// Returns the number of bytes that are charged.
    pub(crate) fn used(&self) -> usize {
        self.bytes.used()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT_BYTES: usize = 1024;

    #[tokio::test]
    async fn what_is_not_used_is_there_for_others_at_once() {
        let budget = Budget::new(10 * UNIT_BYTES);
        let charge = budget.reserve(8 * UNIT_BYTES).await;
        let charge = budget.adjust(charge, UNIT_BYTES).await;
        assert_eq!(budget.used(), UNIT_BYTES);
        let second = budget.reserve(9 * UNIT_BYTES).await;
        assert_eq!(budget.used(), 10 * UNIT_BYTES);
        drop((charge, second));
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn more_than_the_budget_is_the_whole_budget() {
        let budget = Budget::new(10 * UNIT_BYTES);
        let charge = budget.reserve(usize::MAX).await;
        assert_eq!(budget.used(), 10 * UNIT_BYTES);
        drop(charge);
    }

    #[tokio::test]
    async fn all_that_take_more_than_they_reserved_come_through() {
        let budget = Budget::new(4 * UNIT_BYTES);
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..64 {
            let budget = budget.clone();
            tasks.spawn(async move {
                let charge = budget.reserve(2 * UNIT_BYTES).await;
                tokio::task::yield_now().await;
                let charge = budget.adjust(charge, 100 * UNIT_BYTES).await;
                tokio::task::yield_now().await;
                drop(charge);
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
        assert_eq!(budget.used(), 0);
    }
}
