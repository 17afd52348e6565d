//! The HTTP client of components: TLS, proxies, redirects and credentials from plain options.
//!
//! In: [`ClientOptions`], which know nothing of the configuration language. Out: an [`HttpClient`], whose credentials are read anew for every
//! request, so that a rotated token file works without a restart. Certificates are read once, when the client is built.
//! The TLS provider is ring and is handed to each client: nothing process-wide is installed. No retries, no protocol.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use url::Url;

mod oauth2;
mod tls;

pub use oauth2::OAuth2;
pub use tls::{Pem, TlsOptions, TlsVersion};

/// Redirects that are followed at most, as Go's client does.
const MAX_REDIRECTS: usize = 10;
/// Idle connections are closed after this time (Alloy's value).
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// Longest time to connect, TLS handshake included (Alloy's value for the handshake).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How a client is to be.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// `User-Agent` of its requests.
    pub user_agent: Arc<str>,
    /// Follow up to 10 redirects; otherwise a redirect is the answer.
    pub follow_redirects: bool,
    /// Offer HTTP/2 in TLS handshakes. Plain connections are HTTP/1.1.
    pub enable_http2: bool,
    /// Which proxy to use.
    pub proxy: ProxyOptions,
    /// Certificates.
    pub tls: TlsOptions,
    /// How requests prove who sends them.
    pub credential: Credential,
    /// Headers of every request.
    pub headers: HeaderMap,
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
        }
    }
}

/// Which proxy a client uses.
#[derive(Clone, Debug, Default)]
pub struct ProxyOptions {
    /// Proxy of all requests; `http://` or `https://`.
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
    /// Not at all.
    None,
    /// User and password.
    Basic {
        /// User.
        username: Arc<str>,
        /// Password.
        password: Secret,
    },
    /// `Authorization: SCHEME CREDENTIALS`.
    Authorization {
        /// `Bearer`, usually.
        scheme: Arc<str>,
        /// What follows it.
        credentials: Secret,
    },
    /// A token that a token server gives.
    OAuth2(Box<OAuth2>),
}

/// A secret, or the file that holds it.
#[derive(Clone)]
pub enum Secret {
    /// The secret itself.
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
    /// The secret as of now.
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

/// A client could not be made or its credentials could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A file of certificates or credentials.
    #[error("cannot read {0}: {1}")]
    File(PathBuf, io::Error),
    /// Certificates or keys are wrong.
    #[error("tls_config: {0}")]
    Tls(String),
    /// The proxy cannot be used.
    #[error("proxy: {0}")]
    Proxy(String),
    /// The client cannot be made.
    #[error("http client: {0}")]
    Client(String),
    /// The token server gave no token.
    #[error("oauth2: {0}")]
    OAuth2(String),
    /// A credential holds characters that a header cannot.
    #[error("the credentials cannot stand in a header")]
    Header,
}

/// A client with its credentials. Clones share connections.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: reqwest::Client,
    headers: HeaderMap,
    credential: Credential,
    token: oauth2::TokenCache,
}

impl HttpClient {
    /// Makes a client. Reads certificate files, opens no connection.
    pub fn new(options: &ClientOptions) -> Result<Self, ClientError> {
        let mut builder = reqwest::Client::builder()
            .user_agent(options.user_agent.as_ref())
            .redirect(if options.follow_redirects {
                reqwest::redirect::Policy::limited(MAX_REDIRECTS)
            } else {
                reqwest::redirect::Policy::none()
            })
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            // What a target or server sends is taken as it is: profiles are gzip on their own.
            .no_gzip()
            .no_proxy()
            .tls_backend_preconfigured(tls::configure(&options.tls, options.enable_http2)?);
        if !options.enable_http2 {
            builder = builder.http1_only();
        }
        for proxy in options.proxy.proxies()? {
            builder = builder.proxy(proxy);
        }
        let token = match &options.credential {
            Credential::OAuth2(oauth2) => oauth2::TokenCache::new(oauth2)?,
            _ => oauth2::TokenCache::default(),
        };
        Ok(Self {
            client: builder
                .build()
                .map_err(|error| ClientError::Client(error_chain(&error)))?,
            headers: options.headers.clone(),
            credential: options.credential.clone(),
            token,
        })
    }

    /// The bare client, without credentials.
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Headers of the next request: the configured ones and the credentials as of now.
    pub async fn headers(&self) -> Result<HeaderMap, ClientError> {
        let mut headers = self.headers.clone();
        let authorization = match &self.credential {
            Credential::None => return Ok(headers),
            Credential::Basic { username, password } => basic(username, &password.read().await?),
            Credential::Authorization { scheme, credentials } => format!("{scheme} {}", credentials.read().await?),
            Credential::OAuth2(oauth2) => format!("Bearer {}", self.token.token(oauth2).await?),
        };
        let mut value = HeaderValue::from_str(&authorization).map_err(|_| ClientError::Header)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
        Ok(headers)
    }

    /// Starts a GET with credentials.
    pub async fn get(&self, url: Url) -> Result<reqwest::RequestBuilder, ClientError> {
        Ok(self.client.get(url).headers(self.headers().await?))
    }
}

impl ProxyOptions {
    fn proxies(&self) -> Result<Vec<reqwest::Proxy>, ClientError> {
        let wrong = |error: reqwest::Error| ClientError::Proxy(error_chain(&error));
        let mut proxies = Vec::new();
        if let Some(url) = &self.url {
            let no_proxy = reqwest::NoProxy::from_string(&self.no_proxy);
            proxies.push(reqwest::Proxy::all(url.as_str()).map_err(wrong)?.no_proxy(no_proxy));
        } else if self.from_environment {
            let variable = |name: &str| {
                let lower = std::env::var(name.to_lowercase()).ok();
                lower.or_else(|| std::env::var(name).ok()).filter(|url| !url.is_empty())
            };
            let no_proxy = reqwest::NoProxy::from_env();
            if let Some(url) = variable("HTTP_PROXY") {
                proxies.push(reqwest::Proxy::http(url).map_err(wrong)?.no_proxy(no_proxy.clone()));
            }
            if let Some(url) = variable("HTTPS_PROXY") {
                proxies.push(reqwest::Proxy::https(url).map_err(wrong)?.no_proxy(no_proxy));
            }
        }
        if !self.connect_headers.is_empty() {
            let with_headers = |proxy: reqwest::Proxy| proxy.headers(self.connect_headers.clone());
            proxies = proxies.into_iter().map(with_headers).collect();
        }
        Ok(proxies)
    }
}

fn basic(username: &str, password: &str) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
    format!("Basic {encoded}")
}

/// An error of `reqwest` with its sources, which hold the reason.
pub fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let message = error.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
