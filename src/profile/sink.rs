//! Sinks: the trait between producers (components, the server's routes) and consumers (components, the store) of
//! profiles.

use std::sync::Arc;

use crate::{DecodedProfile, RawProfile};
use alluvium_base::BoxFuture;

/// Kind of a sink's failure, which determines the reaction of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkErrorKind {
    /// The profile or its labels are invalid. The same bytes fail again. HTTP 400.
    Invalid,
    /// A size limit was exceeded. The same bytes fail again. HTTP 413.
    TooLarge,
    /// A rate or series limit was exceeded. A retry may succeed. HTTP 429.
    LimitExceeded,
    /// The sink cannot accept the profile at present (full, stopping, disk or network failure). A retry may succeed.
    /// HTTP 503.
    Unavailable,
    /// A bug in the sink. HTTP 500.
    Internal,
    /// The sink has ended and accepted nothing. The caller may try its replacement at once. HTTP 503.
    Gone,
}

impl SinkErrorKind {
    /// Returns the kind that represents the errors of several profiles: the kind that most needs a retry, because
    /// otherwise profiles would be lost.
    pub fn most_retryable(kinds: impl IntoIterator<Item = Self>) -> Option<Self> {
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
    /// The kind, which determines whether a retry makes sense.
    pub kind: SinkErrorKind,
    /// The failed operation and the reason, in lower case.
    pub message: String,
}

impl SinkError {
    /// Creates an error of `kind` with `message`.
    pub fn new(kind: SinkErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// Joins the errors of several profiles into one. Returns `None` if there are no errors.
    pub fn joined(refused: Vec<RefusedProfile>) -> Option<Self> {
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

    /// Returns this error for each of `count` profiles.
    pub fn for_all(&self, count: usize) -> Vec<RefusedProfile> {
        let refused = |index| RefusedProfile::new(index, self.clone());
        (0..count).map(refused).collect()
    }

    /// Returns true if the same profile may succeed later.
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
    /// The reason why the sink refused the profile.
    pub error: SinkError,
}

impl RefusedProfile {
    /// Creates a refused profile with its index in the batch and its error.
    pub fn new(index: usize, error: SinkError) -> Self {
        Self { index, error }
    }

    /// Maps the profile back to the larger batch that this batch was a part of. `indices` contains, for each profile of
    /// this batch, its index in the larger batch.
    pub fn within(self, indices: &[usize]) -> Option<Self> {
        Some(Self::new(*indices.get(self.index)?, self.error))
    }
}

/// Accepts profiles. Each sink defines the meaning of success: "durable" for the store, "queued durably" for a queue.
pub trait ProfileSink: Send + Sync + 'static {
    /// Passes on one batch. The sink accepts or refuses each profile independently. The result contains the refused
    /// profiles.
    fn append(&self, profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<RefusedProfile>>;

    /// Like [`ProfileSink::append`], for decoded profiles. A sink that cannot use columns receives bytes.
    fn append_decoded(&self, profiles: Vec<DecodedProfile>) -> BoxFuture<'_, Vec<RefusedProfile>> {
        let profiles = profiles.into_iter().map(|profile| profile.into_parts().0);
        self.append(profiles.collect())
    }

    /// Returns the id of the component that receives the profiles, for messages. It is empty for a sink that is not a
    /// component.
    fn component_id(&self) -> &str {
        ""
    }
}

/// A shared sink, as `forward_to` holds it.
pub type Receiver = Arc<dyn ProfileSink>;
