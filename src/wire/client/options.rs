//! Options of an HTTP client, independent of the configuration language.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use http::HeaderMap;
use url::Url;

use crate::base::BoxFuture;
use crate::wire::client::error::ClientError;
use crate::wire::client::tls::TlsOptions;

/// Options of an HTTP client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// `User-Agent` of its requests.
    pub user_agent: Arc<str>,
    /// Follow up to 10 redirects; if false, the redirect itself is the answer.
    pub follow_redirects: bool,
    /// Offer HTTP/2 in TLS handshakes. Plain connections are HTTP/1.1.
    pub enable_http2: bool,
    /// Speak HTTP/2 only, over plain connections too, as gRPC needs it.
    pub only_http2: bool,
    /// The proxy that requests go through.
    pub proxy: ProxyOptions,
    /// Certificates, names and versions of TLS.
    pub tls: TlsOptions,
    /// Authentication of requests.
    pub credential: Credential,
    /// Headers of every request.
    pub headers: HeaderMap,
    /// Unix socket for all connections, without a proxy; the host of a URL is then only a name.
    pub unix_socket: Option<PathBuf>,
}

impl ClientOptions {
    /// Options of a basic client: redirects and HTTP/2 on, no proxy, no credentials.
    pub fn new(user_agent: Arc<str>) -> Self {
        Self {
            user_agent,
            follow_redirects: true,
            enable_http2: true,
            only_http2: false,
            proxy: ProxyOptions::default(),
            tls: TlsOptions::default(),
            credential: Credential::None,
            headers: HeaderMap::new(),
            unix_socket: None,
        }
    }
}

/// Proxy settings of a client.
#[derive(Clone, Debug, Default)]
pub struct ProxyOptions {
    /// Proxy of all requests; `http://`, `https://`, or `socks5://`, where the proxy also resolves host names.
    pub url: Option<Url>,
    /// Comma-separated hosts that are connected to directly.
    pub no_proxy: Arc<str>,
    /// Take proxies from `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` (or their lower-case forms).
    pub from_environment: bool,
    /// Headers of CONNECT requests.
    pub connect_headers: HeaderMap,
}

/// Authentication of a request.
#[derive(Clone, Debug)]
pub enum Credential {
    /// No `Authorization` header.
    None,
    /// Basic authentication by user and password.
    Basic { username: Arc<str>, password: Secret },
    /// `Authorization: SCHEME CREDENTIALS`.
    Authorization {
        /// The scheme, usually `Bearer`.
        scheme: Arc<str>,
        /// What follows the scheme in the header.
        credentials: Secret,
    },
    /// A token from an OAuth 2 token server.
    OAuth2(Box<OAuth2>),
    /// A token from a provider in the program.
    Provided(Arc<dyn TokenProvider>),
}

/// Provides bearer tokens and caches them while they are valid.
pub trait TokenProvider: std::fmt::Debug + Send + Sync {
    /// The token for the next request, or the reason why there is none.
    fn token(&self) -> BoxFuture<'_, Result<Arc<str>, String>>;
}

/// A secret, or the file that holds it.
#[derive(Clone)]
pub enum Secret {
    Text(Arc<str>),
    /// A file, read again for every request; whitespace around the secret is ignored.
    File(PathBuf),
}

/// Does not print the secret.
impl std::fmt::Debug for Secret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(_) => out.write_str("(secret)"),
            Self::File(path) => write!(out, "(secret in {})", path.display()),
        }
    }
}

impl Secret {
    /// The secret; a file is read each time.
    pub async fn read(&self) -> Result<Arc<str>, ClientError> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => tokio::fs::read_to_string(path)
                .await
                .map(|text| Arc::from(text.trim()))
                .map_err(|error| ClientError::File(path.clone(), error)),
        }
    }
}

/// Client credentials for an OAuth 2 token server.
#[derive(Clone, Debug)]
pub struct OAuth2 {
    /// Id that the client gives the token server.
    pub client_id: Arc<str>,
    /// Secret that belongs to the id.
    pub client_secret: Secret,
    /// Scopes that are requested for the token.
    pub scopes: Vec<Arc<str>>,
    /// URL of the token server.
    pub token_url: Url,
    /// Further parameters of the request.
    pub endpoint_params: BTreeMap<Arc<str>, Arc<str>>,
    /// Options of the client for the token server.
    pub options: ClientOptions,
}

/// The header value for user and password.
pub(super) fn basic(username: &str, password: &str) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
    format!("Basic {encoded}")
}
