//! Requests to a Vault server, with their token, timeout and retries.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use crate::common::http::api_error::RequestError;
use crate::remote::vault::arguments::VaultArguments;
use crate::remote::vault::vault_error::{Failure, VaultError};
use alluvium_pipeline::component::ComponentError;
use alluvium_wire::client::{ClientOptions, HttpClient, read_decoded};

const TOKEN: HeaderName = HeaderName::from_static("x-vault-token");
const NAMESPACE: HeaderName = HeaderName::from_static("x-vault-namespace");

/// Maximum size of a response, in bytes. A secret has at most one megabyte.
const MAX_ANSWER: usize = 4 << 20;

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
        let client = HttpClient::new(&ClientOptions::new(user_agent.clone()));
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
        let method = if request.body.is_some() {
            Method::POST
        } else {
            Method::GET
        };
        let mut sent = self.client.client().request(method, url);
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
        let sent = sent.send().await;
        let response = sent.map_err(|error| RequestError::Lost(error.without_url()))?;
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
        let reason = reasons.join("; ");
        Err(RequestError::Refused { status, reason }.into())
    }
}
