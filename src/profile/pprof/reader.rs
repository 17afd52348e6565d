//! Reads protobuf's wire format from a slice: tags, varints and nested messages, with absolute offsets for errors.
//!
//! The reader does not interpret profiles. It copies and allocates nothing, and no input makes it panic.

use crate::pprof::error::{DecodeError, DecodeErrorKind};

/// Wire type of int64, uint64, bool.
pub const VARINT: u8 = 0;
/// Wire type of strings, messages and packed numbers.
pub const BYTES: u8 = 2;

const FIXED64: u8 = 1;
const FIXED32: u8 = 5;

/// A message while it is read. `data` starts where the outermost message starts and ends where this message ends, so
/// that `position` is the offset in the input.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    data: &'a [u8],
    position: usize,
}

/// Number and wire type of a field.
#[derive(Clone, Copy)]
pub struct Tag {
    pub field: u32,
    pub wire: u8,
}

impl<'a> Reader<'a> {
    /// Creates a reader of `data` from `position` on.
    pub fn new(data: &'a [u8], position: usize) -> Self {
        Self { data, position }
    }

    /// Returns the offset of the next byte.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns true at the end of the message.
    pub(crate) fn is_at_end(&self) -> bool {
        self.position >= self.data.len()
    }

    /// Returns the bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.data.get(self.position..).unwrap_or_default()
    }

    /// Creates an error at the next byte.
    #[cold]
    pub(crate) fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError {
            offset: self.position,
            kind,
        }
    }

    /// Reads the next tag. Returns `None` at the end of the message.
    #[inline]
    pub fn tag(&mut self) -> Result<Option<Tag>, DecodeError> {
        let Some(&byte) = self.data.get(self.position) else {
            return Ok(None);
        };
        // Fields 1 to 15 have tags of one byte.
        if (8..0x80).contains(&byte) {
            self.position += 1;
            return Ok(Some(Tag {
                field: u32::from(byte >> 3),
                wire: byte & 7,
            }));
        }
        self.long_tag().map(Some)
    }

    #[cold]
    fn long_tag(&mut self) -> Result<Tag, DecodeError> {
        let start = *self;
        let tag = self.varint()?;
        let number = tag >> 3;
        if number == 0 || number >= 1 << 29 {
            return Err(start.error(DecodeErrorKind::FieldNumber(number)));
        }
        Ok(Tag {
            field: number as u32,
            wire: (tag & 7) as u8,
        })
    }

    /// Reads a varint of at most ten bytes.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        match *self.rest() {
            [one, ..] if one < 0x80 => {
                self.position += 1;
                Ok(u64::from(one))
            }
            [one, two, ..] if two < 0x80 => {
                self.position += 2;
                Ok(u64::from(one & 0x7f) | u64::from(two) << 7)
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for (index, &byte) in self.rest().iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                // The tenth byte holds only one bit.
                if index == 9 && byte > 1 {
                    break;
                }
                self.position += index + 1;
                return Ok(value);
            }
        }
        let kind = if self.rest().len() < 10 {
            DecodeErrorKind::TruncatedVarint
        } else {
            DecodeErrorKind::OverlongVarint
        };
        Err(self.error(kind))
    }

    /// Returns the length-delimited field that starts here as a separate reader.
    #[inline]
    pub fn message(&mut self) -> Result<Reader<'a>, DecodeError> {
        let length = self.varint()?;
        let left = self.data.len() - self.position;
        if length > left as u64 {
            return Err(self.error(DecodeErrorKind::TruncatedField { length, left }));
        }
        let start = self.position;
        self.position += length as usize;
        Ok(Reader {
            data: &self.data[..self.position],
            position: start,
        })
    }

    /// Skips the value of an unknown field.
    pub fn skip(&mut self, tag: Tag) -> Result<(), DecodeError> {
        match tag.wire {
            VARINT => self.varint().map(drop),
            BYTES => self.message().map(drop),
            FIXED64 => self.advance(8),
            FIXED32 => self.advance(4),
            other => Err(self.error(DecodeErrorKind::UnknownWireType(other))),
        }
    }

    fn advance(&mut self, length: usize) -> Result<(), DecodeError> {
        let left = self.data.len() - self.position;
        if length > left {
            let length = length as u64;
            return Err(self.error(DecodeErrorKind::TruncatedField { length, left }));
        }
        self.position += length;
        Ok(())
    }

    /// Creates the error for a known field with a wrong or unknown wire type.
    #[cold]
    pub(crate) fn wrong_wire_type(&self, message: &'static str, tag: Tag) -> DecodeError {
        self.error(match tag.wire {
            VARINT | BYTES | FIXED64 | FIXED32 => DecodeErrorKind::WrongWireType {
                message,
                field: tag.field,
                wire: tag.wire,
            },
            other => DecodeErrorKind::UnknownWireType(other),
        })
    }
}
