//! Access control: identities, the credentials that prove them, and the decision about every call.
//!
//! In: files of tokens and users, client certificates, an OIDC issuer; HTTP requests and PostgreSQL connections. Out:
//! an [`Identity`] with rights and tenants, or a refusal. [`Access`] decides. `guard` calls it in front of all routes
//! of the port, and `server::postgres` calls it to check passwords. `docs/security.md` describes the threats.

mod attempts;
mod audit;
mod certificate;
mod claims;
mod credentials;
mod decide;
pub(in crate::server) mod deletion_token;
mod guard;
mod identity;
mod jwks;
mod login;
mod metrics;
mod options;
mod password_hash;
pub mod passwords;
mod refusal;
mod rules;
mod secret;
mod sessions;
mod signatures;
mod sources;
pub mod tokens;
mod watched;

pub use decide::Access;
pub use guard::guard;
pub use identity::{Identity, Right, Rights, TenantScope};
pub use metrics::AccessMetrics;
pub use options::{AccessError, AccessOptions, CertificateRule, OidcOptions};
pub(crate) use refusal::Refusal;
