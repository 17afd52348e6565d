//! Reads the primitive values of a recording from a slice, with absolute offsets for errors.
//!
//! Numbers have seven bits per byte, lowest first, except for the ninth byte, which has eight. The reader does
//! not interpret events. It copies and allocates nothing, and no input makes it panic.

use std::borrow::Cow;

use crate::jfr::error::{JfrError, JfrErrorKind};

/// A part of a recording. `data` starts where the file starts and ends where the part ends.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    data: &'a [u8],
    position: usize,
}

/// A string, as encoded in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text<'a> {
    /// A missing or empty string.
    Empty,
    /// The number of a string in the pool of strings.
    Constant(u64),
    /// UTF-8 bytes that are not checked yet.
    Utf8(&'a [u8]),
    /// Latin 1: one byte per character.
    Latin1(&'a [u8]),
    /// UTF-16 units, each a compressed number.
    Units(&'a [u8]),
}

impl<'a> Reader<'a> {
    /// Creates a reader of `data` from `position` on.
    pub(super) fn new(data: &'a [u8], position: usize) -> Self {
        Self { data, position }
    }

    /// Returns the offset of the next byte.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Returns the number of bytes not read yet.
    pub(super) fn remaining(&self) -> usize {
        self.data.len().saturating_sub(self.position)
    }

    /// Returns a reader of the same bytes from another position on.
    pub(super) fn with_position(&self, position: usize) -> Self {
        Self { position, ..*self }
    }

    /// Splits off the next `length` bytes as a separate reader.
    pub(super) fn part(&mut self, length: u64) -> Result<Self, JfrError> {
        let start = self.position;
        self.bytes(length)?;
        let data = self.data.get(..self.position).unwrap_or_default();
        Ok(Self::new(data, start))
    }

    /// Creates an error at the next byte.
    #[cold]
    pub(super) fn error(&self, kind: JfrErrorKind) -> JfrError {
        JfrError {
            offset: self.position,
            kind,
        }
    }

    #[cold]
    fn truncated(&self, needed: u64) -> JfrError {
        let left = self.remaining();
        self.error(JfrErrorKind::Truncated { needed, left })
    }

    /// Reads the next `length` bytes.
    pub(super) fn bytes(&mut self, length: u64) -> Result<&'a [u8], JfrError> {
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| self.position.checked_add(length));
        match end.and_then(|end| Some((end, self.data.get(self.position..end)?))) {
            Some((end, bytes)) => {
                self.position = end;
                Ok(bytes)
            }
            None => Err(self.truncated(length)),
        }
    }

    /// Reads an uncompressed number of `N` bytes, big endian.
    pub(super) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], JfrError> {
        let bytes = self.bytes(N as u64)?;
        // The slice has exactly N bytes.
        bytes.try_into().map_err(|_| self.truncated(N as u64))
    }

    /// Reads the next single byte.
    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, JfrError> {
        let byte = self.data.get(self.position).copied();
        match byte {
            Some(byte) => {
                self.position += 1;
                Ok(byte)
            }
            None => Err(self.truncated(1)),
        }
    }

    /// Reads a number of one to nine bytes.
    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, JfrError> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..56).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Ok(value | u64::from(self.byte()?) << 56)
    }

    /// Reads a string in any of the encodings.
    pub(super) fn text(&mut self) -> Result<Text<'a>, JfrError> {
        let start = *self;
        match self.byte()? {
            0 | 1 => Ok(Text::Empty),
            2 => self.number().map(Text::Constant),
            3 => {
                let length = self.number()?;
                self.bytes(length).map(Text::Utf8)
            }
            4 => {
                let count = self.number()?;
                // Every unit takes at least one byte.
                if count > self.remaining() as u64 {
                    return Err(self.truncated(count));
                }
                let first = self.position;
                for _ in 0..count {
                    self.number()?;
                }
                Ok(Text::Units(self.data.get(first..self.position).unwrap_or_default()))
            }
            5 => {
                let length = self.number()?;
                self.bytes(length).map(Text::Latin1)
            }
            encoding => Err(start.error(JfrErrorKind::TextEncoding(encoding))),
        }
    }
}

impl<'a> Text<'a> {
    /// Returns the number of bytes of the encoded text.
    pub(super) fn length(self) -> usize {
        match self {
            Self::Utf8(bytes) | Self::Latin1(bytes) | Self::Units(bytes) => bytes.len(),
            Self::Empty | Self::Constant(_) => 0,
        }
    }

    /// Returns the decoded text. Invalid characters are replaced. A [`Text::Constant`] becomes the empty text: the
    /// caller must resolve it first.
    pub(super) fn characters(self) -> Cow<'a, str> {
        match self {
            Self::Empty | Self::Constant(_) => Cow::Borrowed(""),
            Self::Utf8(bytes) => String::from_utf8_lossy(bytes),
            Self::Latin1(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if text.is_ascii() => Cow::Borrowed(text),
                _ => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
            },
            Self::Units(bytes) => {
                let mut reader = Reader::new(bytes, 0);
                let units = std::iter::from_fn(|| reader.number().ok());
                // A number beyond 16 bits becomes a lone surrogate, which the decoder replaces.
                let units = units.map(|unit| u16::try_from(unit).unwrap_or(0xd800));
                let characters = char::decode_utf16(units);
                Cow::Owned(
                    characters
                        .map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER))
                        .collect(),
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_seven_bits_a_byte_and_the_ninth_has_eight() {
        for (bytes, value) in [
            (&[0x05][..], 5),
            (&[0x80, 0x01], 128),
            (&[0xff; 9], u64::MAX),
            (&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80], 1 << 63),
        ] {
            let mut reader = Reader::new(bytes, 0);
            assert_eq!(reader.number(), Ok(value));
            assert_eq!(reader.remaining(), 0);
        }
        let error = Reader::new(&[0x80], 0).number().unwrap_err();
        assert_eq!(
            (error.offset, error.to_string().as_str()),
            (1, "malformed recording at byte 1: 1 bytes are needed, 0 are left")
        );
    }

    #[test]
    fn strings_are_read_in_every_encoding() {
        for (bytes, text) in [
            (&[0][..], ""),
            (&[1], ""),
            (&[2, 7], ""),
            (b"\x03\x04caf\xc3", "caf\u{fffd}"),
            (b"\x03\x05caf\xc3\xa9", "caf\u{e9}"),
            (b"\x05\x04caf\xe9", "caf\u{e9}"),
            (b"\x05\x04cafe", "cafe"),
            (&[4, 2, b'a', 0xe9, 0x01], "a\u{e9}"),
            (&[4, 2, 0xbd, 0xb0, 0x03, 0x80, 0xb8, 0x03], "\u{1f400}"),
            (&[4, 1, 0x80, 0xb0, 0x03], "\u{fffd}"),
        ] {
            let mut reader = Reader::new(bytes, 0);
            assert_eq!(reader.text().unwrap().characters(), text, "{bytes:?}");
            assert_eq!(reader.remaining(), 0, "{bytes:?}");
        }
        for bytes in [&[6][..], &[3, 9, b'a'], &[5, 2, b'a'], &[4, 3, b'a'], &[2], &[]] {
            Reader::new(bytes, 0).text().unwrap_err();
        }
    }
}
