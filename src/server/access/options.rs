//! Options of access, and what is wrong with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use url::Url;

use crate::server::access::deletion_token::AdminToken;
use crate::server::access::identity::{Rights, TenantScope};

/// How callers prove who they are.
#[derive(Debug, Clone, Default)]
pub struct AccessOptions {
    /// Nobody is asked, on purpose: on addresses of other machines, too.
    pub is_open: bool,
    /// File of tokens. Callers are asked from the moment that it is there.
    pub tokens: PathBuf,
    /// File of users with hashes of passwords.
    pub users: Option<PathBuf>,
    /// Whose client certificates are taken; `None` when no authority of clients is configured.
    pub certificates: Option<Vec<CertificateRule>>,
    /// The issuer whose tokens are taken.
    pub oidc: Option<OidcOptions>,
    /// Tokens that allow deletion, and where there is one tenant `/flush`.
    pub deletion: Vec<AdminToken>,
    /// `/metrics` asks nobody.
    pub open_metrics: bool,
    /// True on a server of several tenants.
    pub multi_tenant: bool,
}

impl AccessOptions {
    /// Name of the file of tokens in the data folder.
    pub const TOKENS: &str = "tokens.json";

    /// Options with the file of tokens in this data folder, and nothing else.
    pub fn new(data: &Path) -> Self {
        Self {
            tokens: data.join(Self::TOKENS),
            ..Self::default()
        }
    }
}

/// What the bearers of a certificate may do.
#[derive(Debug, Clone)]
pub struct CertificateRule {
    /// The common name of the certificate's subject; `*` for every certificate of the authority.
    pub name: String,
    pub rights: Rights,
    pub tenants: TenantScope,
}

/// An issuer of OpenID Connect, and what its claims mean.
#[derive(Debug, Clone)]
pub struct OidcOptions {
    /// Exactly the claim `iss`.
    pub issuer: String,
    /// What the claim `aud` must have.
    pub audience: String,
    /// Where the issuer's keys are (RFC 7517).
    pub jwks_url: Url,
    /// PEM file of the authorities of that URL, instead of the system's.
    pub ca: Option<PathBuf>,
    /// Claim with the name for logs.
    pub name_claim: String,
    /// Claim with a tenant or a list of them; without it the tenant of a server that has one.
    pub tenant_claim: Option<String>,
    /// Claim with a role or a list of them.
    pub role_claim: String,
    /// Our role for each value of that claim; when it is empty the values are our roles.
    pub roles: BTreeMap<String, Rights>,
}

/// Why access could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("cannot use {path}: {reason}")]
    File { path: String, reason: String },
    /// The issuer cannot be used.
    #[error("cannot use the OIDC issuer `{issuer}`: {reason}")]
    Oidc {
        /// The issuer as it is configured.
        issuer: String,
        reason: String,
    },
}
