//! Where profiles go: the one trait between producers (components, the wire) and consumers (components, the store).

use std::sync::Arc;

use bytes::Bytes;

use crate::base::BoxFuture;
use crate::profile::Labels;

/// A profile on its way: labels and the bytes as they came.
#[derive(Clone, Debug)]
pub struct RawProfile {
    /// Labels of the series, `__name__` among them.
    pub labels: Labels,
    /// Id that the sender gave (a UUID in the push protocol); empty when it gave none.
    pub id: Arc<str>,
    /// pprof protobuf bytes, gzip-compressed or not (told by the magic), shared by all who hold the profile.
    pub pprof: Bytes,
}

/// What a sink failed at, in a form that lets the caller decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkErrorKind {
    /// The profile or its labels are wrong; the same bytes fail again. HTTP 400.
    Invalid,
    /// A size limit was exceeded; the same bytes fail again. HTTP 413.
    TooLarge,
    /// A rate or series limit was exceeded; later it may work. HTTP 429.
    LimitExceeded,
    /// The sink cannot take it now (full, stopping, disk or network failure); later it may work. HTTP 503.
    Unavailable,
    /// A fault of ours. HTTP 500.
    Internal,
    /// The sink has ended and took nothing: whoever took its place may be asked at once. HTTP 503.
    Gone,
}

/// A sink refused a profile.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct SinkError {
    /// The kind, which carries the answer to "retry?".
    pub kind: SinkErrorKind,
    /// What was being done and what went wrong, lower case.
    pub message: String,
}

impl SinkError {
    /// An error of `kind` with `message`.
    pub fn new(kind: SinkErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// True when the same profile may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            SinkErrorKind::LimitExceeded | SinkErrorKind::Unavailable | SinkErrorKind::Internal | SinkErrorKind::Gone
        )
    }
}

/// Takes profiles. What success means is the sink's promise: the store's is "durable", a queue's is "queued durably".
pub trait ProfileSink: Send + Sync + 'static {
    /// Hands over one batch. Each profile is taken or refused for itself: the answer holds the errors with the index of the
    /// profile in the batch, empty when all were taken.
    fn append(&self, profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<(usize, SinkError)>>;

    /// Id of the component that takes the profiles, for people; empty for a sink that is none.
    fn component_id(&self) -> &str {
        ""
    }
}

/// A shared sink, as `forward_to` holds it.
pub type Receiver = Arc<dyn ProfileSink>;
