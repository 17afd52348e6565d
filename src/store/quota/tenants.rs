//! Decides which tenants may send. A list can name them. The number of tenants and the number of new tenants per minute
//! can also be limited.
//!
//! Every tenant needs a place, and the number of places may be limited. A tenant takes a place with its first accepted
//! profile, and keeps the place until the store contains none of its data.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use crate::store::rules::limits::Rejection;
use alluvium_profile::{SinkErrorKind, TenantId};

/// Minimum time between two searches for tenants with stored data. A search updates the places.
const MIN_SEARCH_INTERVAL: Duration = Duration::from_secs(10);
/// Longest time between the acceptance of a profile and its arrival in the head. A tenant without stored data keeps its
/// place for this time.
const MAX_INTAKE_TIME: Duration = Duration::from_mins(1);

/// The time over which new tenants are counted.
const MINUTE: Duration = Duration::from_mins(1);

/// The rules for the tenants that may send.
#[derive(Debug, Clone)]
pub struct TenantRules {
    /// The tenants that may send; `None` for all.
    pub allowed: Option<HashSet<TenantId>>,
    /// Maximum number of tenants with stored profiles; 0 for no limit.
    pub max: usize,
    /// Maximum number of new tenants per minute; 0 for no limit.
    pub new_per_minute: usize,
}

impl Default for TenantRules {
    /// All tenants may send, but a client that invents tenants cannot fill the disk with a folder for each tenant.
    fn default() -> Self {
        Self {
            allowed: None,
            max: 1_000,
            new_per_minute: 60,
        }
    }
}

/// The tenants that have a place, with the time of their last accepted profile.
#[derive(Debug, Default)]
pub(super) struct TenantPlaces {
    last_accepted: HashMap<TenantId, Duration>,
    searched: Option<Duration>,
    /// Times at which the last new tenants took their places, newest first. There are at most `new_per_minute` of them.
    new: VecDeque<Duration>,
}

impl TenantRules {
    /// Refuses a tenant that is not in the list.
    pub(super) fn check_list(&self, tenant: &TenantId) -> Result<(), Rejection> {
        match &self.allowed {
            Some(allowed) if !allowed.contains(tenant) => {
                let message =
                    format!("the tenant `{tenant}` is not in the list of tenants that may send (tenants.allowed)");
                Err(Rejection::invalid("unknown_tenant", message))
            }
            _ => Ok(()),
        }
    }

    /// Returns true if a rule depends on the number of tenants.
    pub(super) fn counts(&self) -> bool {
        self.max > 0 || self.new_per_minute > 0
    }
}

impl TenantPlaces {
    /// Refuses a tenant that has no place and cannot take a place. `stored` returns the tenants that have stored data.
    pub(super) fn check(
        &mut self,
        tenant: &TenantId,
        rules: &TenantRules,
        now: Duration,
        stored: impl FnOnce() -> HashSet<TenantId>,
    ) -> Result<(), Rejection> {
        if self.searched.is_none() || self.has_room(tenant, rules, now).is_err() {
            self.search(now, stored);
        }
        self.has_room(tenant, rules, now)
    }

    /// Refuses a tenant without a place if no place is free, or if too many new tenants took a place in the last
    /// minute.
    pub(super) fn has_room(&self, tenant: &TenantId, rules: &TenantRules, now: Duration) -> Result<(), Rejection> {
        if self.last_accepted.contains_key(tenant) {
            return Ok(());
        }
        let refuse = |reason, message| Err(Rejection::new(reason, SinkErrorKind::LimitExceeded, message));
        if rules.max > 0 && self.last_accepted.len() >= rules.max {
            let message = format!(
                "the tenant `{tenant}` is new, {} tenants exist, and at most {} are allowed: raise tenants.max in the \
                 configuration of the server",
                self.last_accepted.len(),
                rules.max
            );
            return refuse("tenant_limit", message);
        }
        let recent_tenants = self
            .new
            .iter()
            .filter(|time| now.saturating_sub(**time) < MINUTE)
            .count();
        if rules.new_per_minute > 0 && recent_tenants >= rules.new_per_minute {
            let message = format!(
                "the tenant `{tenant}` is new, and the server has already accepted {recent_tenants} other new tenants \
                 within a minute, which is the maximum: try again later, or raise tenants.new_per_minute in the \
                 configuration of the server"
            );
            return refuse("tenant_rate", message);
        }
        Ok(())
    }

    /// Assigns a place to a tenant with an accepted profile.
    pub(super) fn take(&mut self, tenant: &TenantId, rules: &TenantRules, now: Duration) {
        if let Some(last) = self.last_accepted.get_mut(tenant) {
            *last = now;
            return;
        }
        self.last_accepted.insert(tenant.clone(), now);
        if rules.new_per_minute > 0 {
            self.new.truncate(rules.new_per_minute - 1);
            self.new.push_front(now);
        }
    }

    /// Adds the stored tenants. Removes tenants without stored data whose last accepted profile is at least
    /// [`MAX_INTAKE_TIME`] old. Does nothing if the last search was less than [`MIN_SEARCH_INTERVAL`] ago.
    fn search(&mut self, now: Duration, stored: impl FnOnce() -> HashSet<TenantId>) {
        if self
            .searched
            .is_some_and(|time| now.saturating_sub(time) < MIN_SEARCH_INTERVAL)
        {
            return;
        }
        self.searched = Some(now);
        let mut stored = stored();
        self.last_accepted
            .retain(|tenant, last| stored.remove(tenant) || now.saturating_sub(*last) < MAX_INTAKE_TIME);
        self.last_accepted
            .extend(stored.into_iter().map(|tenant| (tenant, now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_testing::tenant_id;

    fn rules(max: usize, new_per_minute: usize) -> TenantRules {
        TenantRules {
            allowed: None,
            max,
            new_per_minute,
        }
    }

    fn stored(ids: &[&str]) -> HashSet<TenantId> {
        ids.iter().map(|id| tenant_id(id)).collect()
    }

    #[test]
    fn a_new_tenant_needs_a_free_place_and_those_that_are_stored_have_theirs() {
        let mut places = TenantPlaces::default();
        let seconds = Duration::from_secs;
        let rules = rules(2, 0);
        let mut check = |id: &str, now: u64, ids: &[&str]| {
            places
                .check(&tenant_id(id), &rules, seconds(now), || stored(ids))
                .is_ok()
        };
        assert!(check("a", 0, &["a", "b"]) && check("b", 0, &[]));
        assert!(!check("c", 0, &["a", "b"]), "two are stored");
        assert!(!check("c", 5, &["a"]), "the stored tenants are not read again so soon");
        assert!(check("c", 70, &["a"]), "b was deleted");
    }

    #[test]
    fn a_place_is_taken_by_what_was_accepted_and_not_by_asking() {
        let mut places = TenantPlaces::default();
        let seconds = Duration::from_secs;
        let (nothing, rules) = (HashSet::new, rules(1, 0));
        for id in ["a", "b", "c"] {
            assert!(places.check(&tenant_id(id), &rules, seconds(0), nothing).is_ok());
        }
        places.take(&tenant_id("a"), &rules, seconds(0));
        let error = places.check(&tenant_id("b"), &rules, seconds(20), nothing).unwrap_err();
        assert_eq!(
            (error.reason, error.error.kind),
            ("tenant_limit", SinkErrorKind::LimitExceeded)
        );
        assert!(places.check(&tenant_id("a"), &rules, seconds(20), nothing).is_ok());
        assert!(
            places.check(&tenant_id("b"), &rules, seconds(80), nothing).is_ok(),
            "nothing of a was stored"
        );
    }

    #[test]
    fn so_many_new_tenants_pass_in_a_minute_and_those_that_are_stored_always() {
        let mut places = TenantPlaces::default();
        let seconds = Duration::from_secs;
        let rules = rules(0, 2);
        let mut push = |id: &str, now: u64| {
            let checked = places.check(&tenant_id(id), &rules, seconds(now), || stored(&["old"]));
            checked.map(|()| places.take(&tenant_id(id), &rules, seconds(now)))
        };
        assert!(push("a", 0).is_ok() && push("b", 30).is_ok() && push("a", 31).is_ok());
        let error = push("c", 59).unwrap_err();
        assert_eq!(error.reason, "tenant_rate");
        assert!(error.error.message.contains("tenants.new_per_minute"), "{error:?}");
        assert!(push("old", 59).is_ok(), "it is stored");
        assert!(push("c", 60).is_ok(), "a minute after `a`");
        assert!(push("d", 61).is_err() && push("d", 90).is_ok());
    }

    #[test]
    fn a_list_names_all_who_may_send() {
        let rules = TenantRules {
            allowed: Some(stored(&["shop"])),
            ..TenantRules::default()
        };
        assert!(rules.check_list(&tenant_id("shop")).is_ok());
        let error = rules.check_list(&tenant_id("other")).unwrap_err();
        assert!(error.error.message.contains("`other`"), "{error:?}");
        assert!(TenantRules::default().check_list(&tenant_id("other")).is_ok());
    }
}
