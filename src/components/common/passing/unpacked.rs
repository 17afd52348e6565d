//! Decompresses profiles, for components that look into them.

use bytes::Bytes;

use crate::profile::pprof;

/// Largest profile after decompression, 512 MiB.
const MAX_BYTES: usize = 512 << 20;

/// Decompresses a profile to plain pprof. Takes milliseconds: must run off the runtime's threads.
pub(crate) fn unpack(profile: &Bytes) -> Result<Bytes, String> {
    pprof::gunzip(profile, MAX_BYTES).map_err(|error| format!("cannot unpack the profile: {error}"))
}
