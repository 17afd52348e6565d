//! One text over HTTP: what `import.http` and `remote.http` ask for.
//!
//! In: arguments of Alloy's names. Out: the body of an answer with status 200. Bodies are bounded; a request has a time limit.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method};
use url::Url;

use crate::components::common::http_client;
use crate::lang::schema::{Arguments, Attribute, Block, Kind, Schema};
use crate::pipeline::component::ArgumentError;
use crate::wire::client::{HttpClient, error_chain};

/// Largest body taken.
const MAX_BODY: usize = 16 << 20;

/// `body`
pub const BODY: Attribute = Attribute::with_default("body", Kind::String, "\"\"", "Body of the request.");
/// `headers`
pub const HEADERS: Attribute =
    Attribute::with_default("headers", Kind::Map(&Kind::String), "{}", "Headers of the request.");
/// `method`
pub const METHOD: Attribute = Attribute::with_default("method", Kind::String, "\"GET\"", "Method of the request.");
/// `poll_frequency`
pub const POLL_FREQUENCY: Attribute = Attribute::with_default(
    "poll_frequency",
    Kind::Duration,
    "\"1m\"",
    "Time from one request to the next.",
);
/// `poll_timeout`
pub const POLL_TIMEOUT: Attribute = Attribute::with_default(
    "poll_timeout",
    Kind::Duration,
    "\"10s\"",
    "Longest time that a request may take; less than `poll_frequency`.",
);
/// `url`
pub const URL: Attribute = Attribute::required("url", Kind::String, "URL whose answer is the content.");
/// `client { }`
pub const CLIENT: Block = Block::implied(
    "client",
    &Schema {
        attributes: http_client::ATTRIBUTES,
        blocks: http_client::BLOCKS,
    },
    "How the server is reached.",
);

/// A request that is made again and again.
pub struct Request {
    /// Where to.
    pub url: Url,
    /// How often.
    pub frequency: Duration,
    timeout: Duration,
    method: Method,
    headers: HeaderMap,
    body: Arc<str>,
    client: HttpClient,
}

/// Checks the arguments without reading or opening anything.
pub fn check(arguments: &Arguments) -> Result<(), ArgumentError> {
    parts(arguments)?;
    let empty = Arguments::default();
    let client = arguments.block("client").unwrap_or(&empty);
    http_client::options(client, Arc::from(""), "client.").map(drop)
}

/// The folder that a URL stands in: everything up to its last `/`.
pub fn folder(url: &Url) -> String {
    let text = url.as_str();
    let path = text.split(['?', '#']).next().unwrap_or(text);
    path.rfind('/').map_or(path, |end| &path[..=end]).to_owned()
}

fn error(path: &str, message: impl Into<String>) -> ArgumentError {
    ArgumentError {
        path: path.to_owned(),
        message: message.into(),
    }
}

fn parts(arguments: &Arguments) -> Result<(Url, Method, HeaderMap), ArgumentError> {
    let url = http_client::http_url(&arguments.string("url")).map_err(|message| error("url", message))?;
    let method = arguments.string("method");
    let method = Method::from_bytes(method.to_uppercase().as_bytes())
        .map_err(|_| error("method", format!("\"{method}\" is not a method of HTTP")))?;
    let mut headers = HeaderMap::new();
    for (name, value) in arguments.string_map("headers") {
        let (name, value) = http_client::header(&name, &value).map_err(|message| error("headers", message))?;
        headers.insert(name, value);
    }
    let (frequency, timeout) = (arguments.duration("poll_frequency"), arguments.duration("poll_timeout"));
    if frequency.is_zero() {
        return Err(error("poll_frequency", "poll_frequency must be greater than 0"));
    }
    if timeout.is_zero() {
        return Err(error("poll_timeout", "poll_timeout must be greater than 0"));
    }
    if timeout >= frequency {
        return Err(error("poll_timeout", "poll_timeout must be less than poll_frequency"));
    }
    Ok((url, method, headers))
}

impl Request {
    /// A request of these arguments; reads certificate files.
    pub fn new(arguments: &Arguments, user_agent: &Arc<str>) -> Result<Self, ArgumentError> {
        let (url, method, headers) = parts(arguments)?;
        let empty = Arguments::default();
        let client = arguments.block("client").unwrap_or(&empty);
        let options = http_client::options(client, user_agent.clone(), "client.")?;
        let client = HttpClient::new(&options).map_err(|failed| error("client", failed.to_string()))?;
        Ok(Self {
            url,
            frequency: arguments.duration("poll_frequency"),
            timeout: arguments.duration("poll_timeout"),
            method,
            headers,
            body: arguments.string("body"),
            client,
        })
    }

    /// Asks, and waits for the answer: for threads that may block.
    pub fn ask(&self) -> Result<String, String> {
        let handle = tokio::runtime::Handle::try_current().map_err(|error| error.to_string())?;
        handle.block_on(async {
            match tokio::time::timeout(self.timeout, self.answer()).await {
                Ok(answer) => answer,
                Err(_) => Err(self.failed("no answer in time")),
            }
        })
    }

    /// An error text without what is secret in the URL.
    fn failed(&self, reason: impl std::fmt::Display) -> String {
        let mut url = self.url.clone();
        let _ = (url.set_username(""), url.set_password(None));
        url.set_query(None);
        format!("cannot fetch {url}: {reason}")
    }

    async fn answer(&self) -> Result<String, String> {
        let mut headers = self.client.headers().await.map_err(|error| self.failed(error))?;
        headers.extend(self.headers.clone());
        let request = self.client.client().request(self.method.clone(), self.url.clone());
        let request = request.headers(headers).body(self.body.to_string());
        let sent = request.send().await;
        let mut response = sent.map_err(|error| self.failed(error_chain(&error.without_url())))?;
        if response.status() != http::StatusCode::OK {
            return Err(self.failed(format!("the server answered {}", response.status())));
        }
        let mut body = Vec::new();
        loop {
            let chunk = response.chunk().await;
            let Some(chunk) = chunk.map_err(|error| self.failed(error_chain(&error.without_url())))? else {
                break;
            };
            if body.len() + chunk.len() > MAX_BODY {
                return Err(self.failed(format!("the answer is longer than {} MiB", MAX_BODY >> 20)));
            }
            body.extend_from_slice(&chunk);
        }
        String::from_utf8(body).map_err(|_| self.failed("the answer is not UTF-8 text"))
    }
}
