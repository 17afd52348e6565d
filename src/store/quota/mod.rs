//! Quotas of the tenants: which tenants may send, how many bytes per second, and how many active series.
//!
//! In: a tenant, its limits, and a prepared profile. Out: a rejection if a quota is exceeded; a later attempt may
//! succeed. Usage is kept only for tenants with a limit on rate or series. The usage of a tenant that has sent nothing
//! for [`IDLE`] is deleted when there are many tenants. Usage is not kept across restarts.

mod rate;
mod series;
mod tenants;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use parking_lot::Mutex;

use crate::store::common::clock::Clock;
use crate::store::ingest::Prepared;
use crate::store::quota::rate::Rate;
use crate::store::quota::series::{ActiveSeries, IDLE};
use crate::store::quota::tenants::TenantPlaces;
use crate::store::rules::limits::{Limits, Rejection};
use alluvium_profile::{SinkErrorKind, TenantId};

pub use tenants::TenantRules;

/// Number of tenants below which no search for idle tenants runs.
const FEW_TENANTS: usize = 1_024;

/// The rules for tenants, and the usage of the tenants with limits on rate or series.
pub(in crate::store) struct Quotas {
    clock: Clock,
    rules: TenantRules,
    /// Returns the tenants that have stored data.
    stored: Box<dyn Fn() -> HashSet<TenantId> + Send + Sync>,
    tenants: Mutex<Tenants>,
}

#[derive(Default)]
struct Tenants {
    usage: HashMap<TenantId, Usage>,
    places: TenantPlaces,
    /// Number of tenants at which idle tenants are removed.
    sweep_at: usize,
}

/// The usage of one tenant.
struct Usage {
    rate: Rate,
    series: ActiveSeries,
    last_seen: Duration,
}

impl Quotas {
    /// Creates quotas without any usage. They use the monotonic time of `clock`. `stored` returns the tenants that have
    /// stored data.
    pub(in crate::store) fn new(
        clock: Clock,
        rules: TenantRules,
        stored: impl Fn() -> HashSet<TenantId> + Send + Sync + 'static,
    ) -> Self {
        Self {
            clock,
            rules,
            stored: Box::new(stored),
            tenants: Mutex::default(),
        }
    }

    /// Refuses a tenant that may not send at all. The check is cheap and assigns no place of [`TenantPlaces`] to the
    /// tenant.
    pub(in crate::store) fn check_tenant(&self, tenant: &TenantId) -> Result<(), Rejection> {
        self.rules.check_list(tenant)?;
        if !self.rules.counts() {
            return Ok(());
        }
        let mut tenants = self.tenants.lock();
        tenants
            .places
            .check(tenant, &self.rules, self.clock.running(), &self.stored)
    }

    /// Refuses a tenant that has used up its rate. The check is cheap and is meant for profiles that are not decoded
    /// yet. A tenant without an accepted profile costs no memory.
    pub(in crate::store) fn check_rate(&self, tenant: &TenantId, limits: &Limits) -> Result<(), Rejection> {
        if limits.ingestion_rate_bytes == 0 {
            return Ok(());
        }
        let now = self.clock.running();
        match self.tenants.lock().usage.get_mut(tenant) {
            Some(usage) => {
                usage.last_seen = now;
                usage.check_rate(limits, now)
            }
            None => Ok(()),
        }
    }

    /// Counts a profile. If the tenant has used up a quota, refuses the profile and counts nothing.
    pub(in crate::store) fn take(
        &self,
        tenant: &TenantId,
        limits: &Limits,
        profile: &Prepared,
    ) -> Result<(), Rejection> {
        let has_limits = limits.ingestion_rate_bytes > 0 || limits.max_active_series > 0;
        if !has_limits && !self.rules.counts() {
            return Ok(());
        }
        let now = self.clock.running();
        let mut tenants = self.tenants.lock();
        if self.rules.counts() {
            tenants.places.has_room(tenant, &self.rules, now)?;
        }
        if has_limits {
            tenants.consume(tenant, limits, profile, now)?;
        }
        if self.rules.counts() {
            tenants.places.take(tenant, &self.rules, now);
        }
        Ok(())
    }
}

impl Tenants {
    /// Counts a profile against the limits of its tenant.
    fn consume(
        &mut self,
        tenant: &TenantId,
        limits: &Limits,
        profile: &Prepared,
        now: Duration,
    ) -> Result<(), Rejection> {
        let usage = self.usage_of(tenant, limits, now);
        usage.check_rate(limits, now)?;
        if limits.max_active_series > 0 {
            let ids = profile.series.iter().map(|series| series.id);
            let admitted = usage.series.admit(ids, now, limits.max_active_series);
            admitted.map_err(|active| too_many_series(active, limits.max_active_series))?;
        }
        usage.rate.take(profile.size as u64);
        Ok(())
    }

    fn usage_of(&mut self, tenant: &TenantId, limits: &Limits, now: Duration) -> &mut Usage {
        if self.usage.len() >= self.sweep_at.max(FEW_TENANTS) && !self.usage.contains_key(tenant) {
            self.usage.retain(|_, usage| now.saturating_sub(usage.last_seen) < IDLE);
            self.sweep_at = 2 * self.usage.len();
        }
        let usage = self.usage.entry(tenant.clone()).or_insert_with(|| Usage {
            rate: Rate::new(limits.ingestion_burst_bytes, now),
            series: ActiveSeries::default(),
            last_seen: now,
        });
        usage.last_seen = now;
        usage
    }
}

impl Usage {
    fn check_rate(&mut self, limits: &Limits, now: Duration) -> Result<(), Rejection> {
        let (rate, burst) = (limits.ingestion_rate_bytes, limits.ingestion_burst_bytes);
        if rate == 0 || self.rate.has_room(rate, burst, now) {
            return Ok(());
        }
        let message =
            format!("the tenant sends more than {rate} bytes per second or {burst} at once (ingestion_rate_mb)");
        Err(Rejection::new("rate_limited", SinkErrorKind::LimitExceeded, message))
    }
}

fn too_many_series(active: usize, limit: usize) -> Rejection {
    let message = format!(
        "the tenant has {active} active series, and the profile adds more, but at most {limit} are allowed \
         (max_global_series_per_tenant): send fewer labels, or labels with fewer values"
    );
    Rejection::new("series_limit", SinkErrorKind::LimitExceeded, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_of_which_nothing_was_taken_is_not_remembered() {
        let quotas = Quotas::new(Clock::default(), TenantRules::default(), HashSet::new);
        let limits = Limits {
            ingestion_rate_bytes: 1,
            ..Limits::default()
        };
        for tenant in 0..10 {
            let tenant: TenantId = format!("made-up-{tenant}").parse().unwrap();
            assert!(quotas.check_rate(&tenant, &limits).is_ok());
        }
        assert_eq!(quotas.tenants.lock().usage.len(), 0);
    }
}
