//! The section `limits` of the server's configuration, and the overrides of a tenant, which have the same keys.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use serde::Deserialize;

use crate::store::Limits;
use crate::store::rules::relabel_rules::{RelabelRules, RuleText, RulesText, UnknownPosition};
use alluvium_base::duration;

const MIB: f64 = 1_048_576.0;

/// Limits, with Pyroscope's names and meanings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LimitsSection {
    /// Maximum size of a compressed request body in MiB.
    pub ingestion_body_limit_mb: Option<f64>,
    /// Maximum size of an uncompressed profile in bytes.
    pub max_profile_size_bytes: Option<usize>,
    /// Maximum number of samples per profile.
    pub max_profile_stacktrace_samples: Option<usize>,
    /// Maximum number of labels per sample.
    pub max_profile_stacktrace_sample_labels: Option<usize>,
    pub max_profile_stacktrace_depth: Option<usize>,
    /// Maximum length of a symbol in bytes.
    pub max_profile_symbol_value_length: Option<usize>,
    /// Maximum length of a label name in bytes.
    pub max_label_name_length: Option<usize>,
    /// Maximum length of a label value in bytes.
    pub max_label_value_length: Option<usize>,
    /// Maximum number of labels per series.
    pub max_label_names_per_series: Option<usize>,
    /// Maximum number of session ids (`__session_id__`) of a series; with 0, series have none.
    pub max_sessions_per_series: Option<u32>,
    /// Names of the numeric labels of samples that become labels of series.
    pub numeric_sample_labels: Option<Vec<String>>,
    /// Rate limit of ingestion in uncompressed MiB per second; 0 for no limit.
    pub ingestion_rate_mb: Option<f64>,
    /// Burst size of the rate limit in MiB.
    pub ingestion_burst_size_mb: Option<f64>,
    /// Maximum number of active series; 0 for no limit.
    pub max_global_series_per_tenant: Option<usize>,
    /// Relabel rules for the labels of each series of a profile.
    pub ingestion_relabeling_rules: Option<Vec<RuleText>>,
    /// When Pyroscope's default rules apply: `first`, `last` or `disabled`.
    pub ingestion_relabeling_default_rules_position: Option<String>,
    /// If false, label names are sanitized to Prometheus' rules. Defaults to true.
    pub disable_label_sanitization: Option<bool>,
    /// Relabel rules that keep or drop the sample types of a profile.
    pub sample_type_relabeling_rules: Option<Vec<RuleText>>,
    /// Maximum age of a profile, a duration; older profiles are refused; 0 for no limit.
    pub reject_older_than: Option<String>,
    /// How far in the future the time of a profile may be, a duration; later profiles are refused; 0 for no limit.
    pub reject_newer_than: Option<String>,
    /// Retention period of profiles, a duration. With 0, profiles are kept for ever.
    pub retention_period: Option<String>,
    /// Name of `retention_period` in Pyroscope 1. If both are set, `retention_period` applies.
    pub compactor_blocks_retention_period: Option<String>,
    /// Maximum time range of a query, a duration; 0 for no limit.
    pub max_query_length: Option<String>,
    /// Maximum number of flame graph nodes if the request sets none.
    pub max_flamegraph_nodes_default: Option<i64>,
    /// Maximum number of flame graph nodes that a request may set.
    pub max_flamegraph_nodes_max: Option<i64>,
    #[serde(flatten)]
    pub other: std::collections::BTreeMap<String, serde_json::Value>,
}

impl LimitsSection {
    /// Returns the limits of profiles. A limit that the section does not set has the value of `base`.
    pub(crate) fn over(&self, base: &Limits) -> anyhow::Result<Limits> {
        let mut limits = base.clone();
        let numbers = [
            (&mut limits.max_profile_size_bytes, self.max_profile_size_bytes),
            (
                &mut limits.max_profile_stacktrace_samples,
                self.max_profile_stacktrace_samples,
            ),
            (
                &mut limits.max_profile_stacktrace_sample_labels,
                self.max_profile_stacktrace_sample_labels,
            ),
            (
                &mut limits.max_profile_stacktrace_depth,
                self.max_profile_stacktrace_depth,
            ),
            (
                &mut limits.max_profile_symbol_value_length,
                self.max_profile_symbol_value_length,
            ),
            (&mut limits.max_label_name_length, self.max_label_name_length),
            (&mut limits.max_label_value_length, self.max_label_value_length),
            (&mut limits.max_label_names_per_series, self.max_label_names_per_series),
            (&mut limits.max_active_series, self.max_global_series_per_tenant),
        ];
        for (limit, setting) in numbers {
            *limit = setting.unwrap_or(*limit);
        }
        let rates = [
            (
                "ingestion_rate_mb",
                &mut limits.ingestion_rate_bytes,
                self.ingestion_rate_mb,
            ),
            (
                "ingestion_burst_size_mb",
                &mut limits.ingestion_burst_bytes,
                self.ingestion_burst_size_mb,
            ),
        ];
        for (name, limit, rate) in rates {
            let Some(rate) = rate else { continue };
            if !rate.is_finite() || rate < 0.0 {
                bail!("limits.{name}: `{rate}` is not a number of MiB");
            }
            // Round up, so that a small rate does not become 0, which means no limit.
            *limit = (rate * MIB).ceil() as u64;
        }
        let ages = [
            (
                "reject_older_than",
                &mut limits.reject_older_than,
                &self.reject_older_than,
            ),
            (
                "reject_newer_than",
                &mut limits.reject_newer_than,
                &self.reject_newer_than,
            ),
        ];
        for (name, limit, setting) in ages {
            if let Some(text) = setting {
                *limit = parsed(&format!("limits.{name}"), text)?;
            }
        }
        limits.rules = self.rules_over(base)?;
        Ok(limits)
    }

    /// Returns the relabel rules. A list or a setting of the section replaces that of `base`.
    fn rules_over(&self, base: &Limits) -> anyhow::Result<Option<Arc<RelabelRules>>> {
        let written = base.rules.as_ref().map(|rules| rules.written());
        let mut written: RulesText = written.cloned().unwrap_or_default();
        if let Some(rules) = &self.ingestion_relabeling_rules {
            written.series.clone_from(rules);
        }
        if let Some(rules) = &self.sample_type_relabeling_rules {
            written.sample_types.clone_from(rules);
        }
        if let Some(is_disabled) = self.disable_label_sanitization {
            written.sanitize = !is_disabled;
        }
        if let Some(limit) = self.max_sessions_per_series {
            written.max_sessions = NonZeroU32::new(limit);
        }
        if let Some(names) = &self.numeric_sample_labels {
            written.numeric_labels.clone_from(names);
        }
        if let Some(position) = &self.ingestion_relabeling_default_rules_position {
            let unknown =
                |error: UnknownPosition| anyhow!("limits.ingestion_relabeling_default_rules_position: {error}");
            written.defaults = position.parse().map_err(unknown)?;
        }
        RelabelRules::new(written).map_err(|error| anyhow!("limits.{error}"))
    }

    /// Returns the keys that this section sets and that have no effect for a single tenant.
    pub(crate) fn for_all_only(&self) -> Vec<&str> {
        let texts = [
            ("retention_period", &self.retention_period),
            (
                "compactor_blocks_retention_period",
                &self.compactor_blocks_retention_period,
            ),
            ("max_query_length", &self.max_query_length),
        ];
        let nodes = [
            ("max_flamegraph_nodes_default", self.max_flamegraph_nodes_default),
            ("max_flamegraph_nodes_max", self.max_flamegraph_nodes_max),
        ];
        let texts = texts.into_iter().filter(|(_, set)| set.is_some()).map(|(name, _)| name);
        let nodes = nodes.into_iter().filter(|(_, set)| set.is_some()).map(|(name, _)| name);
        let body = self.ingestion_body_limit_mb.map(|_| "ingestion_body_limit_mb");
        let unknown = self.other.keys().map(String::as_str);
        texts.chain(nodes).chain(body).chain(unknown).collect()
    }
}

/// Parses `text`, the duration of the flag or key `name`.
pub(crate) fn parsed(name: &str, text: &str) -> anyhow::Result<Duration> {
    duration::parse(text).with_context(|| name.to_owned())
}
