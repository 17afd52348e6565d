//! Errors of building a client and of obtaining its credentials.

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

/// The reason why a token server returned no token.
#[derive(Debug, thiserror::Error)]
pub enum OAuth2Error {
    /// The cache was created without a client for the token server.
    #[error("there is no HTTP client for the token server")]
    NoClient,
    /// The server could not be reached, or the connection broke.
    #[error("cannot request a token from {url}: {}", error_chain(.source))]
    Request { url: Box<Url>, source: reqwest::Error },
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
