//! A profile as producers give it away: bytes that nobody has looked into.

use std::sync::Arc;

use bytes::Bytes;

use crate::profile::Labels;

/// A profile on its way: labels and the bytes as they came.
#[derive(Clone, Debug)]
pub struct RawProfile {
    /// Labels of the series, `__name__` among them.
    pub labels: Labels,
    /// Id that the sender gave (a UUID in the push protocol); empty when it gave none.
    pub id: Arc<str>,
    /// pprof protobuf bytes, gzip-compressed or not (by its magic), shared by all who hold the profile. Between
    /// components it may be an [`Upload`](crate::profile::upload::Upload), which has a magic, too.
    pub pprof: Bytes,
}
