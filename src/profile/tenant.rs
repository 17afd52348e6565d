//! Tenant ids, the rules that define valid ids, and the set of tenants that a query covers.
//!
//! The rules are the same as in Pyroscope. A valid id is safe as a folder name.

use std::fmt::{self, Write};
use std::sync::Arc;

/// The tenant of all data if tenants are not distinguished.
const DEFAULT_TENANT: &str = "anonymous";

/// Maximum length of a valid id in bytes.
const MAX_LENGTH: usize = 150;

/// Allowed characters of an id besides ASCII letters and digits.
const PUNCTUATION: &[u8] = b"!-_.*'()";

/// Maximum number of tenants of one query.
pub(crate) const MAX_TENANTS: usize = 64;

/// Separator between the ids of several tenants.
const SEPARATOR: char = '|';

/// Maximum number of characters of a refused id that an error repeats.
const SHOWN_CHARS: usize = MAX_LENGTH;

/// A tenant id that is known to be valid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(Arc<str>);

/// The reason why a text is not a tenant id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TenantError {
    /// The text has no characters.
    #[error("the tenant id is empty")]
    Empty,
    /// The text is longer than 150 bytes.
    #[error("the tenant id has {0} bytes, the limit is {MAX_LENGTH}")]
    TooLong(usize),
    /// The text is `.` or `..`, which are not folder names.
    #[error("the tenant id `{0}` is not allowed")]
    Reserved(String),
    /// The text contains a `|`, which separates several ids.
    #[error("the tenant id `{0}` names several tenants, but exactly one is required")]
    Several(String),
    /// The text has more ids than a query may cover.
    #[error("{0} tenants are named, the limit of a query is {MAX_TENANTS}")]
    TooMany(usize),
    /// The text has a character that is not allowed.
    #[error("the tenant id `{id}` contains the character `{character}`: letters, digits and !-_.*'() are allowed")]
    Character {
        /// The text, or its start.
        id: String,
        /// The first character that is not allowed.
        character: char,
    },
}

impl TenantId {
    /// Returns the tenant of all data if tenants are not distinguished.
    pub fn anonymous() -> Self {
        Self(DEFAULT_TENANT.into())
    }

    /// Returns the id as text, for paths and queries.
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

/// The tenants that a query covers, sorted and distinct; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tenants(Arc<[TenantId]>);

impl Tenants {
    /// Returns true if the set contains the tenant.
    pub fn has(&self, tenant: &TenantId) -> bool {
        self.0.binary_search(tenant).is_ok()
    }

    /// Like [`Tenants::has`], for an id as text.
    pub fn has_id(&self, id: &str) -> bool {
        self.0.binary_search_by(|tenant| tenant.as_str().cmp(id)).is_ok()
    }

    /// Returns the tenant if there is exactly one.
    pub fn single(&self) -> Option<&TenantId> {
        match self.0.as_ref() {
            [tenant] => Some(tenant),
            _ => None,
        }
    }

    /// Iterates over the tenants in ascending order.
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

    /// Parses one id, or several with `|` between them.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant_id(id: &str) -> TenantId {
        id.parse().unwrap()
    }

    #[test]
    fn ids_are_those_that_are_safe_as_names_of_folders() {
        for id in ["anonymous", "team-1_(a)!*.'", "a..b", "x".repeat(150).as_str()] {
            assert_eq!(id.parse::<TenantId>().unwrap().as_str(), id);
        }
        let error = |id: &str| id.parse::<TenantId>().unwrap_err();
        assert_eq!(error(""), TenantError::Empty);
        assert_eq!(error(&"x".repeat(151)), TenantError::TooLong(151));
        assert_eq!(error(".."), TenantError::Reserved("..".to_owned()));
        assert_eq!(error("a|b"), TenantError::Several("a|b".to_owned()));
        for id in ["a/b", "a b", "\u{e9}", "a\0", "..%2f"] {
            assert!(matches!(error(id), TenantError::Character { .. }), "{id}");
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
