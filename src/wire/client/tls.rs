//! TLS of the components' client: trusted authorities, server name, client certificate.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::wire::client::error::ClientError;

/// TLS options of a client.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Authorities to trust instead of the system's.
    pub ca: Option<Pem>,
    /// Our own certificate chain.
    pub certificate: Option<Pem>,
    /// The key of our certificate.
    pub key: Option<Pem>,
    /// Name to check the server's certificate against, instead of the host of the URL.
    pub server_name: Option<Arc<str>>,
    /// Trust every certificate of a server.
    pub insecure_skip_verify: bool,
    /// Lowest TLS version that is accepted.
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

/// PEM may contain a key, so nothing is printed.
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
            Self::File(path) => std::fs::read(path).map_err(|error| ClientError::File(path.clone(), error)),
        }
    }

    fn certificates(&self, what: &str) -> Result<Vec<CertificateDer<'static>>, ClientError> {
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(&self.read()?)
            .collect::<Result<_, _>>()
            .map_err(|error| ClientError::Tls(format!("the {what} is not PEM: {error}")))?;
        if certificates.is_empty() {
            return Err(ClientError::Tls(format!("the {what} holds no certificate")));
        }
        Ok(certificates)
    }
}

/// The configuration for `reqwest`, for servers that support one of `protocols` (ALPN).
pub(crate) fn configure(options: &TlsOptions, protocols: &[&[u8]]) -> Result<ClientConfig, ClientError> {
    let tls = |error: rustls::Error| ClientError::Tls(error.to_string());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions: &[&rustls::SupportedProtocolVersion] = match options.min_version {
        TlsVersion::Tls12 => &[&rustls::version::TLS13, &rustls::version::TLS12],
        TlsVersion::Tls13 => &[&rustls::version::TLS13],
    };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .map_err(tls)?;
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(verifier(options, provider)?);
    let mut config = match (&options.certificate, &options.key) {
        (Some(certificate), Some(key)) => {
            let key = PrivateKeyDer::from_pem_slice(&key.read()?)
                .map_err(|error| ClientError::Tls(format!("the key is not PEM: {error}")))?;
            builder
                .with_client_auth_cert(certificate.certificates("certificate")?, key)
                .map_err(tls)?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

fn verifier(options: &TlsOptions, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, ClientError> {
    if options.insecure_skip_verify {
        return Ok(Unconfigured::new(provider, Trust::Everything));
    }
    let verifier: Arc<dyn ServerCertVerifier> = match &options.ca {
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            for certificate in ca.certificates("ca")? {
                roots
                    .add(certificate)
                    .map_err(|error| ClientError::Tls(format!("the ca cannot be used: {error}")))?;
            }
            rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| ClientError::Tls(error.to_string()))?
        }
        None => Unconfigured::new(provider, Trust::System(OnceLock::new())),
    };
    let Some(name) = &options.server_name else {
        return Ok(verifier);
    };
    let name = ServerName::try_from(name.to_string())
        .map_err(|_| ClientError::Tls(format!("server_name `{name}` is not a host name")))?;
    Ok(Arc::new(OtherName { name, verifier }))
}

/// Checks a certificate against a configured name instead of the host of the URL.
#[derive(Debug)]
struct OtherName {
    name: ServerName<'static>,
    verifier: Arc<dyn ServerCertVerifier>,
}

impl ServerCertVerifier for OtherName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.verifier
            .verify_server_cert(end_entity, intermediates, &self.name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Verifier for clients without a configured authority. Signatures of the handshake are always checked.
#[derive(Debug)]
struct Unconfigured {
    provider: Arc<CryptoProvider>,
    trust: Trust,
}

#[derive(Debug)]
enum Trust {
    /// `insecure_skip_verify`: all certificates are accepted.
    Everything,
    /// The system's authorities, `None` on a machine without any (a scratch container). They are read at the first
    /// handshake: there are about a hundred and fifty of them, and most clients of a collector use plain HTTP.
    System(OnceLock<Option<rustls_platform_verifier::Verifier>>),
}

impl Unconfigured {
    fn new(provider: Arc<CryptoProvider>, trust: Trust) -> Arc<Self> {
        Arc::new(Self { provider, trust })
    }

    /// Reads the system's certificate store, which takes some milliseconds. A handshake runs on a thread of the
    /// runtime, whose other tasks move to another thread meanwhile.
    fn read_system(&self) -> Option<rustls_platform_verifier::Verifier> {
        let read = || rustls_platform_verifier::Verifier::new(self.provider.clone()).ok();
        let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
        match flavor {
            Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(read),
            _ => read(),
        }
    }
}

impl ServerCertVerifier for Unconfigured {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let system = match &self.trust {
            Trust::Everything => return Ok(ServerCertVerified::assertion()),
            Trust::System(system) => system.get_or_init(|| self.read_system()),
        };
        match system {
            Some(verifier) => verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now),
            None => Err(rustls::CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
