//! The type of a profile: Pyroscope's five-part id `name:sampleType:sampleUnit:periodType:periodUnit`.

use std::fmt;
use std::str::FromStr;

/// What the values of a profile mean. Two profiles of one series may be merged only when their types are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfileType {
    /// `__name__` of the profile: `process_cpu`, `memory`, `goroutine`, ...
    pub name: String,
    /// Type of the value: `cpu`, `samples`, `inuse_space`, ...
    pub sample_type: String,
    /// Unit of the value: `nanoseconds`, `count`, `bytes`, ...
    pub sample_unit: String,
    /// What a sample is taken every so much of: `cpu`, `space`; may be empty.
    pub period_type: String,
    /// Unit of the period; may be empty.
    pub period_unit: String,
}

/// The text is not a profile type id.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("profile type `{0}` must have five parts: name:sampleType:sampleUnit:periodType:periodUnit")]
pub struct ProfileTypeError(pub String);

impl ProfileType {
    /// True for types whose value is a state and not an increment (`inuse_*`, goroutines, threads): over time they are
    /// averaged, not summed.
    pub fn is_gauge(&self) -> bool {
        self.sample_type.starts_with("inuse_")
            || matches!(self.sample_type.as_str(), "goroutine" | "goroutines" | "threadcreate")
    }
}

impl fmt::Display for ProfileType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            sample_type,
            sample_unit,
            period_type,
            period_unit,
        } = self;
        write!(out, "{name}:{sample_type}:{sample_unit}:{period_type}:{period_unit}")
    }
}

impl FromStr for ProfileType {
    type Err = ProfileTypeError;

    /// Reads the five parts; a sixth part `delta` (of older Pyroscope versions) is accepted and ignored.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split(':').collect();
        let (name, sample_type, sample_unit, period_type, period_unit) = match parts.as_slice() {
            [a, b, c, d, e] | [a, b, c, d, e, "delta"] => (*a, *b, *c, *d, *e),
            _ => return Err(ProfileTypeError(text.to_owned())),
        };
        if name.is_empty() || sample_type.is_empty() {
            return Err(ProfileTypeError(text.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            sample_type: sample_type.to_owned(),
            sample_unit: sample_unit.to_owned(),
            period_type: period_type.to_owned(),
            period_unit: period_unit.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_the_round_trip() {
        let id = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
        assert_eq!(id.parse::<ProfileType>().unwrap().to_string(), id);
        assert_eq!(format!("{id}:delta").parse::<ProfileType>().unwrap().to_string(), id);
        assert_eq!(
            "off_cpu:off_cpu:nanoseconds::"
                .parse::<ProfileType>()
                .unwrap()
                .period_type,
            ""
        );
    }

    #[test]
    fn an_id_of_too_few_parts_is_refused() {
        assert!("process_cpu:cpu".parse::<ProfileType>().is_err());
        assert!("::::".parse::<ProfileType>().is_err());
    }
}
