//! Decides whether the client trusts a server's certificate, as Go's `crypto/x509` does.
//!
//! In: the certificates of a handshake, and the certificates that the client trusts. Out: acceptance, or an error that
//! names the cause. webpki checks chains, names and validity. This module checks two kinds of certificates that webpki
//! rejects and Go accepts: an authority that is trusted itself, and X.509 v1 with `insecure_skip_verify`. `signatures`
//! supports the keys that ring lacks.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};
use tokio::runtime::{Handle, RuntimeFlavor};
use webpki::{EndEntityCert, KeyUsage};

use crate::client::tls::certificate::{Certificate, algorithm_name, rsa_key};
use crate::client::tls::signatures::SHORTEST_RSA;

/// The certificates that a client trusts: all, some, or those of the system's authorities.
#[derive(Debug)]
pub(super) enum Trust {
    /// `insecure_skip_verify`: all certificates are accepted.
    Everything,
    /// These certificates, and all certificates that they sign.
    Authorities(Vec<CertificateDer<'static>>, Arc<WebPkiServerVerifier>),
    /// The system's authorities, or `None` on a machine without any, such as a scratch container. They are read at the
    /// first handshake: there are about 150 of them, and most clients of a collector use plain HTTP.
    System(OnceLock<Option<rustls_platform_verifier::Verifier>>),
}

impl Trust {
    /// Trusts these certificates and all certificates that they sign. Requires at least one.
    pub(super) fn authorities(
        certificates: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone())?;
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let verifier = verifier.map_err(|error| Error::General(error.to_string()))?;
        Ok(Self::Authorities(certificates, verifier))
    }

    /// Trusts the system's authorities.
    pub(super) fn system() -> Self {
        Self::System(OnceLock::new())
    }
}

/// The reason why a certificate is refused, for cases in which the error of rustls does not name the cause.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(
        "the server's certificate is X.509 version {0}, which has no subject alternative names to compare the host \
         with: the server needs a certificate of version 3"
    )]
    Version(u8),
    #[error(
        "the server's certificate is marked as an authority (CA:TRUE): such a certificate is accepted only if the \
         configured CA certificates contain it itself"
    )]
    Authority,
    #[error("the extended key usage of the server's certificate does not permit server authentication")]
    Purpose,
    #[error(
        "a certificate in the server's chain is signed with an algorithm that is not supported, such as SHA-1, or \
         ECDSA on P-256 or P-384 with SHA-512"
    )]
    Signature,
    #[error("the server's certificate has an RSA key of {0} bits: at least {SHORTEST_RSA} bits are required")]
    ShortKey(usize),
    #[error("the key of the server's certificate ({0}) does not support the signature {1:?} of the handshake")]
    Key(&'static str, SignatureScheme),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Other(OtherError(Arc::new(refusal)))
    }
}

/// Verifies servers. Signatures of the handshake are always checked.
#[derive(Debug)]
pub(super) struct Verifier {
    trust: Trust,
    /// Name to check the certificate against, instead of the host of the URL.
    name: Option<ServerName<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    pub(super) fn new(trust: Trust, name: Option<ServerName<'static>>, provider: Arc<CryptoProvider>) -> Self {
        Self { trust, name, provider }
    }

    /// Reads the system's certificate store, which takes some milliseconds. A handshake runs on a thread of the
    /// runtime. The runtime moves its other tasks to another thread during the read.
    fn read_system(&self) -> Option<rustls_platform_verifier::Verifier> {
        let read = || rustls_platform_verifier::Verifier::new(self.provider.clone()).ok();
        let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
        match flavor {
            Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(read),
            _ => read(),
        }
    }

    /// Accepts a certificate that is trusted itself, regardless of its issuer. Go builds no chain for such a
    /// certificate. webpki does, and it never accepts an authority at the beginning of a chain. `error` is webpki's
    /// verdict.
    fn verify_itself(
        &self,
        end_entity: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
        error: Error,
    ) -> Result<ServerCertVerified, Error> {
        let Ok(certificate) = EndEntityCert::try_from(end_entity) else {
            return Err(error);
        };
        // Without any authority, webpki fails at the first fault of the certificate itself. webpki checks critical
        // extensions, validity, CA:TRUE and key usage, in this order, and only then searches for an issuer.
        // `UnknownIssuer` thus means that the certificate has none of these faults.
        let algorithms = self.provider.signature_verification_algorithms.all;
        let usage = KeyUsage::server_auth();
        match certificate.verify_for_usage(algorithms, &[], &[], now, usage, None, None) {
            Err(webpki::Error::UnknownIssuer) => {}
            Err(webpki::Error::CaUsedAsEndEntity) => {
                let certificate = Certificate::read(end_entity);
                if !certificate.is_some_and(|certificate| certificate.is_for_servers()) {
                    return Err(Refusal::Purpose.into());
                }
            }
            _ => return Err(error),
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    /// Checks a handshake's signature with the key of a certificate that webpki cannot read, because the certificate is
    /// older than X.509 version 3. Returns `None` for any other certificate.
    fn verify_old(&self, message: &[u8], cert: &[u8], dss: &DigitallySignedStruct) -> Option<Result<(), Error>> {
        let certificate = Certificate::read(cert).filter(|certificate| certificate.version < 3)?;
        let schemes = self.provider.signature_verification_algorithms.mapping;
        let algorithms = schemes.iter().find(|(scheme, _)| *scheme == dss.scheme);
        let algorithm = algorithms.and_then(|(_, algorithms)| {
            let fits = |id: &[u8]| id == certificate.key_algorithm;
            algorithms.iter().find(|algorithm| fits(&algorithm.public_key_alg_id()))
        });
        let Some(algorithm) = algorithm else {
            let name = algorithm_name(certificate.key_algorithm);
            return Some(Err(Refusal::Key(name, dss.scheme).into()));
        };
        let verified = algorithm.verify_signature(certificate.key, message, dss.signature());
        Some(verified.map_err(|_| CertificateError::BadSignature.into()))
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let name = self.name.as_ref().unwrap_or(server_name);
        let verdict = match &self.trust {
            Trust::Everything => return Ok(ServerCertVerified::assertion()),
            Trust::Authorities(certificates, verifier) => {
                let verdict = verifier.verify_server_cert(end_entity, intermediates, name, ocsp_response, now);
                match verdict {
                    Err(error) if certificates.contains(end_entity) => self.verify_itself(end_entity, name, now, error),
                    verdict => verdict,
                }
            }
            Trust::System(system) => match system.get_or_init(|| self.read_system()) {
                Some(system) => system.verify_server_cert(end_entity, intermediates, name, ocsp_response, now),
                None => Err(CertificateError::UnknownIssuer.into()),
            },
        };
        verdict.map_err(|error| explain_certificate(error, end_entity))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let verdict = match self.verify_old(message, cert, dss) {
            Some(verdict) => verdict.map(|()| HandshakeSignatureValid::assertion()),
            None => rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms),
        };
        verdict.map_err(|error| explain_signature(error, cert, dss.scheme))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let verdict = match Certificate::read(cert) {
            Some(certificate) if certificate.version < 3 => {
                let key = SubjectPublicKeyInfoDer::from(certificate.key_info);
                rustls::crypto::verify_tls13_signature_with_raw_key(message, &key, dss, algorithms)
            }
            _ => rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms),
        };
        verdict.map_err(|error| explain_signature(error, cert, dss.scheme))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Replaces the error of a refused certificate by one that names the cause.
fn explain_certificate(error: Error, end_entity: &[u8]) -> Error {
    if let Some(version @ ..3) = Certificate::read(end_entity).map(|certificate| certificate.version) {
        return Refusal::Version(version).into();
    }
    match &error {
        Error::InvalidCertificate(CertificateError::Other(other))
            if other.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity) =>
        {
            Refusal::Authority.into()
        }
        Error::InvalidCertificate(
            CertificateError::UnsupportedSignatureAlgorithmContext { .. }
            | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. },
        ) => Refusal::Signature.into(),
        _ => error,
    }
}

/// Replaces the error of a refused handshake signature by one that names the cause.
fn explain_signature(error: Error, cert: &[u8], scheme: SignatureScheme) -> Error {
    let Some(certificate) = Certificate::read(cert) else {
        return error;
    };
    let name = algorithm_name(certificate.key_algorithm);
    if name == "RSA"
        && let Some((modulus, _)) = rsa_key(certificate.key)
        && let bits = 8 * modulus.len() - modulus[0].leading_zeros() as usize
        && (bits as u64) < SHORTEST_RSA
    {
        return Refusal::ShortKey(bits).into();
    }
    match &error {
        Error::InvalidCertificate(CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. }) => {
            Refusal::Key(name, scheme).into()
        }
        _ => error,
    }
}
