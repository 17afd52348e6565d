//! Errors of building a client, of obtaining its credentials, and of its requests.

use std::fmt;
use std::io;
use std::path::PathBuf;

use http::StatusCode;
use http::header::InvalidHeaderValue;
use url::Url;

use crate::client::tls::error::TlsError;

/// The reason why a client could not be built or credentials could not be obtained.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A file with certificates or credentials could not be read.
    #[error("cannot read {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// Certificates or keys are invalid.
    #[error("tls_config: {0}")]
    Tls(#[source] Box<TlsError>),
    /// The proxy cannot be used.
    #[error("proxy: {}", error_chain(.0))]
    Proxy(#[source] reqwest::Error),
    /// The HTTP client cannot be built.
    #[error("http client: {}", error_chain(.0))]
    Client(#[source] reqwest::Error),
    /// The token server returned no token.
    #[error("oauth2: {0}")]
    OAuth2(#[from] OAuth2Error),
    /// The token provider returned no token.
    #[error(transparent)]
    Provided(ProviderError),
    /// A credential contains characters that are not allowed in a header.
    #[error("the credentials contain characters that are not allowed in a header")]
    Header(#[from] InvalidHeaderValue),
}

/// The reason why a token provider returned no token. Each provider has its own type.
pub type ProviderError = Box<dyn std::error::Error + Send + Sync>;

impl From<TlsError> for ClientError {
    fn from(error: TlsError) -> Self {
        Self::Tls(Box::new(error))
    }
}

/// The reason why a body could not be read completely.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The connection broke. The error does not contain the URL, which may hold secrets.
    #[error("{}", error_chain(.0))]
    Lost(#[source] reqwest::Error),
    /// The body is longer than this many bytes.
    #[error("the response is longer than {}", size(*.0))]
    TooLong(usize),
    /// The body cannot be decompressed by the method that its `Content-Encoding` names.
    #[error("the response is not gzip, although its headers say so: {0}")]
    Encoding(String),
}

/// The reason why a request received no response.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The request is invalid, the server could not be reached, or the connection broke. The error does not contain the
    /// URL, which may hold secrets.
    #[error("{}", error_chain(.0))]
    Lost(#[source] reqwest::Error),
    /// The server redirected the request, and the client did not follow the redirect.
    #[error(transparent)]
    Redirect(#[from] RedirectError),
}

impl SendError {
    pub(super) fn lost(error: reqwest::Error) -> Self {
        Self::Lost(error.without_url())
    }
}

/// The reason why a redirect was not followed. No error contains a path or a query, which may hold secrets.
#[derive(Debug, thiserror::Error)]
pub enum RedirectError {
    /// The request was redirected more often than this.
    #[error("the server redirected the request more than {0} times")]
    TooMany(usize),
    /// The address of the redirect cannot be parsed, or has another scheme than HTTP.
    #[error("the server redirected the request to an address that is not an HTTP URL")]
    Location,
    /// The redirect would send the body of the request to this scheme and host.
    #[error(
        "the server redirected the request to {0}, but its body may contain secrets: if {0} is the right server, \
         configure its URL"
    )]
    Body(String),
}

/// The reason why a token server returned no token.
#[derive(Debug, thiserror::Error)]
pub enum OAuth2Error {
    /// The cache was created without a client for the token server.
    #[error("there is no HTTP client for the token server")]
    NoClient,
    /// The server could not be reached, or the connection broke.
    #[error("cannot request a token from {url}: {source}")]
    Request { url: Box<Url>, source: SendError },
    /// The response could not be read.
    #[error("cannot read the response of {url}: {source}")]
    Body { url: Box<Url>, source: BodyError },
    /// The server refused to return a token.
    #[error("{url} responded with status {status}")]
    Status { url: Box<Url>, status: StatusCode },
    /// The response cannot be parsed.
    #[error("cannot read the response of {url}: {source}")]
    Response { url: Box<Url>, source: serde_json::Error },
}

impl OAuth2Error {
    /// Returns true if the server may accept the client secret in another part of the request.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Status { status, .. } if matches!(status.as_u16(), 400 | 401))
    }
}

/// Formats an error of `reqwest` with its sources, which contain the reason.
pub fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let message = error.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        source = error.source();
    }
    text
}

/// Returns a URL for messages: without user, password and query.
pub fn without_secrets(url: &Url) -> Url {
    let mut url = url.clone();
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url
}

/// Formats a size limit for messages: in MiB if it is a whole number of MiB, otherwise in bytes.
fn size(bytes: usize) -> impl fmt::Display {
    const MIB: usize = 1 << 20;
    fmt::from_fn(move |text| match bytes % MIB {
        0 => write!(text, "{} MiB", bytes / MIB),
        _ => write!(text, "{bytes} bytes"),
    })
}
