//! The reason why a secret of Vault cannot be read. No error contains a secret. An error about a response contains
//! only the status and the server's error messages, not the rest of the response.

use std::io;
use std::sync::Arc;

use http::header::InvalidHeaderValue;
use http::{HeaderName, StatusCode};
use url::Url;

use crate::common::http::api_error::RequestError;
use crate::remote::vault::clouds::IdentityError;
use alluvium_wire::client::{BodyError, RedirectError};

/// The reason why a secret of Vault cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum VaultError {
    /// A request failed, after all retries.
    #[error("request to {server} for {path} failed: {source}")]
    Request {
        server: Box<Url>,
        /// Path of the request, below `/v1/`.
        path: String,
        source: Failure,
    },
    #[error("no auth block is configured")]
    NoLogin,
    /// The token of the Kubernetes service account cannot be read.
    #[error("auth.kubernetes: cannot read {path}: {source}")]
    ServiceAccount { path: Arc<str>, source: io::Error },
    /// The identity that a cloud assigns cannot be proved.
    #[error("{block}: {source}")]
    Identity {
        /// The block of the configuration with the login method.
        block: &'static str,
        source: Box<IdentityError>,
    },
    #[error("auth.approle: the unwrapped response contains no secret_id")]
    NoSecretId,
    #[error("the response to the login contains no token")]
    NoToken,
    #[error("{0} contains no secret: its version was deleted, or the store is not a version 2 store")]
    NoSecret(String),
}

/// The reason why a request returned no usable response.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// There was no complete response, or the server refused the request.
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("the value of {name} contains characters that are not allowed in an HTTP header")]
    Header {
        name: HeaderName,
        source: InvalidHeaderValue,
    },
    /// The server sent a redirect without a usable address, or too many redirects.
    #[error(transparent)]
    Redirect(#[from] RedirectError),
    /// The server redirected the request to an address that must not receive the token.
    #[error(
        "the server redirected the request to {target} with status {}, and the token is not sent there: set `server` \
         to the URL of the cluster",
        status.as_u16()
    )]
    RefusedRedirect {
        status: StatusCode,
        /// Scheme, host and port of the target.
        target: String,
    },
    /// The response is not JSON of the expected form. The parser's message is omitted, because it may contain a secret.
    #[error("the response is invalid at line {line} column {column}")]
    Json { line: usize, column: usize },
}

impl VaultError {
    /// Returns true if the same request may succeed later, for example when the server is no longer sealed.
    pub(super) fn is_temporary(&self) -> bool {
        matches!(self, Self::Request { source, .. } if source.is_retryable())
    }

    /// Returns true if the server denied the request, because the token is invalid or has no permission.
    pub(super) fn is_denied(&self) -> bool {
        let status = match self {
            Self::Request { source, .. } => source.status(),
            _ => None,
        };
        status == Some(StatusCode::FORBIDDEN)
    }
}

impl Failure {
    /// Returns the status of the response if the server refused the request.
    fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Request(RequestError::Refused { status, .. } | RequestError::Status(status)) => Some(*status),
            _ => None,
        }
    }

    /// Returns true if a retry may succeed.
    pub(super) fn is_retryable(&self) -> bool {
        if let Some(status) = self.status() {
            let is_server_error = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
            return is_server_error || status == StatusCode::TOO_MANY_REQUESTS;
        }
        match self {
            Self::Request(error) => matches!(
                error,
                RequestError::Send(_) | RequestError::Timeout(_) | RequestError::Body(BodyError::Lost(_))
            ),
            // While a cluster elects its active node, standby nodes may redirect to each other.
            Self::Redirect(error) => matches!(error, RedirectError::TooMany(_)),
            Self::Header { .. } | Self::RefusedRedirect { .. } | Self::Json { .. } => false,
        }
    }
}
