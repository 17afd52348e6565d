//! Converts maintenance and retention settings to the settings of the store. The input comes from flags and from the
//! sections `maintenance` and `limits` of the configuration file.
//!
//! In: texts. Out: settings, or an error that names the key. A value that would silently do harm (an interval of zero,
//! a retention period for an invalid profile type) is an error.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::app::config::{MaintenanceSection, TenantRetention};
use crate::app::limits::LimitsSection;
use crate::app::size::bytes;
use crate::store::maintenance::{Downsampling, FreeFloor, MaintenanceConfig, SpaceLimits};
use alluvium_base::duration;
use alluvium_profile::TenantId;

/// Shortest time between rounds of maintenance.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);
/// Minimum of `target_file_size` in bytes. With a smaller target, merging the files of one day would create more files
/// than it removes.
const SMALLEST_TARGET_BYTES: u64 = 64 << 10;

/// The maintenance flags of `serve` as typed. Each field has the name of its flag.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MaintenanceFlags<'a> {
    pub retention: Option<&'a str>,
    pub retention_size: Option<&'a str>,
    pub min_free_space: Option<&'a str>,
    pub compaction: Option<bool>,
}

/// Returns the settings of maintenance. Flags override the file.
pub(crate) fn settings(
    file: &MaintenanceSection,
    limits: &LimitsSection,
    flags: MaintenanceFlags<'_>,
) -> anyhow::Result<MaintenanceConfig> {
    let mut config = MaintenanceConfig::default();
    config.compaction = flags.compaction.or(file.compaction).unwrap_or(config.compaction);
    config.space = space(file, flags)?;
    let intervals = [
        ("maintenance.interval", &file.interval, &mut config.interval),
        (
            "maintenance.vacuum_interval",
            &file.vacuum_interval,
            &mut config.vacuum_interval,
        ),
    ];
    for (name, text, interval) in intervals {
        if let Some(text) = text {
            *interval = parsed(name, text)?;
            ensure!(
                *interval >= SHORTEST_INTERVAL,
                "{name}: `{text}` is too short, the minimum is 10ms"
            );
        }
    }
    if let Some(share) = file.cpu_share {
        ensure!(
            share > 0.0 && share <= 1.0,
            "maintenance.cpu_share: `{share}` must be above 0 and at most 1"
        );
        config.cpu_share = share;
    }
    if let Some(bytes) = file.target_file_size {
        ensure!(
            bytes >= SMALLEST_TARGET_BYTES,
            "maintenance.target_file_size: `{bytes}` is too small, the minimum is {SMALLEST_TARGET_BYTES} bytes"
        );
        config.policy.target_bytes = bytes;
    }
    if let Some(text) = &file.deletion_delay {
        config.deletion_delay = parsed("maintenance.deletion_delay", text)?;
    }
    let aging = &mut config.aging;
    let of_limits = limits
        .retention_period
        .as_ref()
        .map(|text| ("limits.retention_period", text))
        .or_else(|| {
            let text = limits.compactor_blocks_retention_period.as_ref()?;
            Some(("limits.compactor_blocks_retention_period", text))
        });
    if let Some(text) = flags.retention {
        aging.retention = parsed("--retention", text)?;
    } else if let Some((name, text)) = of_limits {
        aging.retention = parsed(name, text)?;
    }
    for (tenant, retention) in &file.tenant_retention {
        let name = format!("maintenance.tenant_retention.{tenant}");
        let tenant: TenantId = tenant.parse().with_context(|| name.clone())?;
        match retention {
            TenantRetention::Period(text) => {
                aging.tenants.insert(tenant, parsed(&name, text)?);
            }
            TenantRetention::ByType(periods) => {
                let mut types = periods.clone();
                if let Some(text) = types.remove("default") {
                    let period = parsed(&format!("{name}.default"), &text)?;
                    aging.tenants.insert(tenant.clone(), period);
                }
                aging.tenant_types.insert(tenant, by_type(&name, &types)?);
            }
        }
    }
    aging.types = by_type("maintenance.type_retention", &file.type_retention)?;
    let steps = [
        ("maintenance.downsample_5m_after", &file.downsample_5m_after, 300),
        ("maintenance.downsample_1h_after", &file.downsample_1h_after, 3600),
    ];
    for (name, text, seconds) in steps {
        if let Some(text) = text {
            let after = parsed(name, text)?;
            if after.is_zero() {
                continue;
            }
            if let Some(finer) = aging.downsample.last() {
                ensure!(
                    after > finer.after,
                    "{name}: `{text}` must be longer than maintenance.downsample_5m_after"
                );
            }
            aging.downsample.push(Downsampling {
                after,
                interval: Duration::from_secs(seconds),
            });
        }
    }
    Ok(config)
}

/// Parses the size limits of retention; 0 means no limit.
fn space(file: &MaintenanceSection, flags: MaintenanceFlags<'_>) -> anyhow::Result<SpaceLimits> {
    let size = |name: &str, text: &str| anyhow::Ok(Some(bytes(name, text)? as u64).filter(|bytes| *bytes > 0));
    let limit = |flag: (&str, Option<&str>), key: (&str, &Option<String>)| match (flag, key) {
        ((name, Some(text)), _) => size(name, text),
        (_, (name, Some(text))) => size(name, text),
        _ => Ok(None),
    };
    let mut space = SpaceLimits {
        whole: limit(
            ("--retention-size", flags.retention_size),
            ("maintenance.retention_size", &file.retention_size),
        )?,
        ..SpaceLimits::default()
    };
    for (tenant, text) in &file.tenant_retention_size {
        let name = format!("maintenance.tenant_retention_size.{tenant}");
        let tenant: TenantId = tenant.parse().with_context(|| name.clone())?;
        space.tenants.extend(size(&name, text)?.map(|bytes| (tenant, bytes)));
    }
    let floor = limit(
        ("--min-free-space", flags.min_free_space),
        ("maintenance.min_free_space", &file.min_free_space),
    )?;
    space.floor = floor.map(FreeFloor::of_disk);
    Ok(space)
}

/// Parses retention periods by profile type. A key is a full profile type (five parts) or its first part.
fn by_type(name: &str, texts: &BTreeMap<String, String>) -> anyhow::Result<BTreeMap<String, Duration>> {
    let mut periods = BTreeMap::new();
    for (kind, text) in texts {
        let parts = kind.split(':').filter(|part| !part.is_empty()).count();
        ensure!(
            matches!(parts, 1 | 5) && kind.split(':').count() == parts,
            "{name}: `{kind}` is not a profile type, write an id such as `memory:inuse_space:bytes:space:bytes` or the \
             first part of it"
        );
        periods.insert(kind.clone(), parsed(&format!("{name}.{kind}"), text)?);
    }
    Ok(periods)
}

fn parsed(name: &str, text: &str) -> anyhow::Result<Duration> {
    duration::parse(text).with_context(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::config;
    use alluvium_testing::tenant_id;

    const DAY: Duration = Duration::from_hours(24);

    fn read(text: &str) -> anyhow::Result<MaintenanceConfig> {
        let file = config::parse(text)?;
        settings(&file.maintenance, &file.limits, MaintenanceFlags::default())
    }

    #[test]
    fn every_key_arrives() {
        let config = read(
            "\
limits:
  retention_period: 31d
maintenance:
  compaction: false
  interval: 2s
  vacuum_interval: 5m
  cpu_share: 0.25
  target_file_size: 1048576
  deletion_delay: 30m
  tenant_retention:
    one: 7d
    two:
      default: 0s
      memory: 1d
  type_retention:
    mutex: 2d
    'memory:inuse_space:bytes:space:bytes': 3d
  downsample_5m_after: 1d
  downsample_1h_after: 10d
",
        )
        .unwrap();
        assert!(!config.compaction);
        assert_eq!(config.interval, Duration::from_secs(2));
        assert_eq!(config.vacuum_interval, Duration::from_mins(5));
        assert_eq!((config.cpu_share, config.policy.target_bytes), (0.25, 1 << 20));
        assert_eq!(config.deletion_delay, Duration::from_mins(30));
        let aging = &config.aging;
        assert_eq!(aging.retention, 31 * DAY);
        assert_eq!(aging.tenants[&tenant_id("one")], 7 * DAY);
        assert_eq!(
            (
                aging.tenants[&tenant_id("two")],
                aging.tenant_types[&tenant_id("two")]["memory"]
            ),
            (Duration::ZERO, DAY)
        );
        assert_eq!(aging.types["mutex"], 2 * DAY);
        assert_eq!(aging.types["memory:inuse_space:bytes:space:bytes"], 3 * DAY);
        assert_eq!(
            aging.downsample,
            [
                Downsampling {
                    after: DAY,
                    interval: Duration::from_mins(5)
                },
                Downsampling {
                    after: 10 * DAY,
                    interval: Duration::from_hours(1)
                },
            ]
        );
        // Without settings, nothing is deleted or downsampled.
        let config = read("").unwrap();
        assert_eq!(
            config.aging,
            crate::store::maintenance::retention::aging::Aging::default()
        );
        assert!(config.compaction);
        // The newer key overrides the older key, and a flag overrides both.
        let older = "limits:\n  compactor_blocks_retention_period: 5d\n";
        assert_eq!(read(older).unwrap().aging.retention, 5 * DAY);
        let text = format!("{older}  retention_period: 6d\n");
        assert_eq!(read(&text).unwrap().aging.retention, 6 * DAY);
        let file = config::parse(&text).unwrap();
        let flags = MaintenanceFlags {
            retention: Some("1d"),
            compaction: Some(false),
            ..MaintenanceFlags::default()
        };
        let flags = settings(&file.maintenance, &file.limits, flags).unwrap();
        assert_eq!((flags.aging.retention, flags.compaction), (DAY, false));
    }

    #[test]
    fn sizes_arrive_and_flags_win() {
        let text = "\
maintenance:
  retention_size: 50GiB
  min_free_space: 1GiB
  tenant_retention_size:
    one: 2GiB
    two: 0
";
        let space = read(text).unwrap().space;
        assert_eq!((space.whole, space.floor.unwrap().bytes), (Some(50 << 30), 1 << 30));
        assert_eq!(space.tenants, BTreeMap::from([(tenant_id("one"), 2 << 30)]));
        let file = config::parse(text).unwrap();
        let flags = MaintenanceFlags {
            retention_size: Some("1MB"),
            min_free_space: Some("0"),
            ..MaintenanceFlags::default()
        };
        let space = settings(&file.maintenance, &file.limits, flags).unwrap().space;
        assert!(space.whole == Some(1_000_000) && space.floor.is_none());
        let space = read("").unwrap().space;
        assert!(space.whole.is_none() && space.floor.is_none() && space.tenants.is_empty());
    }

    #[test]
    fn values_that_cannot_be_are_refused_with_the_key() {
        for (text, word) in [
            ("interval: 0s", "maintenance.interval"),
            ("interval: soon", "maintenance.interval"),
            ("vacuum_interval: 1ms", "maintenance.vacuum_interval"),
            ("cpu_share: 0", "maintenance.cpu_share"),
            ("cpu_share: 1.5", "maintenance.cpu_share"),
            ("target_file_size: 100", "maintenance.target_file_size"),
            ("target_file_size: -1", "target_file_size"),
            ("deletion_delay: -1h", "maintenance.deletion_delay"),
            ("tenant_retention: {a/b: 1d}", "maintenance.tenant_retention.a/b"),
            ("tenant_retention: {a: 1 day}", "maintenance.tenant_retention.a"),
            (
                "tenant_retention: {a: {default: x}}",
                "maintenance.tenant_retention.a.default",
            ),
            ("tenant_retention: {a: {'b:c': 1d}}", "`b:c` is not a profile type"),
            ("type_retention: {'a:b': 1d}", "`a:b` is not a profile type"),
            ("type_retention: {'': 1d}", "is not a profile type"),
            ("type_retention: {memory: x}", "maintenance.type_retention.memory"),
            ("retention_size: much", "maintenance.retention_size"),
            ("min_free_space: 5 apples", "maintenance.min_free_space"),
            ("tenant_retention_size: {a: x}", "maintenance.tenant_retention_size.a"),
            ("downsample_5m_after: x", "maintenance.downsample_5m_after"),
            (
                "downsample_5m_after: 2d\n  downsample_1h_after: 1d",
                "maintenance.downsample_1h_after",
            ),
            ("compact: true", "compact"),
        ] {
            let error = match read(&format!("maintenance:\n  {text}\n")) {
                Ok(config) => panic!("{text} was accepted: {config:?}"),
                Err(error) => format!("{error:#}"),
            };
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
