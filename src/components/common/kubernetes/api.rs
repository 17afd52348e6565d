//! Requests to an API server: one object, one page of a list, or the start of a watch.
//!
//! In: a client and the URL of the server. Out: objects, or an error. If the server refused the request, the error
//! contains the status, the server's message, and the delay that the server requested before a retry, if any. The size
//! of responses and the duration of requests are limited.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{ACCEPT, RETRY_AFTER};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use crate::common::kubernetes::objects::{ListMetadata, Resource, Status};
use alluvium_base::go_json;
use alluvium_wire::client::{BodyError, ClientError, HttpClient, SendError, error_chain, read_beginning, read_decoded};

/// Maximum size of a response that is read as a whole, in bytes. It is enough for a page of 500 objects of 128 KiB
/// each.
const MAX_ANSWER: usize = 64 << 20;
/// Timeout for a response, and for the first byte of a watch.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum number of bytes of an error response that are read to find its reason.
const MAX_REASON: usize = 64 << 10;
/// Minimum size in bytes of JSON that is parsed on a blocking thread. Parsing so much JSON takes more than half a
/// millisecond.
const LONG_JSON: usize = 64 << 10;

/// An API server. Clones share connections.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    client: HttpClient,
    base: Url,
}

/// A page of a list, which may have more pages.
#[derive(Deserialize)]
pub(crate) struct Page<T> {
    /// Version of the list, and token of its next page.
    #[serde(default)]
    pub(crate) metadata: ListMetadata,
    /// The objects. Go writes an empty list as null.
    pub(crate) items: Option<Vec<T>>,
}

/// Error of a request to an API server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// The server refused the request and gave a reason.
    #[error("the server answered {status}{}{message}", if message.is_empty() { "" } else { ": " })]
    Refused {
        status: StatusCode,
        message: String,
        /// Delay that the server requested before a retry.
        retry_after: Option<Duration>,
    },
    /// The request could not be sent, or its response is missing or incomplete.
    #[error(transparent)]
    Lost(#[from] LostError),
    /// The response exceeds the limit, which is given in bytes.
    #[error("the response is longer than {} MiB", .0 >> 20)]
    TooLong(usize),
    /// The response is not JSON of the expected form.
    #[error("the response is not the expected JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Parsing the response panicked.
    #[error("reading the response panicked")]
    Panicked,
}

/// The reason why there was no complete response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LostError {
    /// The credentials for the server cannot be obtained.
    #[error(transparent)]
    Credentials(#[from] ClientError),
    /// The server could not be reached, or a redirect could not be followed. The error does not contain the URL.
    #[error(transparent)]
    Send(SendError),
    /// The connection broke. The error does not contain the URL.
    #[error("{}", error_chain(.0))]
    Connection(#[source] reqwest::Error),
    /// The body of the response could not be read.
    #[error(transparent)]
    Body(BodyError),
    #[error("no response within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("the watch did not end within {} s", .0.as_secs())]
    EndlessWatch(Duration),
    #[error("the response ended within a line")]
    TruncatedLine,
}

impl ApiError {
    /// Returns the error of a failed connection, without the URL.
    pub(super) fn lost(error: reqwest::Error) -> Self {
        Self::Lost(LostError::Connection(error.without_url()))
    }

    /// Returns the error for a `Status` that the server sent.
    pub(super) fn refused(status: Status) -> Self {
        Self::Refused {
            status: StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            message: status.message,
            retry_after: None,
        }
    }

    /// Returns the status of a refused request.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns the delay that the server requested before a retry.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

impl Api {
    /// Returns an API server at the URL `base`. `client` sends the requests.
    pub(crate) fn new(client: HttpClient, base: Url) -> Self {
        Self { client, base }
    }

    /// Returns the URL of the objects of a kind, in one namespace or in all.
    pub(crate) fn url<T: Resource>(&self, namespace: Option<&str>) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(T::GROUP.split('/'));
            if let Some(namespace) = namespace {
                path.extend(["namespaces", namespace]);
            }
            path.push(T::PLURAL);
        }
        url
    }

    /// Returns the URL of one object in a namespace.
    pub(crate) fn object_url<T: Resource>(&self, namespace: &str, name: &str) -> Url {
        let mut url = self.url::<T>(Some(namespace));
        if let Ok(mut path) = url.path_segments_mut() {
            path.push(name);
        }
        url
    }

    /// Sends a GET and reads the whole response.
    pub(crate) async fn get(&self, url: Url) -> Result<Bytes, ApiError> {
        match tokio::time::timeout(TIMEOUT, self.body(url)).await {
            Ok(answer) => answer,
            Err(_) => Err(LostError::Timeout.into()),
        }
    }

    /// Sends a GET and returns the response as soon as it begins.
    pub(crate) async fn open(&self, url: Url) -> Result<reqwest::Response, ApiError> {
        match tokio::time::timeout(TIMEOUT, self.answer(url)).await {
            Ok(answer) => answer,
            Err(_) => Err(LostError::Timeout.into()),
        }
    }

    async fn body(&self, url: Url) -> Result<Bytes, ApiError> {
        let body = read_decoded(self.answer(url).await?, MAX_ANSWER).await;
        body.map_err(|error| match error {
            BodyError::TooLong(max_bytes) => ApiError::TooLong(max_bytes),
            lost @ (BodyError::Lost(_) | BodyError::Encoding(_)) => LostError::Body(lost).into(),
        })
    }

    async fn answer(&self, url: Url) -> Result<reqwest::Response, ApiError> {
        let request = self.client.get(url).await.map_err(LostError::Credentials)?;
        let request = request.header(ACCEPT, "application/json");
        let response = self.client.client().send(request).await.map_err(LostError::Send)?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok());
        let retry_after = retry_after.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        let body = read_beginning(response, MAX_REASON).await;
        Err(ApiError::Refused {
            status,
            message: reason(&body),
            retry_after,
        })
    }
}

/// Parses JSON, on a blocking thread if it is long.
pub(crate) async fn read_json<T: DeserializeOwned + Send + 'static>(
    body: impl AsRef<[u8]> + Send + 'static,
) -> Result<T, ApiError> {
    if body.as_ref().len() < LONG_JSON {
        return Ok(go_json::from_slice(body.as_ref())?);
    }
    let read = tokio::task::spawn_blocking(move || go_json::from_slice(body.as_ref())).await;
    read.map_err(|_| ApiError::Panicked)?.map_err(ApiError::Json)
}

/// Returns the reason in an error response: the message of a `Status`, or the first line of a text.
fn reason(body: &[u8]) -> String {
    if let Ok(Status { message, .. }) = serde_json::from_slice(body) {
        return message;
    }
    let text = String::from_utf8_lossy(body);
    let line = text.trim().lines().next().unwrap_or_default().trim();
    if line.starts_with(['<', '{']) {
        return String::new();
    }
    line.chars().take(200).collect()
}
