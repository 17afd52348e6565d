//! Refuses requests that a foreign web page makes a browser send, on every port that the module `listen` serves.
//!
//! In: a request, and the local address of its connection. Out: the request, or 403 with the reason. A web page may
//! send its visitor's browser to `localhost`, where no password is required, in two ways:
//!
//! - **Across sites**: it posts a form, or loads a URL as an image. The browser then marks the request as cross-site in
//!   `Sec-Fetch-Site`, or names the page in `Origin` or `Referer`. Links to our pages are allowed.
//! - **As the same site** (DNS rebinding): the domain of the page resolves to `127.0.0.1`, so that the browser
//!   considers our port to be the site of the page. The `Host` header still contains that domain. On a loopback address
//!   a browser may therefore use only names of this machine, IP addresses, and names that `--http.allowed-host` allows.
//!
//! Programs do not send the headers by which a browser is recognized (`Sec-Fetch-Site`, `Origin`, `Referer`,
//! `Accept-Language`), so their requests are let through. A program gains nothing from adding these headers.
//!
//! Every response tells browsers not to guess its content type (`X-Content-Type-Options`). Responses contain texts and
//! names from other sources, which a browser must not render as a page.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

/// Prefixes of paths where a GET has an effect or is expensive, or where a component responds. A link from another site
/// to such a path is refused.
const NOT_FOR_LINKS: [&str; 3] = ["/-/", "/debug/", "/api/v0/component/"];

/// Additional host names of a port. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct AllowedHosts(Arc<[String]>);

/// Local address at which a connection arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrivedAt(pub SocketAddr);

impl AllowedHosts {
    /// Allows these names, without ports.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    fn has(&self, host: &str) -> bool {
        self.0.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
    }
}

/// The error of a text that is not a host name. It describes a valid name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("use a host name without a port, such as profiles.example.com")]
pub struct HostNameError;

/// The reason why a request of a browser is refused.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    /// The request uses a name that may be mapped to this machine by a foreign name server.
    #[error(
        "`{authority}` is not a name of this machine: a foreign web page may have mapped it to this address. \
         If the name is yours, start with --http.allowed-host {}",
        name(authority.host())
    )]
    ForeignName { authority: Authority },
    /// A page of another site made the browser send the request.
    #[error(
        "the browser sent this request for another site ({0}), but only pages of this site may send it. \
         If that site is this server behind a proxy, start with --http.allowed-host and its name"
    )]
    OtherSite(String),
}

/// Parses a host name for `--http.allowed-host`.
pub fn host_name(text: &str) -> Result<String, HostNameError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if text.is_empty() || !text.bytes().all(is_plain) {
        return Err(HostNameError);
    }
    Ok(text.trim_end_matches('.').to_ascii_lowercase())
}

/// Wraps routes with the check of browser requests.
pub(crate) fn guard(routes: Router, allowed: AllowedHosts) -> Router {
    routes.layer(from_fn_with_state(allowed, refuse_strangers))
}

async fn refuse_strangers(State(allowed): State<AllowedHosts>, request: Request, next: Next) -> Response {
    let mut response = match check(&request, &allowed) {
        Ok(()) => next.run(request).await,
        Err(reason) => {
            tracing::debug!(
                path = request.uri().path(),
                %reason,
                "request of a foreign web page refused"
            );
            (StatusCode::FORBIDDEN, format!("{reason}\n")).into_response()
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn check(request: &Request, allowed: &AllowedHosts) -> Result<(), Refusal> {
    let headers = request.headers();
    let authority = request.uri().authority().cloned().or_else(|| host_header(headers));
    if let Some(ArrivedAt(address)) = request.extensions().get()
        && address.ip().to_canonical().is_loopback()
        && is_of_browser(headers)
        && let Some(authority) = &authority
        && !is_of_this_machine(authority.host())
        && !allowed.has(name(authority.host()))
    {
        return Err(Refusal::ForeignName {
            authority: authority.clone(),
        });
    }
    match other_site(headers, authority.as_ref(), allowed) {
        Some(site) if !is_followed_link(request) => Err(Refusal::OtherSite(site)),
        _ => Ok(()),
    }
}

/// Returns true when a browser sent the request. A script can suppress `Origin` and `Referer`, and `Sec-Fetch-Site` is
/// missing over plain HTTP. But every browser sends `Accept-Language`.
fn is_of_browser(headers: &HeaderMap) -> bool {
    let browser_headers = [header::ORIGIN, header::REFERER, header::ACCEPT_LANGUAGE];
    headers.contains_key("sec-fetch-site") || browser_headers.iter().any(|name| headers.contains_key(name))
}

fn host_header(headers: &HeaderMap) -> Option<Authority> {
    headers.get(header::HOST)?.to_str().ok()?.parse().ok()
}

/// Returns true for `localhost`, a name under it, or an IP address. No foreign name server can map these to this
/// machine.
fn is_of_this_machine(host: &str) -> bool {
    let host = name(host);
    let is_local = host.eq_ignore_ascii_case("localhost") || ends_with(host, ".localhost");
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    is_local || address.unwrap_or(host).parse::<IpAddr>().is_ok()
}

fn ends_with(text: &str, end: &str) -> bool {
    let offset = text.len().saturating_sub(end.len());
    text.get(offset..).is_some_and(|rest| rest.eq_ignore_ascii_case(end))
}

/// Returns a host without its trailing dot.
fn name(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// Returns the foreign site that made the browser send the request, if `Sec-Fetch-Site`, `Origin` or `Referer` shows
/// it. `Sec-Fetch-Site` takes precedence; scripts cannot set any of the three headers.
fn other_site(headers: &HeaderMap, authority: Option<&Authority>, allowed: &AllowedHosts) -> Option<String> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let origin = text("origin").or_else(|| text("referer"));
    if let Some(site) = text("sec-fetch-site") {
        let is_own = matches!(site, "same-origin" | "none");
        return (!is_own).then(|| origin.unwrap_or(site).to_owned());
    }
    let origin = origin?;
    let is_own_site = |site: &Site| {
        // Proxies that do not forward the original `Host` set this header.
        let forwarded = headers.get("x-forwarded-host").and_then(|value| value.to_str().ok());
        let forwarded = forwarded.and_then(|hosts| hosts.split(',').next()?.trim().parse().ok());
        let own_authorities = [authority.cloned(), forwarded];
        own_authorities.iter().flatten().any(|authority| site.is_at(authority))
            || allowed.has(name(site.authority.host()))
    };
    match Site::read(origin) {
        Some(site) if is_own_site(&site) => None,
        _ => Some(origin.to_owned()),
    }
}

/// Authority and default port of an origin or a URL.
struct Site {
    authority: Authority,
    default_port: u16,
}

impl Site {
    /// Parses an origin or a URL. Returns `None` for the origin `null` (a page without a site) and for invalid text.
    fn read(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let default_port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        let authority = rest.split(['/', '?', '#']).next()?.parse().ok()?;
        Some(Self {
            authority,
            default_port,
        })
    }

    fn is_at(&self, other: &Authority) -> bool {
        let port = |authority: &Authority| authority.port_u16().unwrap_or(self.default_port);
        self.authority.host().eq_ignore_ascii_case(other.host()) && port(&self.authority) == port(other)
    }
}

/// Returns true if the browser navigates to one of our pages. Such a request has no effect, and no other page sees the
/// response.
fn is_followed_link(request: &Request) -> bool {
    let is_absent_or = |name: &str, expected: &str| request.headers().get(name).is_none_or(|value| value == expected);
    let path = request.uri().path();
    matches!(*request.method(), Method::GET | Method::HEAD)
        && is_absent_or("sec-fetch-mode", "navigate")
        && is_absent_or("sec-fetch-dest", "document")
        && !request.headers().contains_key(header::ORIGIN)
        && !NOT_FOR_LINKS.iter().any(|start| path.starts_with(start))
}

#[cfg(test)]
#[path = "browser_tests.rs"]
mod tests;
