//! Determines name and types of a profile from the types of its values and its period. The rules are Pyroscope's. If
//! Alluvium exported the profile, an attribute contains its name.

use crate::otlp::attributes::Value;
use crate::otlp::dictionary::Dictionary;
use crate::otlp::error::ExportError;
use crate::otlp::messages::Profile;
use alluvium_profile::pprof::ValueType;

/// Attribute of a profile with the value of its label `__name__`. Only Alluvium uses this attribute. OTLP has no field
/// for the name of a profile.
pub(super) const NAME: &str = "alluvium.profile.name";

/// Name and types of a profile.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kind<'m> {
    /// Value of the label `__name__`.
    pub name: &'m str,
    /// Type and unit of the values.
    pub sample_type: ValueType<'m>,
    /// Type of the period; may be empty.
    pub period_type: ValueType<'m>,
    /// Factor by which values are multiplied.
    pub scale: i64,
}

impl<'m> Kind<'m> {
    /// Returns the kind of a profile. A missing sample type is an error.
    pub(super) fn of(profile: &Profile, dictionary: &Dictionary<'m>) -> Result<Self, ExportError> {
        let sample = dictionary.value_type(profile.sample_type.as_ref())?;
        let period = dictionary.value_type(profile.period_type.as_ref())?;
        let kind = Self::from_types(sample, period, profile.period).ok_or(ExportError::NoSampleType)?;
        for index in &profile.attribute_indices {
            let attribute = dictionary.attribute(*index)?;
            if attribute.name == NAME
                && let Value::Text(name) = attribute.value
                && !name.is_empty()
            {
                return Ok(Self {
                    name,
                    sample_type: ValueType {
                        kind: sample[0],
                        unit: sample[1],
                    },
                    scale: 1,
                    ..kind
                });
            }
        }
        Ok(kind)
    }

    fn from_types(sample: [&'m str; 2], period: [&'m str; 2], length: i64) -> Option<Self> {
        let value_type = |[kind, unit]: [&'m str; 2]| ValueType { kind, unit };
        let other = Self {
            // Without a period type, the name is the sample type. Pyroscope does the same for the sample type off_cpu,
            // but leaves the names of all other types empty.
            name: match period[0] {
                "" => sample[0],
                kind => kind,
            },
            sample_type: value_type(sample),
            period_type: value_type(period),
            scale: 1,
        };
        match (sample, period) {
            (["", _], _) => None,
            // A profiler of the whole machine counts ticks; `scale` converts them to CPU time.
            (["samples", "count"], ["cpu", "nanoseconds"]) if length > 0 => Some(Self {
                name: "process_cpu",
                sample_type: value_type(period),
                scale: length,
                ..other
            }),
            _ => Some(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_the_cpu_become_its_time_and_others_keep_their_type() {
        let id = |sample, period, length| {
            let kind = Kind::from_types(sample, period, length)?;
            let (sample_type, period_type) = (kind.sample_type, kind.period_type);
            let id = format!(
                "{}:{}:{}:{}:{}",
                kind.name, sample_type.kind, sample_type.unit, period_type.kind, period_type.unit
            );
            Some((id, kind.scale))
        };
        let cpu = ["cpu", "nanoseconds"];
        for (sample, period, length, expected, scale) in [
            (
                ["samples", "count"],
                cpu,
                50_000_000,
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                50_000_000,
            ),
            (["samples", "count"], cpu, 0, "cpu:samples:count:cpu:nanoseconds", 1),
            (
                ["off_cpu", "nanoseconds"],
                [""; 2],
                0,
                "off_cpu:off_cpu:nanoseconds::",
                1,
            ),
            (
                ["alloc_space", "bytes"],
                ["space", "bytes"],
                9,
                "space:alloc_space:bytes:space:bytes",
                1,
            ),
            (cpu, cpu, 9, "cpu:cpu:nanoseconds:cpu:nanoseconds", 1),
        ] {
            assert_eq!(id(sample, period, length), Some((expected.to_owned(), scale)));
        }
        assert_eq!(id([""; 2], cpu, 9), None);
    }
}
