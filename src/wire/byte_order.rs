//! Removes byte order marks: text that begins with a mark becomes UTF-8 without a mark.
//!
//! In: bytes. Out: the same bytes, or UTF-8 text. Windows PowerShell writes UTF-16 when its output is redirected to a
//! file. Some editors write a mark before UTF-8. Without this step, the mark would become part of the first name in the
//! text.

use bytes::Bytes;

const UTF8: &[u8] = b"\xef\xbb\xbf";

/// Returns true if the bytes begin with a byte order mark.
pub fn is_marked(bytes: &[u8]) -> bool {
    bytes.starts_with(UTF8) || is_utf16(bytes)
}

/// Returns true if the bytes begin with a byte order mark of UTF-16.
pub(crate) fn is_utf16(bytes: &[u8]) -> bool {
    matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..])
}

/// Removes a byte order mark and converts UTF-16 to UTF-8. The result is at most one and a half times as long as the
/// input. Bytes without a mark and bytes that are not valid UTF-16 are returned unchanged.
pub(crate) fn without_mark(bytes: Bytes) -> Bytes {
    match bytes.as_ref() {
        [0xff, 0xfe, units @ ..] => from_utf16(units, u16::from_le_bytes).unwrap_or(bytes),
        [0xfe, 0xff, units @ ..] => from_utf16(units, u16::from_be_bytes).unwrap_or(bytes),
        utf8 if utf8.starts_with(UTF8) => bytes.slice(UTF8.len()..),
        _ => bytes,
    }
}

/// Converts UTF-16 to UTF-8; returns `None` when the bytes are not valid UTF-16.
fn from_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Bytes> {
    let (units, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let mut text = String::with_capacity(bytes.len());
    for letter in char::decode_utf16(units.iter().map(|pair| unit(*pair))) {
        text.push(letter.ok()?);
    }
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_taken_off_and_utf_16_becomes_utf_8() {
        let text = "main;caf\u{e9} \u{1f600} 3\n";
        let marked = format!("\u{feff}{text}");
        let utf16 = |bytes: fn(u16) -> [u8; 2]| marked.encode_utf16().flat_map(bytes).collect::<Bytes>();
        for bytes in [
            Bytes::from(marked.clone()),
            utf16(u16::to_le_bytes),
            utf16(u16::to_be_bytes),
            Bytes::from(text),
        ] {
            assert_eq!(without_mark(bytes), text);
        }
        // An odd number of bytes and half of a surrogate pair are not valid UTF-16.
        for bytes in [&b"\xff\xfea"[..], b"\xff\xfe\x00\xd8", b"", b"\x0a\x02\x08\x01"] {
            assert_eq!(without_mark(Bytes::copy_from_slice(bytes)), bytes);
        }
    }
}
