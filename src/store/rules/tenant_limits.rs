//! The limits of all tenants: the limits of the configuration, and overrides for some tenants, which may change while
//! the store runs.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::store::rules::limits::Limits;
use alluvium_profile::TenantId;

/// The limits of all tenants. Clones share the limits.
#[derive(Debug, Clone, Default)]
pub struct TenantLimits(Arc<Table>);

#[derive(Debug, Default)]
struct Table {
    general: Arc<Limits>,
    overrides: RwLock<HashMap<TenantId, Arc<Limits>>>,
}

impl TenantLimits {
    /// Returns the present limits of `tenant`.
    pub(crate) fn of(&self, tenant: &TenantId) -> Arc<Limits> {
        let overrides = self.0.overrides.read();
        overrides.get(tenant).unwrap_or(&self.0.general).clone()
    }

    /// Returns the limits of tenants without an override.
    pub(crate) fn general(&self) -> &Limits {
        &self.0.general
    }

    /// Replaces all overrides. A tenant without a new override has the general limits again.
    pub(crate) fn replace(&self, overrides: impl IntoIterator<Item = (TenantId, Limits)>) {
        let overrides = overrides.into_iter();
        let overrides = overrides.map(|(tenant, limits)| (tenant, Arc::new(limits))).collect();
        *self.0.overrides.write() = overrides;
    }
}

impl From<Limits> for TenantLimits {
    /// Applies the same limits to all tenants.
    fn from(general: Limits) -> Self {
        Self(Arc::new(Table {
            general: Arc::new(general),
            overrides: RwLock::default(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_hold_until_they_are_replaced() {
        let limits = TenantLimits::from(Limits::default());
        let (shop, other): (TenantId, TenantId) = ("shop".parse().unwrap(), "other".parse().unwrap());
        let own = Limits {
            max_active_series: 7,
            ..Limits::default()
        };
        let shared = limits.clone();
        shared.replace([(shop.clone(), own)]);
        assert_eq!(limits.of(&shop).max_active_series, 7);
        assert_eq!(*limits.of(&other), Limits::default());
        shared.replace([]);
        assert_eq!(*limits.of(&shop), Limits::default());
    }
}
