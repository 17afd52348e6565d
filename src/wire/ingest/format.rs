//! What a format of `/ingest` is: how it is told from others, how much memory it takes, and how it is read.

use bytes::Bytes;

use crate::profile::labels::{PROFILE_NAME, SERVICE_NAME};
use crate::profile::{DecodedProfile, Labels, pprof};
use crate::wire::connect::ConnectError;
use crate::wire::ingest::form::Part;
use crate::wire::ingest::query::IngestQuery;

/// A format of uploads that is read.
pub(super) struct Format {
    /// Values of the parameter `format` that mean it.
    pub names: &'static [&'static str],
    /// Field of a form that holds it; empty when it does not come in a form.
    pub field: &'static str,
    /// Whether a body that comes without a format is of this one.
    pub is_like: fn(&[u8]) -> bool,
    /// Most bytes of memory that `read` takes, without opening anything. What is too large is refused here.
    pub memory: fn(&Payload, Opening) -> Result<usize, ConnectError>,
    /// The profiles: as many as there are types and sets of labels.
    pub read: fn(&Payload, &IngestQuery, Opening) -> Result<Vec<DecodedProfile>, ReadError>,
}

/// The body of a request, taken apart.
pub(crate) struct Payload {
    /// The profile in the format's own bytes.
    pub content: Bytes,
    /// The fields of the form, when it came in one.
    pub fields: Vec<Part>,
}

impl Payload {
    /// The content of a field of the form.
    pub(super) fn field(&self, name: &str) -> Option<&Bytes> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        Some(&field.content)
    }
}

/// How much compressed content may expand to.
#[derive(Clone, Copy)]
pub(crate) enum Opening {
    /// To what it says, at most so many bytes.
    Announced(usize),
    /// To so many bytes at most, whatever it says.
    AtMost(usize),
}

impl Opening {
    /// Bytes that `content` may expand to.
    pub(crate) fn bytes(self, content: &[u8]) -> usize {
        match self {
            Self::Announced(limit) => pprof::announced_size(content, limit),
            Self::AtMost(limit) => limit,
        }
    }

    /// Bytes that no profile may have more of.
    pub(crate) fn limit(self) -> usize {
        match self {
            Self::Announced(limit) | Self::AtMost(limit) => limit,
        }
    }
}

/// The profiles were not read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The content expands to more than it says, and perhaps to less than the limit: [`Opening::AtMost`] tells.
    LargerThanAnnounced,
    /// The upload is refused with this answer.
    Refused(ConnectError),
}

impl From<ConnectError> for ReadError {
    fn from(error: ConnectError) -> Self {
        Self::Refused(error)
    }
}

/// The error for a profile of more than so many bytes.
pub(super) fn too_large(max_bytes: usize) -> ConnectError {
    ConnectError::too_large(format!("profile exceeds {max_bytes} bytes uncompressed"))
}

/// Labels of a profile: those of the query, and `app` and `name` as the store wants them.
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
    let given = query.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Labels::from_pairs(given.filter(|(name, _)| is_kept(name)).chain(own))
}
