//! The type of a profile: Pyroscope's five-part id `name:sampleType:sampleUnit:periodType:periodUnit`.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// The meaning of a profile's values. Two profiles of one series may be merged only if their types are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfileType {
    /// `__name__` of the profile: `process_cpu`, `memory`, `goroutine`, ...
    pub name: String,
    /// Type of the value: `cpu`, `samples`, `inuse_space`, ...
    pub sample_type: String,
    /// Unit of the value: `nanoseconds`, `count`, `bytes`, ...
    pub sample_unit: String,
    /// Type of the period: `cpu`, `space`; may be empty.
    pub period_type: String,
    /// Unit of the period; may be empty.
    pub period_unit: String,
}

/// The id of a profile type as text, as in table columns. The text may be invalid, because another program may have
/// written the column. [`ProfileTypeId::parts`] validates it.
#[derive(Clone, Debug, Eq, PartialOrd, Ord)]
pub struct ProfileTypeId(Arc<str>);

impl ProfileTypeId {
    /// Returns the five parts with colons between them.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the parts, like [`ProfileType::from_str`].
    pub fn parts(&self) -> Result<ProfileType, ProfileTypeError> {
        self.0.parse()
    }
}

impl From<&str> for ProfileTypeId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<&ProfileType> for ProfileTypeId {
    fn from(parts: &ProfileType) -> Self {
        Self(parts.to_string().into())
    }
}

impl PartialEq for ProfileTypeId {
    /// Compares ids. The ids of neighbouring rows usually share one text, so that comparing the pointers is enough.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Hash for ProfileTypeId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Borrow<str> for ProfileTypeId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProfileTypeId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The text is not a profile type id.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("profile type `{0}` must have five parts: name:sampleType:sampleUnit:periodType:periodUnit")]
pub struct ProfileTypeError(pub String);

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

    /// Parses the five parts. A sixth part `delta` (of older Pyroscope versions) is accepted and ignored.
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
