//! Errors of building a client and of obtaining its credentials.

use std::io;
use std::path::PathBuf;

use url::Url;

/// The reason why a client could not be built or credentials could not be obtained.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A file with certificates or credentials could not be read.
    #[error("cannot read {0}: {1}")]
    File(PathBuf, io::Error),
    /// Certificates or keys are invalid.
    #[error("tls_config: {0}")]
    Tls(String),
    /// The proxy cannot be used.
    #[error("proxy: {0}")]
    Proxy(String),
    /// The HTTP client cannot be built.
    #[error("http client: {0}")]
    Client(String),
    /// The token server returned no token.
    #[error("oauth2: {0}")]
    OAuth2(String),
    /// The token provider returned no token.
    #[error("{0}")]
    Provided(String),
    /// A credential contains characters that are not allowed in a header.
    #[error("the credentials contain characters that are not allowed in a header")]
    Header,
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
