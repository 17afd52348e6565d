//! The configuration in force, as the configuration routes show it: without secrets and without the names of users,
//! tokens and other tenants.
//!
//! In: values by key, from the composition root. Out: YAML in the form of the configuration file, and the limits of a
//! tenant.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::Value;

use crate::store::Limits;
use alluvium_base::duration;
use alluvium_profile::TenantId;

/// Prefix of the keys of limits.
const LIMITS: &str = "limits.";
/// Key of the retention period, which [`Settings::retention`] overrides for some tenants.
const RETENTION: &str = "retention_period";

/// The configuration in force, and the defaults.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Values by key of the configuration file. Dots separate the sections of a key.
    pub in_force: BTreeMap<&'static str, Value>,
    /// Default values by key: the values of a server without a configuration file.
    pub default: BTreeMap<&'static str, Value>,
    /// Retention periods of the tenants that override the general period.
    pub retention: BTreeMap<TenantId, String>,
}

impl Settings {
    /// Returns the configuration in force as YAML.
    pub(in crate::server) fn to_yaml(&self) -> String {
        yaml(self.in_force.iter())
    }

    /// Returns the configuration of a server without a configuration file, as YAML.
    pub(in crate::server) fn default(&self) -> String {
        yaml(self.default.iter())
    }

    /// Returns the values in force that differ from the defaults, as YAML.
    pub(in crate::server) fn difference(&self) -> String {
        yaml(
            self.in_force
                .iter()
                .filter(|(key, value)| self.default.get(**key) != Some(*value)),
        )
    }

    /// Returns the limits of a tenant by name. `own` contains the limits of the tenant's profiles.
    pub(in crate::server) fn limits(&self, tenant: &TenantId, own: &Limits) -> BTreeMap<&str, Value> {
        let general = self.in_force.iter().map(|(key, value)| (*key, value.clone()));
        let all = general.chain(limit_values(own));
        let named = all.filter_map(|(key, value)| Some((key.strip_prefix(LIMITS)?, value)));
        let mut limits: BTreeMap<&str, Value> = named.collect();
        if let Some(own) = self.retention.get(tenant) {
            limits.insert(RETENTION, own.as_str().into());
        }
        limits
    }
}

/// Returns the limits of profiles by key of the configuration file.
pub(crate) fn limit_values(limits: &Limits) -> [(&'static str, Value); 19] {
    let [
        series,
        sample_types,
        defaults,
        as_they_are,
        max_sessions,
        numeric_labels,
    ] = rules_values(limits);
    let mib = |bytes: u64| Value::from(bytes as f64 / f64::from(1 << 20));
    let time = |length: Duration| Value::from(duration::format(length));
    [
        ("limits.max_profile_size_bytes", limits.max_profile_size_bytes.into()),
        (
            "limits.max_profile_stacktrace_samples",
            limits.max_profile_stacktrace_samples.into(),
        ),
        (
            "limits.max_profile_stacktrace_sample_labels",
            limits.max_profile_stacktrace_sample_labels.into(),
        ),
        (
            "limits.max_profile_stacktrace_depth",
            limits.max_profile_stacktrace_depth.into(),
        ),
        (
            "limits.max_profile_symbol_value_length",
            limits.max_profile_symbol_value_length.into(),
        ),
        ("limits.max_label_name_length", limits.max_label_name_length.into()),
        ("limits.max_label_value_length", limits.max_label_value_length.into()),
        (
            "limits.max_label_names_per_series",
            limits.max_label_names_per_series.into(),
        ),
        ("limits.max_sessions_per_series", max_sessions),
        ("limits.numeric_sample_labels", numeric_labels),
        ("limits.max_global_series_per_tenant", limits.max_active_series.into()),
        ("limits.ingestion_rate_mb", mib(limits.ingestion_rate_bytes)),
        ("limits.ingestion_burst_size_mb", mib(limits.ingestion_burst_bytes)),
        ("limits.reject_older_than", time(limits.reject_older_than)),
        ("limits.reject_newer_than", time(limits.reject_newer_than)),
        ("limits.ingestion_relabeling_rules", series),
        ("limits.sample_type_relabeling_rules", sample_types),
        ("limits.ingestion_relabeling_default_rules_position", defaults),
        ("limits.disable_label_sanitization", as_they_are),
    ]
}

/// Returns the relabel rules: the rules for series, the rules for sample types, the position of the default rules,
/// whether label names stay unsanitized, the maximum number of sessions of a series, and the numeric labels that become
/// labels of series.
fn rules_values(limits: &Limits) -> [Value; 6] {
    let written = limits.rules.as_ref().map(|rules| rules.written().clone());
    let written = written.unwrap_or_default();
    // Texts and numbers can always be written as JSON.
    let value = |rules| serde_json::to_value(rules).unwrap_or_default();
    let defaults = serde_json::to_value(written.defaults).unwrap_or_default();
    [
        value(&written.series),
        value(&written.sample_types),
        defaults,
        (!written.sanitize).into(),
        written.max_sessions.map_or(0, NonZeroU32::get).into(),
        written.numeric_labels.into(),
    ]
}

/// Formats values as YAML, with one level of indentation for each section of a key. JSON values are valid YAML.
fn yaml<'a>(values: impl Iterator<Item = (&'a &'static str, &'a Value)>) -> String {
    let mut out = String::new();
    let mut open: Vec<&str> = Vec::new();
    for (key, value) in values {
        let (path, name) = key.rsplit_once('.').unwrap_or(("", key));
        let sections: Vec<&str> = path.split('.').filter(|section| !section.is_empty()).collect();
        let shared = std::iter::zip(&open, &sections).take_while(|(left, right)| left == right);
        open.truncate(shared.count());
        for section in sections.iter().skip(open.len()).copied().collect::<Vec<_>>() {
            out.push_str(&format!("{}{section}:\n", "  ".repeat(open.len())));
            open.push(section);
        }
        out.push_str(&format!("{}{name}: {value}\n", "  ".repeat(open.len())));
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_become_levels_and_values_are_yaml() {
        let values: BTreeMap<&'static str, Value> = BTreeMap::from([
            ("flat", json!(true)),
            ("limits.a", json!(1.5)),
            ("limits.b", json!("1h0m0s")),
            ("storage.backend", json!("s3")),
            ("storage.s3.bucket_name", json!("a \"b\"\n")),
            ("z.y.x", json!(0)),
        ]);
        let expected = "flat: true\nlimits:\n  a: 1.5\n  b: \"1h0m0s\"\nstorage:\n  backend: \"s3\"\n  s3:\n    \
            bucket_name: \"a \\\"b\\\"\\n\"\nz:\n  y:\n    x: 0\n";
        assert_eq!(yaml(values.iter()), expected);
        assert_eq!(yaml(BTreeMap::new().iter()), "");
    }
}
