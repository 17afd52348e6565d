//! Errors of the TLS options of a client.

use rustls::pki_types::{InvalidDnsNameError, pem};

/// The reason why a TLS configuration cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A text or file is not PEM, or has none of the expected items.
    #[error("the {option} is not PEM: {source}")]
    Pem {
        /// The option that contains the PEM text.
        option: &'static str,
        source: pem::Error,
    },
    /// A PEM text contains no certificate.
    #[error("the {0} holds no certificate")]
    NoCertificate(&'static str),
    /// The client's certificate and its key do not match, or the kind of key is not supported.
    #[error("the certificate and its key cannot be used: {0}{hint}", hint = hint(.0))]
    Certificate(#[source] rustls::Error),
    /// The certificates of the authorities are invalid.
    #[error("the ca cannot be used: {0}")]
    Authorities(#[source] rustls::Error),
    /// The configured server name is neither a DNS name nor an IP address.
    #[error("server_name `{name}` is not a host name")]
    ServerName { name: String, source: InvalidDnsNameError },
    /// The crypto provider supports none of the accepted TLS versions.
    #[error(transparent)]
    Versions(rustls::Error),
}

/// Returns the kinds of keys that ring supports, for an error about the client's key.
fn hint(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::General(_) => ": it must be RSA with 2048 to 4096 bits, ECDSA on P-256 or P-384, or Ed25519",
        _ => "",
    }
}
