//! The cryptography provider of the client: ring, with the signatures and the key exchange that Go has and ring lacks.

use rustls::crypto::CryptoProvider;

use crate::client::tls::key_exchange::SECP521R1;
use crate::client::tls::signatures::ALGORITHMS;

/// Builds a provider for one client. The provider is passed to the client and not installed in the process.
pub(super) fn provider() -> CryptoProvider {
    let mut provider = rustls::crypto::ring::default_provider();
    provider.signature_verification_algorithms = ALGORITHMS;
    // P-521 is last in the client's offer, because the other groups are faster.
    provider.kx_groups.push(SECP521R1);
    provider
}
