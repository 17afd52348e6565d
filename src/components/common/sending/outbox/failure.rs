//! Classifies the errors of requests: whether to retry, and when.

use std::time::Duration;

use crate::common::sending::outbox::settings::Settings;
use alluvium_profile::SinkErrorKind;
use alluvium_wire::call::CallError;
use alluvium_wire::connect::Code;
use alluvium_wire::refusals;

/// Maximum length in bytes of the description of a failure. An error about a batch may describe each of its profiles.
const MAX_MESSAGE_BYTES: usize = 1000;

/// The reason why a request failed, and whether and when to retry it.
#[derive(Clone)]
pub(crate) struct Failure {
    /// Description of the failure, for logs and health.
    pub message: String,
    /// The cause, which decides whether a retry may succeed.
    pub kind: FailureKind,
    /// Delay that the endpoint requested before a retry.
    pub retry_after: Option<Duration>,
}

/// The cause of a failure. The causes are ordered by the chance that a retry succeeds, the highest chance first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FailureKind {
    /// The endpoint cannot accept anything at present: network error, timeout, 502, 503, 504, wrong credentials, wrong
    /// path, or a 429 that the settings allow to retry.
    Endpoint,
    /// The endpoint failed on this request (500 and similar), perhaps because of the profiles.
    Server,
    /// The request is too large. Fewer profiles may succeed.
    TooLarge,
    /// The profiles are invalid.
    Profiles,
}

impl FailureKind {
    /// Returns the kind of error for a single profile.
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
    /// Returns a failure of the endpoint as a whole, with this reason.
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
            message: shortened(error.to_string()),
            kind: kind_of(error, settings),
            retry_after: error.retry_after(),
        }
    }
}

/// Returns true if a profile that was refused with an error of this kind would be refused again.
pub(crate) fn is_final(kind: SinkErrorKind, settings: &Settings) -> bool {
    match kind {
        SinkErrorKind::Invalid | SinkErrorKind::TooLarge => true,
        SinkErrorKind::LimitExceeded => !settings.retries_429,
        SinkErrorKind::Unavailable | SinkErrorKind::Internal | SinkErrorKind::Gone => false,
    }
}

fn shortened(mut message: String) -> String {
    if message.len() > MAX_MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
        message.push_str("...");
    }
    message
}

fn kind_of(error: &CallError, settings: &Settings) -> FailureKind {
    let CallError::Refused { status, code, .. } = error else {
        return FailureKind::Endpoint;
    };
    match (*status, *code) {
        (413, _) => FailureKind::TooLarge,
        (422, _) if refusals::is_transient_upload_error(error) => FailureKind::Server,
        // The code of Pyroscope's response is `unknown`, although the profile is invalid, such as too old.
        (422, _) => FailureKind::Profiles,
        (429, _) | (_, Some(Code::ResourceExhausted)) if !settings.retries_429 => FailureKind::Profiles,
        // These statuses do not depend on the profiles: the endpoint would currently refuse every request.
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
