//! How a client is to be: plain options, which know nothing of the configuration language.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use http::HeaderMap;
use url::Url;

use crate::base::BoxFuture;
use crate::wire::client::error::ClientError;
use crate::wire::client::tls::TlsOptions;

/// What a client is made from.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// `User-Agent` of its requests.
    pub user_agent: Arc<str>,
    /// Follow up to 10 redirects; otherwise a redirect is the answer.
    pub follow_redirects: bool,
    /// Offer HTTP/2 in TLS handshakes. Plain connections are HTTP/1.1.
    pub enable_http2: bool,
    /// The proxy that requests go through.
    pub proxy: ProxyOptions,
    /// Certificates, names and versions of TLS.
    pub tls: TlsOptions,
    /// How requests prove who sends them.
    pub credential: Credential,
    /// Headers of every request.
    pub headers: HeaderMap,
    /// Socket that all connections go to, without a proxy; the host of a URL is then only a name.
    pub unix_socket: Option<PathBuf>,
}

impl ClientOptions {
    /// Options of a plain client: redirects and HTTP/2 on, no proxy, no credentials.
    pub fn new(user_agent: Arc<str>) -> Self {
        Self {
            user_agent,
            follow_redirects: true,
            enable_http2: true,
            proxy: ProxyOptions::default(),
            tls: TlsOptions::default(),
            credential: Credential::None,
            headers: HeaderMap::new(),
            unix_socket: None,
        }
    }
}

/// Which proxy a client uses.
#[derive(Clone, Debug, Default)]
pub struct ProxyOptions {
    /// Proxy of all requests; `http://`, `https://`, or `socks5://`, which looks up the names of hosts, too.
    pub url: Option<Url>,
    /// Comma-separated hosts that are asked directly.
    pub no_proxy: Arc<str>,
    /// Take proxies from `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` (or their lower-case forms).
    pub from_environment: bool,
    /// Headers of CONNECT requests.
    pub connect_headers: HeaderMap,
}

/// How a request proves who sends it.
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
    /// A token that a token server gives.
    OAuth2(Box<OAuth2>),
    /// A token from elsewhere.
    Provided(Arc<dyn TokenProvider>),
}

/// Gives bearer tokens, and keeps one for as long as it is good.
pub trait TokenProvider: std::fmt::Debug + Send + Sync {
    /// The token of the next request, or why there is none.
    fn token(&self) -> BoxFuture<'_, Result<Arc<str>, String>>;
}

/// A secret, or the file that holds it.
#[derive(Clone)]
pub enum Secret {
    Text(Arc<str>),
    /// A file; blanks around its contents are not part of the secret. Read for every request.
    File(PathBuf),
}

/// Never shows the secret.
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

/// Where tokens come from.
#[derive(Clone, Debug)]
pub struct OAuth2 {
    /// Id that the client gives the token server.
    pub client_id: Arc<str>,
    /// Secret that belongs to the id.
    pub client_secret: Secret,
    /// What the token is to allow.
    pub scopes: Vec<Arc<str>>,
    /// URL of the token server.
    pub token_url: Url,
    /// Further parameters of the request.
    pub endpoint_params: BTreeMap<Arc<str>, Arc<str>>,
    /// The client for the token server.
    pub options: ClientOptions,
}

/// The header of user and password.
pub(super) fn basic(username: &str, password: &str) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
    format!("Basic {encoded}")
}
