//! A client of a web API, for the discoveries that poll a web API.
//!
//! In: a client, and the base URL of all paths of the API. Out: responses as JSON or text. The size of a response and
//! the duration of a request are limited. An error names the request without its secrets.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde::de::DeserializeOwned;
use url::Url;

use crate::common::http::api_error::{ApiError, RequestError, ResponseError};
use crate::common::http::client::HttpClientArguments;
use alluvium_base::go_json;
use alluvium_pipeline::component::ComponentError;
use alluvium_wire::client::{ClientOptions, HttpClient, read_decoded, without_secrets};

/// Maximum size of a response in bytes, enough for some hundred thousand targets.
const MAX_ANSWER: usize = 64 << 20;
/// Timeout for one request, including the reading of its response.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Number of bytes at the start of an error response that are searched for a reason.
const MAX_REFUSAL: usize = 4096;
/// Maximum length of a reason in an error, in characters.
const MAX_REASON: usize = 200;

/// A web API: its client, and the base URL of its paths.
#[derive(Clone, Debug)]
pub(crate) struct WebApi {
    client: HttpClient,
    base: Url,
    timeout: Duration,
}

/// The response to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Status of the response. Public functions return only success statuses and 304 (not modified).
    pub(crate) status: StatusCode,
    /// Headers of the response.
    pub(crate) headers: HeaderMap,
    /// Body of the response, decompressed.
    pub(crate) body: Bytes,
    /// URL of the request without secrets, for messages.
    pub(crate) url: String,
}

impl WebApi {
    /// Creates a client of the API at `base` from arguments. Reads certificate files.
    pub(crate) fn new(client: &HttpClientArguments, user_agent: &Arc<str>, base: &Url) -> Result<Self, ComponentError> {
        Self::with_options(&client.options(user_agent), base)
    }

    /// Creates a client of the API at `base` from options. Reads certificate files.
    pub(crate) fn with_options(options: &ClientOptions, base: &Url) -> Result<Self, ComponentError> {
        Ok(Self {
            client: HttpClient::new(options).map_err(|failed| ComponentError(failed.to_string()))?,
            base: base.clone(),
            timeout: TIMEOUT,
        })
    }

    /// Returns the same API with a different timeout, such as for a server that responds only when its data changes.
    pub(crate) fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the URL of a path below the base. Segments are encoded, so that a name with a slash stays one segment.
    pub(crate) fn url<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// Creates a request to pass to [`WebApi::send`].
    pub(crate) fn request(&self, method: Method, url: Url) -> reqwest::RequestBuilder {
        self.client.client().request(method, url)
    }

    /// Sends a GET and reads the response as JSON.
    pub(crate) async fn json<T: DeserializeOwned>(&self, url: Url) -> Result<T, ApiError> {
        self.get(url, HeaderMap::new()).await?.json()
    }

    /// Sends a GET with additional headers, which take precedence over the configured headers.
    pub(crate) async fn get(&self, url: Url, headers: HeaderMap) -> Result<Answer, ApiError> {
        self.send(self.request(Method::GET, url).headers(headers)).await
    }

    /// Sends a request with the configured headers and credentials. The request's own headers take precedence.
    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Result<Answer, ApiError> {
        self.execute(built(request)?).await
    }

    /// Sends a complete request, such as a signed request.
    pub(crate) async fn execute(&self, request: reqwest::Request) -> Result<Answer, ApiError> {
        self.exchange(request).await?.accepted()
    }

    /// Sends a GET for a resource that may not exist. Returns `None` if the server answers 404.
    pub(crate) async fn find(&self, url: Url, headers: HeaderMap) -> Result<Option<Answer>, ApiError> {
        let answer = self
            .exchange(built(self.request(Method::GET, url).headers(headers))?)
            .await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        answer.accepted().map(Some)
    }

    async fn exchange(&self, mut request: reqwest::Request) -> Result<Answer, ApiError> {
        let url = String::from(without_secrets(request.url()));
        let failed = |source: RequestError| ApiError::Request {
            url: url.clone(),
            source,
        };
        let headers = self.client.headers().await;
        let mut configured = headers.map_err(|error| failed(RequestError::Credentials(error)))?;
        configured.extend(std::mem::take(request.headers_mut()));
        *request.headers_mut() = configured;
        match tokio::time::timeout(self.timeout, self.answer(request, &url)).await {
            Ok(answer) => answer.map_err(failed),
            Err(_) => Err(failed(RequestError::Timeout(self.timeout))),
        }
    }

    async fn answer(&self, request: reqwest::Request, url: &str) -> Result<Answer, RequestError> {
        let response = self.client.client().execute(request).await;
        let response = response.map_err(RequestError::Send)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read_decoded(response, MAX_ANSWER).await;
        let body = body.map_err(RequestError::Body)?;
        Ok(Answer {
            status,
            headers,
            body,
            url: url.to_owned(),
        })
    }
}

impl Answer {
    fn accepted(self) -> Result<Self, ApiError> {
        if self.status.is_success() || self.status == StatusCode::NOT_MODIFIED {
            return Ok(self);
        }
        let source = refused(self.status, &self.body);
        Err(ApiError::Request { url: self.url, source })
    }

    /// Parses the response as JSON. The error contains line and column.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        go_json::from_slice(&self.body).map_err(|error| self.invalid(ResponseError::Json(error)))
    }

    /// Parses the response as XML.
    pub(crate) fn xml<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        let text = std::str::from_utf8(&self.body);
        let text = text.map_err(|error| self.invalid(ResponseError::Encoding(error)))?;
        quick_xml::de::from_str(text).map_err(|error| self.invalid(ResponseError::Xml(error)))
    }

    fn invalid(&self, source: ResponseError) -> ApiError {
        ApiError::Response {
            url: self.url.clone(),
            source,
        }
    }
}

/// Builds a request. An error does not contain the URL.
pub(crate) fn built(request: reqwest::RequestBuilder) -> Result<reqwest::Request, ApiError> {
    let request = request.build();
    request.map_err(|error| ApiError::Build(error.without_url()))
}

/// Returns the error for a refused request: the status of the response, and a short reason.
fn refused(status: StatusCode, body: &[u8]) -> RequestError {
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_REFUSAL)]);
    match reason(text.trim()) {
        reason if reason.is_empty() => RequestError::Status(status),
        reason => RequestError::Refused { status, reason },
    }
}

/// Returns the reason in an error response: code and message of an XML error, JSON on one line, or the first line of
/// text. For an HTML page the reason is empty.
fn reason(text: &str) -> String {
    let reason = if text.starts_with('<') {
        let element = |name: &str| {
            let (_, content) = text.split_once(&format!("<{name}>"))?;
            content.split_once('<').map(|(inside, _)| inside.to_owned())
        };
        let parts: Vec<String> = [element("Code"), element("Message")].into_iter().flatten().collect();
        parts.join(": ")
    } else if text.starts_with(['{', '[']) {
        text.split_whitespace().collect::<Vec<&str>>().join(" ")
    } else {
        text.to_owned()
    };
    reason
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(MAX_REASON)
        .collect()
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::HeaderMap as Sent;
    use axum::routing::get;
    use serde_json::Value;

    use super::*;
    use crate::common::testing::serve;

    fn api(base: &str) -> WebApi {
        WebApi::with_options(&ClientOptions::new("test".into()), &base.parse().unwrap()).unwrap()
    }

    #[tokio::test]
    async fn json_is_read_below_the_base() {
        let answer = |sent: Sent| async move { format!("{{\"agent\": {:?}}}", sent["user-agent"]) };
        let router = Router::new().route("/prefix/v1/a%2Fb", get(answer));
        let (base, _server) = serve(router).await;
        let api = api(&format!("{base}/prefix/"));
        let read: Value = api.json(api.url(["v1", "a/b"])).await.unwrap();
        assert_eq!(read["agent"], "test");
    }

    #[tokio::test]
    async fn an_error_says_what_was_asked_and_why_it_failed_without_secrets() {
        let router = Router::new()
            .route(
                "/denied",
                get(|| async { (StatusCode::FORBIDDEN, "no such token\nsecond line") }),
            )
            .route("/page", get(|| async { (StatusCode::BAD_GATEWAY, "<html>") }))
            .route(
                "/xml",
                get(|| async {
                    let text = "<?xml version=\"1.0\"?>\n<R><Code>AuthFailure</Code><Message>no such key</Message></R>";
                    (StatusCode::UNAUTHORIZED, text)
                }),
            )
            .route(
                "/json",
                get(|| async { (StatusCode::NOT_FOUND, "{\n  \"error\": \"no zone\"\n}") }),
            )
            .route("/broken", get(|| async { "{\n \"a\": ]" }));
        let (base, _server) = serve(router).await;
        let api = api(&base.replace("http://", "http://user:hidden@"));
        let error = async |path: &str| {
            let mut url = api.url([path]);
            url.set_query(Some("token=hidden"));
            api.json::<Value>(url).await.unwrap_err().to_string()
        };
        assert_eq!(
            error("denied").await,
            format!("request to {base}/denied failed: the server answered 403 Forbidden: no such token")
        );
        assert_eq!(
            error("page").await,
            format!("request to {base}/page failed: the server answered 502 Bad Gateway")
        );
        assert!(
            error("xml")
                .await
                .ends_with("401 Unauthorized: AuthFailure: no such key")
        );
        assert!(
            error("json")
                .await
                .ends_with("404 Not Found: { \"error\": \"no zone\" }")
        );
        assert_eq!(
            error("broken").await,
            format!("{base}/broken answered with invalid JSON: expected value at line 2 column 7")
        );
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_in_time_is_an_error() {
        let router = Router::new().route("/", get(|| async { std::future::pending::<&str>().await }));
        let (base, _server) = serve(router).await;
        let api = api(&base).with_timeout(Duration::from_millis(20));
        let error = api.json::<Value>(api.url([])).await.unwrap_err().to_string();
        assert!(error.ends_with("no response within 0 s"), "{error}");
    }
}
