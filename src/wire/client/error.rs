//! Why a client could not be made, or has no credentials.

use std::io;
use std::path::PathBuf;

use url::Url;

/// A client could not be made or its credentials could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A file of certificates or credentials.
    #[error("cannot read {0}: {1}")]
    File(PathBuf, io::Error),
    /// Certificates or keys are wrong.
    #[error("tls_config: {0}")]
    Tls(String),
    /// The proxy cannot be used.
    #[error("proxy: {0}")]
    Proxy(String),
    /// The client cannot be made.
    #[error("http client: {0}")]
    Client(String),
    /// The token server gave no token.
    #[error("oauth2: {0}")]
    OAuth2(String),
    /// Who gives tokens gave none.
    #[error("{0}")]
    Provided(String),
    /// A credential holds characters that a header cannot.
    #[error("the credentials cannot stand in a header")]
    Header,
}

/// An error of `reqwest` with its sources, which hold the reason.
pub(crate) fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
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

/// A URL for messages: without user, password and query.
pub(crate) fn without_secrets(url: &Url) -> Url {
    let mut url = url.clone();
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url
}
