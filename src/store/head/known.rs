//! The stacks that the tables already contain. A flush does not write them again, and a head does not store their
//! frames.
//!
//! The store writes a stack once per tenant and day. It writes the stack again if the stack first arrived without start
//! lines of functions and later with them, and once more after a restart. Readers must handle repeated stacks in any
//! case, because several writers may share a table. The sets of known stacks are bounded. When they are full, a flush
//! may write a stack again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashSet;
use parking_lot::{Mutex, RwLock};

use crate::store::head::identity::Identity;
use alluvium_profile::{StackId, TenantId};

/// Maximum number of ids of all tenants and days: about 20 MB.
const LIMIT: usize = 1 << 20;
/// Memory of the map entry of one tenant and day, expressed as the number of ids that need as much memory.
const DAY_COST: usize = 16;

/// The stacks of one tenant and day that are in a committed file.
pub(crate) type DayStacks = Arc<RwLock<Committed>>;

/// Ids of stacks. Each is in one of the two sets.
#[derive(Default)]
pub(crate) struct Committed {
    with_start_lines: HashSet<StackId, Identity>,
    without_start_lines: HashSet<StackId, Identity>,
}

impl Committed {
    /// Returns whether the stack is committed with start lines of functions, or `None` if it is not committed.
    pub(crate) fn get(&self, id: StackId) -> Option<bool> {
        if self.with_start_lines.contains(&id) {
            return Some(true);
        }
        self.without_start_lines.contains(&id).then_some(false)
    }

    fn len(&self) -> usize {
        self.with_start_lines.len() + self.without_start_lines.len()
    }

    fn insert(&mut self, id: StackId, has_start_lines: bool) {
        if has_start_lines {
            self.without_start_lines.remove(&id);
            self.with_start_lines.insert(id);
        } else if !self.with_start_lines.contains(&id) {
            self.without_start_lines.insert(id);
        }
    }
}

/// Known stacks of all tenants and days.
#[derive(Default)]
pub(crate) struct KnownStacks {
    days: Mutex<BTreeMap<(i32, TenantId), DayStacks>>,
    /// Number of the ids in `days`, plus [`DAY_COST`] for each day.
    total: AtomicUsize,
}

impl KnownStacks {
    /// Returns the set of one tenant and day.
    pub(crate) fn day(&self, tenant: &TenantId, day: i32) -> DayStacks {
        let key = (day, tenant.clone());
        let mut days = self.days.lock();
        if let Some(set) = days.get(&key) {
            return set.clone();
        }
        let set = DayStacks::default();
        days.insert(key.clone(), set.clone());
        self.total.fetch_add(DAY_COST, Ordering::Relaxed);
        self.make_room(&mut days, &key);
        set
    }

    /// Removes the stacks of a tenant's day, also for heads that already use the set.
    pub(crate) fn forget(&self, tenant: &TenantId, day: i32) {
        if let Some(set) = self.days.lock().get(&(day, tenant.clone())) {
            let forgotten = std::mem::take(&mut *set.write());
            self.total.fetch_sub(forgotten.len(), Ordering::Relaxed);
        }
    }

    /// Adds stacks that were committed and published. The flag is true for a stack whose start lines of functions were
    /// committed too. Removes the oldest days if there are too many stacks. Only one caller at a time is allowed.
    pub(crate) fn add(&self, tenant: &TenantId, day: i32, stacks: impl Iterator<Item = (StackId, bool)>) {
        let set = self.day(tenant, day);
        self.make_room(&mut self.days.lock(), &(day, tenant.clone()));
        let room = LIMIT.saturating_sub(self.total.load(Ordering::Relaxed));
        let mut set = set.write();
        let before = set.len();
        for (id, has_start_lines) in stacks.take(room) {
            set.insert(id, has_start_lines);
        }
        self.total.fetch_add(set.len() - before, Ordering::Relaxed);
    }

    /// Removes the oldest days before `kept_day`, while more than half of the limit is used.
    fn make_room(&self, days: &mut BTreeMap<(i32, TenantId), DayStacks>, kept_day: &(i32, TenantId)) {
        while self.total.load(Ordering::Relaxed) > LIMIT / 2
            && let Some(oldest) = days.first_entry()
            && oldest.key() != kept_day
        {
            let forgotten = oldest.remove().read().len() + DAY_COST;
            self.total.fetch_sub(forgotten, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_testing::tenant_id;

    fn counted(known: &KnownStacks) -> usize {
        let days = known.days.lock();
        days.values().map(|set| set.read().len() + DAY_COST).sum()
    }

    #[test]
    fn the_sum_is_that_of_the_sets_whatever_is_added_and_forgotten() {
        let known = KnownStacks::default();
        let stacks = |from: i64, count: i64| (from..from + count).map(|id| (StackId(id), id % 3 == 0));
        for round in 0..200 {
            let tenant = tenant_id(&format!("t{}", round % 7));
            let day = i32::try_from(round % 11).unwrap();
            known.add(&tenant, day, stacks(round * 500, 2_000));
            if round % 5 == 0 {
                known.forget(&tenant, day);
            }
            assert_eq!(known.total.load(Ordering::Relaxed), counted(&known), "{round}");
        }
        let newest = known.day(&tenant_id("t3"), 10);
        known.add(&tenant_id("t3"), 10, stacks(7, 1));
        assert_eq!(newest.read().get(StackId(7)), Some(false));
    }

    #[test]
    fn days_without_stacks_take_room_too_and_the_oldest_go() {
        let known = KnownStacks::default();
        let max = LIMIT / 2 / DAY_COST;
        for number in 0..max + 100 {
            known.day(
                &tenant_id(&format!("made-up-{number}")),
                i32::try_from(number / 1000).unwrap(),
            );
        }
        assert!(known.days.lock().len() <= max + 1);
        assert_eq!(known.total.load(Ordering::Relaxed), counted(&known));
    }
}
