//! Decompresses profiles, for components that read their content.

use bytes::Bytes;

use alluvium_profile::pprof::{self, GzipError};

/// Maximum size of a profile after decompression: 512 MiB.
const MAX_BYTES: usize = 512 << 20;

/// The error of a profile that cannot be decompressed.
#[derive(Debug, thiserror::Error)]
#[error("cannot decompress the profile: {0}")]
pub(crate) struct UnpackError(#[from] GzipError);

/// Decompresses a profile to plain pprof. This takes milliseconds, so it must not run on an async thread.
pub(crate) fn unpack(profile: &Bytes) -> Result<Bytes, UnpackError> {
    Ok(pprof::gunzip(profile, MAX_BYTES)?)
}
