//! A memory budget in bytes: a semaphore with units of 1 KiB, because its counter has only 32 bits.
//!
//! In: the number of bytes that a caller wants. Out: [`HeldBytes`], which count against the budget until they are
//! dropped. The budget serves waiters in order.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const UNIT_BYTES: usize = 1024;

/// A budget in bytes. Clones share the budget.
#[derive(Debug, Clone)]
pub struct ByteBudget {
    units: Arc<Semaphore>,
    all: u32,
}

/// A share of a budget, released on drop.
#[derive(Debug)]
pub struct HeldBytes(OwnedSemaphorePermit);

impl ByteBudget {
    /// Creates a budget of `bytes`, rounded up to whole units. The minimum is one unit.
    pub fn new(bytes: usize) -> Self {
        let all = units(bytes).max(1);
        Self {
            units: Arc::new(Semaphore::new(all as usize)),
            all,
        }
    }

    /// Waits until `bytes` are free, and takes them. If `bytes` exceeds the budget, takes the whole budget.
    pub async fn take(&self, bytes: usize) -> HeldBytes {
        let permits = units(bytes).min(self.all);
        match self.units.clone().acquire_many_owned(permits).await {
            Ok(permit) => HeldBytes(permit),
            // Only a closed semaphore returns an error, and this one is never closed.
            Err(_) => std::future::pending().await,
        }
    }

    /// Takes `bytes` if they are free, and returns `None` otherwise.
    pub fn try_take(&self, bytes: usize) -> Option<HeldBytes> {
        let permit = self.units.clone().try_acquire_many_owned(units(bytes)).ok()?;
        Some(HeldBytes(permit))
    }

    /// Returns the size of the whole budget in bytes.
    pub fn total(&self) -> usize {
        self.all as usize * UNIT_BYTES
    }

    /// Returns the number of bytes in use.
    pub fn used(&self) -> usize {
        self.total() - self.free()
    }

    /// Returns the number of free bytes.
    pub fn free(&self) -> usize {
        self.units.available_permits() * UNIT_BYTES
    }
}

impl HeldBytes {
    /// Returns the number of bytes that this share holds.
    pub fn bytes(&self) -> usize {
        self.0.num_permits() * UNIT_BYTES
    }

    /// Releases all held bytes beyond `bytes`.
    pub fn keep(&mut self, bytes: usize) {
        let excess = self.0.num_permits().saturating_sub(units(bytes) as usize);
        drop(self.0.split(excess));
    }
}

fn units(bytes: usize) -> u32 {
    let units = bytes.div_ceil(UNIT_BYTES).min(Semaphore::MAX_PERMITS);
    u32::try_from(units).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_held_comes_back_in_parts_and_when_dropped() {
        let budget = ByteBudget::new(10 << 10);
        let mut held = budget.take(8 << 10).await;
        assert_eq!((held.bytes(), budget.free()), (8 << 10, 2 << 10));
        held.keep(1);
        assert_eq!((held.bytes(), budget.free()), (1 << 10, 9 << 10));
        held.keep(5 << 10);
        assert_eq!(held.bytes(), 1 << 10, "it never grows");
        drop(held);
        assert_eq!(budget.free(), budget.total());
    }

    #[tokio::test]
    async fn more_than_the_budget_is_all_of_it_for_who_waits_and_nothing_for_who_does_not() {
        let budget = ByteBudget::new(10 << 10);
        assert!(budget.try_take((10 << 10) + 1).is_none());
        let all = budget.take(usize::MAX).await;
        assert_eq!(all.bytes(), budget.total());
        assert!(budget.try_take(1).is_none());
        assert!(futures::poll!(std::pin::pin!(budget.take(1))).is_pending());
    }
}
