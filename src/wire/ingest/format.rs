//! A format of `/ingest`, with functions that detect it, estimate the memory for it, and read it.

use bytes::Bytes;

use crate::connect::ConnectError;
use crate::ingest::form::Part;
use crate::ingest::query::IngestQuery;
use alluvium_profile::labels::{PROFILE_NAME, SERVICE_NAME};
use alluvium_profile::{DecodedProfile, Labels, pprof};

/// A supported format of uploads.
pub(super) struct Format {
    /// Values of the parameter `format` that select this format.
    pub names: &'static [&'static str],
    /// Part of a `Content-Type` that selects the format, regardless of the parameter `format`. Empty for none.
    pub content_type: &'static str,
    /// Form field with the content; empty when the format is not sent in a form.
    pub field: &'static str,
    /// True if the reader decompresses content that is gzip.
    pub opens_gzip: bool,
    /// Detects this format in a body without the parameter `format`.
    pub is_like: fn(&[u8]) -> bool,
    /// Returns the maximum memory in bytes that `read` takes, without decompressing the content. Rejects content that
    /// is too large.
    pub memory: fn(&Payload, Opening) -> Result<usize, ConnectError>,
    /// Reads the profiles: one for each combination of type and label set.
    pub read: fn(&Payload, &IngestQuery, Opening) -> Result<Vec<DecodedProfile>, ReadError>,
}

/// The body of a request, split into its parts.
pub(crate) struct Payload {
    /// The profile in the format's own encoding.
    pub content: Bytes,
    /// The fields of the form; empty if the body was not a form.
    pub fields: Vec<Part>,
}

impl Payload {
    /// Returns the content of a form field.
    pub(super) fn field(&self, name: &str) -> Option<&Bytes> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        Some(&field.content)
    }
}

/// Limit on the decompressed size of content.
#[derive(Clone, Copy)]
pub enum Opening {
    /// The size that the content announces, up to this many bytes.
    Announced(usize),
    /// Up to this many bytes, regardless of the announced size.
    AtMost(usize),
}

impl Opening {
    /// Returns the maximum decompressed size of `content` in bytes.
    pub(crate) fn bytes(self, content: &[u8]) -> usize {
        match self {
            Self::Announced(limit) => pprof::announced_size(content, limit),
            Self::AtMost(limit) => limit,
        }
    }

    /// Returns the maximum decompressed size of any content in bytes, regardless of the announced size.
    pub(crate) fn limit(self) -> usize {
        match self {
            Self::Announced(limit) | Self::AtMost(limit) => limit,
        }
    }
}

/// Reason why profiles were not read.
#[derive(Debug)]
pub enum ReadError {
    /// The content is larger than it announces, but may be within the limit. The caller retries with
    /// [`Opening::AtMost`].
    LargerThanAnnounced,
    /// The upload is refused with this error.
    Refused(ConnectError),
}

impl From<ConnectError> for ReadError {
    fn from(error: ConnectError) -> Self {
        Self::Refused(error)
    }
}

/// Returns the error for a profile that exceeds a size limit.
pub(super) fn too_large(max_bytes: usize) -> ConnectError {
    ConnectError::too_large(format!("profile exceeds {max_bytes} bytes uncompressed"))
}

/// Returns the labels of a profile: the labels of the query, and labels for `app`, `name`, `__delta__` and the agent.
/// Labels of the query that begin with `__` are dropped, except `__session_id__`.
pub(super) fn labels(query: &IngestQuery, app: &str, name: &str) -> Labels {
    let is_kept = |name: &str| !name.starts_with("__") || name == "__session_id__";
    let has_service = query.labels.iter().any(|(name, _)| name == SERVICE_NAME);
    let app_label = if has_service { "app_name" } else { SERVICE_NAME };
    let own = [
        (app_label, app),
        (PROFILE_NAME, name),
        ("__delta__", "false"),
        ("pyroscope_spy", &query.spy_name),
    ];
    let query_labels = query.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Labels::from_pairs(query_labels.filter(|(name, _)| is_kept(name)).chain(own))
}
