//! The stacks that the tables already hold, so that a flush does not write them again and a head does not keep their
//! frames.
//!
//! A process writes a stack once per tenant and day. After a restart it is written once more, which readers must handle
//! anyway because several writers may share a table. The set is bounded; when it is full, new stacks are written again.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashSet;
use parking_lot::{Mutex, RwLock};

use crate::profile::{StackId, TenantId};
use crate::store::head::identity::Identity;

/// Limit on the ids of all tenants and days: about 20 MB.
const LIMIT: usize = 1 << 20;

/// Ids of the stacks of one tenant and day that are in a committed file.
pub(crate) type DayStacks = Arc<RwLock<HashSet<StackId, Identity>>>;

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

    /// Adds stacks that were committed and published. Forgets the oldest days when there are too many.
    pub(crate) fn add(&self, tenant: &TenantId, day: i32, ids: impl Iterator<Item = StackId>) {
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
        set.write().extend(ids.take(room));
    }
}
