//! Requests to a Vault server, with their token, timeout and retries.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use crate::remote::vault::arguments::VaultArguments;
use alluvium_pipeline::component::ComponentError;
use alluvium_wire::client::{BodyError, ClientOptions, HttpClient, error_chain, read_decoded};

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

/// The reason for a failed request, and whether a retry may succeed.
struct Failed {
    reason: String,
    is_retryable: bool,
}

impl Vault {
    /// Creates a client of the server that the arguments name. Sends no request.
    pub(super) fn new(arguments: &VaultArguments, user_agent: &Arc<str>) -> Result<Self, ComponentError> {
        let options = &arguments.client_options;
        let client = HttpClient::new(&ClientOptions::new(user_agent.clone()));
        Ok(Self {
            client: client.map_err(|error| ComponentError(error.to_string()))?,
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
    pub(super) async fn send(&self, request: Request<'_>) -> Result<Answer, String> {
        let mut wait = self.waits.0;
        for attempt in 0.. {
            let asked = tokio::time::timeout(self.timeout, self.once(&request)).await;
            let failed = match asked {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failed)) => failed,
                Err(_) => Failed {
                    reason: format!("no response within {} s", self.timeout.as_secs()),
                    is_retryable: true,
                },
            };
            if !failed.is_retryable || attempt >= self.retries {
                return Err(format!(
                    "request to {} for {} failed: {}",
                    self.server, request.path, failed.reason
                ));
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(self.waits.1);
        }
        Err("no request was sent".to_owned())
    }

    async fn once(&self, request: &Request<'_>) -> Result<Answer, Failed> {
        let lost = |error: reqwest::Error| Failed {
            reason: error_chain(&error.without_url()),
            is_retryable: true,
        };
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
            let mut value = HeaderValue::from_str(value).map_err(|_| Failed {
                reason: format!("the value of {name} contains characters that are not allowed in an HTTP header"),
                is_retryable: false,
            })?;
            value.set_sensitive(true);
            sent = sent.header(name, value);
        }
        if let Some(body) = &request.body {
            sent = sent.body(body.to_string());
        }
        let response = sent.send().await.map_err(lost)?;
        let status = response.status();
        let body = read_decoded(response, MAX_ANSWER).await.map_err(|error| Failed {
            is_retryable: matches!(error, BodyError::Lost(_)),
            reason: error.to_string(),
        })?;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| Failed {
                reason: format!(
                    "the response is invalid at line {} column {}",
                    error.line(),
                    error.column()
                ),
                is_retryable: false,
            });
        }
        let refusal: Refusal = serde_json::from_slice(&body).unwrap_or_default();
        let reasons = refusal
            .errors
            .iter()
            .map(|error| error.split_whitespace().collect::<Vec<_>>().join(" "));
        let reasons: Vec<String> = reasons.collect();
        Err(Failed {
            reason: format!("the server answered {status}: {}", reasons.join("; ")),
            is_retryable: status.is_server_error() || status == http::StatusCode::TOO_MANY_REQUESTS,
        })
    }
}
