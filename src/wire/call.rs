//! The client side of unary Connect: sends one message and receives one message or one error.
//!
//! In: connections (TLS, proxy, pool), a base URL with an optional path prefix, and headers. The caller retries:
//! [`CallError::is_retryable`] returns whether a retry may succeed. [`CallError::retry_after`] returns the time to wait
//! before the retry.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue};
use url::Url;

use crate::client::{BodyError, Connections, RedirectError, SendError, read_body};
use crate::connect::{Code, Codec, ConnectError};
use crate::error_detail::ErrorDetail;

/// Header that names the tenant.
pub const TENANT_HEADER: &str = "x-scope-orgid";

/// Maximum size of a response in bytes. It leaves room for a merged profile of a large fleet and still protects against
/// a faulty server.
const MAX_ANSWER_BYTES: usize = 1 << 30;

/// Longest timeout that the protocol can express: ten digits of milliseconds.
const MAX_TIMEOUT_MS: u64 = 9_999_999_999;

/// Reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The server could not be reached or the connection broke.
    #[error("cannot call {url}: {}", chain(.source))]
    Transport {
        url: String,
        /// Error of the HTTP client.
        source: reqwest::Error,
    },
    /// The server redirected the call, and the client did not follow the redirect.
    #[error("cannot call {url}: {source}")]
    Redirect { url: String, source: RedirectError },
    /// The server responded with an error.
    #[error("{url} answered {status}: {message}")]
    Refused {
        url: String,
        /// HTTP status of the response.
        status: u16,
        /// Connect's code, if the response has one.
        code: Option<Code>,
        /// The server's message, or the beginning of its response.
        message: String,
        /// Details of the error, for programs.
        details: Vec<ErrorDetail>,
        /// Time to wait before a retry, if the server requests one.
        retry_after: Option<Duration>,
    },
    /// The server's response is not the expected message.
    #[error("cannot read the response of {url}: {message}")]
    Answer {
        url: String,
        /// Description of the error in the response.
        message: String,
    },
}

impl CallError {
    /// Returns true when the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            CallError::Transport { source, .. } => !source.is_builder(),
            CallError::Refused { status: 413, .. } => false,
            CallError::Refused { code: Some(code), .. } => code.is_retryable(),
            CallError::Refused { status, .. } => *status >= 500 || matches!(status, 408 | 429),
            CallError::Redirect { .. } | CallError::Answer { .. } => false,
        }
    }

    /// Returns the time to wait before a retry, if the server requests one.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            CallError::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Returns the sources of the error, since `reqwest` itself says only "error sending request".
fn chain(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&error.to_string());
        source = error.source();
    }
    if text.is_empty() { error.to_string() } else { text }
}

/// A server with the settings of all calls to it.
#[derive(Clone, Debug)]
pub struct Caller {
    client: Connections,
    base: Url,
    headers: HeaderMap,
    timeout: Option<Duration>,
}

impl Caller {
    /// Creates a caller of the server at `base`. The path of `base` becomes the prefix of all routes.
    pub fn new(client: impl Into<Connections>, base: Url) -> Self {
        Self {
            client: client.into(),
            base,
            headers: HeaderMap::new(),
            timeout: None,
        }
    }

    /// Adds headers to every call, such as authorization and tenant.
    #[must_use]
    pub fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }

    /// Sends the tenant in every call. If the tenant is not valid in a header, it is omitted, and the server then
    /// reports that the tenant is missing.
    #[must_use]
    pub fn with_tenant(mut self, tenant: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(tenant) {
            self.headers.insert(TENANT_HEADER, value);
        }
        self
    }

    /// Limits the duration of each call. The client also sends the timeout to the server.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the query of the URL of every call.
    #[must_use]
    pub fn with_query(mut self, query: &str) -> Self {
        self.base.set_query(Some(query));
        self
    }

    /// Returns the URL of a route, such as `push.v1.PusherService/Push`.
    pub fn url(&self, route: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{route}", self.base.path().trim_end_matches('/')));
        url
    }

    /// Calls `route` with a message in binary form.
    pub async fn call<Request, Answer>(&self, route: &str, request: &Request) -> Result<Answer, CallError>
    where
        Request: prost::Message,
        Answer: prost::Message + Default,
    {
        let body = request.encode_to_vec().into();
        let answer = self.call_raw(route, body).await?;
        Answer::decode(answer).map_err(|error| CallError::Answer {
            url: self.url(route).to_string(),
            message: format!("cannot read the body as protobuf: {error}"),
        })
    }

    /// Calls `route` with an encoded request and returns the encoded response.
    pub(crate) async fn call_raw(&self, route: &str, body: Bytes) -> Result<Bytes, CallError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(Codec::Proto.content_type()));
        headers.insert("connect-protocol-version", HeaderValue::from_static("1"));
        if let Some(timeout) = self.timeout {
            let milliseconds = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            headers.insert("connect-timeout-ms", milliseconds.min(MAX_TIMEOUT_MS).into());
        }
        let response = self.post(route, headers, body).await?;
        read(response).await
    }

    /// Returns the timeout of each call, if there is one.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Posts `body` to `route`, or to the base URL if `route` is empty. Returns the response with any status as soon as
    /// its headers arrive.
    pub(crate) async fn send(
        &self,
        route: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<reqwest::Response, CallError> {
        let url = match route {
            "" => self.base.clone(),
            route => self.url(route),
        };
        let mut request = self
            .client
            .post(url.clone())
            .headers(self.headers.clone())
            .headers(headers)
            .body(body);
        if let Some(timeout) = self.timeout {
            request = request.timeout(timeout);
        }
        let url = || url.to_string();
        self.client.send(request).await.map_err(|error| match error {
            SendError::Lost(source) => CallError::Transport { url: url(), source },
            SendError::Redirect(source) => CallError::Redirect { url: url(), source },
        })
    }

    /// Posts `body` to `route` and returns a successful response as soon as its headers arrive.
    pub async fn post(&self, route: &str, headers: HeaderMap, body: Bytes) -> Result<reqwest::Response, CallError> {
        let response = self.send(route, headers, body).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (url, status) = (self.url(route), response.status().as_u16());
        let retry_after = retry_after(response.headers());
        // If the body cannot be read, the error contains only the status.
        let body = read(response).await.unwrap_or_default();
        let error = ConnectError::from_json(status, &body);
        let code = error.as_ref().map(|error| error.code);
        let (message, details) =
            error.map_or_else(|| (excerpt(&body), Vec::new()), |error| (error.message, error.details));
        Err(CallError::Refused {
            url: url.to_string(),
            status,
            code,
            message,
            details,
            retry_after,
        })
    }
}

/// Returns the time to wait, from the response's `Retry-After` header in seconds.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

async fn read(response: reqwest::Response) -> Result<Bytes, CallError> {
    let url = response.url().to_string();
    let body = read_body(response, MAX_ANSWER_BYTES).await;
    body.map_err(|error| match error {
        BodyError::Lost(source) => CallError::Transport { url, source },
        too_long @ (BodyError::TooLong(_) | BodyError::Encoding(_)) => CallError::Answer {
            url,
            message: too_long.to_string(),
        },
    })
}

/// Returns the beginning of a body that is not a Connect error, as one line.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(200)]);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
