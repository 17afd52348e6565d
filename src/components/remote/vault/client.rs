//! Requests to a Vault server, with their token, timeout, retries and redirects.
//!
//! A standby node redirects a request to the active node of its cluster. The client follows such a redirect with
//! method, body and token, as Vault's own client does.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, StatusCode};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use crate::common::http::api_error::RequestError;
use crate::remote::vault::arguments::VaultArguments;
use crate::remote::vault::vault_error::{Failure, VaultError};
use alluvium_pipeline::component::ComponentError;
use alluvium_wire::client::{
    ClientOptions, HttpClient, RedirectError, is_host_or_subdomain, read_decoded, redirect_target,
};

const TOKEN: HeaderName = HeaderName::from_static("x-vault-token");
const NAMESPACE: HeaderName = HeaderName::from_static("x-vault-namespace");
/// Header that Vault's own client sends with every request. An agent or proxy of Vault rejects a request without it if
/// its listener has `require_request_header`.
const REQUEST: HeaderName = HeaderName::from_static("x-vault-request");

/// Maximum size of a response, in bytes. A secret has at most one megabyte.
const MAX_ANSWER: usize = 4 << 20;

/// Maximum number of redirects of a request, such as from HTTP to HTTPS and from a standby node to the active node.
/// Vault's own client follows one.
const MAX_REDIRECTS: usize = 3;

/// A client of a Vault server.
pub(super) struct Vault {
    client: HttpClient,
    server: Url,
    namespace: Option<Arc<str>>,
    timeout: Duration,
    retries: u32,
    /// Minimum and maximum wait before a retry.
    waits: (Duration, Duration),
}

/// A request to Vault. It contains secrets, so it is never printed.
pub(super) struct Request<'a> {
    /// Path of the request, below `/v1/`.
    pub(super) path: &'a str,
    /// The token of the request. It is empty for a login.
    pub(super) token: &'a str,
    /// The body of a POST, or `None` for a GET.
    pub(super) body: Option<Value>,
    /// A namespace that replaces the configured namespace.
    pub(super) namespace: Option<&'a str>,
}

/// The fields of a response that the component uses.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Answer {
    /// The secret, or an object that contains it.
    pub(super) data: Option<Map<String, Value>>,
    /// The token that a login or a renewal returns.
    pub(super) auth: Option<Auth>,
    /// Seconds for which the secret is valid. 0 means that it does not expire.
    pub(super) lease_duration: u64,
}

/// A token in the form of Vault's API.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Auth {
    /// The token itself, which is a secret.
    pub(super) client_token: String,
    /// Seconds for which the token is valid. 0 means that it does not expire.
    pub(super) lease_duration: u64,
    /// If true, the token can be renewed.
    pub(super) renewable: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal {
    errors: Vec<String>,
}

impl Vault {
    /// Creates a client of the server that the arguments name. Sends no request.
    pub(super) fn new(arguments: &VaultArguments, user_agent: &Arc<str>) -> Result<Self, ComponentError> {
        let options = &arguments.client_options;
        let client = HttpClient::new(&ClientOptions {
            follow_redirects: false,
            ..ClientOptions::new(user_agent.clone())
        });
        Ok(Self {
            client: client.map_err(ComponentError::new)?,
            server: arguments.server.url().clone(),
            namespace: arguments.namespace.clone(),
            timeout: options.timeout.get(),
            retries: u32::try_from(options.max_retries.get()).unwrap_or(u32::MAX),
            waits: (
                options.min_retry_wait,
                options.max_retry_wait.max(options.min_retry_wait),
            ),
        })
    }

    /// Sends a request, and retries it if a retry may succeed. An error names the path, but not the content of the
    /// request.
    pub(super) async fn send(&self, request: Request<'_>) -> Result<Answer, VaultError> {
        let (mut wait, mut retries) = (self.waits.0, self.retries);
        loop {
            let response = tokio::time::timeout(self.timeout, self.once(&request)).await;
            let failure = match response {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => failure,
                Err(_) => RequestError::Timeout(self.timeout).into(),
            };
            if !failure.is_retryable() || retries == 0 {
                return Err(VaultError::Request {
                    server: Box::new(self.server.clone()),
                    path: request.path.to_owned(),
                    source: failure,
                });
            }
            retries -= 1;
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(self.waits.1);
        }
    }

    async fn once(&self, request: &Request<'_>) -> Result<Answer, Failure> {
        let mut url = self.server.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty()
                .push("v1")
                .extend(request.path.split('/').filter(|part| !part.is_empty()));
        }
        for _ in 0..=MAX_REDIRECTS {
            let response = self.exchange(request, url.clone()).await?;
            match redirect_target(&response)? {
                Some(target) => url = check_target(&self.server, &url, response.status(), target)?,
                None => return read(response).await,
            }
        }
        Err(RedirectError::TooMany(MAX_REDIRECTS).into())
    }

    /// Sends a request to `url`, and returns its response.
    async fn exchange(&self, request: &Request<'_>, url: Url) -> Result<reqwest::Response, Failure> {
        let method = if request.body.is_some() {
            Method::POST
        } else {
            Method::GET
        };
        let mut sent = self.client.client().request(method, url).header(REQUEST, "true");
        let headers = [
            (TOKEN, Some(request.token)),
            (NAMESPACE, request.namespace.or(self.namespace.as_deref())),
        ];
        for (name, value) in headers {
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                continue;
            };
            let mut value = HeaderValue::from_str(value).map_err(|source| Failure::Header {
                name: name.clone(),
                source,
            })?;
            value.set_sensitive(true);
            sent = sent.header(name, value);
        }
        if let Some(body) = &request.body {
            sent = sent.body(body.to_string());
        }
        let response = self.client.client().send(sent).await;
        Ok(response.map_err(RequestError::Send)?)
    }
}

/// Returns the target of a redirect from `url`, if it may receive the token. A standby node redirects to the same path
/// with status 307, and the nodes of its cluster may have other host names. A proxy in front of `server` may use other
/// statuses for its own host.
fn check_target(server: &Url, url: &Url, status: StatusCode, target: Url) -> Result<Url, Failure> {
    let is_downgrade = server.scheme() == "https" && target.scheme() != "https";
    let is_same_request = api_path(&target) == api_path(url) && target.query() == url.query();
    let is_accepted = match status.as_u16() {
        307 | 308 => true,
        301 | 302 => is_host_or_subdomain(server, &target),
        _ => false,
    };
    if is_accepted && is_same_request && !is_downgrade {
        return Ok(target);
    }
    let target = target.origin().ascii_serialization();
    Err(Failure::RefusedRedirect { status, target })
}

/// Returns the decoded path of a request, without a prefix that a proxy may remove. The encoding of a path may change
/// on the way through a standby node.
fn api_path(url: &Url) -> Option<Cow<'_, str>> {
    let start = url.path().find("/v1/")?;
    percent_decode_str(&url.path()[start..]).decode_utf8().ok()
}

/// Reads a response that is not a redirect.
async fn read(response: reqwest::Response) -> Result<Answer, Failure> {
    let status = response.status();
    let body = read_decoded(response, MAX_ANSWER).await.map_err(RequestError::Body)?;
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(|error| Failure::Json {
            line: error.line(),
            column: error.column(),
        });
    }
    let refusal: Refusal = serde_json::from_slice(&body).unwrap_or_default();
    let reasons = refusal
        .errors
        .iter()
        .map(|error| error.split_whitespace().collect::<Vec<_>>().join(" "));
    let reasons: Vec<String> = reasons.collect();
    Err(match reasons.join("; ") {
        reason if reason.is_empty() => RequestError::Status(status),
        reason => RequestError::Refused { status, reason },
    }
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_followed_to_a_node_of_the_cluster_but_to_no_plain_or_other_path() {
        for (server, status, target, expected) in [
            (
                "https://vault.test",
                307,
                "https://node-2.test:8200/v1/secret/a%20b",
                true,
            ),
            ("https://vault.test", 308, "https://10.0.0.2:8200/v1/secret/a%20b", true),
            ("http://vault.test", 301, "https://vault.test/v1/secret/a%20b", true),
            (
                "https://vault.test/prefix",
                307,
                "https://node-2.test:8200/v1/secret/a%20b",
                true,
            ),
            ("https://vault.test", 307, "https://node-2.test/v1/%73ecret/a%20b", true),
            ("https://vault.test", 307, "http://vault.test/v1/secret/a%20b", false),
            ("https://vault.test", 307, "http://node-2.test/v1/secret/a%20b", false),
            ("https://vault.test", 302, "https://login.test/v1/secret/a%20b", false),
            ("https://vault.test", 303, "https://vault.test/v1/secret/a%20b", false),
            ("https://vault.test", 307, "https://login.test/signin", false),
            ("https://vault.test", 302, "https://vault.test/signin", false),
            (
                "https://vault.test",
                307,
                "https://node-2.test/v1/secret/a%20b?to=x",
                false,
            ),
        ] {
            let (server, target): (Url, Url) = (server.parse().unwrap(), target.parse().unwrap());
            let mut url = server.clone();
            url.path_segments_mut()
                .unwrap()
                .pop_if_empty()
                .extend(["v1", "secret", "a b"]);
            let status = StatusCode::from_u16(status).unwrap();
            let checked = check_target(&server, &url, status, target.clone());
            assert_eq!(checked.is_ok(), expected, "{server} {status} {target}");
        }
    }
}
