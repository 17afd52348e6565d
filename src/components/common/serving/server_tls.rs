//! TLS of a listener: certificates that may be renewed while the listener is open, client certificates, and cipher
//! suites and curves, which the settings select by the names that Go uses.
//!
//! In: settings of the `tls` block. Out: a configuration of rustls, or an error that names the wrong argument. All
//! files are read when the configuration is built. Only certificate and key are read again if their files are replaced.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme};

use alluvium_base::pem::Pem;
use alluvium_base::reloaded_files::ReloadedFiles;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_pipeline::check::settings::http::{ClientAuth, TlsSettings};

/// Builds the configuration of rustls. Reads the certificates.
pub fn server_config(settings: &TlsSettings) -> Result<Arc<ServerConfig>, ArgumentError> {
    let provider = Arc::new(provider(settings)?);
    let (oldest, newest) = (settings.min_version.unwrap_or(12), settings.max_version.unwrap_or(13));
    let has_12 = provider.cipher_suites.iter().any(|suite| suite.tls13().is_none());
    let mut versions = Vec::new();
    if newest >= 13 {
        versions.push(&rustls::version::TLS13);
    }
    if oldest <= 12 && has_12 {
        versions.push(&rustls::version::TLS12);
    }
    if versions.is_empty() {
        return Err(argument_error(
            "tls.cipher_suites",
            "none of these cipher suites is supported with the allowed TLS versions",
        ));
    }
    let certificates = Certificates::read(settings, provider.clone())?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions)
        .map_err(|error| argument_error("tls", format!("cannot set up TLS: {error}")))?;
    let builder = match client_verifier(settings, provider)? {
        None => builder.with_no_client_auth(),
        Some(verifier) => builder.with_client_cert_verifier(verifier),
    };
    let mut config = builder.with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn argument_error(path: &str, message: impl Into<String>) -> ArgumentError {
    ArgumentError {
        path: path.to_owned(),
        message: message.into(),
    }
}

/// Returns the suites and curves that the settings allow. As in Go, suites can be selected only for TLS 1.2.
fn provider(settings: &TlsSettings) -> Result<CryptoProvider, ArgumentError> {
    let mut provider = rustls::crypto::ring::default_provider();
    if !settings.cipher_suites.is_empty() {
        let is_selected = |suite: CipherSuite| {
            let name = suite.as_str().unwrap_or_default();
            settings.cipher_suites.iter().any(|selected| &**selected == name)
        };
        provider
            .cipher_suites
            .retain(|suite| suite.tls13().is_some() || is_selected(suite.suite()));
    }
    if !settings.curves.is_empty() {
        let groups = settings.curves.iter().filter_map(|curve| group(curve));
        provider.kx_groups = groups.collect();
        if provider.kx_groups.is_empty() {
            let message = "none of these curves is supported: use X25519, CurveP256 or CurveP384";
            return Err(argument_error("tls.curve_preferences", message));
        }
    }
    Ok(provider)
}

fn group(curve: &str) -> Option<&'static dyn SupportedKxGroup> {
    match curve {
        "X25519" => Some(rustls::crypto::ring::kx_group::X25519),
        "CurveP256" => Some(rustls::crypto::ring::kx_group::SECP256R1),
        "CurveP384" => Some(rustls::crypto::ring::kx_group::SECP384R1),
        _ => None,
    }
}

/// Returns the name of the attribute that contains a certificate or key, for errors.
fn path_of(pem: &Pem, name: &str) -> String {
    match pem {
        Pem::Text(_) => format!("tls.{name}_pem"),
        Pem::File(_) => format!("tls.{name}_file"),
    }
}

fn chain(pem: &Pem, name: &str) -> Result<Vec<CertificateDer<'static>>, ArgumentError> {
    let chain = pem.certificates();
    chain.map_err(|error| argument_error(&path_of(pem, name), error.to_string()))
}

/// The listener's certificate. A replaced file is read again, so that a renewed certificate needs no reload.
struct Certificates {
    certificate: Pem,
    key: Pem,
    provider: Arc<CryptoProvider>,
    renewed: ReloadedFiles<Arc<CertifiedKey>>,
}

impl Certificates {
    fn read(settings: &TlsSettings, provider: Arc<CryptoProvider>) -> Result<Self, ArgumentError> {
        let (certificate, key) = (settings.certificate.clone(), settings.key.clone());
        let files = [&certificate, &key].into_iter().filter_map(|pem| match pem {
            Pem::Text(_) => None,
            Pem::File(path) => Some(path.clone()),
        });
        let renewed = ReloadedFiles::read(files.collect(), || certified(&certificate, &key, &provider))?;
        Ok(Self {
            certificate,
            key,
            provider,
            renewed,
        })
    }
}

fn certified(certificate: &Pem, key: &Pem, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, ArgumentError> {
    let chain = chain(certificate, "cert")?;
    let secret = key
        .key()
        .map_err(|error| argument_error(&path_of(key, "key"), error.to_string()))?;
    let certified = CertifiedKey::from_der(chain, secret, provider).map_err(|error| {
        argument_error(
            &path_of(key, "key"),
            format!("certificate and key cannot be used: {error}"),
        )
    })?;
    Ok(Arc::new(certified))
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Certificates")
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let read = || certified(&self.certificate, &self.key, &self.provider);
        Some(self.renewed.current(read))
    }
}

fn client_verifier(
    settings: &TlsSettings,
    provider: Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, ArgumentError> {
    let any = |mandatory| -> Arc<dyn ClientCertVerifier> {
        Arc::new(AnyCertificate {
            mandatory,
            provider: provider.clone(),
        })
    };
    match settings.client_auth {
        ClientAuth::None => return Ok(None),
        ClientAuth::Request => return Ok(Some(any(false))),
        ClientAuth::RequireAny => return Ok(Some(any(true))),
        ClientAuth::VerifyIfGiven | ClientAuth::RequireAndVerify => {}
    }
    let Some(authorities) = &settings.client_ca else {
        return Err(argument_error(
            "tls.client_auth_type",
            "this client_auth_type needs client_ca or client_ca_file",
        ));
    };
    let path = path_of(authorities, "client_ca");
    let mut roots = RootCertStore::empty();
    for certificate in chain(authorities, "client_ca")? {
        roots
            .add(certificate)
            .map_err(|error| argument_error(&path, format!("this authority cannot be used: {error}")))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = match settings.client_auth {
        ClientAuth::VerifyIfGiven => builder.allow_unauthenticated(),
        _ => builder,
    };
    let verifier = builder.build();
    let verifier =
        verifier.map_err(|error| argument_error(&path, format!("these authorities cannot be used: {error}")))?;
    Ok(Some(verifier))
}

/// Accepts a client's certificate from any issuer. TLS still verifies that the client has the certificate's key.
#[derive(Debug)]
struct AnyCertificate {
    mandatory: bool,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        self.mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
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
