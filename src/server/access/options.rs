//! Options of access control, and the error of unusable options.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use url::Url;

use crate::server::access::deletion_token::AdminToken;
use crate::server::access::identity::{Rights, TenantScope};
use crate::server::access::watched::FileError;
use alluvium_wire::client::ClientError;

/// The ways in which callers authenticate.
#[derive(Debug, Clone, Default)]
pub struct AccessOptions {
    /// If true, authentication is disabled, even on non-loopback addresses.
    pub is_open: bool,
    /// Path of the tokens file. Callers must authenticate as soon as the file exists.
    pub tokens: PathBuf,
    /// Path of the users file, which contains hashes of passwords.
    pub users: Option<PathBuf>,
    /// Client certificates to accept. `None` if no authority for client certificates is configured.
    pub certificates: Option<Vec<CertificateRule>>,
    /// The issuer whose tokens the server accepts.
    pub oidc: Option<OidcOptions>,
    /// Tokens that allow deletion and, on a single-tenant server, `/flush`.
    pub deletion: Vec<AdminToken>,
    /// If true, `/metrics` requires no authentication.
    pub open_metrics: bool,
    /// True on a server with several tenants.
    pub multi_tenant: bool,
}

impl AccessOptions {
    /// Name of the tokens file in the data folder.
    pub const TOKENS: &str = "tokens.json";

    /// Returns options with only a tokens file, which is in this data folder.
    pub fn new(data: &Path) -> Self {
        Self {
            tokens: data.join(Self::TOKENS),
            ..Self::default()
        }
    }
}

/// The rights and tenants of callers with a client certificate of this name.
#[derive(Debug, Clone)]
pub struct CertificateRule {
    /// The common name of the certificate's subject. `*` matches every certificate of the authority.
    pub name: String,
    pub rights: Rights,
    pub tenants: TenantScope,
}

/// An issuer of OpenID Connect, and the meaning of its claims.
#[derive(Debug, Clone)]
pub struct OidcOptions {
    /// Required value of the claim `iss`.
    pub issuer: String,
    /// Value that the claim `aud` must contain.
    pub audience: String,
    /// URL of the issuer's keys (RFC 7517).
    pub jwks_url: Url,
    /// PEM file with the authorities for `jwks_url`. They replace the authorities of the system.
    pub ca: Option<PathBuf>,
    /// Claim with the name of the identity for logs.
    pub name_claim: String,
    /// Claim with one tenant or a list of tenants. If not set, identities have only the anonymous tenant, which is the
    /// tenant of a single-tenant server.
    pub tenant_claim: Option<String>,
    /// Claim with one role or a list of roles.
    pub role_claim: String,
    /// Rights for each value of the role claim. If the map is empty, the values are roles of Alluvium.
    pub roles: BTreeMap<String, Rights>,
}

/// Error of options that the server cannot use.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A file of tokens or users is not usable.
    #[error("cannot use `{}`: {source}", path.display())]
    File { path: PathBuf, source: FileError },
    /// The issuer is not usable.
    #[error("cannot use the OIDC issuer `{issuer}`: {source}")]
    Oidc {
        /// The issuer in the configuration.
        issuer: String,
        source: IssuerError,
    },
}

/// Reason why an issuer in the configuration is not usable.
#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    /// The keys would be fetched over a connection that is neither encrypted nor local.
    #[error("jwks_url `{0}` must be https, because its keys are trusted")]
    Insecure(Url),
    #[error("issuer and audience must not be empty")]
    Empty,
    /// No client can be created, for example because the file of authorities cannot be read.
    #[error(transparent)]
    Client(#[from] ClientError),
}
