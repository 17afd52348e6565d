//! What the error of a request says about trying again.

use std::time::Duration;

use crate::profile::SinkErrorKind;
use crate::wire::call::CallError;
use crate::wire::connect::Code;

/// Why a request failed, and what follows from it.
#[derive(Clone)]
pub struct Failure {
    /// What failed, for logs and health.
    pub message: String,
    /// What it says about trying again.
    pub kind: FailureKind,
    /// How long the endpoint asks to wait.
    pub retry_after: Option<Duration>,
}

/// Whose fault a failure is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The endpoint cannot take anything now: network, timeout, 429, 502, 503, 504, credentials, wrong path.
    Endpoint,
    /// The endpoint failed at this request: 500 and the like. It may be the profiles.
    Server,
    /// The request is too large: fewer profiles may pass.
    TooLarge,
    /// The profiles are wrong.
    Profiles,
}

impl Failure {
    /// The endpoint cannot take anything now, for this reason.
    pub fn of_endpoint(message: String) -> Self {
        Self {
            message,
            kind: FailureKind::Endpoint,
            retry_after: None,
        }
    }

    /// What an error says when profiles beyond a rate are sent again (`retry_on_429`), or are not.
    pub fn of_call(error: &CallError, retry_on_429: bool) -> Self {
        Self {
            message: error.to_string(),
            kind: kind_of(error, retry_on_429),
            retry_after: error.retry_after(),
        }
    }
}

/// True when a profile that was refused so would be refused again.
pub fn is_final(kind: SinkErrorKind, retry_on_429: bool) -> bool {
    match kind {
        SinkErrorKind::Invalid | SinkErrorKind::TooLarge => true,
        SinkErrorKind::LimitExceeded => !retry_on_429,
        SinkErrorKind::Unavailable | SinkErrorKind::Internal | SinkErrorKind::Gone => false,
    }
}

fn kind_of(error: &CallError, retry_on_429: bool) -> FailureKind {
    let CallError::Refused { status, code, .. } = error else {
        return FailureKind::Endpoint;
    };
    match (*status, *code) {
        (413, _) => FailureKind::TooLarge,
        (429, _) | (_, Some(Code::ResourceExhausted)) if !retry_on_429 => FailureKind::Profiles,
        // About the request, not about what is in it: nothing would pass, and nothing is wrong with the profiles.
        (300..=399 | 401 | 403 | 404 | 405 | 407 | 408 | 429 | 502 | 503 | 504, _) => FailureKind::Endpoint,
        (
            _,
            Some(
                Code::Unauthenticated
                | Code::PermissionDenied
                | Code::Unimplemented
                | Code::Unavailable
                | Code::DeadlineExceeded,
            ),
        ) => FailureKind::Endpoint,
        _ if error.is_retryable() => FailureKind::Server,
        _ => FailureKind::Profiles,
    }
}
