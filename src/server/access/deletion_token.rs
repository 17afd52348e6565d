//! Tokens that allow the deletion of profiles. The server keeps only their hashes. Each token has a list of tenants and
//! is valid only for these.

use sha2::{Digest, Sha256};

use alluvium_profile::TenantId;

/// Minimum length of a token in bytes, so that nobody can guess it.
pub(crate) const SHORTEST_TOKEN_BYTES: usize = 16;

/// Error of a token that is too short, or that contains a character that a header does not allow. The message shows the
/// name of the token and not the token itself.
#[derive(Debug, thiserror::Error)]
#[error("the token of `{0}` must be at least {SHORTEST_TOKEN_BYTES} printable ASCII characters without spaces")]
pub struct WeakTokenError(String);

/// A token that allows its bearer to delete profiles of some tenants.
#[derive(Clone)]
pub struct AdminToken {
    /// Name of the token in logs.
    pub name: String,
    /// SHA-256 of the token. The server compares digests, so that the time of a comparison reveals nothing about the
    /// token.
    pub(in crate::server) digest: [u8; 32],
    /// Tenants whose profiles may be deleted.
    pub tenants: Vec<TenantId>,
}

impl AdminToken {
    /// Creates a token for some tenants.
    pub fn new(name: &str, token: &str, tenants: Vec<TenantId>) -> Result<Self, WeakTokenError> {
        if token.len() < SHORTEST_TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(WeakTokenError(name.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            digest: Sha256::digest(token.as_bytes()).into(),
            tenants,
        })
    }
}

impl std::fmt::Debug for AdminToken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("AdminToken")
            .field("name", &self.name)
            .field("tenants", &self.tenants)
            .finish_non_exhaustive()
    }
}
