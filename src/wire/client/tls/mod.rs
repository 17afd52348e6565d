//! TLS of the components' client: trusted authorities, server name, client certificate.
//!
//! In: [`TlsOptions`]. Out: a configuration of rustls. Module `verifier` decides which servers are trusted.

mod certificate;
mod key_exchange;
mod provider;
mod signatures;
#[cfg(test)]
mod tests;
mod verifier;

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName};

use crate::client::error::ClientError;
use crate::client::tls::provider::provider;
use crate::client::tls::verifier::{Trust, Verifier};
use alluvium_base::pem::{Pem, PemError};

/// TLS options of a client.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Certificates of the authorities to trust instead of the system's.
    pub ca: Option<Pem>,
    /// The client's own certificate chain.
    pub certificate: Option<Pem>,
    /// The private key of the client's certificate.
    pub key: Option<Pem>,
    /// Name to check the server's certificate against, instead of the host of the URL.
    pub server_name: Option<Arc<str>>,
    /// If true, the client trusts every server certificate.
    pub insecure_skip_verify: bool,
    /// Lowest TLS version that the client accepts.
    pub min_version: TlsVersion,
}

/// Lowest TLS version that a client accepts. rustls supports 1.2 and later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersion {
    #[default]
    Tls12,
    Tls13,
}

/// Builds the rustls configuration for `reqwest`. `protocols` are the protocols that ALPN offers.
pub(crate) fn configure(options: &TlsOptions, protocols: &[&[u8]]) -> Result<ClientConfig, ClientError> {
    let tls = |error: rustls::Error| ClientError::Tls(error.to_string());
    let provider = Arc::new(provider());
    let versions: &[&rustls::SupportedProtocolVersion] = match options.min_version {
        TlsVersion::Tls12 => &[&rustls::version::TLS13, &rustls::version::TLS12],
        TlsVersion::Tls13 => &[&rustls::version::TLS13],
    };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .map_err(tls)?;
    let verifier = Verifier::new(trust(options, provider.clone())?, server_name(options)?, provider);
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match (&options.certificate, &options.key) {
        (Some(certificate), Some(key)) => {
            let key = key.key().map_err(|error| unusable_pem("key", error))?;
            builder
                .with_client_auth_cert(certificates(certificate, "certificate")?, key)
                .map_err(unusable_key)?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

fn certificates(pem: &Pem, what: &str) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    pem.certificates().map_err(|error| unusable_pem(what, error))
}

/// Returns the error for an option with this name.
fn unusable_pem(what: &str, error: PemError) -> ClientError {
    match error {
        PemError::Read { path, source } => ClientError::File(path, source),
        PemError::NoCertificate => ClientError::Tls(format!("the {what} holds no certificate")),
        PemError::Certificates(error) | PemError::Key(error) => {
            ClientError::Tls(format!("the {what} is not PEM: {error}"))
        }
    }
}

/// Adds the kinds of keys that ring supports to an error about the client's key.
fn unusable_key(error: rustls::Error) -> ClientError {
    let hint = match error {
        rustls::Error::General(_) => ": it must be RSA with 2048 to 4096 bits, ECDSA on P-256 or P-384, or Ed25519",
        _ => "",
    };
    ClientError::Tls(format!("the certificate and its key cannot be used: {error}{hint}"))
}

/// Returns the authorities that a client trusts.
fn trust(options: &TlsOptions, provider: Arc<CryptoProvider>) -> Result<Trust, ClientError> {
    if options.insecure_skip_verify {
        return Ok(Trust::Everything);
    }
    match &options.ca {
        Some(ca) => Trust::authorities(certificates(ca, "ca")?, provider)
            .map_err(|error| ClientError::Tls(format!("the ca cannot be used: {error}"))),
        None => Ok(Trust::system()),
    }
}

fn server_name(options: &TlsOptions) -> Result<Option<ServerName<'static>>, ClientError> {
    let Some(name) = &options.server_name else {
        return Ok(None);
    };
    let name = ServerName::try_from(name.to_string())
        .map_err(|_| ClientError::Tls(format!("server_name `{name}` is not a host name")))?;
    Ok(Some(name))
}
