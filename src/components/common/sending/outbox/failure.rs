//! Classifies the errors of requests: whether to try again, and when.

use std::time::Duration;

use crate::components::common::sending::outbox::settings::Settings;
use crate::profile::SinkErrorKind;
use crate::wire::call::CallError;
use crate::wire::connect::Code;

/// Why a request failed, and what follows from it.
#[derive(Clone)]
pub(crate) struct Failure {
    /// What failed, for logs and health.
    pub message: String,
    /// What it says about trying again.
    pub kind: FailureKind,
    /// How long the endpoint asks to wait.
    pub retry_after: Option<Duration>,
}

/// The cause of a failure. What most calls for a retry comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FailureKind {
    /// The endpoint cannot take anything now: network, timeout, 429, 502, 503, 504, credentials, wrong path.
    Endpoint,
    /// The endpoint failed on this request (500 and the like), perhaps because of the profiles.
    Server,
    /// The request is too large: fewer profiles may pass.
    TooLarge,
    /// The profiles are wrong.
    Profiles,
}

impl FailureKind {
    /// The kind of error for a single profile.
    pub(crate) fn of_sink(self) -> SinkErrorKind {
        match self {
            Self::Endpoint => SinkErrorKind::Unavailable,
            Self::Server => SinkErrorKind::Internal,
            Self::TooLarge => SinkErrorKind::TooLarge,
            Self::Profiles => SinkErrorKind::Invalid,
        }
    }
}

impl Failure {
    /// The endpoint cannot take anything now, for this reason.
    pub(crate) fn of_endpoint(message: String) -> Self {
        Self {
            message,
            kind: FailureKind::Endpoint,
            retry_after: None,
        }
    }

    /// Classifies the error of a request to an endpoint.
    pub(crate) fn of_call(error: &CallError, settings: &Settings) -> Self {
        Self {
            message: error.to_string(),
            kind: kind_of(error, settings),
            retry_after: error.retry_after(),
        }
    }
}

/// True when a profile refused with this kind would be refused again.
pub(crate) fn is_final(kind: SinkErrorKind, settings: &Settings) -> bool {
    match kind {
        SinkErrorKind::Invalid | SinkErrorKind::TooLarge => true,
        SinkErrorKind::LimitExceeded => !settings.retries_429,
        SinkErrorKind::Unavailable | SinkErrorKind::Internal | SinkErrorKind::Gone => false,
    }
}

fn kind_of(error: &CallError, settings: &Settings) -> FailureKind {
    let CallError::Refused { status, code, .. } = error else {
        return FailureKind::Endpoint;
    };
    match (*status, *code) {
        (413, _) => FailureKind::TooLarge,
        (429, _) | (_, Some(Code::ResourceExhausted)) if !settings.retries_429 => FailureKind::Profiles,
        // About the request, not its content: no request would pass, and nothing is wrong with the profiles.
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
