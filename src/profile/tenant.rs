//! Tenant ids, the rules that say which ids are valid, and the set of tenants that a question is about.
//!
//! The rules are Pyroscope's. A valid id is safe as a folder name.

use std::fmt::{self, Write};
use std::sync::Arc;

/// The tenant of all data when tenants are not distinguished.
const DEFAULT_TENANT: &str = "anonymous";

/// Longest valid id in bytes.
const MAX_LENGTH: usize = 150;

/// Characters of an id besides ASCII letters and digits.
const PUNCTUATION: &[u8] = b"!-_.*'()";

/// Most tenants of one question.
pub(crate) const MAX_TENANTS: usize = 64;

/// What stands between the ids of several tenants.
const SEPARATOR: char = '|';

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
    /// It contains a `|`, which joins several ids.
    #[error("the tenant id `{0}` names several tenants, and exactly one is wanted")]
    Several(String),
    /// It joins more ids than a question may be about.
    #[error("{0} tenants are named, a question may be about {MAX_TENANTS}")]
    TooMany(usize),
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
            Some(SEPARATOR) => Err(TenantError::Several(shown())),
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

/// The tenants that a question is about, sorted, each once; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tenants(Arc<[TenantId]>);

impl Tenants {
    /// True when the tenant is among them.
    pub fn has(&self, tenant: &TenantId) -> bool {
        self.0.binary_search(tenant).is_ok()
    }

    /// As [`Tenants::has`], for an id as text.
    pub fn has_id(&self, id: &str) -> bool {
        self.0.binary_search_by(|tenant| tenant.as_str().cmp(id)).is_ok()
    }

    /// The tenant, when there is exactly one.
    pub fn single(&self) -> Option<&TenantId> {
        match self.0.as_ref() {
            [tenant] => Some(tenant),
            _ => None,
        }
    }

    /// Each of them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &TenantId> {
        self.0.iter()
    }
}

impl From<TenantId> for Tenants {
    fn from(tenant: TenantId) -> Self {
        Self([tenant].into())
    }
}

impl std::str::FromStr for Tenants {
    type Err = TenantError;

    /// One id, or several with `|` between them.
    fn from_str(ids: &str) -> Result<Self, TenantError> {
        let mut tenants: Vec<TenantId> = ids.split(SEPARATOR).map(str::parse).collect::<Result<_, _>>()?;
        tenants.sort_unstable();
        tenants.dedup();
        if tenants.len() > MAX_TENANTS {
            return Err(TenantError::TooMany(tenants.len()));
        }
        Ok(Self(tenants.into()))
    }
}

impl fmt::Display for Tenants {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, tenant) in self.iter().enumerate() {
            if index > 0 {
                out.write_char(SEPARATOR)?;
            }
            out.write_str(tenant.as_str())?;
        }
        Ok(())
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

    #[test]
    fn several_ids_are_sorted_and_each_is_there_once() {
        let tenants: Tenants = "b|a|b".parse().unwrap();
        assert_eq!(tenants.to_string(), "a|b");
        assert!(tenants.has(&tenant_id("a")) && tenants.has_id("b") && !tenants.has_id("c") && !tenants.has_id("a|b"));
        assert_eq!((tenants.single(), tenants.iter().count()), (None, 2));
        let one: Tenants = "a|a".parse().unwrap();
        assert_eq!((one.single(), &one), (Some(&tenant_id("a")), &tenant_id("a").into()));
        let error = |ids: &str| ids.parse::<Tenants>().unwrap_err();
        for empty in ["", "|", "a|", "|a", "a||b"] {
            assert_eq!(error(empty), TenantError::Empty, "{empty}");
        }
        assert!(matches!(error("a|b/c"), TenantError::Character { .. }));
        let joined = |count: usize| (0..count).map(|id| id.to_string()).collect::<Vec<_>>().join("|");
        assert_eq!(
            joined(MAX_TENANTS).parse::<Tenants>().unwrap().iter().count(),
            MAX_TENANTS
        );
        assert_eq!(error(&joined(MAX_TENANTS + 1)), TenantError::TooMany(MAX_TENANTS + 1));
    }
}
