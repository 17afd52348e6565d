//! The overrides file, Pyroscope's runtime configuration: limits per tenant that may change while the server runs.
//!
//! In: the file, read every few seconds. Out: the limits in force. At the start, an invalid file is an error. Later,
//! the server logs the error once, sets a metric, and keeps the previous limits.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use prometheus_client::metrics::gauge::Gauge;
use serde::Deserialize;

use crate::app::limits::LimitsSection;
use crate::store::{Limits, TenantLimits};
use alluvium_base::Shutdown;
use alluvium_profile::TenantId;
use alluvium_telemetry::metrics::Scope;

/// Path of the overrides file, and the time between two reads.
#[derive(Debug, Clone)]
pub(crate) struct OverridesFile {
    pub path: PathBuf,
    /// Time between two reads of the file.
    pub period: Duration,
}

impl OverridesFile {
    /// The default period, the same as in Pyroscope.
    pub(crate) const PERIOD: Duration = Duration::from_secs(10);
}

/// The overrides of a running server.
pub(crate) struct Overrides {
    file: OverridesFile,
    limits: TenantLimits,
    last_read: LastRead,
    /// 1 if the text that was read last is in force, 0 otherwise.
    successful: Gauge,
}

/// The result of the last read. If the next read has the same result, nothing happens.
#[derive(PartialEq)]
enum LastRead {
    Text(String),
    /// The file could not be read, with the text of the error.
    Unreadable(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    #[serde(default)]
    overrides: BTreeMap<String, LimitsSection>,
}

impl Overrides {
    /// Reads the file and applies it. Fails if the file cannot be read or used.
    pub(crate) fn read(file: OverridesFile, limits: TenantLimits, metrics: &Scope) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(&file.path)
            .with_context(|| format!("cannot read the overrides {}", file.path.display()))?;
        let overrides = parse(&text, limits.general())
            .with_context(|| format!("cannot use the overrides {}", file.path.display()))?;
        limits.replace(overrides);
        let successful = Gauge::default();
        successful.set(1);
        metrics.register(
            "alluvium_runtime_config_last_reload_successful",
            "1 if the current overrides file is in force, 0 if an older version is.",
            successful.clone(),
        );
        Ok(Self {
            file,
            limits,
            last_read: LastRead::Text(text),
            successful,
        })
    }

    /// Reads the file periodically until `shutdown`.
    pub(crate) async fn follow(mut self, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(self.file.period) => {}
            }
            let read = tokio::fs::read_to_string(&self.file.path).await;
            self.see(read);
        }
    }

    /// Applies the text of a read if the text is new and valid. Logs a new error.
    fn see(&mut self, read: io::Result<String>) {
        let new = read.map_or_else(|error| LastRead::Unreadable(error.to_string()), LastRead::Text);
        if new == self.last_read {
            return;
        }
        let parsed = match &new {
            LastRead::Text(text) => parse(text, self.limits.general()),
            LastRead::Unreadable(error) => Err(anyhow::anyhow!("{error}")),
        };
        self.last_read = new;
        let path = self.file.path.display();
        match parsed {
            Ok(overrides) => {
                let tenants = overrides.len();
                self.limits.replace(overrides);
                self.successful.set(1);
                tracing::info!(%path, tenants, "changed overrides are in force");
            }
            Err(error) => {
                self.successful.set(0);
                let error = format!("{error:#}");
                tracing::error!(%path, error, "cannot use the overrides; the last valid overrides stay in force");
            }
        }
    }
}

/// Parses the limits of the tenants that a text names, on top of the `general` limits. Logs a warning for each key
/// that has no effect for a single tenant.
fn parse(text: &str, general: &Limits) -> anyhow::Result<Vec<(TenantId, Limits)>> {
    let contents: Option<Contents> = serde_saphyr::from_str(text).map_err(|error| anyhow::anyhow!("{error}"))?;
    let overrides = contents.map(|contents| contents.overrides).unwrap_or_default();
    let one = |(name, section): (String, LimitsSection)| {
        let tenant: TenantId = name.parse().with_context(|| format!("overrides of `{name}`"))?;
        for key in section.for_all_only() {
            tracing::warn!(
                tenant = name,
                key,
                "configuration key has no effect for a single tenant"
            );
        }
        let limits = section
            .over(general)
            .with_context(|| format!("overrides of `{name}`"))?;
        Ok((tenant, limits))
    };
    overrides.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn shop(limits: &TenantLimits) -> usize {
        limits.of(&"shop".parse().unwrap()).max_profile_size_bytes
    }

    #[test]
    fn a_changed_file_is_put_in_force_and_a_wrong_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = OverridesFile {
            path: dir.path().join("overrides.yaml"),
            period: Duration::from_millis(10),
        };
        let overrides_text = |size: usize| format!("overrides:\n  shop:\n    max_profile_size_bytes: {size}\n");
        std::fs::write(&file.path, overrides_text(1000)).unwrap();
        let limits = TenantLimits::default();
        let mut overrides = Overrides::read(file, limits.clone(), &Scope::new()).unwrap();
        assert_eq!(shop(&limits), 1000);
        for text in [
            "overrides:\n  shop:\n    reject_older_than: soon\n",
            "overridez: {}\n",
            "overrides: [",
        ] {
            overrides.see(Ok(text.to_owned()));
            assert_eq!((shop(&limits), overrides.successful.get()), (1000, 0), "{text}");
        }
        overrides.see(Ok(overrides_text(2000)));
        assert_eq!((shop(&limits), overrides.successful.get()), (2000, 1));
        overrides.see(Err(io::Error::other("gone")));
        assert_eq!((shop(&limits), overrides.successful.get()), (2000, 0));
        overrides.see(Ok("# none\n".to_owned()));
        assert_eq!((shop(&limits), overrides.successful.get()), (4 << 20, 1));
    }

    #[test]
    fn a_tenant_keeps_the_general_limits_that_it_does_not_override() {
        let general = Limits {
            max_label_names_per_series: 5,
            ..Limits::default()
        };
        let text = "overrides:\n  shop:\n    ingestion_rate_mb: 0.5\n    max_global_series_per_tenant: 9\n";
        let parsed = parse(text, &general).unwrap();
        let [(tenant, limits)] = parsed.as_slice() else {
            panic!("{parsed:?}")
        };
        assert_eq!(tenant.as_str(), "shop");
        let expected = Limits {
            ingestion_rate_bytes: 512 << 10,
            max_active_series: 9,
            ..general
        };
        assert_eq!(*limits, expected);
        for invalid_text in [
            "overrides:\n  a/b: {}\n",
            "overrides:\n  shop:\n    ingestion_rate_mb: -1\n",
            "overrides:\n  shop:\n    ingestion_rate_mb: .nan\n",
            "overrides:\n  shop:\n    ingestion_relabeling_default_rules_position: middle\n",
            "overrides:\n  shop:\n    sample_type_relabeling_rules: [{source: [a]}]\n",
            "overrides:\n  shop:\n    max_sessions_per_series: -1\n",
        ] {
            assert!(parse(invalid_text, &Limits::default()).is_err(), "{invalid_text}");
        }
    }

    #[test]
    fn a_tenant_replaces_the_limit_of_sessions_and_may_switch_it_off() {
        let section: LimitsSection = serde_saphyr::from_str("max_sessions_per_series: 3\n").unwrap();
        let general = section.over(&Limits::default()).unwrap();
        let max_sessions = |limits: &Limits| limits.rules.as_ref().and_then(|rules| rules.max_sessions());
        assert_eq!(max_sessions(&general), NonZeroU32::new(3));
        for (text, expected) in [
            ("max_sessions_per_series: 7", 7),
            ("max_sessions_per_series: 0", 0),
            ("{}", 3),
        ] {
            let text = format!("overrides:\n  shop:\n    {text}\n");
            let own = parse(&text, &general).unwrap().remove(0).1;
            assert_eq!(max_sessions(&own), NonZeroU32::new(expected), "{text}");
        }
    }

    #[test]
    fn a_tenant_replaces_a_list_of_rules_and_keeps_the_others() {
        let section = |text: &str| serde_saphyr::from_str::<LimitsSection>(text).unwrap();
        let general = section(
            "ingestion_relabeling_rules: [{action: labeldrop, regex: pod}]\n\
             sample_type_relabeling_rules: [{action: drop, source_labels: [__type__], regex: alloc_.*}]\n",
        );
        let general = general.over(&Limits::default()).unwrap();
        let own = "overrides:\n  shop:\n    ingestion_relabeling_rules: []\n    \
                   ingestion_relabeling_default_rules_position: last\n";
        let own = parse(own, &general).unwrap().remove(0).1;
        let (of_all, of_shop) = (general.rules.clone().unwrap(), own.rules.unwrap());
        let (of_all, of_shop) = (of_all.written(), of_shop.written());
        assert_eq!((of_all.series.len(), of_shop.series.len()), (1, 0));
        assert_eq!(of_all.sample_types, of_shop.sample_types);
        assert_ne!(of_all.defaults, of_shop.defaults);
        let rejected = "overrides:\n  shop:\n    ingestion_relabeling_rules:\n      - {regex: a, action: labeldrop}\n\
                     \x20     - {regex: '(', action: labeldrop}\n";
        let error = parse(rejected, &general).unwrap_err();
        let text = format!("{error:#}");
        let expected = "overrides of `shop`: limits.ingestion_relabeling_rules[1].regex: invalid regular expression";
        assert!(text.starts_with(expected), "{text}");
    }
}
