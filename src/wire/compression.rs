//! Compressions of a body, by their names in `Content-Encoding` and `grpc-encoding`.
//!
//! The exporters of the OpenTelemetry Collector can use all of these. Its HTTP clients call a raw block of Snappy
//! `snappy` and the framed format `x-snappy-framed`; its gRPC clients call the framed format `snappy`. The content
//! tells both apart.

use std::io::{self, Read};

use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue};

use alluvium_profile::pprof::is_gzip;

/// First chunk of a stream in Snappy's framing format. No raw block begins with these bytes: they would be a copy of
/// data before its beginning.
const SNAPPY_STREAM: &[u8] = b"\xff\x06\x00\x00sNaPpY";

/// Names that errors list as supported.
const NAMES: &str = "gzip, zstd, snappy, zlib, deflate, lz4 or identity";

/// Error of a body that cannot be decompressed.
#[derive(Debug, thiserror::Error)]
pub enum CompressionError {
    /// The header names a compression that is not supported.
    #[error("content encoding `{0}` is not supported: expected {NAMES}")]
    Unknown(String),
    /// The body is not compressed as its header says, or it is damaged.
    #[error("cannot decompress the {name} body: {source}")]
    Damaged {
        name: &'static str,
        #[source]
        source: io::Error,
    },
}

/// Compression of the bytes of a body on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    Identity,
    /// gzip, of one or several members.
    Gzip,
    /// Zstandard with windows of up to 8 MiB.
    Zstd,
    /// Snappy, framed or as one raw block.
    Snappy,
    /// zlib (RFC 1950). HTTP calls it `deflate`.
    Zlib,
    /// LZ4 in its frame format, not as single blocks.
    Lz4,
}

impl Compression {
    /// Returns the compression of a body for which a header names this compression. If the header names none, but the
    /// body begins like gzip, the body is gzip: no protobuf message begins with these bytes, because 0x1f would be a
    /// field of wire type 7, and no JSON or other text does.
    #[must_use]
    pub fn or_detected(self, body: &[u8]) -> Self {
        match self {
            Self::Identity if is_gzip(body) => Self::Gzip,
            named => named,
        }
    }

    /// Like [`Compression::or_detected`], for a body whose own format may be gzip. `is_packed` returns true if the gzip
    /// is around the format instead. The function is called only if no header names a compression.
    #[must_use]
    pub fn or_packed(self, body: &[u8], is_packed: impl FnOnce(&[u8]) -> bool) -> Self {
        let detected = self.or_detected(body);
        if detected == self || is_packed(body) {
            detected
        } else {
            self
        }
    }

    /// Returns the compression that `Content-Encoding` names.
    pub fn read(headers: &HeaderMap) -> Result<Self, CompressionError> {
        Self::named(headers.get(CONTENT_ENCODING))
    }

    /// Returns the compression that a header value names; identity when there is no value.
    pub fn named(value: Option<&HeaderValue>) -> Result<Self, CompressionError> {
        Self::of_name(value.map_or("", |value| value.to_str().unwrap_or("?")))
    }

    /// Returns the compression with this name; identity for an empty name.
    pub fn of_name(name: &str) -> Result<Self, CompressionError> {
        match name.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            "snappy" | "x-snappy-framed" => Ok(Self::Snappy),
            "zlib" | "deflate" => Ok(Self::Zlib),
            "lz4" => Ok(Self::Lz4),
            other => Err(CompressionError::Unknown(other.to_owned())),
        }
    }

    /// Returns the name used in `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Compression::Identity => "identity",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Snappy => "snappy",
            Compression::Zlib => "zlib",
            Compression::Lz4 => "lz4",
        }
    }

    /// Decompresses a body. Returns `None` when the result exceeds `max_bytes`, which also bounds the memory in use.
    pub fn open(self, body: &[u8], max_bytes: usize) -> Result<Option<Vec<u8>>, CompressionError> {
        let opened = match self {
            Compression::Identity => read_bounded(body, max_bytes),
            Compression::Gzip => read_bounded(flate2::read::MultiGzDecoder::new(body), max_bytes),
            Compression::Zstd => zstd::stream::read::Decoder::with_buffer(body).and_then(|mut decoder| {
                // 8 MiB is the largest window that a decoder must support (RFC 8878, section 3.1.1.1.2).
                decoder.window_log_max(23)?;
                read_bounded(decoder, max_bytes)
            }),
            Compression::Snappy if body.starts_with(SNAPPY_STREAM) => {
                read_bounded(snap::read::FrameDecoder::new(body), max_bytes)
            }
            Compression::Snappy => open_snappy_block(body, max_bytes),
            Compression::Zlib => read_bounded(flate2::read::ZlibDecoder::new(body), max_bytes),
            Compression::Lz4 => read_bounded(lz4_flex::frame::FrameDecoder::new(body), max_bytes),
        };
        opened.map_err(|source| CompressionError::Damaged {
            name: self.name(),
            source,
        })
    }
}

/// Decompresses a raw block, which begins with its decompressed length. A framed stream without content has no bytes.
fn open_snappy_block(body: &[u8], max_bytes: usize) -> io::Result<Option<Vec<u8>>> {
    if body.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let length = snap::raw::decompress_len(body)?;
    if length > max_bytes {
        return Ok(None);
    }
    Ok(Some(snap::raw::Decoder::new().decompress_vec(body)?))
}

/// Reads all bytes, or returns `None` if there are more than `max_bytes`. The buffer is allocated at full size, because
/// a growing buffer exists twice while it is copied. Unused capacity takes no physical memory.
fn read_bounded(reader: impl Read, max_bytes: usize) -> io::Result<Option<Vec<u8>>> {
    let mut out = Vec::with_capacity(max_bytes.saturating_add(1));
    reader
        .take((max_bytes as u64).saturating_add(1))
        .read_to_end(&mut out)?;
    Ok((out.len() <= max_bytes).then_some(out))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// Returns `plain` in every compression that has another form than identity.
    fn packed(plain: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(plain).unwrap();
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(plain).unwrap();
        let zlib = zlib.finish().unwrap();
        let mut framed = snap::write::FrameEncoder::new(Vec::new());
        framed.write_all(plain).unwrap();
        let framed = framed.into_inner().unwrap();
        let block = snap::raw::Encoder::new().compress_vec(plain).unwrap();
        let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
        lz4.write_all(plain).unwrap();
        vec![
            ("gzip", gzip.finish().unwrap()),
            ("zstd", zstd::encode_all(plain, 1).unwrap()),
            ("snappy", framed.clone()),
            ("x-snappy-framed", framed),
            ("snappy", block),
            ("zlib", zlib.clone()),
            ("deflate", zlib),
            ("lz4", lz4.finish().unwrap()),
        ]
    }

    #[test]
    fn every_compression_of_the_collector_is_opened_up_to_the_limit() {
        let zeros = vec![0; 1 << 20];
        for (name, body) in packed(&zeros) {
            let compression = Compression::of_name(name).unwrap();
            let length = |limit| compression.open(&body, limit).unwrap().map(|bytes| bytes.len());
            assert_eq!(length(zeros.len()), Some(zeros.len()), "{name}");
            assert_eq!(length(zeros.len() - 1), None, "{name}");
            let half = &body[..body.len() / 2];
            assert!(compression.open(half, 1 << 21).is_err(), "half of {name}");
        }
    }

    #[test]
    fn a_body_without_content_is_opened() {
        for (name, body) in packed(&[]) {
            let compression = Compression::of_name(name).unwrap();
            assert_eq!(compression.open(&body, 0).unwrap(), Some(Vec::new()), "{name}");
        }
    }

    #[test]
    fn damaged_bodies_and_unknown_names_are_refused() {
        for name in ["gzip", "zstd", "snappy", "zlib", "lz4"] {
            let error = Compression::of_name(name).unwrap().open(b"garbage", 1000).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
        let error = Compression::of_name("br").unwrap_err();
        assert_eq!(
            error.to_string(),
            "content encoding `br` is not supported: expected gzip, zstd, snappy, zlib, deflate, lz4 or identity"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_let_a_decompressor_panic_or_exceed_the_limit(raw: Vec<u8>, limit in 0_usize..1000) {
            for name in ["gzip", "zstd", "snappy", "zlib", "lz4"] {
                if let Ok(Some(bytes)) = Compression::of_name(name).unwrap().open(&raw, limit) {
                    assert!(bytes.len() <= limit);
                }
            }
        }
    }
}
