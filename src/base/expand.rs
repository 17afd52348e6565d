//! Expands compressed sections of ELF files up to a maximum size.
//!
//! In: a section of a file, which may be untrusted. Out: its bytes. The module first checks the size that the section's
//! header states. It stops as soon as the data exceed this size. This matters for zstd: a stream may be longer than the
//! header states, and `object` would expand it to its end.

use std::borrow::Cow;
use std::io::Read;

use object::ObjectSection;
use object::read::CompressionFormat;

/// The reason why a section cannot be read or expanded.
#[derive(Debug, thiserror::Error)]
pub enum ExpandError {
    #[error("a section has more than {0} bytes")]
    TooLong(u64),
    #[error("cannot read a section: {0}")]
    Elf(#[from] object::Error),
    #[error("a compressed section is damaged, or does not have the size that its header states")]
    Damaged,
}

/// Returns the uncompressed bytes of a section. Fails if these are more than `max` bytes.
pub fn section<'data>(section: &impl ObjectSection<'data>, max: u64) -> Result<Cow<'data, [u8]>, ExpandError> {
    if section.compressed_file_range()?.uncompressed_size > max {
        return Err(ExpandError::TooLong(max));
    }
    let packed = section.compressed_data()?;
    if packed.format != CompressionFormat::Zstandard {
        return Ok(packed.decompress()?);
    }
    let unpacked = unpack(packed.data, packed.uncompressed_size).ok_or(ExpandError::Damaged)?;
    Ok(Cow::Owned(unpacked))
}

/// Unpacks zstd. Returns `None` if the data are damaged, or if the unpacked data do not have `size` bytes.
fn unpack(packed: &[u8], size: u64) -> Option<Vec<u8>> {
    let mut unpacked = Vec::new();
    unpacked.try_reserve_exact(usize::try_from(size).ok()?).ok()?;
    let decoder = zstd::stream::read::Decoder::with_buffer(packed).ok()?;
    // One byte beyond `size` shows that the data are too long.
    decoder.take(size.checked_add(1)?).read_to_end(&mut unpacked).ok()?;
    (unpacked.len() as u64 == size).then_some(unpacked)
}

/// Removes an unterminated string at the end of a string table: the bytes after the last zero byte. Otherwise, a reader
/// would scan to the end of the section each time it reads such a string.
pub fn whole_texts(texts: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let end = texts.iter().rposition(|byte| *byte == 0).map_or(0, |last| last + 1);
    match texts {
        Cow::Borrowed(texts) => Cow::Borrowed(texts.get(..end).unwrap_or_default()),
        Cow::Owned(mut texts) => {
            texts.truncate(end);
            Cow::Owned(texts)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unpacks_to_another_size_than_it_states_is_refused_and_takes_no_more_memory() {
        let original = b"debug information ".repeat(1000);
        let packed = zstd::encode_all(original.as_slice(), 3).unwrap();
        let size = original.len() as u64;
        assert_eq!(unpack(&packed, size).as_ref(), Some(&original));
        assert_eq!([unpack(&packed, size - 1), unpack(&packed, size + 1)], [None, None]);
        let doubled = [packed.as_slice(), packed.as_slice()].concat();
        assert_eq!(
            unpack(&doubled, 2 * size).map(|unpacked| unpacked.len()),
            Some(2 * original.len())
        );
        for length in 0..packed.len() {
            assert_eq!(unpack(&packed[..length], size), None, "cut at {length}");
        }
        // 64 MiB of zeros, 64 times: 4 GiB packed into less than half a megabyte.
        let bomb = zstd::encode_all(std::io::repeat(0).take(64 << 20), 1)
            .unwrap()
            .repeat(64);
        assert!(bomb.len() < 1 << 20, "{}", bomb.len());
        assert_eq!(unpack(&bomb, 1 << 20), None);
    }
}
