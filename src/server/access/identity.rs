//! An identity: a name with rights and tenants.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use alluvium_profile::TenantId;

/// A right of an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Allows queries, also in SQL, and reading settings and uploaded files.
    Read,
    /// Allows pushes of profiles, and changes of settings and uploaded files.
    Write,
    /// Allows the deletion of profiles and the operation of the server.
    Admin,
}

impl Right {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// A set of rights. The role `admin` stands for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights(BTreeSet<Right>);

/// Error of a text that is not a role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a role: use read, write or admin")]
pub struct RoleError(String);

impl Rights {
    pub(crate) fn all() -> Self {
        Self([Right::Read, Right::Write, Right::Admin].into())
    }

    pub(super) fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Adds all rights of `others`.
    pub(super) fn extend(&mut self, others: impl IntoIterator<Item = Self>) {
        self.0.extend(others.into_iter().flat_map(|others| others.0));
    }

    /// Returns a set with only this right. The role of the same name may stand for more rights.
    pub(super) fn only(right: Right) -> Self {
        Self([right].into())
    }

    /// Returns the rights of several roles. A role is `read`, `write` or `admin`.
    pub fn of_roles<'a>(roles: impl IntoIterator<Item = &'a str>) -> Result<Self, RoleError> {
        let mut rights = BTreeSet::new();
        for role in roles {
            match role.trim() {
                "read" => rights.extend([Right::Read]),
                "write" => rights.extend([Right::Write]),
                "admin" => rights.extend(Self::all().0),
                other => return Err(RoleError(other.to_owned())),
            }
        }
        if rights.is_empty() {
            return Err(RoleError(String::new()));
        }
        Ok(Self(rights))
    }

    /// Returns true if the set contains the right.
    pub fn has(&self, right: Right) -> bool {
        self.0.contains(&right)
    }

    /// Returns the roles that stand for these rights.
    pub fn roles(&self) -> Vec<&'static str> {
        if *self == Self::all() {
            return vec![Right::Admin.name()];
        }
        self.0.iter().map(|right| right.name()).collect()
    }
}

impl FromStr for Rights {
    type Err = RoleError;

    /// Parses roles separated by commas.
    fn from_str(text: &str) -> Result<Self, RoleError> {
        Self::of_roles(text.split(','))
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.roles().join(","))
    }
}

/// The tenants of an identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TenantScope {
    /// Every tenant, written `*`.
    All,
    Only(Vec<TenantId>),
}

impl TenantScope {
    /// Returns a scope with the only tenant of a single-tenant server.
    pub(crate) fn anonymous() -> Self {
        Self::Only(vec![TenantId::anonymous()])
    }

    /// Parses a list of tenant ids. `*` means all tenants. An empty list means the tenant of a single-tenant server.
    pub fn of_ids<'a>(ids: impl IntoIterator<Item = &'a str>) -> Result<Self, alluvium_profile::TenantError> {
        let mut tenants = Vec::new();
        for id in ids {
            match id.trim() {
                "*" => return Ok(Self::All),
                id => tenants.push(id.parse()?),
            }
        }
        Ok(if tenants.is_empty() {
            Self::anonymous()
        } else {
            Self::Only(tenants)
        })
    }

    /// Returns true if the scope contains the tenant.
    pub fn has(&self, tenant: &TenantId) -> bool {
        match self {
            Self::All => true,
            Self::Only(tenants) => tenants.contains(tenant),
        }
    }

    /// Returns the tenant, if there is exactly one.
    pub(crate) fn single(&self) -> Option<&TenantId> {
        match self {
            Self::Only(tenants) if tenants.len() == 1 => tenants.first(),
            _ => None,
        }
    }

    /// Returns the ids of the tenants, or `*` for all.
    pub fn ids(&self) -> Vec<String> {
        match self {
            Self::All => vec!["*".to_owned()],
            Self::Only(tenants) => tenants.iter().map(ToString::to_string).collect(),
        }
    }
}

/// A caller with its rights and tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Name in logs: the name of the token or user, the common name of the certificate, or a claim of an issuer's
    /// token.
    pub name: Arc<str>,
    pub rights: Rights,
    pub tenants: TenantScope,
    /// False for a caller of a server that requires no authentication.
    pub is_proven: bool,
}

impl Identity {
    /// Creates the identity of a caller that has proven this name.
    pub(super) fn proven(name: &str, rights: Rights, tenants: TenantScope) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            rights,
            tenants,
            is_proven: true,
        })
    }

    /// Returns the identity of every caller if the server requires no authentication. It has all rights.
    pub(super) fn anyone() -> Arc<Self> {
        Arc::new(Self {
            name: "anyone".into(),
            rights: Rights::all(),
            tenants: TenantScope::All,
            is_proven: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admin_may_do_everything_and_a_writer_may_not_read() {
        let admin: Rights = "admin".parse().unwrap();
        assert!(admin.has(Right::Read) && admin.has(Right::Write) && admin.has(Right::Admin));
        let writer: Rights = "write".parse().unwrap();
        assert!(writer.has(Right::Write) && !writer.has(Right::Read) && !writer.has(Right::Admin));
        let rights: Rights = "read, write".parse().unwrap();
        assert_eq!(rights.to_string(), "read,write");
        assert_eq!(admin.to_string(), "admin");
        for text in ["", "root", "read,"] {
            assert!(text.parse::<Rights>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_scope_is_all_tenants_some_or_the_anonymous_one() {
        let scope = |ids: &[&str]| TenantScope::of_ids(ids.iter().copied());
        let shop: TenantId = "shop".parse().unwrap();
        assert_eq!(scope(&[]).unwrap(), TenantScope::anonymous());
        assert!(scope(&["shop"]).unwrap().has(&shop) && !scope(&["desk"]).unwrap().has(&shop));
        assert!(scope(&["*"]).unwrap().has(&shop));
        assert_eq!(scope(&["shop"]).unwrap().single(), Some(&shop));
        assert_eq!(scope(&["shop", "desk"]).unwrap().single(), None);
        assert!(scope(&["a/b"]).is_err());
    }
}
