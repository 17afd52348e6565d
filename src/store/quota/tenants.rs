//! Which tenants may send: those of a list, or as many as a number says.
//!
//! A tenant takes a place with its first profile that is accepted. It has the place until nothing of it is stored.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::profile::{SinkErrorKind, TenantId};
use crate::store::limits::Rejection;

/// How often a full set is compared with what is stored, at most.
const SEARCH_EVERY: Duration = Duration::from_secs(10);
/// Time that a profile takes to the head, at most: a tenant of which nothing is stored keeps its place for so long.
const ON_THE_WAY: Duration = Duration::from_mins(1);

/// Which tenants may send.
#[derive(Debug, Clone, Default)]
pub struct TenantRules {
    /// Only these; `None` for all.
    pub allowed: Option<HashSet<TenantId>>,
    /// Number of tenants of which profiles are stored; 0 for no limit.
    pub max: usize,
}

/// The tenants that have a place, with the time of the last profile that was accepted.
#[derive(Debug, Default)]
pub(super) struct Places {
    last: HashMap<TenantId, Duration>,
    searched: Option<Duration>,
}

impl TenantRules {
    /// Refuses a tenant that is not in the list.
    pub(super) fn check_list(&self, tenant: &TenantId) -> Result<(), Rejection> {
        match &self.allowed {
            Some(allowed) if !allowed.contains(tenant) => {
                let message = format!("the tenant `{tenant}` is none of those that may send (tenants.allowed)");
                Err(Rejection::invalid("unknown_tenant", message))
            }
            _ => Ok(()),
        }
    }
}

impl Places {
    /// Refuses a tenant that has no place and gets none. `stored` finds the tenants of which anything is stored.
    pub(super) fn check(
        &mut self,
        tenant: &TenantId,
        max: usize,
        now: Duration,
        stored: impl FnOnce() -> HashSet<TenantId>,
    ) -> Result<(), Rejection> {
        if self.searched.is_none() || self.has_room(tenant, max).is_err() {
            self.search(now, stored);
        }
        self.has_room(tenant, max)
    }

    /// Refuses a tenant that has no place when none is free.
    pub(super) fn has_room(&self, tenant: &TenantId, max: usize) -> Result<(), Rejection> {
        if max == 0 || self.last.len() < max || self.last.contains_key(tenant) {
            return Ok(());
        }
        let message = format!(
            "the tenant `{tenant}` would be new beside {} others, at most {max} are allowed (tenants.max)",
            self.last.len()
        );
        Err(Rejection::new("tenant_limit", SinkErrorKind::LimitExceeded, message))
    }

    /// Gives a tenant its place.
    pub(super) fn take(&mut self, tenant: &TenantId, now: Duration) {
        match self.last.get_mut(tenant) {
            Some(last) => *last = now,
            None => {
                self.last.insert(tenant.clone(), now);
            }
        }
    }

    /// Takes up who is stored and drops who is not, unless that was just done.
    fn search(&mut self, now: Duration, stored: impl FnOnce() -> HashSet<TenantId>) {
        if self.searched.is_some_and(|at| now.saturating_sub(at) < SEARCH_EVERY) {
            return;
        }
        self.searched = Some(now);
        let mut stored = stored();
        self.last
            .retain(|tenant, last| stored.remove(tenant) || now.saturating_sub(*last) < ON_THE_WAY);
        self.last.extend(stored.into_iter().map(|tenant| (tenant, now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tenant::tenant_id;

    fn stored(ids: &[&str]) -> HashSet<TenantId> {
        ids.iter().map(|id| tenant_id(id)).collect()
    }

    #[test]
    fn a_new_tenant_needs_a_free_place_and_those_that_are_stored_have_theirs() {
        let mut places = Places::default();
        let at = Duration::from_secs;
        let mut check =
            |id: &str, now: u64, ids: &[&str]| places.check(&tenant_id(id), 2, at(now), || stored(ids)).is_ok();
        assert!(check("a", 0, &["a", "b"]) && check("b", 0, &[]));
        assert!(!check("c", 0, &["a", "b"]), "two are stored");
        assert!(!check("c", 5, &["a"]), "nobody looks so soon again");
        assert!(check("c", 70, &["a"]), "b was deleted");
    }

    #[test]
    fn a_place_is_taken_by_what_was_accepted_and_not_by_asking() {
        let mut places = Places::default();
        let at = Duration::from_secs;
        let nothing = HashSet::new;
        for id in ["a", "b", "c"] {
            assert!(places.check(&tenant_id(id), 1, at(0), nothing).is_ok());
        }
        places.take(&tenant_id("a"), at(0));
        let error = places.check(&tenant_id("b"), 1, at(20), nothing).unwrap_err();
        assert_eq!(
            (error.reason, error.error.kind),
            ("tenant_limit", SinkErrorKind::LimitExceeded)
        );
        assert!(places.check(&tenant_id("a"), 1, at(20), nothing).is_ok());
        assert!(
            places.check(&tenant_id("b"), 1, at(80), nothing).is_ok(),
            "nothing of a was stored"
        );
    }

    #[test]
    fn a_list_names_all_who_may_send() {
        let rules = TenantRules {
            allowed: Some(stored(&["shop"])),
            max: 0,
        };
        assert!(rules.check_list(&tenant_id("shop")).is_ok());
        let error = rules.check_list(&tenant_id("other")).unwrap_err();
        assert!(error.error.message.contains("`other`"), "{error:?}");
        assert!(TenantRules::default().check_list(&tenant_id("other")).is_ok());
    }
}
