//! gzip around profiles: detection by magic, bounded decompression, and compression.
//!
//! This module does not check the profile inside.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compression, Decompress, FlushDecompress, Status};

/// First bytes of every gzip file.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Number of bytes of a member's header without options, and of the trailer (checksum and length).
const HEADER_BYTES: usize = 10;
const TRAILER_BYTES: usize = 8;

/// Number of bytes of gzip from which [`gunzip_start`] decompresses.
const START_BYTES: usize = 16 << 10;

/// Largest expansion ratio of deflate. A trailer that announces more is wrong and must not cause an allocation.
pub const MAX_RATIO: usize = 1032;

/// The bytes could not be decompressed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GzipError {
    /// There are more bytes than the limit allows.
    #[error("profile exceeds {limit} bytes uncompressed")]
    TooLarge {
        /// Maximum number of bytes that was allowed.
        limit: usize,
    },
    /// The bytes are not valid gzip.
    #[error("corrupt gzip: {0}")]
    Corrupt(String),
}

/// Returns true if `data` starts like gzip. No uncompressed profile starts with these bytes, because 0x1f would be a
/// field of wire type 7.
pub fn is_gzip(data: &[u8]) -> bool {
    data.starts_with(&MAGIC)
}

/// Returns the uncompressed size that `data` announces, but at most `max_bytes`. For gzip, this is the length in the
/// last member's trailer, otherwise the length of the data. The size may be wrong, so a caller that relies on it must
/// also use it as the limit for decompression.
pub fn announced_size(data: &[u8], max_bytes: usize) -> usize {
    let size = if is_gzip(data) {
        data.last_chunk::<4>()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
    } else {
        data.len()
    };
    size.min(max_bytes)
}

/// Decompresses gzip of at most `max_bytes` uncompressed bytes. The contents of several consecutive members are
/// concatenated. Input that is not gzip is returned unchanged, without a copy, if it is within the limit.
pub fn gunzip(data: &Bytes, max_bytes: usize) -> Result<Bytes, GzipError> {
    if !is_gzip(data) {
        return if data.len() > max_bytes {
            Err(GzipError::TooLarge { limit: max_bytes })
        } else {
            Ok(data.clone())
        };
    }
    // The last four bytes are the length of the last member, so one allocation is usually enough.
    let announced_length = data
        .last_chunk::<4>()
        .map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
    let capacity = announced_length
        .min(max_bytes)
        .min(data.len().saturating_mul(MAX_RATIO));
    if capacity == announced_length
        && let Some(plain) = one_member(data, announced_length)
    {
        return Ok(plain.into());
    }
    // One extra byte lets the reader reach the end without growing the buffer.
    let mut plain = Vec::with_capacity(capacity.saturating_add(1));
    let limit = (max_bytes as u64).saturating_add(1);
    MultiGzDecoder::new(data.as_ref())
        .take(limit)
        .read_to_end(&mut plain)
        .map_err(|error| GzipError::Corrupt(error.to_string()))?;
    if plain.len() > max_bytes {
        return Err(GzipError::TooLarge { limit: max_bytes });
    }
    Ok(plain.into())
}

/// Returns the first bytes of the contents of gzip, at most `max_bytes`. Reads at most 16 KiB of `data`. The result is
/// shorter if the contents are shorter or damaged.
pub fn gunzip_start(data: &[u8], max_bytes: usize) -> Vec<u8> {
    let mut start = Vec::new();
    let mut reader = MultiGzDecoder::new(&data[..data.len().min(START_BYTES)]).take(max_bytes as u64);
    // An error ends the contents, because the bytes that were read before it stay in the buffer.
    let _ = reader.read_to_end(&mut start);
    start
}

/// Decompresses the most common file, one member with a bare header, in one call into a buffer of its exact size. A
/// streaming reader would copy deflate's window after each step. Returns `None` for any other file, including a damaged
/// one, which the caller then reads step by step to determine the error.
fn one_member(data: &[u8], length: usize) -> Option<Vec<u8>> {
    let (header, rest) = data.split_first_chunk::<HEADER_BYTES>()?;
    // The method must be deflate without flags, so that no name, comment or header checksum follows.
    if header[2..4] != [8, 0] {
        return None;
    }
    let (body, trailer) = rest.split_last_chunk::<TRAILER_BYTES>()?;
    let mut plain = Vec::with_capacity(length);
    let mut inflate = Decompress::new(false);
    let status = inflate.decompress_vec(body, &mut plain, FlushDecompress::Finish).ok()?;
    let is_complete = status == Status::StreamEnd
        && inflate.total_in() == body.len() as u64
        && inflate.total_out() == length as u64
        && crc32fast::hash(&plain).to_le_bytes() == trailer[..4];
    is_complete.then_some(plain)
}

/// Compresses at a level that costs little CPU, as Go's runtime does for its own profiles.
pub fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 2), Compression::fast());
    // Writing into a Vec cannot fail.
    let _ = encoder.write_all(plain);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_opened_and_plain_bytes_pass_unchanged() {
        let plain = Bytes::from_static(b"\x0a\x00profile");
        assert_eq!(gunzip(&plain, 100).unwrap().as_ptr(), plain.as_ptr());
        assert_eq!(gunzip(&gzip(&plain).into(), 100).unwrap(), plain);
        let two = [gzip(b"one"), gzip(b"two")].concat();
        assert_eq!(gunzip(&two.into(), 6).unwrap(), "onetwo");
    }

    #[test]
    fn the_start_is_read_as_far_as_the_bytes_are_valid() {
        let text = b"main;work 1\n".repeat(100);
        let packed = gzip(&text);
        assert_eq!(gunzip_start(&packed, 9), b"main;work");
        assert_eq!(gunzip_start(&packed, 1 << 20), text);
        let cut = gunzip_start(&packed[..packed.len() - 8], 1 << 20);
        assert!(text.starts_with(&cut));
        assert_eq!(gunzip_start(&[gzip(b"one"), b"rest".to_vec()].concat(), 100), b"one");
        for damaged in [&b"\x1f\x8b"[..], b"\x1f\x8b\x08\x00", b"plain", b""] {
            assert_eq!(gunzip_start(damaged, 100), b"");
        }
    }

    #[test]
    fn names_in_the_header_and_empty_members_change_nothing() {
        let mut named = flate2::GzBuilder::new()
            .filename("profile")
            .write(Vec::new(), Compression::best());
        named.write_all(b"profile profile profile").unwrap();
        let named = named.finish().unwrap();
        assert_eq!(gunzip(&named.clone().into(), 23).unwrap(), "profile profile profile");
        let after = [named, gzip(b"")].concat();
        assert_eq!(gunzip(&after.into(), 23).unwrap(), "profile profile profile");
        assert_eq!(gunzip(&gzip(b"").into(), 0).unwrap(), "");
        let (long_text, end_member) = (vec![b'x'; 5000], gzip(b"end"));
        let members = [gzip(&long_text), end_member].concat();
        assert_eq!(gunzip(&members.into(), 6000).unwrap().len(), 5003);
    }

    #[test]
    fn a_length_that_is_a_lie_is_corrupt() {
        for length in [0u32, 1, 69, 71, u32::MAX] {
            let mut compressed = gzip(b"some text that is long enough to be compressed, compressed, compressed");
            let length_offset = compressed.len() - 4;
            compressed[length_offset..].copy_from_slice(&length.to_le_bytes());
            assert!(
                matches!(gunzip(&compressed.into(), 1000), Err(GzipError::Corrupt(_))),
                "{length}"
            );
        }
    }

    #[test]
    fn the_limit_counts_uncompressed_bytes_and_allows_exactly_itself() {
        let zeros = Bytes::from(gzip(&vec![0; 1_000_000]));
        assert_eq!(gunzip(&zeros, 1_000_000).unwrap().len(), 1_000_000);
        assert_eq!(gunzip(&zeros, 999_999), Err(GzipError::TooLarge { limit: 999_999 }));
        assert_eq!(
            gunzip(&Bytes::from_static(b"abc"), 2),
            Err(GzipError::TooLarge { limit: 2 })
        );
    }

    #[test]
    fn damaged_gzip_is_corrupt_wherever_it_is_damaged() {
        let compressed = gzip(b"some text that is long enough to be compressed, compressed, compressed");
        for length in 2..compressed.len() {
            let truncated = Bytes::copy_from_slice(&compressed[..length]);
            assert!(matches!(gunzip(&truncated, 1000), Err(GzipError::Corrupt(_))));
        }
        let mut wrong_checksum = compressed.clone();
        let position = compressed.len() - 6;
        wrong_checksum[position] ^= 1;
        assert!(matches!(
            gunzip(&wrong_checksum.into(), 1000),
            Err(GzipError::Corrupt(_))
        ));
    }
}
