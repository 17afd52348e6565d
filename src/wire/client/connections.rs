//! The HTTP connections of a client: timeouts, TLS, proxies and redirects. [`super::HttpClient`] adds credentials.

use std::time::Duration;

use http::Method;
use url::Url;

use crate::client::error::{ClientError, SendError};
use crate::client::options::{ClientOptions, ProxyOptions};
use crate::client::redirects;
use crate::client::tls::configure;

/// Time after which idle connections are closed; Alloy's value.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
/// Timeout for connecting, including the TLS handshake. In Alloy, this is the timeout of the handshake alone.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of the headers of a response by HTTP/2. A gRPC server sends its error as a header, and Pyroscope's
/// error about a batch describes each refused profile.
const MAX_HEADER_BYTES: u32 = 1 << 20;

/// Sends requests without adding credentials. Clones share the connections.
///
/// Requests are built with [`Connections::request`] and sent with [`Connections::send`], which follows redirects.
/// `RequestBuilder::send` follows none.
#[derive(Clone, Debug)]
pub struct Connections {
    client: reqwest::Client,
    is_following: bool,
}

impl Connections {
    /// Builds the client. Reads certificate files but opens no connection.
    pub(super) fn new(options: &ClientOptions) -> Result<Self, ClientError> {
        Ok(Self {
            client: build(options)?,
            is_following: options.follow_redirects,
        })
    }

    /// Builds a request, which [`Self::send`] sends.
    pub fn request(&self, method: Method, url: Url) -> reqwest::RequestBuilder {
        self.client.request(method, url)
    }

    /// Builds a POST request, which [`Self::send`] sends.
    pub fn post(&self, url: impl reqwest::IntoUrl) -> reqwest::RequestBuilder {
        self.client.post(url)
    }

    /// Sends a request, and follows redirects if the options permit it.
    ///
    /// # Errors
    /// Returns an error if the request is invalid, if there is no response, or if a redirect cannot be followed.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, SendError> {
        self.execute(request.build().map_err(SendError::lost)?).await
    }

    /// Sends a complete request, such as a signed request, and follows redirects if the options permit it.
    ///
    /// # Errors
    /// Returns an error if there is no response, or if a redirect cannot be followed.
    pub async fn execute(&self, request: reqwest::Request) -> Result<reqwest::Response, SendError> {
        if self.is_following {
            redirects::execute(&self.client, request).await
        } else {
            self.client.execute(request).await.map_err(SendError::lost)
        }
    }
}

/// A plain client follows redirects by its own policy.
impl From<reqwest::Client> for Connections {
    fn from(client: reqwest::Client) -> Self {
        Self {
            client,
            is_following: false,
        }
    }
}

fn build(options: &ClientOptions) -> Result<reqwest::Client, ClientError> {
    let protocols: &[&[u8]] = if options.enable_http2 {
        &[b"h2", b"http/1.1"]
    } else {
        &[b"http/1.1"]
    };
    let mut builder = reqwest::Client::builder()
        .user_agent(options.user_agent.as_ref())
        // The module `redirects` follows redirects. The library would send secret headers to other hosts.
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        // Bodies are not decompressed: profiles are themselves gzip files.
        .no_gzip()
        .no_proxy()
        .tls_backend_preconfigured(configure(&options.tls, protocols)?);
    if !options.enable_http2 {
        builder = builder.http1_only();
    }
    if options.only_http2 {
        builder = builder.http2_prior_knowledge();
    }
    if let Some(path) = &options.unix_socket {
        builder = builder.unix_socket(path.as_path());
    }
    for proxy in proxies(&options.proxy)? {
        builder = builder.proxy(proxy);
    }
    builder.build().map_err(ClientError::Client)
}

fn proxies(options: &ProxyOptions) -> Result<Vec<reqwest::Proxy>, ClientError> {
    let proxy_error = ClientError::Proxy;
    let mut proxies = Vec::new();
    if let Some(url) = &options.url {
        let no_proxy = reqwest::NoProxy::from_string(&options.no_proxy);
        let proxy = reqwest::Proxy::all(with_remote_resolution(url.as_str())).map_err(proxy_error)?;
        proxies.push(proxy.no_proxy(no_proxy));
    } else if options.from_environment {
        let variable = |name: &str| {
            let lower = std::env::var(name.to_lowercase()).ok();
            lower.or_else(|| std::env::var(name).ok()).filter(|url| !url.is_empty())
        };
        let no_proxy = reqwest::NoProxy::from_env();
        if let Some(url) = variable("HTTP_PROXY") {
            proxies.push(
                reqwest::Proxy::http(with_remote_resolution(&url))
                    .map_err(proxy_error)?
                    .no_proxy(no_proxy.clone()),
            );
        }
        if let Some(url) = variable("HTTPS_PROXY") {
            proxies.push(
                reqwest::Proxy::https(with_remote_resolution(&url))
                    .map_err(proxy_error)?
                    .no_proxy(no_proxy),
            );
        }
    }
    if !options.connect_headers.is_empty() {
        let with_headers = |proxy: reqwest::Proxy| proxy.headers(options.connect_headers.clone());
        proxies = proxies.into_iter().map(with_headers).collect();
    }
    Ok(proxies)
}

/// Replaces the scheme `socks5` of a proxy by `socks5h`. With `socks5h`, reqwest lets the proxy resolve host names, as
/// Go's client always does.
fn with_remote_resolution(proxy: &str) -> String {
    match proxy.strip_prefix("socks5://") {
        Some(rest) => format!("socks5h://{rest}"),
        None => proxy.to_owned(),
    }
}
