//! Profiles as producers pass them on: undecoded bytes with labels.

use std::sync::Arc;

use bytes::Bytes;

use crate::Labels;

/// A profile in transit: labels and the bytes as received.
#[derive(Clone, Debug)]
pub struct RawProfile {
    /// Labels of the series, `__name__` among them.
    pub labels: Labels,
    /// Id that the sender assigned (a UUID in the push protocol); empty if there is none.
    pub id: Arc<str>,
    /// pprof protobuf bytes, gzip-compressed or not (detected by the magic). All clones of the profile share the bytes.
    /// Between components, the bytes may be an [`Upload`](crate::upload::Upload), which has its own magic.
    pub pprof: Bytes,
}
