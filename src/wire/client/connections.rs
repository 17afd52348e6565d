//! Builds the HTTP connections of a client: redirects, timeouts, TLS and proxies. [`super::HttpClient`] adds
//! credentials.

use std::time::Duration;

use crate::client::error::ClientError;
use crate::client::options::{ClientOptions, ProxyOptions};
use crate::client::tls::configure;

/// Maximum number of redirects, as in Go's client.
const MAX_REDIRECTS: usize = 10;
/// Time after which idle connections are closed; Alloy's value.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
/// Timeout for connecting, including the TLS handshake. In Alloy, this is the timeout of the handshake alone.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Builds the `reqwest` client. Reads certificate files but opens no connection.
pub(super) fn connections(options: &ClientOptions) -> Result<reqwest::Client, ClientError> {
    let protocols: &[&[u8]] = if options.enable_http2 {
        &[b"h2", b"http/1.1"]
    } else {
        &[b"http/1.1"]
    };
    let mut builder = reqwest::Client::builder()
        .user_agent(options.user_agent.as_ref())
        .redirect(if options.follow_redirects {
            reqwest::redirect::Policy::limited(MAX_REDIRECTS)
        } else {
            reqwest::redirect::Policy::none()
        })
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
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
