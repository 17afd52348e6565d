//! TLS of the server's ports. The server reads the certificates again when their files change.
//!
//! In: PEM files with a certificate, its key, and optionally the authorities that issue client certificates. Out: an
//! acceptor for the next connection. TLS fails closed: if a file is not usable at the start, the start fails. If a file
//! becomes unusable later, the last good certificate stays in force, and the log says so once. If authorities are
//! given, a client may present a certificate. If another authority has issued the certificate, the handshake fails.
//! `access` decides which rights a certificate gives.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use alluvium_base::pem::{self, Pem, PemError};
use alluvium_base::reloaded_files::ReloadedFiles;

/// Paths of the PEM files for the TLS of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by the certificates of its issuers.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
    /// The authorities that issue client certificates. If not set, the server requests no client certificates.
    pub client_ca: Option<PathBuf>,
}

/// Error for a TLS file that the server cannot use.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the TLS file `{path}` of the port: {reason}")]
pub struct TlsError {
    /// Path of the file with the certificate, the key or the authorities.
    pub path: String,
    /// The problem with the file.
    pub reason: String,
}

/// The protocols that a port offers within TLS (ALPN), the preferred one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocols {
    Http,
    Postgres,
}

impl Protocols {
    fn names(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Self::Http => &[b"h2", b"http/1.1"],
            Self::Postgres => &[b"postgresql"],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}

/// The TLS settings of one port, read from the newest usable files.
pub struct PortTls {
    files: TlsFiles,
    protocols: Protocols,
    renewed: ReloadedFiles<CurrentTls>,
}

/// The TLS settings for the next connection.
#[derive(Clone)]
pub struct CurrentTls {
    pub acceptor: TlsAcceptor,
    /// Content of the certificate file. The channel binding of SCRAM uses it.
    pub certificate: Arc<[u8]>,
}

impl PortTls {
    pub fn read(files: TlsFiles, protocols: Protocols) -> Result<Self, TlsError> {
        let all = [Some(&files.certificate), Some(&files.key), files.client_ca.as_ref()];
        let all = all.into_iter().flatten().cloned().collect();
        let renewed = ReloadedFiles::read(all, || CurrentTls::read(&files, protocols))?;
        Ok(Self {
            files,
            protocols,
            renewed,
        })
    }

    /// Returns the TLS settings for the next connection. If a file has changed, this function reads all of them again.
    pub fn current(&self) -> CurrentTls {
        let path = self.files.certificate.display();
        self.renewed.current(|| {
            CurrentTls::read(&self.files, self.protocols)
                .inspect(|_| tracing::info!(%path, "the certificate has changed"))
        })
    }
}

impl std::fmt::Debug for PortTls {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("PortTls")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl CurrentTls {
    fn read(files: &TlsFiles, protocols: Protocols) -> Result<Self, TlsError> {
        let certificate = read(&files.certificate, Pem::read)?;
        let chain = pem::certificates(&certificate).map_err(|error| tls_error(&files.certificate, error))?;
        let key = read(&files.key, Pem::key)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| tls_error(&files.certificate, error))?;
        let builder = match &files.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in read(path, Pem::certificates)? {
                    roots.add(authority).map_err(|error| tls_error(path, error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .allow_unauthenticated()
                    .build();
                builder.with_client_cert_verifier(verifier.map_err(|error| tls_error(path, error))?)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| tls_error(&files.key, error))?;
        config.alpn_protocols = protocols.names();
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            certificate: certificate.into(),
        })
    }
}

/// Reads the content of a PEM file.
fn read<T>(path: &Path, content: impl FnOnce(&Pem) -> Result<T, PemError>) -> Result<T, TlsError> {
    content(&Pem::File(path.to_owned())).map_err(|error| match error {
        // A `TlsError` contains the path already, so only the reason of the read error is used.
        PemError::Read { source, .. } => tls_error(path, source),
        error => tls_error(path, error),
    })
}

fn tls_error(path: &Path, reason: impl std::fmt::Display) -> TlsError {
    TlsError {
        path: path.display().to_string(),
        reason: reason.to_string(),
    }
}
