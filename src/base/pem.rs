//! Certificates and keys in PEM, as text or in a file.
//!
//! In: a text, or the path of a file. Out: certificates or a key, or the reason why there are none. An error does not
//! name the setting that contains the PEM; the caller adds the name. The caller also decides which certificates to
//! trust. This module verifies no signature.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls_pki_types::pem::{Error, PemObject as _};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// PEM text, or the file that contains it.
#[derive(Clone)]
pub enum Pem {
    /// PEM text, for example from an attribute of a configuration.
    Text(Arc<str>),
    /// The path of the file. Every use reads the file.
    File(PathBuf),
}

/// The reason why PEM cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The path of the file, as the setting names it.
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Certificates are expected, and the text is not PEM.
    #[error("the text is not PEM: {0}")]
    Certificates(#[source] Error),
    /// The text is PEM without a certificate.
    #[error("the PEM contains no certificate")]
    NoCertificate,
    /// A private key is expected, and the text contains none.
    #[error("the PEM contains no private key: {0}")]
    Key(#[source] Error),
}

impl Pem {
    /// Returns the PEM of a setting that can be a text or a file. If both are given, the text is used.
    pub fn of(text: Option<&Arc<str>>, file: Option<&PathBuf>) -> Option<Self> {
        let text = text.cloned().map(Self::Text);
        text.or_else(|| file.cloned().map(Self::File))
    }

    /// Returns the PEM text, which may contain several certificates or keys.
    pub fn read(&self) -> Result<Vec<u8>, PemError> {
        match self {
            Self::Text(text) => Ok(text.as_bytes().to_vec()),
            Self::File(path) => std::fs::read(path).map_err(|source| PemError::Read {
                path: path.clone(),
                source,
            }),
        }
    }

    /// Returns the certificates, at least one.
    pub fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, PemError> {
        certificates(&self.read()?)
    }

    /// Returns the first private key.
    pub fn key(&self) -> Result<PrivateKeyDer<'static>, PemError> {
        PrivateKeyDer::from_pem_slice(&self.read()?).map_err(PemError::Key)
    }
}

/// Prints no PEM, because it may contain a key.
impl fmt::Debug for Pem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => out.write_str("(pem)"),
            Self::File(path) => write!(out, "(pem in {})", path.display()),
        }
    }
}

/// Returns the certificates in a PEM text, at least one.
pub fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let certificates = certificates.map_err(PemError::Certificates)?;
    if certificates.is_empty() {
        return Err(PemError::NoCertificate);
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAEC\n-----END CERTIFICATE-----\n";

    #[test]
    fn certificates_come_from_texts_and_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain.pem");
        std::fs::write(&path, [CERTIFICATE, CERTIFICATE].concat()).unwrap();
        let read = |pem: &Pem| -> Vec<Vec<u8>> {
            let certificates = pem.certificates().unwrap();
            certificates.iter().map(|one| one.as_ref().to_vec()).collect()
        };
        assert_eq!(read(&Pem::Text(CERTIFICATE.into())), [[0, 1, 2]]);
        assert_eq!(read(&Pem::File(path)), [[0, 1, 2], [0, 1, 2]]);
    }

    #[test]
    fn an_error_says_what_is_missing() {
        let missing = Pem::File("/missing/ca.pem".into());
        let error = missing.certificates().unwrap_err().to_string();
        assert!(error.starts_with("cannot read /missing/ca.pem: "), "{error}");
        let empty = Pem::Text("".into());
        assert!(matches!(empty.certificates(), Err(PemError::NoCertificate)));
        assert!(matches!(Pem::Text(CERTIFICATE.into()).key(), Err(PemError::Key(_))));
        let broken = Pem::Text("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n".into());
        assert!(matches!(broken.certificates(), Err(PemError::Certificates(_))));
    }

    #[test]
    fn a_text_wins_over_a_file_and_is_not_printed() {
        let (text, file) = (Arc::from("secret"), PathBuf::from("key.pem"));
        let print = |pem: Option<Pem>| format!("{pem:?}");
        assert_eq!(print(Pem::of(Some(&text), Some(&file))), "Some((pem))");
        assert_eq!(print(Pem::of(None, Some(&file))), "Some((pem in key.pem))");
        assert_eq!(print(Pem::of(None, None)), "None");
    }
}
