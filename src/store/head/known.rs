//! The stacks that the tables already hold, so that a flush does not write them again and a head does not keep their
//! frames.
//!
//! A process writes a stack once per tenant and day, and once more when it first came without the lines at which its
//! functions start and then with them. After a restart it is written once more, which readers must handle anyway
//! because several writers may share a table. The sets are bounded; when they are full, new stacks are written again.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashSet;
use parking_lot::{Mutex, RwLock};

use crate::profile::{StackId, TenantId};
use crate::store::head::identity::Identity;

/// Limit on the ids of all tenants and days: about 20 MB.
const LIMIT: usize = 1 << 20;

/// The stacks of one tenant and day that are in a committed file.
pub(crate) type DayStacks = Arc<RwLock<Committed>>;

/// Ids of stacks, each in one of the sets.
#[derive(Default)]
pub(crate) struct Committed {
    with_start_lines: HashSet<StackId, Identity>,
    without: HashSet<StackId, Identity>,
}

impl Committed {
    /// Whether the stack is committed with first lines of functions; `None` when it is not committed.
    pub(crate) fn get(&self, id: StackId) -> Option<bool> {
        if self.with_start_lines.contains(&id) {
            return Some(true);
        }
        self.without.contains(&id).then_some(false)
    }

    fn len(&self) -> usize {
        self.with_start_lines.len() + self.without.len()
    }

    fn insert(&mut self, id: StackId, has_start_lines: bool) {
        if has_start_lines {
            self.without.remove(&id);
            self.with_start_lines.insert(id);
        } else if !self.with_start_lines.contains(&id) {
            self.without.insert(id);
        }
    }
}

/// Known stacks of all tenants and days.
#[derive(Default)]
pub(crate) struct KnownStacks {
    days: Mutex<BTreeMap<(i32, TenantId), DayStacks>>,
}

impl KnownStacks {
    /// The set of one tenant and day.
    pub(crate) fn day(&self, tenant: &TenantId, day: i32) -> DayStacks {
        self.days.lock().entry((day, tenant.clone())).or_default().clone()
    }

    /// Forgets the stacks of a tenant's day, also for heads that know them already.
    pub(crate) fn forget(&self, tenant: &TenantId, day: i32) {
        if let Some(set) = self.days.lock().get(&(day, tenant.clone())) {
            *set.write() = Committed::default();
        }
    }

    /// Adds stacks that were committed and published, each with whether first lines of its functions were. Forgets the
    /// oldest days when there are too many.
    pub(crate) fn add(&self, tenant: &TenantId, day: i32, stacks: impl Iterator<Item = (StackId, bool)>) {
        let set = self.day(tenant, day);
        let mut days = self.days.lock();
        let mut total: usize = days.values().map(|set| set.read().len()).sum();
        while total > LIMIT / 2 && days.len() > 1 {
            let Some((oldest, set)) = days.first_key_value().map(|(key, set)| (key.clone(), set.read().len())) else {
                break;
            };
            if oldest == (day, tenant.clone()) {
                break;
            }
            days.remove(&oldest);
            total -= set;
        }
        drop(days);
        let room = LIMIT.saturating_sub(total);
        let mut set = set.write();
        for (id, has_start_lines) in stacks.take(room) {
            set.insert(id, has_start_lines);
        }
    }
}
