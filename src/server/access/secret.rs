//! Random secrets, and their hashes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// SHA-256 of a secret of 256 random bits. A fast hash is enough, because nobody can guess such a secret. Lookups use
/// the digest, so that their time reveals nothing about a secret.
pub(super) type Digest = [u8; 32];

/// Returns the digest of a secret.
pub(super) fn digest(secret: &str) -> Digest {
    Sha256::digest(secret.as_bytes()).into()
}

/// Returns 256 random bits as text for headers and cookies.
pub(super) fn random() -> String {
    text(&rand::random::<[u8; 32]>())
}

pub(super) fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes URL-safe base64, if the text is valid.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
