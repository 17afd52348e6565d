//! Decompresses profiles, for components that read their content.

use bytes::Bytes;

use alluvium_profile::pprof;

/// Maximum size of a profile after decompression: 512 MiB.
const MAX_BYTES: usize = 512 << 20;

/// Decompresses a profile to plain pprof. This takes milliseconds, so it must not run on an async thread.
pub(crate) fn unpack(profile: &Bytes) -> Result<Bytes, String> {
    pprof::gunzip(profile, MAX_BYTES).map_err(|error| format!("cannot decompress the profile: {error}"))
}
