//! A record of the write-ahead log: the tenant and labels of a profile, its time of receipt, and its bytes as received.
//!
//! [`alluvium_profile::record`] describes the layout. The log adds the current limits of stack depth and symbol length,
//! each as a u32, and the tenant. Version 2 also contains the tenant's relabel rules, and is written only for a tenant
//! with rules. With these fields, a replay produces the same rows under another configuration.

use std::sync::Arc;

use bytes::Bytes;

use crate::store::rules::limits::Limits;
use crate::store::rules::relabel_rules::{KnownRules, RelabelRules};
use alluvium_profile::record::{Reader, RecordError, Writer};
use alluvium_profile::{RawProfile, TenantId};

/// The version of records with relabel rules.
const WITH_RULES: u8 = 2;

/// A profile as the log stores it.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub tenant: TenantId,
    /// Time of receipt in milliseconds since 1970.
    pub received_ms: i64,
    /// Limits that cut rows instead of refusing a profile: stack depth and symbol length, as in [`Limits`].
    pub cuts: [u32; 2],
    /// The relabel rules, if they are not the default rules.
    pub rules: Option<Arc<RelabelRules>>,
    pub profile: RawProfile,
}

impl Record {
    /// Returns limits with which the profile produces the same rows as when it was accepted. These limits refuse
    /// nothing.
    pub(in crate::store) fn limits(&self) -> Limits {
        Limits {
            max_profile_stacktrace_depth: self.cuts[0] as usize,
            max_profile_symbol_value_length: self.cuts[1] as usize,
            rules: self.rules.clone(),
            ..Limits::unlimited()
        }
    }
}

/// Encodes all parts of a record that come before the pprof bytes.
pub(crate) fn encode_header(tenant: &TenantId, received_ms: i64, limits: &Limits, profile: &RawProfile) -> Vec<u8> {
    let rules = limits.rules.as_deref();
    let mut writer = match rules {
        Some(_) => Writer::of_version(WITH_RULES, received_ms),
        None => Writer::new(received_ms),
    };
    for limit in [
        limits.max_profile_stacktrace_depth,
        limits.max_profile_symbol_value_length,
    ] {
        writer.number(u32::try_from(limit).unwrap_or(u32::MAX));
    }
    writer.text(tenant.as_str());
    if let Some(rules) = rules {
        writer.text(rules.text());
    }
    writer.finish(profile)
}

/// Decodes a record. The pprof bytes share memory with `payload`.
pub(in crate::store) fn decode(payload: &Bytes, known_rules: &mut KnownRules) -> Result<Record, RecordError> {
    let mut reader = Reader::up_to(WITH_RULES, payload)?;
    Ok(Record {
        received_ms: reader.time_ms,
        cuts: [reader.number()?, reader.number()?],
        tenant: reader.text()?.parse().map_err(|_| RecordError::Tenant)?,
        rules: match reader.version {
            WITH_RULES => known_rules.rules_of(reader.text()?).map_err(|_| RecordError::Rules)?,
            _ => None,
        },
        profile: reader.finish()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::rules::relabel_rules::{DefaultRules, RulesText};
    use alluvium_profile::Labels;
    use alluvium_testing::tenant_id;

    /// A record from the first release of the format, when the log had a codec of its own.
    const OLD: &[u8] = b"\x01{h\xe5\xcf\x8b\x01\0\0\xe8\x03\0\0\xff\xff\0\0\x04\0\0\0team\x04\0\0\x007b1d\
        \x02\0\0\0\x08\0\0\0__name__\x0b\0\0\0process_cpu\x0c\0\0\0service_name\x03\0\0\0a/b\x1f\x8b\0";

    #[test]
    fn records_of_older_programs_are_read_and_written_byte_for_byte() {
        let record = decode(&Bytes::from_static(OLD), &mut KnownRules::default()).unwrap();
        assert_eq!(
            (record.tenant.as_str(), record.received_ms),
            ("team", 1_700_000_000_123)
        );
        assert_eq!(record.cuts, [1_000, 65_535]);
        let labels = Labels::from_pairs([("__name__", "process_cpu"), ("service_name", "a/b")]);
        assert_eq!(record.profile.labels, labels);
        assert_eq!(&*record.profile.id, "7b1d");
        assert_eq!(record.profile.pprof, b"\x1f\x8b\0".as_slice());
        let mut encoded = encode_header(&record.tenant, 1_700_000_000_123, &record.limits(), &record.profile);
        encoded.extend_from_slice(&record.profile.pprof);
        assert_eq!(encoded, OLD);
    }

    #[test]
    fn the_rules_of_a_tenant_are_in_its_records() {
        let written = RulesText {
            defaults: DefaultRules::Disabled,
            ..RulesText::default()
        };
        let limits = Limits {
            rules: RelabelRules::new(written).unwrap(),
            ..Limits::default()
        };
        let profile = RawProfile {
            labels: Labels::from_pairs([("__name__", "wall")]),
            id: "id".into(),
            pprof: b"bytes".as_slice().into(),
        };
        let mut bytes = encode_header(&tenant_id("t"), 7, &limits, &profile);
        bytes.extend_from_slice(&profile.pprof);
        let mut known_rules = KnownRules::default();
        let record = decode(&bytes.into(), &mut known_rules).unwrap();
        assert_eq!(record.limits().rules, limits.rules);
        assert_eq!(
            (record.profile.labels, record.profile.pprof),
            (profile.labels, profile.pprof)
        );
    }
}
