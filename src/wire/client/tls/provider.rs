//! The cryptography of the client: ring, with the signatures and the key exchange that Go has and ring lacks.

use rustls::crypto::CryptoProvider;

use crate::wire::client::tls::key_exchange::SECP521R1;
use crate::wire::client::tls::signatures::ALGORITHMS;

/// A provider for clients. It is passed to each of them and not installed in the process.
pub(super) fn provider() -> CryptoProvider {
    let mut provider = rustls::crypto::ring::default_provider();
    provider.signature_verification_algorithms = ALGORITHMS;
    // The last one that servers are offered: the others are faster.
    provider.kx_groups.push(SECP521R1);
    provider
}
