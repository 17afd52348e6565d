//! Recently stored profiles. If a response was lost, the sender sends the profile again, but the store stores it once.
//!
//! In: profiles with an id. Out: whether a profile is stored, waits for the log, or is new. Two profiles of a tenant
//! are the same if their id, labels and bytes are equal. The bytes contain the time of the profile, so a program that
//! uses one id for all of its profiles loses none of them. Bytes without a time do not tell two profiles apart, so the
//! id of such a profile must be a UUID. Profiles without an id are not remembered. After a start, the store remembers
//! the profiles that are still in the log.

use std::sync::Arc;
use std::time::Duration;

use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use uuid::Uuid;
use xxhash_rust::xxh3::Xxh3;

use crate::store::common::clock::Clock;
use alluvium_profile::{RawProfile, TenantId};

/// Minimum number of profiles of a tenant to remember, if they arrived within [`MIN_AGE`]. The maximum is twice as
/// many.
const PROFILES: usize = 32 << 10;
/// Minimum time to remember a profile, if its tenant sends at most [`PROFILES`] profiles in this time.
const MIN_AGE: Duration = Duration::from_mins(10);
/// Number of tenants below which no search for idle tenants runs.
const FEW_TENANTS: usize = 64;

/// The recently stored profiles of all tenants.
pub(crate) struct Repeats {
    clock: Clock,
    tenants: Mutex<Tenants>,
}

#[derive(Default)]
struct Tenants {
    by_tenant: HashMap<TenantId, TenantKeys>,
    /// Number of tenants at which idle tenants are removed.
    sweep_at: usize,
}

/// Keys of the profiles of a tenant.
struct TenantKeys {
    stored: HashSet<u128>,
    /// Keys that were stored in the period before `period_start`.
    previous: HashSet<u128>,
    /// Keys of profiles that wait for the log.
    waiting: HashSet<u128>,
    period_start: Duration,
    /// Time of the last lookup of the tenant.
    last_lookup: Duration,
}

/// The result of the lookup of a profile.
pub(crate) enum RepeatStatus {
    /// The profile must be stored. The claim is `None` for a profile that the store does not remember, because its id
    /// does not identify it.
    New(Option<Claim>),
    /// The same profile is stored.
    Stored,
    /// The same profile waits for the log and may still be refused.
    Waiting,
}

/// A profile that waits for the log. If the claim is dropped without [`keep`](Claim::keep), the store does not remember
/// the profile.
pub(crate) struct Claim {
    repeats: Arc<Repeats>,
    tenant: TenantId,
    key: u128,
    is_stored: bool,
}

impl Repeats {
    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            clock,
            tenants: Mutex::default(),
        })
    }

    /// Looks up a profile that is ready to be stored, and claims it if it is new. `is_dated` is true if the bytes of
    /// the profile contain its time.
    pub(crate) fn see(self: &Arc<Self>, tenant: &TenantId, profile: &RawProfile, is_dated: bool) -> RepeatStatus {
        let Some(key) = key(profile, is_dated) else {
            return RepeatStatus::New(None);
        };
        let now = self.clock.running();
        let mut tenants = self.tenants.lock();
        let keys = tenants.keys_of(tenant, now);
        if keys.stored.contains(&key) || keys.previous.contains(&key) {
            return RepeatStatus::Stored;
        }
        if !keys.waiting.insert(key) {
            return RepeatStatus::Waiting;
        }
        RepeatStatus::New(Some(Claim {
            repeats: self.clone(),
            tenant: tenant.clone(),
            key,
            is_stored: false,
        }))
    }

    /// Forgets all stored profiles of a tenant after a deletion, so that a deleted profile can be stored again.
    pub(crate) fn forget(&self, tenant: &TenantId) {
        if let Some(keys) = self.tenants.lock().by_tenant.get_mut(tenant) {
            keys.stored.clear();
            keys.previous.clear();
        }
    }

    /// Remembers a profile that the start has replayed from the log.
    pub(crate) fn replayed(&self, tenant: &TenantId, profile: &RawProfile, is_dated: bool) {
        if let Some(key) = key(profile, is_dated) {
            self.tenants.lock().keys_of(tenant, self.clock.running()).store(key);
        }
    }
}

impl Claim {
    /// Remembers the profile as stored.
    pub(crate) fn keep(mut self) {
        self.is_stored = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut tenants = self.repeats.tenants.lock();
        let keys = tenants.keys_of(&self.tenant, self.repeats.clock.running());
        keys.waiting.remove(&self.key);
        if self.is_stored {
            keys.store(self.key);
        }
    }
}

impl Tenants {
    fn keys_of(&mut self, tenant: &TenantId, now: Duration) -> &mut TenantKeys {
        if self.by_tenant.len() >= self.sweep_at.max(FEW_TENANTS) && !self.by_tenant.contains_key(tenant) {
            self.by_tenant
                .retain(|_, keys| !keys.waiting.is_empty() || now.saturating_sub(keys.last_lookup) < 2 * MIN_AGE);
            self.sweep_at = 2 * self.by_tenant.len();
        }
        let keys = self.by_tenant.entry(tenant.clone()).or_insert_with(|| TenantKeys {
            stored: HashSet::new(),
            previous: HashSet::new(),
            waiting: HashSet::new(),
            period_start: now,
            last_lookup: now,
        });
        keys.last_lookup = now;
        if keys.stored.len() >= PROFILES || now.saturating_sub(keys.period_start) >= MIN_AGE {
            keys.previous = std::mem::take(&mut keys.stored);
            keys.period_start = now;
        }
        keys
    }
}

impl TenantKeys {
    fn store(&mut self, key: u128) {
        self.stored.insert(key);
    }
}

/// Returns the identity of a profile within its tenant, or `None` for a profile that is not remembered.
fn key(profile: &RawProfile, is_dated: bool) -> Option<u128> {
    if profile.id.is_empty() || !(is_dated || is_unique(&profile.id)) {
        return None;
    }
    let mut hasher = Xxh3::new();
    let texts = profile.labels.iter().flat_map(|(name, value)| [name, value]);
    for text in std::iter::once(profile.id.as_ref()).chain(texts) {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.update(&u64::MAX.to_le_bytes());
    hasher.update(&profile.pprof);
    Some(hasher.digest128())
}

/// Returns true if only one profile has this id, provided that the sender follows the specification of UUIDs.
fn is_unique(id: &str) -> bool {
    Uuid::parse_str(id).is_ok_and(|id| !id.is_nil() && !id.is_max())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::SystemTime;

    use super::*;
    use alluvium_profile::Labels;
    use alluvium_testing::tenant_id;

    fn profile(id: &str, service: &str, bytes: &str) -> RawProfile {
        RawProfile {
            labels: Labels::from_pairs([("service_name", service)]),
            id: id.into(),
            pprof: bytes.as_bytes().to_vec().into(),
        }
    }

    fn claim(repeats: &Arc<Repeats>, tenant: &str, profile: &RawProfile) -> Option<Claim> {
        match repeats.see(&tenant_id(tenant), profile, true) {
            RepeatStatus::New(claim) => claim,
            RepeatStatus::Stored | RepeatStatus::Waiting => None,
        }
    }

    fn is_stored(repeats: &Arc<Repeats>, tenant: &str, profile: &RawProfile) -> bool {
        matches!(repeats.see(&tenant_id(tenant), profile, true), RepeatStatus::Stored)
    }

    #[test]
    fn a_profile_is_waiting_until_it_is_stored_or_refused() {
        let repeats = Repeats::new(Clock::default());
        let one = profile("id", "shop", "bytes");
        let first = claim(&repeats, "a", &one).unwrap();
        assert!(matches!(
            repeats.see(&tenant_id("a"), &one, true),
            RepeatStatus::Waiting
        ));
        drop(first);
        claim(&repeats, "a", &one).unwrap().keep();
        assert!(is_stored(&repeats, "a", &one));
        assert!(claim(&repeats, "b", &one).is_some(), "of another tenant");
        for other in [
            profile("other", "shop", "bytes"),
            profile("id", "cart", "bytes"),
            profile("id", "shop", "others"),
            profile("", "shop", "bytes"),
        ] {
            assert!(!is_stored(&repeats, "a", &other));
        }
        assert!(matches!(
            repeats.see(&tenant_id("a"), &one, false),
            RepeatStatus::New(None)
        ));
        repeats.replayed(&tenant_id("c"), &one, true);
        assert!(is_stored(&repeats, "c", &one));
    }

    #[test]
    fn a_profile_without_a_time_is_remembered_only_if_its_id_is_a_uuid() {
        let repeats = Repeats::new(Clock::default());
        let status = |id: &str| repeats.see(&tenant_id("a"), &profile(id, "shop", "bytes"), false);
        for (id, is_remembered) in [
            ("0190163d-8694-739b-aea5-966c26f8ad91", true),
            ("00000000-0000-0000-0000-000000000000", false),
            ("ffffffff-ffff-ffff-ffff-ffffffffffff", false),
            ("shop-1", false),
            ("", false),
        ] {
            match status(id) {
                RepeatStatus::New(claim) => {
                    assert_eq!(claim.is_some(), is_remembered, "{id}");
                    claim.into_iter().for_each(Claim::keep);
                }
                RepeatStatus::Stored | RepeatStatus::Waiting => panic!("`{id}` is new"),
            }
            assert_eq!(matches!(status(id), RepeatStatus::Stored), is_remembered, "{id}");
        }
    }

    #[test]
    fn the_number_of_profiles_is_bounded_and_the_last_ones_are_known() {
        let repeats = Repeats::new(Clock::default());
        let numbered = |number: usize| profile(&number.to_string(), "shop", "bytes");
        let count = 3 * PROFILES;
        for number in 0..count {
            claim(&repeats, "a", &numbered(number)).unwrap().keep();
        }
        assert!((count - PROFILES..count).all(|number| is_stored(&repeats, "a", &numbered(number))));
        let tenants = repeats.tenants.lock();
        let keys = &tenants.by_tenant[&tenant_id("a")];
        assert!(keys.stored.len() + keys.previous.len() <= 2 * PROFILES && keys.waiting.is_empty());
        drop(tenants);
        assert!(!is_stored(&repeats, "a", &numbered(0)));
    }

    #[test]
    fn tenants_that_send_nothing_any_more_are_forgotten() {
        let running = Arc::new(AtomicU64::new(0));
        let seconds = running.clone();
        let clock = Clock::set_by(SystemTime::now, move || {
            Duration::from_secs(seconds.load(Ordering::Relaxed))
        });
        let repeats = Repeats::new(clock);
        for number in 0..10 * FEW_TENANTS {
            let tenant = format!("made-up-{number}");
            claim(&repeats, &tenant, &profile("id", "shop", "bytes"))
                .unwrap()
                .keep();
            running.fetch_add(MIN_AGE.as_secs() / 10, Ordering::Relaxed);
        }
        assert!(repeats.tenants.lock().by_tenant.len() <= 2 * FEW_TENANTS);
    }
}
