//! The rules of a tenant: limits on its profiles, and relabel rules for its series and sample types.
//!
//! In: the configuration, and overrides that may change while the store runs. Out: the rules in force for a profile.
//! The rules are applied in `ingest` and `quota`.

pub(in crate::store) mod limits;
pub(crate) mod relabel_rules;
pub(in crate::store) mod tenant_limits;
