//! Follows redirects by the rules of Go's HTTP client, with stricter rules for secrets.
//!
//! In: a request. Out: the first response that is not a redirect. The statuses 301, 302 and 303 change the method to
//! GET and drop the body; 307 and 308 keep both. A redirect to another host, or from HTTPS to HTTP, drops every header
//! that may hold a secret, also for the redirects that follow. It is not followed if it would send a body there.

use std::time::Instant;

use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_LOCATION,
    CONTENT_TYPE, HOST, IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION, RANGE, TRANSFER_ENCODING, USER_AGENT,
};
use http::{HeaderMap, HeaderName, Method, StatusCode};
use url::{Host, Url};

use crate::client::body::read_beginning;
use crate::client::error::{RedirectError, SendError};

/// Maximum number of redirects of a request. Go's client sends at most ten requests, so it follows nine redirects.
const MAX_REDIRECTS: usize = 9;
/// Maximum length of the body of a redirect that the client reads so that it can reuse the connection, in bytes.
const MAX_DISCARDED: usize = 2 << 10;
/// The headers that another host may receive. All others may hold a secret: the user configures them, or they contain a
/// token.
const PUBLIC_HEADERS: [HeaderName; 10] = [
    ACCEPT,
    ACCEPT_ENCODING,
    ACCEPT_LANGUAGE,
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_TYPE,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    RANGE,
    USER_AGENT,
];
/// The headers that describe a body.
const BODY_HEADERS: [HeaderName; 6] = [
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_LENGTH,
    CONTENT_LOCATION,
    CONTENT_TYPE,
    TRANSFER_ENCODING,
];

/// Returns the URL to which a response redirects the request, or `None` if the response is not a redirect.
///
/// # Errors
/// Returns an error if the response names a URL to which no request can be sent.
pub fn redirect_target(response: &reqwest::Response) -> Result<Option<Url>, RedirectError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    // Go's client also returns a redirect without an address as the response.
    let Some(location) = response.headers().get(LOCATION).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let location = std::str::from_utf8(location.as_bytes()).map_err(|_| RedirectError::Location)?;
    let target = response.url().join(location).map_err(|_| RedirectError::Location)?;
    match target.scheme() {
        "http" | "https" if target.has_host() => Ok(Some(target)),
        _ => Err(RedirectError::Location),
    }
}

/// Returns true if `target` has the host of `first`, or a subdomain of it. Ports and schemes may differ.
pub fn is_host_or_subdomain(first: &Url, target: &Url) -> bool {
    match (first.host(), target.host()) {
        (Some(Host::Domain(domain)), Some(Host::Domain(host))) => {
            let label = host.strip_suffix(domain);
            label.is_some_and(|label| label.is_empty() || label.ends_with('.'))
        }
        (first, target) => first.is_some() && first == target,
    }
}

/// Sends a request and follows redirects. A timeout of the request applies to all its redirects together. A request
/// whose body is a stream is sent once, because the body cannot be repeated.
pub(super) async fn execute(
    client: &reqwest::Client,
    mut request: reqwest::Request,
) -> Result<reqwest::Response, SendError> {
    let first = request.url().clone();
    let deadline = request
        .timeout()
        .and_then(|timeout| Instant::now().checked_add(*timeout));
    let (mut redirects, mut has_left) = (0, false);
    loop {
        let Some(copy) = request.try_clone() else {
            return client.execute(request).await.map_err(SendError::lost);
        };
        let response = client.execute(copy).await.map_err(SendError::lost)?;
        let Some(target) = redirect_target(&response)? else {
            return Ok(response);
        };
        if redirects == MAX_REDIRECTS {
            return Err(RedirectError::TooMany(MAX_REDIRECTS).into());
        }
        redirects += 1;
        has_left |= !may_receive_secrets(&first, &target);
        request = next_request(client, request, response.status(), target, has_left)?;
        *request.timeout_mut() = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let length = response.content_length().and_then(|length| length.try_into().ok());
        if length.is_some_and(|length: usize| length <= MAX_DISCARDED) {
            read_beginning(response, MAX_DISCARDED).await;
        }
    }
}

fn may_receive_secrets(first: &Url, target: &Url) -> bool {
    let is_downgrade = first.scheme() == "https" && target.scheme() == "http";
    is_host_or_subdomain(first, target) && !is_downgrade
}

/// Returns the request for the target of a redirect. If `has_left`, a host other than the first one receives it, or has
/// received an earlier request.
fn next_request(
    client: &reqwest::Client,
    mut request: reqwest::Request,
    status: StatusCode,
    target: Url,
    has_left: bool,
) -> Result<reqwest::Request, SendError> {
    let is_repeated = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let is_empty = |body: &reqwest::Body| body.as_bytes().is_some_and(<[u8]>::is_empty);
    let body = request.body_mut().take().filter(|body| is_repeated && !is_empty(body));
    if has_left && body.is_some() {
        return Err(RedirectError::Body(target.origin().ascii_serialization()).into());
    }
    let method = match request.method() {
        method if is_repeated || method == Method::HEAD => method.clone(),
        _ => Method::GET,
    };
    let mut headers = std::mem::take(request.headers_mut());
    if !is_repeated {
        remove(&mut headers, |name| BODY_HEADERS.contains(name));
    }
    if has_left {
        remove(&mut headers, |name| !PUBLIC_HEADERS.contains(name));
    }
    if request.url().origin() != target.origin() {
        headers.remove(HOST);
    }
    // The builder turns user and password of the target's URL into a header. The headers of the request precede it.
    let mut next = client.request(method, target).build().map_err(SendError::lost)?;
    next.headers_mut().extend(headers);
    *next.body_mut() = body;
    Ok(next)
}

fn remove(headers: &mut HeaderMap, is_removed: impl Fn(&HeaderName) -> bool) {
    let names: Vec<HeaderName> = headers.keys().filter(|name| is_removed(name)).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_to_the_same_host_and_its_subdomains_only() {
        for (first, target, expected) in [
            ("http://a.test/x", "http://a.test/y", true),
            ("http://a.test/", "http://A.TEST:8080/", true),
            ("http://a.test/", "https://a.test/", true),
            ("http://a.test/", "http://b.a.test/", true),
            ("https://a.test/", "https://a.test:8443/", true),
            ("https://a.test/", "http://a.test/", false),
            ("http://b.a.test/", "http://a.test/", false),
            ("http://a.test/", "http://ba.test/", false),
            ("http://a.test/", "http://a.test.example/", false),
            ("http://127.0.0.1/", "http://127.0.0.1:1/", true),
            ("http://127.0.0.1/", "http://localhost/", false),
            ("http://127.0.0.1/", "http://127.0.0.2/", false),
            ("http://[::1]/", "http://[::1]:1/", true),
            ("http://[::1]/", "http://[::2]/", false),
        ] {
            let url = |text: &str| text.parse::<Url>().unwrap();
            assert_eq!(
                may_receive_secrets(&url(first), &url(target)),
                expected,
                "{first} {target}"
            );
        }
    }
}
