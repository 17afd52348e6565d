//! Tokens that allow deleting profiles, kept as hashes, each for named tenants.

use sha2::{Digest, Sha256};

use crate::profile::TenantId;

/// Shortest token, in bytes: what can be guessed is no protection.
pub(crate) const SHORTEST_TOKEN_BYTES: usize = 16;

/// A token that lets its bearer delete profiles of some tenants.
#[derive(Clone)]
pub struct AdminToken {
    /// Name of the token in the log.
    pub name: String,
    /// SHA-256 of the token: compared instead of it, so that the time of a comparison says nothing.
    pub(super) digest: [u8; 32],
    /// Tenants whose profiles may be deleted.
    pub tenants: Vec<TenantId>,
}

impl AdminToken {
    /// A token for some tenants; an error when it is too short or has characters that no header can carry.
    pub fn new(name: &str, token: &str, tenants: Vec<TenantId>) -> Result<Self, String> {
        if token.len() < SHORTEST_TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "the token of `{name}` must be at least {SHORTEST_TOKEN_BYTES} printable ASCII characters without \
                    spaces"
            ));
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
