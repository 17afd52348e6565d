//! TLS of the PostgreSQL port. It fails closed: a certificate or key that cannot be used fails the start.
//!
//! In: PEM files. Out: a TLS acceptor, and the certificate for SCRAM channel binding. Files are read once, at the
//! start.

use std::path::Path;
use std::sync::Arc;

use pgwire::tokio::TlsAcceptor;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::server::postgres::options::{PostgresError, PostgresTls};

/// TLS acceptor and certificate of the port.
pub(super) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    /// PEM of the certificate.
    pub(super) certificate: Vec<u8>,
    pub(super) required: bool,
}

impl Tls {
    /// Reads certificate and key.
    pub(super) fn load(files: &PostgresTls) -> Result<Self, PostgresError> {
        let fault = |path: &Path, reason: String| PostgresError::Tls {
            path: path.display().to_string(),
            reason,
        };
        let certificate =
            std::fs::read(&files.certificate).map_err(|error| fault(&files.certificate, error.to_string()))?;
        let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
        let chain = chain.map_err(|error| fault(&files.certificate, error.to_string()))?;
        if chain.is_empty() {
            return Err(fault(
                &files.certificate,
                "there is no certificate in the file".to_owned(),
            ));
        }
        let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| fault(&files.key, error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| fault(&files.certificate, error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| fault(&files.key, error.to_string()))?;
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            certificate,
            required: files.required,
        })
    }
}
