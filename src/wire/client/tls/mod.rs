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

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::client::error::ClientError;
use crate::client::tls::error::TlsError;
use crate::client::tls::provider::provider;
use crate::client::tls::verifier::{Trust, Verifier};

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

/// PEM text or the file that holds it.
#[derive(Clone)]
pub enum Pem {
    Text(Arc<str>),
    File(PathBuf),
}

/// Lowest TLS version that a client accepts. rustls supports 1.2 and later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersion {
    #[default]
    Tls12,
    Tls13,
}

/// Prints no PEM, because it may contain a key.
impl std::fmt::Debug for Pem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(_) => out.write_str("(pem)"),
            Self::File(path) => write!(out, "(pem in {})", path.display()),
        }
    }
}

impl Pem {
    fn read(&self) -> Result<Vec<u8>, ClientError> {
        match self {
            Self::Text(text) => Ok(text.as_bytes().to_vec()),
            Self::File(path) => std::fs::read(path).map_err(|source| ClientError::File {
                path: path.clone(),
                source,
            }),
        }
    }

    fn certificates(&self, what: &'static str) -> Result<Vec<CertificateDer<'static>>, ClientError> {
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(&self.read()?)
            .collect::<Result<_, _>>()
            .map_err(|source| TlsError::Pem { what, source })?;
        if certificates.is_empty() {
            return Err(TlsError::NoCertificate(what).into());
        }
        Ok(certificates)
    }
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
            let key =
                PrivateKeyDer::from_pem_slice(&key.read()?).map_err(|source| TlsError::Pem { what: "key", source })?;
            builder
                .with_client_auth_cert(certificate.certificates("certificate")?, key)
                .map_err(TlsError::Certificate)?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

/// Returns the authorities that a client trusts.
fn trust(options: &TlsOptions, provider: Arc<CryptoProvider>) -> Result<Trust, ClientError> {
    if options.insecure_skip_verify {
        return Ok(Trust::Everything);
    }
    match &options.ca {
        Some(ca) => Ok(Trust::authorities(ca.certificates("ca")?, provider).map_err(TlsError::Authorities)?),
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
