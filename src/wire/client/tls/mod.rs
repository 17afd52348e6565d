//! TLS of the components' client: trusted authorities, server name, client certificate.
//!
//! In: [`TlsOptions`]. Out: a configuration of rustls. Module `verifier` decides which servers are trusted.

mod certificate;
pub(super) mod error;
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
use crate::client::tls::error::TlsError;
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
    let provider = Arc::new(provider());
    let versions: &[&rustls::SupportedProtocolVersion] = match options.min_version {
        TlsVersion::Tls12 => &[&rustls::version::TLS13, &rustls::version::TLS12],
        TlsVersion::Tls13 => &[&rustls::version::TLS13],
    };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .map_err(TlsError::Versions)?;
    let verifier = Verifier::new(trust(options, provider.clone())?, server_name(options)?, provider);
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match (&options.certificate, &options.key) {
        (Some(certificate), Some(key)) => {
            let key = key.key().map_err(|error| pem_error("key", error))?;
            builder
                .with_client_auth_cert(certificates(certificate, "certificate")?, key)
                .map_err(TlsError::Certificate)?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

fn certificates(pem: &Pem, option: &'static str) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    pem.certificates().map_err(|error| pem_error(option, error))
}

/// Returns the error for the text or file of an option.
fn pem_error(option: &'static str, error: PemError) -> ClientError {
    match error {
        PemError::Read { path, source } => ClientError::File { path, source },
        PemError::NoCertificate => TlsError::NoCertificate(option).into(),
        PemError::Certificates(source) | PemError::Key(source) => TlsError::Pem { option, source }.into(),
    }
}

/// Returns the authorities that a client trusts.
fn trust(options: &TlsOptions, provider: Arc<CryptoProvider>) -> Result<Trust, ClientError> {
    if options.insecure_skip_verify {
        return Ok(Trust::Everything);
    }
    match &options.ca {
        Some(ca) => Ok(Trust::authorities(certificates(ca, "ca")?, provider).map_err(TlsError::Authorities)?),
        None => Ok(Trust::system()),
    }
}

fn server_name(options: &TlsOptions) -> Result<Option<ServerName<'static>>, ClientError> {
    let Some(name) = &options.server_name else {
        return Ok(None);
    };
    let name = ServerName::try_from(name.to_string()).map_err(|source| TlsError::ServerName {
        name: name.to_string(),
        source,
    })?;
    Ok(Some(name))
}
