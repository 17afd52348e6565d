//! The section `limits` of the server's configuration, and of a tenant's overrides.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use serde::Deserialize;

use crate::base::duration;
use crate::store::Limits;
use crate::store::rules::relabel_rules::{RelabelRules, RuleText, RulesText};

const MIB: f64 = 1_048_576.0;

/// Limits, with Pyroscope's names and meaning.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LimitsSection {
    /// Largest compressed body in MiB.
    pub ingestion_body_limit_mb: Option<f64>,
    /// Largest uncompressed profile in bytes.
    pub max_profile_size_bytes: Option<usize>,
    /// Maximum number of samples of a profile.
    pub max_profile_stacktrace_samples: Option<usize>,
    /// Maximum number of labels of a sample.
    pub max_profile_stacktrace_sample_labels: Option<usize>,
    pub max_profile_stacktrace_depth: Option<usize>,
    /// Longest symbol in bytes.
    pub max_profile_symbol_value_length: Option<usize>,
    /// Longest label name in bytes.
    pub max_label_name_length: Option<usize>,
    /// Longest label value in bytes.
    pub max_label_value_length: Option<usize>,
    /// Maximum number of labels of a series.
    pub max_label_names_per_series: Option<usize>,
    /// Uncompressed MiB of profiles a second; 0 for no limit.
    pub ingestion_rate_mb: Option<f64>,
    /// MiB that may come at once after a pause.
    pub ingestion_burst_size_mb: Option<f64>,
    /// Maximum number of active series; 0 for no limit.
    pub max_global_series_per_tenant: Option<usize>,
    /// Relabel rules for the labels of each series of a profile.
    pub ingestion_relabeling_rules: Option<Vec<RuleText>>,
    /// When Pyroscope's default rules apply: `first`, `last` or `disabled`.
    pub ingestion_relabeling_default_rules_position: Option<String>,
    /// False: names of labels are brought into the form of Prometheus. True unless set.
    pub disable_label_sanitization: Option<bool>,
    /// Relabel rules that keep or drop the sample types of a profile.
    pub sample_type_relabeling_rules: Option<Vec<RuleText>>,
    /// Age beyond which a profile is refused, a duration; 0 for no limit.
    pub reject_older_than: Option<String>,
    /// How far in the future a profile may be, a duration; 0 for no limit.
    pub reject_newer_than: Option<String>,
    /// How long profiles are kept, a duration; 0 for ever.
    pub retention_period: Option<String>,
    /// Name of `retention_period` in Pyroscope 1; `retention_period` wins.
    pub compactor_blocks_retention_period: Option<String>,
    /// Longest time range of a query, a duration; 0 for no limit.
    pub max_query_length: Option<String>,
    /// Number of nodes of a flame graph when the request sets none.
    pub max_flamegraph_nodes_default: Option<i64>,
    /// Maximum number of nodes that a request may ask for.
    pub max_flamegraph_nodes_max: Option<i64>,
    #[serde(flatten)]
    pub other: std::collections::BTreeMap<String, serde_json::Value>,
}

impl LimitsSection {
    /// The limits of profiles: those that the section sets, over `base`.
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
        for (limit, given) in numbers {
            *limit = given.unwrap_or(*limit);
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
        for (name, limit, given) in rates {
            let Some(given) = given else { continue };
            if !given.is_finite() || given < 0.0 {
                bail!("limits.{name}: `{given}` is no number of MiB");
            }
            // A rate above zero stays one, however small.
            *limit = (given * MIB).ceil() as u64;
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
        for (name, limit, given) in ages {
            if let Some(text) = given {
                *limit = parsed(&format!("limits.{name}"), text)?;
            }
        }
        limits.rules = self.rules_over(base)?;
        Ok(limits)
    }

    /// The relabel rules: each list that the section sets, in place of that of `base`.
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
        if let Some(position) = &self.ingestion_relabeling_default_rules_position {
            written.defaults = position
                .parse()
                .map_err(|error: String| anyhow!("limits.ingestion_relabeling_default_rules_position: {error}"))?;
        }
        RelabelRules::new(written).map_err(|error| anyhow!("limits.{error}"))
    }

    /// The keys that are set here and hold for all tenants alike.
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

/// Parses the duration that `name` sets.
pub(crate) fn parsed(name: &str, text: &str) -> anyhow::Result<Duration> {
    duration::parse(text).with_context(|| name.to_owned())
}
