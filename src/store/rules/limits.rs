//! The limits of a tenant: sizes, counts, label lengths, the accepted range of time, rate and series.
//!
//! The limits have Pyroscope's names, so that Pyroscope's configuration files keep their meaning. They also have
//! Pyroscope's defaults, except for rate and series. This file checks labels and times. `ingest` checks the contents
//! of a profile, and `quota` checks rate and series.

use std::sync::Arc;
use std::time::Duration;

use crate::store::common::expected_clock::ClockDifference;
use crate::store::rules::relabel_rules::RelabelRules;
use alluvium_profile::{Labels, SinkError, SinkErrorKind};

/// Limits on profiles. 0 (or a zero duration) means no limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// `max_profile_size_bytes`: maximum size of the uncompressed pprof in bytes. Defaults to 4 MiB.
    pub max_profile_size_bytes: usize,
    /// `max_profile_stacktrace_samples`: maximum number of samples of a profile. Defaults to 16,000.
    pub max_profile_stacktrace_samples: usize,
    /// `max_profile_stacktrace_sample_labels`: maximum number of labels of a sample. Defaults to 100.
    pub max_profile_stacktrace_sample_labels: usize,
    /// `max_profile_stacktrace_depth`: maximum number of locations of a stack. Defaults to 1,000. Deeper stacks lose
    /// frames at the leaf.
    pub max_profile_stacktrace_depth: usize,
    /// `max_profile_symbol_value_length`: maximum length of a name in bytes. Defaults to 65,535. Longer names lose
    /// their start.
    pub max_profile_symbol_value_length: usize,
    /// `max_label_name_length`: maximum length of a label name in bytes. Defaults to 1,024.
    pub max_label_name_length: usize,
    /// `max_label_value_length`: maximum length of a label value in bytes. Defaults to 2,048.
    pub max_label_value_length: usize,
    /// `max_label_names_per_series`: maximum number of labels of a series. Defaults to 30.
    pub max_label_names_per_series: usize,
    /// `reject_newer_than`: how far in the future a profile may start. Defaults to 10 minutes.
    pub reject_newer_than: Duration,
    /// `reject_older_than`: how far in the past a profile may start. Defaults to 1 hour.
    pub reject_older_than: Duration,
    /// `ingestion_rate_mb`: bytes of uncompressed profiles per second. No limit by default.
    pub ingestion_rate_bytes: u64,
    /// `ingestion_burst_size_mb`: bytes that may arrive at once after a pause. Defaults to 2 MiB.
    pub ingestion_burst_bytes: u64,
    /// `max_global_series_per_tenant`: number of series that may be active at the same time. No limit by default.
    pub max_active_series: usize,
    /// `ingestion_relabeling_rules`, `ingestion_relabeling_default_rules_position`, `sample_type_relabeling_rules`,
    /// `disable_label_sanitization`, `max_sessions_per_series` and `numeric_sample_labels`. With `None`, only
    /// Pyroscope's default rules apply, and series have neither session ids nor numeric labels.
    pub rules: Option<Arc<RelabelRules>>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_profile_size_bytes: 4 << 20,
            max_profile_stacktrace_samples: 16_000,
            max_profile_stacktrace_sample_labels: 100,
            max_profile_stacktrace_depth: 1_000,
            max_profile_symbol_value_length: 65_535,
            max_label_name_length: 1_024,
            max_label_value_length: 2_048,
            max_label_names_per_series: 30,
            reject_newer_than: Duration::from_mins(10),
            reject_older_than: Duration::from_hours(1),
            ingestion_rate_bytes: 0,
            ingestion_burst_bytes: 2 << 20,
            max_active_series: 0,
            rules: None,
        }
    }
}

/// The reason why a profile was refused: an error for the sender, and a value for the metric's label `reason`, as in
/// Pyroscope.
#[derive(Debug, Clone)]
pub struct Rejection {
    /// Value of the label `reason`.
    pub reason: &'static str,
    pub error: SinkError,
}

impl Rejection {
    pub(crate) fn new(reason: &'static str, kind: SinkErrorKind, message: String) -> Self {
        Self {
            reason,
            error: SinkError::new(kind, message),
        }
    }

    pub(crate) fn invalid(reason: &'static str, message: String) -> Self {
        Self::new(reason, SinkErrorKind::Invalid, message)
    }
}

impl Limits {
    /// Returns limits that accept everything.
    #[must_use]
    pub(crate) fn unlimited() -> Self {
        Self {
            max_profile_stacktrace_depth: 0,
            max_profile_symbol_value_length: 0,
            max_profile_size_bytes: 0,
            max_profile_stacktrace_samples: 0,
            max_profile_stacktrace_sample_labels: 0,
            max_label_name_length: 0,
            max_label_value_length: 0,
            max_label_names_per_series: 0,
            reject_newer_than: Duration::ZERO,
            reject_older_than: Duration::ZERO,
            ingestion_rate_bytes: 0,
            ingestion_burst_bytes: 0,
            max_active_series: 0,
            rules: None,
        }
    }

    /// Checks the number and lengths of the labels.
    pub(crate) fn check_labels(&self, labels: &Labels) -> Result<(), Rejection> {
        let count = labels.len();
        if exceeds(count, self.max_label_names_per_series) {
            let limit = self.max_label_names_per_series;
            return Err(Rejection::invalid(
                "max_label_names_per_series",
                format!(
                    "series {} has {count} label names, but at most {limit} are allowed (max_label_names_per_series)",
                    labels.short()
                ),
            ));
        }
        for (name, value) in labels.iter() {
            if name.is_empty() {
                return Err(Rejection::invalid(
                    "invalid_labels",
                    format!("series {} has a label without a name", labels.short()),
                ));
            }
            if exceeds(name.len(), self.max_label_name_length) {
                let (length, limit) = (name.len(), self.max_label_name_length);
                return Err(Rejection::invalid(
                    "label_name_too_long",
                    format!(
                        "label name `{}` has {length} bytes, but at most {limit} are allowed (max_label_name_length)",
                        start_of(name)
                    ),
                ));
            }
            if exceeds(value.len(), self.max_label_value_length) {
                let (length, limit) = (value.len(), self.max_label_value_length);
                return Err(Rejection::invalid(
                    "label_value_too_long",
                    format!(
                        "value of label `{}` has {length} bytes, but at most {limit} are allowed \
                            (max_label_value_length)",
                        start_of(name)
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Returns the limits for the time while the wall clock differs from the expected time. These limits refuse a
    /// profile only if it is too old or too new by both clocks.
    pub(crate) fn adjusted_to(self: &Arc<Self>, difference: ClockDifference) -> Arc<Self> {
        if difference.is_none() {
            return self.clone();
        }
        let extend = |limit: Duration, extra: Duration| {
            if limit.is_zero() {
                limit
            } else {
                limit.saturating_add(extra)
            }
        };
        Arc::new(Self {
            reject_older_than: extend(self.reject_older_than, difference.ahead),
            reject_newer_than: extend(self.reject_newer_than, difference.behind),
            ..self.as_ref().clone()
        })
    }

    /// Checks that a profile that starts at `time_ms` may be stored at `now_ms`, both in milliseconds since 1970.
    pub fn check_time(&self, labels: &Labels, time_ms: i64, now_ms: i64) -> Result<(), Rejection> {
        let newest = now_ms.saturating_add(milliseconds(self.reject_newer_than));
        let oldest = now_ms.saturating_sub(milliseconds(self.reject_older_than));
        let (word, bound) = if !self.reject_newer_than.is_zero() && time_ms > newest {
            ("newer", newest)
        } else if !self.reject_older_than.is_zero() && time_ms < oldest {
            ("older", oldest)
        } else {
            return Ok(());
        };
        Err(Rejection::invalid(
            "not_in_ingestion_window",
            format!(
                "profile {} of {} is {word} than the ingestion window allows (limit {}, reject_{word}_than)",
                labels.short(),
                rfc3339(time_ms),
                rfc3339(bound)
            ),
        ))
    }
}

/// Returns true if a limit is set and `value` exceeds it.
pub(crate) fn exceeds(value: usize, limit: usize) -> bool {
    limit > 0 && value > limit
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn rfc3339(time_ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(time_ms).map_or_else(
        || format!("{time_ms} ms"),
        |time| time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
    )
}

/// Returns the first 64 characters of a text, for a message.
pub(crate) fn start_of(text: &str) -> &str {
    let end = text
        .char_indices()
        .map(|(index, _)| index)
        .nth(64)
        .unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_beyond_a_limit_are_refused_with_both_numbers() {
        let limits = Limits::default();
        let too_many_labels = Labels::from_pairs((0..31).map(|index| (format!("l{index}"), "v".to_owned())));
        let rejection = limits.check_labels(&too_many_labels).unwrap_err();
        assert_eq!(rejection.reason, "max_label_names_per_series");
        assert!(rejection.error.message.contains("31") && rejection.error.message.contains("30"));
        let long_label = Labels::from_pairs([("a", "v".repeat(2049))]);
        assert_eq!(
            limits.check_labels(&long_label).unwrap_err().reason,
            "label_value_too_long"
        );
        assert!(Limits::unlimited().check_labels(&long_label).is_ok());
    }

    #[test]
    fn the_window_has_both_ends() {
        let limits = Limits::default();
        let labels = Labels::default();
        let now = 1_800_000_000_000;
        for (offset, accepted) in [
            (0, true),
            (-3_600_000, true),
            (-3_600_001, false),
            (600_000, true),
            (600_001, false),
        ] {
            assert_eq!(
                limits.check_time(&labels, now + offset, now).is_ok(),
                accepted,
                "{offset}"
            );
        }
    }
}
