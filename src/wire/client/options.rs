//! Options of an HTTP client, independent of the configuration language.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use http::HeaderMap;
use url::Url;

use crate::client::error::{ClientError, ProviderError};
use crate::client::tls::TlsOptions;
use alluvium_base::BoxFuture;

/// Options of an HTTP client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// `User-Agent` header of each request.
    pub user_agent: Arc<str>,
    /// If true, the client follows up to 9 redirects, without secrets to other hosts. If false, the redirect itself is
    /// the response.
    pub follow_redirects: bool,
    /// If true, the client offers HTTP/2 in TLS handshakes. Plain connections use HTTP/1.1.
    pub enable_http2: bool,
    /// If true, the client uses only HTTP/2, also over plain connections, as gRPC requires.
    pub only_http2: bool,
    /// The proxy that requests go through.
    pub proxy: ProxyOptions,
    /// TLS certificates, names and versions.
    pub tls: TlsOptions,
    /// Authentication of requests.
    pub credential: Credential,
    /// Additional headers of every request.
    pub headers: HeaderMap,
    /// Unix socket for all connections. If set, no proxy is used, and the host of a URL is not looked up.
    pub unix_socket: Option<PathBuf>,
}

impl ClientOptions {
    /// Returns the options of a basic client: redirects and HTTP/2 on, no proxy, no credentials.
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
    /// Proxy for all requests: `http://`, `https://` or `socks5://`. A SOCKS proxy also resolves host names.
    pub url: Option<Url>,
    /// Comma-separated hosts that the client connects to without the proxy.
    pub no_proxy: Arc<str>,
    /// If true, the client reads the URLs of proxies from `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, or their
    /// lower-case forms.
    pub from_environment: bool,
    /// Headers of CONNECT requests.
    pub connect_headers: HeaderMap,
}

/// Authentication of a request.
#[derive(Clone, Debug)]
pub enum Credential {
    /// No `Authorization` header.
    None,
    /// Basic authentication with user and password.
    Basic { username: Arc<str>, password: Secret },
    /// `Authorization: SCHEME CREDENTIALS`.
    Authorization {
        /// The scheme, usually `Bearer`.
        scheme: Arc<str>,
        /// The rest of the header, after the scheme.
        credentials: Secret,
    },
    /// A token from an OAuth 2 token server.
    OAuth2(Box<OAuth2>),
    /// A token from a provider inside the program.
    Provided(Arc<dyn TokenProvider>),
}

/// Provides bearer tokens and caches them while they are valid.
pub trait TokenProvider: std::fmt::Debug + Send + Sync {
    /// Returns the token for the next request, or the reason why there is none.
    fn token(&self) -> BoxFuture<'_, Result<Arc<str>, ProviderError>>;
}

/// A secret, or the file that holds it.
#[derive(Clone)]
pub enum Secret {
    /// The secret itself. Line breaks at its end are ignored, because the content of a file usually ends with one.
    Text(Arc<str>),
    /// A file, read again for every request. Whitespace around the secret is ignored.
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
    /// Returns the secret. A file is read each time.
    pub async fn read(&self) -> Result<Arc<str>, ClientError> {
        match self {
            Self::Text(text) => Ok(match text.trim_end_matches(['\r', '\n']) {
                trimmed if trimmed.len() == text.len() => text.clone(),
                trimmed => trimmed.into(),
            }),
            Self::File(path) => tokio::fs::read_to_string(path)
                .await
                .map(|text| Arc::from(text.trim()))
                .map_err(|source| ClientError::File {
                    path: path.clone(),
                    source,
                }),
        }
    }
}

/// Client credentials for an OAuth 2 token server.
#[derive(Clone, Debug)]
pub struct OAuth2 {
    /// Client id that the client sends to the token server.
    pub client_id: Arc<str>,
    /// Client secret that belongs to the id.
    pub client_secret: Secret,
    /// Scopes to request for the token.
    pub scopes: Vec<Arc<str>>,
    /// URL of the token server.
    pub token_url: Url,
    /// Additional parameters of the token request.
    pub endpoint_params: BTreeMap<Arc<str>, Arc<str>>,
    /// Options of the client for the token server.
    pub options: ClientOptions,
}

/// Returns the header value of basic authentication for a user and a password.
pub(super) fn basic(username: &str, password: &str) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
    format!("Basic {encoded}")
}
