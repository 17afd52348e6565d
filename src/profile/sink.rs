//! Sinks: the one trait between producers (components, the server's routes) and consumers (components, the store) of
//! profiles.

use std::sync::Arc;

use crate::base::BoxFuture;
use crate::profile::{DecodedProfile, RawProfile};

/// Kind of a sink's failure, from which the caller decides what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkErrorKind {
    /// The profile or its labels are wrong; the same bytes fail again. HTTP 400.
    Invalid,
    /// A size limit was exceeded; the same bytes fail again. HTTP 413.
    TooLarge,
    /// A rate or series limit was exceeded; a retry may succeed. HTTP 429.
    LimitExceeded,
    /// The sink cannot accept it now (full, stopping, disk or network failure); a retry may succeed. HTTP 503.
    Unavailable,
    /// A bug in the sink. HTTP 500.
    Internal,
    /// The sink has ended and accepted nothing: its replacement may be tried at once. HTTP 503.
    Gone,
}

impl SinkErrorKind {
    /// The kind that represents the errors of several profiles: the one that most needs a retry, since profiles would
    /// be lost otherwise.
    pub(crate) fn most_retryable(kinds: impl IntoIterator<Item = Self>) -> Option<Self> {
        kinds.into_iter().max_by_key(|kind| match kind {
            Self::Invalid => 0,
            Self::TooLarge => 1,
            Self::LimitExceeded => 2,
            Self::Internal => 3,
            Self::Unavailable | Self::Gone => 4,
        })
    }
}

/// A sink refused a profile.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct SinkError {
    /// The kind, which says whether a retry makes sense.
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

    /// One error for those of several profiles; `None` for none.
    pub(crate) fn joined(refused: Vec<RefusedProfile>) -> Option<Self> {
        let kind = SinkErrorKind::most_retryable(refused.iter().map(|one| one.error.kind))?;
        let messages: Vec<String> = match refused.as_slice() {
            [only] => return Some(only.error.clone()),
            several => several
                .iter()
                .map(|RefusedProfile { index, error }| format!("profile {index}: {error}"))
                .collect(),
        };
        Some(Self::new(kind, messages.join("\n")))
    }

    /// This error for each of `count` profiles.
    pub(crate) fn for_all(&self, count: usize) -> Vec<RefusedProfile> {
        let refused = |index| RefusedProfile::new(index, self.clone());
        (0..count).map(refused).collect()
    }

    /// True when the same profile may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            SinkErrorKind::LimitExceeded | SinkErrorKind::Unavailable | SinkErrorKind::Internal | SinkErrorKind::Gone
        )
    }
}

/// A profile that a sink refused.
#[derive(Debug, Clone)]
pub struct RefusedProfile {
    /// Index of the profile in the batch.
    pub index: usize,
    /// Why the sink refused it.
    pub error: SinkError,
}

impl RefusedProfile {
    /// The profile at `index` of the batch was refused with `error`.
    pub fn new(index: usize, error: SinkError) -> Self {
        Self { index, error }
    }

    /// Maps the profile back to the larger batch that this batch was a part of: `indices` has the index of each of its
    /// profiles there.
    pub(crate) fn within(self, indices: &[usize]) -> Option<Self> {
        Some(Self::new(*indices.get(self.index)?, self.error))
    }
}

/// Accepts profiles. Each sink defines what success means: for the store "durable", for a queue "queued durably".
pub trait ProfileSink: Send + Sync + 'static {
    /// Passes on one batch. Each profile is accepted or refused independently; the result holds the refused ones.
    fn append(&self, profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<RefusedProfile>>;

    /// Like [`ProfileSink::append`], for decoded profiles. A sink that cannot use columns gets bytes.
    fn append_decoded(&self, profiles: Vec<DecodedProfile>) -> BoxFuture<'_, Vec<RefusedProfile>> {
        let profiles = profiles.into_iter().map(|profile| profile.into_parts().0);
        self.append(profiles.collect())
    }

    /// Id of the component that takes the profiles, for people; empty for a sink that is none.
    fn component_id(&self) -> &str {
        ""
    }
}

/// A shared sink, as `forward_to` holds it.
pub type Receiver = Arc<dyn ProfileSink>;
