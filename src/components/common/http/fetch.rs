//! Fetches one text over HTTP, for `import.http` and `remote.http`.
//!
//! In: arguments with Alloy's names. Out: the body of a response with status 200. The size of bodies and the duration
//! of requests are limited.

use std::string::FromUtf8Error;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use tokio::runtime::TryCurrentError;
use url::Url;

use crate::common::http::api_error::RequestError;
use crate::common::http::client::HttpClientArguments;
use crate::common::http::values::{HttpMethod, HttpUrl, PlainHeaders};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::Interval;
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::ComponentError;
use alluvium_wire::client::{HttpClient, read_decoded, without_secrets};

/// Maximum size of a body, in bytes.
const MAX_BODY: usize = 16 << 20;

arguments! {
    /// Arguments of a component that requests a URL periodically.
    pub(crate) struct RequestArguments {
        /// Body to send with the request.
        body: Arc<str> = "",
        /// Headers of the request, each with one value.
        headers: PlainHeaders = {},
        /// Method of the request, such as POST.
        method: HttpMethod = "GET",
        /// Time between two requests.
        poll_frequency: Interval = "1m",
        /// Timeout for one request. It must be less than `poll_frequency`.
        poll_timeout: Interval = "10s",
        /// URL from which the content is fetched.
        url: HttpUrl,
    }
    blocks {
        /// Settings of the HTTP client.
        client: HttpClientArguments,
    }
    check RequestArguments::check;
}

impl RequestArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        if self.poll_timeout >= self.poll_frequency {
            let message = "poll_timeout must be less than poll_frequency";
            return Err(ArgumentError::new("poll_timeout", message));
        }
        Ok(())
    }
}

/// A request that is repeated at an interval.
pub(crate) struct Request {
    /// URL from which the content is fetched.
    pub(crate) url: Url,
    /// Time between two requests.
    pub(crate) interval: Duration,
    timeout: Duration,
    method: Method,
    headers: HeaderMap,
    body: Arc<str>,
    client: HttpClient,
}

/// The reason why a text cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The caller's thread has no Tokio runtime.
    #[error(transparent)]
    Runtime(#[from] TryCurrentError),
    /// The request failed, or the response is unusable.
    #[error("cannot fetch {url}: {source}")]
    Failed {
        /// URL of the request without secrets.
        url: Box<Url>,
        source: Failure,
    },
}

/// The reason why a request to a URL returned no text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The request failed, or the server refused it.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// There was no complete response within the timeout.
    #[error("no response within the timeout")]
    Timeout,
    #[error("the response is not UTF-8 text")]
    Encoding(#[from] FromUtf8Error),
}

/// Returns the folder of a URL: everything up to its last `/`.
pub(crate) fn folder(url: &Url) -> String {
    let text = url.as_str();
    let path = text.split(['?', '#']).next().unwrap_or(text);
    path.rfind('/').map_or(path, |end| &path[..=end]).to_owned()
}

impl Request {
    /// Creates a request from arguments. Reads certificate files.
    pub(crate) fn new(arguments: &RequestArguments, user_agent: &Arc<str>) -> Result<Self, ComponentError> {
        let client = HttpClient::new(&arguments.client.options(user_agent));
        Ok(Self {
            url: arguments.url.url().clone(),
            interval: arguments.poll_frequency.get(),
            timeout: arguments.poll_timeout.get(),
            method: arguments.method.0.clone(),
            headers: arguments.headers.map().clone(),
            body: arguments.body.clone(),
            client: client.map_err(|failed| ComponentError(format!("client: {failed}")))?,
        })
    }

    /// Sends the request and blocks until the response has been read.
    pub(crate) fn ask(&self) -> Result<String, FetchError> {
        let handle = tokio::runtime::Handle::try_current()?;
        let answer = handle.block_on(async { tokio::time::timeout(self.timeout, self.answer()).await });
        answer
            .unwrap_or(Err(Failure::Timeout))
            .map_err(|source| FetchError::Failed {
                url: Box::new(without_secrets(&self.url)),
                source,
            })
    }

    async fn answer(&self) -> Result<String, Failure> {
        let mut headers = self.client.headers().await.map_err(RequestError::Credentials)?;
        headers.extend(self.headers.clone());
        let request = self.client.client().request(self.method.clone(), self.url.clone());
        let request = request.headers(headers).body(self.body.to_string());
        let sent = self.client.client().send(request).await;
        let response = sent.map_err(RequestError::Send)?;
        if response.status() != StatusCode::OK {
            return Err(RequestError::Status(response.status()).into());
        }
        let body = read_decoded(response, MAX_BODY).await;
        let body = body.map_err(RequestError::Body)?;
        Ok(String::from_utf8(body.into())?)
    }
}
