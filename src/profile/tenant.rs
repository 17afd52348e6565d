//! Tenant ids, and the rules that say which ids are valid.
//!
//! The rules are Pyroscope's. A valid id is safe as a folder name.

use std::fmt;
use std::sync::Arc;

/// The tenant of all data when tenants are not distinguished.
const DEFAULT_TENANT: &str = "anonymous";

/// Longest valid id in bytes.
const MAX_LENGTH: usize = 150;

/// Characters of an id besides ASCII letters and digits.
const PUNCTUATION: &[u8] = b"!-_.*'()";

/// Longest part of a refused id that is repeated in an error, in characters.
const SHOWN_CHARS: usize = MAX_LENGTH;

/// A tenant id that is known to be valid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(Arc<str>);

/// Why a text is no tenant id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TenantError {
    /// The text has no character.
    #[error("the tenant id is empty")]
    Empty,
    /// It is longer than 150 bytes.
    #[error("the tenant id has {0} bytes, the limit is {MAX_LENGTH}")]
    TooLong(usize),
    /// It is `.` or `..`, which are not folder names.
    #[error("the tenant id `{0}` is not allowed")]
    Reserved(String),
    /// It contains a `|`, which other servers use to join several ids.
    #[error("the tenant id `{0}` names several tenants, and exactly one is wanted")]
    Several(String),
    /// It has a character that is not allowed.
    #[error("the tenant id `{id}` has the character `{character}`: letters, digits and !-_.*'() are allowed")]
    Character {
        /// The text, or its start.
        id: String,
        /// The first such character.
        character: char,
    },
}

impl TenantId {
    /// The tenant of all data when tenants are not distinguished.
    pub fn anonymous() -> Self {
        Self(DEFAULT_TENANT.into())
    }

    /// The id as text, for paths and questions.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for TenantId {
    type Err = TenantError;

    fn from_str(id: &str) -> Result<Self, TenantError> {
        if id.is_empty() {
            return Err(TenantError::Empty);
        }
        let shown = || id.chars().take(SHOWN_CHARS).collect();
        let allowed = |character: &char| {
            character.is_ascii_alphanumeric() || u8::try_from(*character).is_ok_and(|byte| PUNCTUATION.contains(&byte))
        };
        match id.chars().find(|character| !allowed(character)) {
            _ if id.len() > MAX_LENGTH => Err(TenantError::TooLong(id.len())),
            _ if id == "." || id == ".." => Err(TenantError::Reserved(shown())),
            Some('|') => Err(TenantError::Several(shown())),
            Some(character) => Err(TenantError::Character { id: shown(), character }),
            None => Ok(Self(id.into())),
        }
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Creates a tenant id for a test.
#[cfg(test)]
pub(crate) fn tenant_id(id: &str) -> TenantId {
    id.parse().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_that_are_safe_as_names_of_folders() {
        for good in ["anonymous", "team-1_(a)!*.'", "a..b", "x".repeat(150).as_str()] {
            assert_eq!(good.parse::<TenantId>().unwrap().as_str(), good);
        }
        let error = |id: &str| id.parse::<TenantId>().unwrap_err();
        assert_eq!(error(""), TenantError::Empty);
        assert_eq!(error(&"x".repeat(151)), TenantError::TooLong(151));
        assert_eq!(error(".."), TenantError::Reserved("..".to_owned()));
        assert_eq!(error("a|b"), TenantError::Several("a|b".to_owned()));
        for bad in ["a/b", "a b", "\u{e9}", "a\0", "..%2f"] {
            assert!(matches!(error(bad), TenantError::Character { .. }), "{bad}");
        }
    }
}
