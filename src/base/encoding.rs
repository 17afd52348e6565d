//! `Content-Encoding`: checks the encodings that a client accepts, and compresses responses with gzip.
//!
//! In: headers and bytes. Out: whether the client accepts an encoding, and compressed bytes. The caller decides which
//! responses to compress.

use std::io::Read;

use bytes::Bytes;
use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// Minimum size of a response to compress. Compression of a smaller response would save at most two packets.
const COMPRESS_FROM_BYTES: usize = 4096;

/// Returns true if `Accept-Encoding` lists `encoding`, unless its weight is 0.
pub fn accepts(headers: &HeaderMap, encoding: &str) -> bool {
    headers.get_all(ACCEPT_ENCODING).iter().any(|value| {
        value.to_str().unwrap_or_default().split(',').any(|entry| {
            let (name, weight) = entry.split_once(';').unwrap_or((entry, ""));
            let refused = weight
                .split_once('=')
                .is_some_and(|(_, weight)| weight.trim().parse::<f32>().is_ok_and(|weight| weight == 0.0));
            name.trim().eq_ignore_ascii_case(encoding) && !refused
        })
    })
}

/// Compresses the body with gzip. Returns `None` if the body is too small to benefit.
pub fn gzip(body: &[u8]) -> Option<Bytes> {
    if body.len() < COMPRESS_FROM_BYTES {
        return None;
    }
    let mut encoder = flate2::read::GzEncoder::new(body, flate2::Compression::fast());
    let mut out = Vec::with_capacity(body.len() / 3);
    encoder.read_to_end(&mut out).ok()?;
    Some(out.into())
}
