//! Random secrets, and their hashes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// SHA-256 of a secret of 256 random bits. A fast hash is enough for those: they cannot be guessed. Look-ups go by the
/// digest, so that their time reveals nothing of a secret.
pub(super) type Digest = [u8; 32];

/// The digest of a secret.
pub(super) fn digest(secret: &str) -> Digest {
    Sha256::digest(secret.as_bytes()).into()
}

/// 256 random bits as text for headers and cookies.
pub(super) fn random() -> String {
    text(&rand::random::<[u8; 32]>())
}

pub(super) fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The bytes of a text, if it is one of bytes.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
