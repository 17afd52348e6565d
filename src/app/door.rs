//! The collector's door: its listener as the `http` block protects it, TLS and basic authentication, changed by a reload while it is open.
//!
//! In: settings, prepared while a configuration is loaded and put in force with it; a bound socket. Out: connections that have passed the handshake, a router that asks for
//! the password, and a way for our own components to that router without a socket. It fails closed: what cannot be prepared fails the load. Connections that
//! are open stay as they were made; the password is asked for in every request.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme};
use sha2::{Digest, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tower::ServiceExt as _;

use crate::base::Shutdown;
use crate::pipeline::component::ArgumentError;
use crate::pipeline::http::{Apply, AuthSettings, ClientAuth, HttpSettings, PemText, TlsSettings};
use crate::pipeline::own_http::Answer;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Handshakes at once; more connections wait in the kernel.
const MOST_HANDSHAKES: usize = 64;
/// Wait after a failed accept: the process has no file descriptors left, say.
const AFTER_FAILURE: Duration = Duration::from_millis(100);
/// Largest answer of our own that a component is given.
const MAX_OWN_ANSWER: usize = 64 << 20;

/// The protection in force. Clones are the same door.
#[derive(Clone, Default)]
pub(crate) struct Door(Arc<RwLock<Protection>>);

#[derive(Clone, Default)]
struct Protection {
    tls: Option<TlsAcceptor>,
    auth: Option<Arc<Auth>>,
}

impl Door {
    /// Reads what the settings name. The answer puts it in force.
    pub(crate) fn prepare(&self, settings: &HttpSettings) -> Result<Apply, ArgumentError> {
        let tls = settings.tls.as_ref().map(server_config).transpose()?;
        let protection = Protection {
            tls: tls.map(TlsAcceptor::from),
            auth: settings.auth.as_ref().map(|settings| Arc::new(Auth::new(settings))),
        };
        let door = self.clone();
        Ok(Box::new(move || *door.0.write() = protection))
    }

    /// The routes behind the password.
    pub(crate) fn guard(&self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(self.clone(), ask_for_password))
    }

    /// The socket as a listener of connections that have passed the handshake. One slow client holds up no other.
    pub(crate) fn listen(&self, socket: TcpListener, shutdown: Shutdown) -> Passed {
        let address = socket.local_addr();
        let (passed, connections) = mpsc::channel(1);
        tokio::spawn(accept(self.clone(), socket, passed, shutdown));
        Passed { connections, address }
    }
}

/// A component's way to the routes.
pub(crate) fn from_within(routes: Router) -> Answer {
    Arc::new(move |request: http::Request<Bytes>| {
        let routes = routes.clone();
        Box::pin(async move {
            let Ok(answer) = routes.oneshot(request.map(Body::from)).await;
            let (mut parts, body) = answer.into_parts();
            match axum::body::to_bytes(body, MAX_OWN_ANSWER).await {
                Ok(body) => http::Response::from_parts(parts, body),
                Err(error) => {
                    parts.status = StatusCode::INTERNAL_SERVER_ERROR;
                    http::Response::from_parts(parts, format!("the answer broke off: {error}\n").into())
                }
            }
        })
    })
}

// === The password ===

struct Auth {
    /// Of user and password, so that a comparison tells nothing of how much of them is right.
    expected: [[u8; 32]; 2],
    paths: Vec<Arc<str>>,
    matching: bool,
}

impl Auth {
    fn new(settings: &AuthSettings) -> Self {
        Self {
            expected: [
                digest(settings.username.as_bytes()),
                digest(settings.password.as_bytes()),
            ],
            paths: settings.paths.clone(),
            matching: settings.matching,
        }
    }

    fn lets_in(&self, request: &Request) -> bool {
        !self.is_asked(request.uri().path()) || self.knows(request)
    }

    /// True when the path needs the password. Paths are compared as they stand and with their escapes undone; where the two differ, the stricter counts.
    fn is_asked(&self, path: &str) -> bool {
        let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
        let named = |path: &str| self.paths.iter().any(|start| path.starts_with(&**start));
        [path, &*decoded].into_iter().any(|path| named(path) == self.matching)
    }

    fn knows(&self, request: &Request) -> bool {
        let given = request.headers().get(header::AUTHORIZATION);
        let given = given.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let Some((scheme, encoded)) = given.split_once(' ') else {
            return false;
        };
        let decoded = base64::engine::general_purpose::STANDARD.decode(encoded.trim());
        let Ok(decoded) = decoded else { return false };
        let Some(colon) = decoded.iter().position(|byte| *byte == b':') else {
            return false;
        };
        let given = [digest(&decoded[..colon]), digest(&decoded[colon + 1..])];
        let different = given
            .iter()
            .flatten()
            .zip(self.expected.iter().flatten())
            .fold(0, |different, (left, right)| different | (left ^ right));
        scheme.eq_ignore_ascii_case("basic") && different == 0
    }
}

fn digest(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

async fn ask_for_password(State(door): State<Door>, request: Request, next: Next) -> Response {
    let auth = door.0.read().auth.clone();
    match auth {
        Some(auth) if !auth.lets_in(&request) => (
            StatusCode::UNAUTHORIZED,
            [(header::WWW_AUTHENTICATE, "Basic realm=\"Restricted\"")],
            "unauthorized\n",
        )
            .into_response(),
        _ => next.run(request).await,
    }
}

// === Connections ===

/// A connection, plain or not.
type Connection = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Connections that may be served.
pub(crate) struct Passed {
    connections: mpsc::Receiver<(Connection, SocketAddr)>,
    address: io::Result<SocketAddr>,
}

impl axum::serve::Listener for Passed {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.connections.recv().await {
            Some(connection) => connection,
            // The end: whoever serves stops by itself.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        match &self.address {
            Ok(address) => Ok(*address),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}

async fn accept(door: Door, socket: TcpListener, passed: mpsc::Sender<(Connection, SocketAddr)>, shutdown: Shutdown) {
    let room = Arc::new(Semaphore::new(MOST_HANDSHAKES));
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => return,
            () = passed.closed() => return,
            accepted = socket.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(AFTER_FAILURE).await;
                continue;
            }
        };
        let tls = door.0.read().tls.clone();
        let Some(tls) = tls else {
            if passed.send((Either::Left(stream), peer)).await.is_err() {
                return;
            }
            continue;
        };
        let Ok(permit) = room.clone().acquire_owned().await else {
            return;
        };
        let passed = passed.clone();
        tokio::spawn(async move {
            let handshake = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await;
            drop(permit);
            match handshake {
                Ok(Ok(stream)) => _ = passed.send((Either::Right(Box::new(stream)), peer)).await,
                Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
                Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
            }
        });
    }
}

// === TLS ===

fn wrong(path: &str, message: impl Into<String>) -> ArgumentError {
    ArgumentError {
        path: path.to_owned(),
        message: message.into(),
    }
}

fn server_config(settings: &TlsSettings) -> Result<Arc<ServerConfig>, ArgumentError> {
    let provider = Arc::new(provider(settings)?);
    let (least, most) = (settings.min_version.unwrap_or(12), settings.max_version.unwrap_or(13));
    let has_12 = provider.cipher_suites.iter().any(|suite| suite.tls13().is_none());
    let mut versions = Vec::new();
    if most >= 13 {
        versions.push(&rustls::version::TLS13);
    }
    if least <= 12 && has_12 {
        versions.push(&rustls::version::TLS12);
    }
    if versions.is_empty() {
        return Err(wrong(
            "tls.cipher_suites",
            "none of these cipher suites can be used with these versions",
        ));
    }
    let certificates = Certificates::read(settings, provider.clone())?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions)
        .map_err(|error| wrong("tls", format!("cannot set up TLS: {error}")))?;
    let builder = match client_verifier(settings, provider)? {
        None => builder.with_no_client_auth(),
        Some(verifier) => builder.with_client_cert_verifier(verifier),
    };
    let mut config = builder.with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// What is wanted of what there is. As in Go, suites are chosen for TLS 1.2 only.
fn provider(settings: &TlsSettings) -> Result<CryptoProvider, ArgumentError> {
    let mut provider = rustls::crypto::ring::default_provider();
    if !settings.cipher_suites.is_empty() {
        let wanted = |suite: CipherSuite| {
            let name = suite.as_str().unwrap_or_default();
            settings.cipher_suites.iter().any(|wanted| &**wanted == name)
        };
        provider
            .cipher_suites
            .retain(|suite| suite.tls13().is_some() || wanted(suite.suite()));
    }
    if !settings.curves.is_empty() {
        let groups = settings.curves.iter().filter_map(|curve| group(curve));
        provider.kx_groups = groups.collect();
        if provider.kx_groups.is_empty() {
            let message = "none of these curves can be used; there are X25519, CurveP256 and CurveP384";
            return Err(wrong("tls.curve_preferences", message));
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

fn bytes(pem: &PemText, name: &str) -> Result<Vec<u8>, ArgumentError> {
    match pem {
        PemText::Text(text) => Ok(text.as_bytes().to_vec()),
        PemText::File(path) => std::fs::read(path)
            .map_err(|error| wrong(&path_of(pem, name), format!("cannot read {}: {error}", path.display()))),
    }
}

/// The attribute that a certificate or key came from.
fn path_of(pem: &PemText, name: &str) -> String {
    match pem {
        PemText::Text(_) => format!("tls.{name}_pem"),
        PemText::File(_) => format!("tls.{name}_file"),
    }
}

fn chain(pem: &PemText, name: &str) -> Result<Vec<CertificateDer<'static>>, ArgumentError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes(pem, name)?).collect();
    let chain = chain.map_err(|error| wrong(&path_of(pem, name), format!("this is not PEM: {error}")))?;
    match chain.is_empty() {
        true => Err(wrong(&path_of(pem, name), "there is no certificate in it")),
        false => Ok(chain),
    }
}

/// The listener's certificate; a file that is replaced is read again, so that a renewed one needs no reload.
struct Certificates {
    certificate: PemText,
    key: PemText,
    provider: Arc<CryptoProvider>,
    current: Mutex<(Stamp, Arc<CertifiedKey>)>,
}

/// When the files were changed last.
type Stamp = [Option<SystemTime>; 2];

impl Certificates {
    fn read(settings: &TlsSettings, provider: Arc<CryptoProvider>) -> Result<Self, ArgumentError> {
        let (certificate, key) = (settings.certificate.clone(), settings.key.clone());
        // The stamp first: what is replaced in between is read again.
        let stamp = stamp(&certificate, &key);
        let certified = certified(&certificate, &key, &provider)?;
        Ok(Self {
            certificate,
            key,
            provider,
            current: Mutex::new((stamp, certified)),
        })
    }
}

fn stamp(certificate: &PemText, key: &PemText) -> Stamp {
    let changed = |path: &PathBuf| std::fs::metadata(path).and_then(|data| data.modified()).ok();
    [certificate, key].map(|pem| match pem {
        PemText::Text(_) => None,
        PemText::File(path) => changed(path),
    })
}

fn certified(
    certificate: &PemText,
    key: &PemText,
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, ArgumentError> {
    let chain = chain(certificate, "cert")?;
    let secret = PrivateKeyDer::from_pem_slice(&bytes(key, "key")?)
        .map_err(|error| wrong(&path_of(key, "key"), format!("there is no private key in it: {error}")))?;
    let certified = CertifiedKey::from_der(chain, secret, provider).map_err(|error| {
        wrong(
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
        let now = stamp(&self.certificate, &self.key);
        let mut current = self.current.lock();
        if current.0 != now {
            // Half replaced, it stays as it was, and is read again when the other half comes.
            current.0 = now;
            match certified(&self.certificate, &self.key, &self.provider) {
                Ok(certified) => current.1 = certified,
                Err(error) => {
                    tracing::warn!(error = %error, "the changed certificate of the http block cannot be used; the last good one stays");
                }
            }
        }
        Some(current.1.clone())
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
        return Err(wrong(
            "tls.client_auth_type",
            "this client_auth_type needs client_ca_pem or client_ca_file",
        ));
    };
    let path = path_of(authorities, "client_ca");
    let mut roots = RootCertStore::empty();
    for certificate in chain(authorities, "client_ca")? {
        roots
            .add(certificate)
            .map_err(|error| wrong(&path, format!("this authority cannot be used: {error}")))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = match settings.client_auth {
        ClientAuth::VerifyIfGiven => builder.allow_unauthenticated(),
        _ => builder,
    };
    let verifier = builder.build();
    let verifier = verifier.map_err(|error| wrong(&path, format!("these authorities cannot be used: {error}")))?;
    Ok(Some(verifier))
}

/// Takes a client's certificate whoever signed it; that the client has its key is checked.
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

#[cfg(test)]
#[path = "door_tests.rs"]
mod tests;
