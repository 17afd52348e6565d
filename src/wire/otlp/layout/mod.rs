//! Older layouts of OTLP profiles in protobuf, and their conversion to the current one.
//!
//! In: the body of an export request. Out: the same body in the current layout, or an error for a layout that is too
//! old. OTLP 1.10 changed the field numbers of `Sample`, and OTLP 1.9 those of `Profile`. A request does not state its
//! version, so the layout follows from the wire types of its fields:
//!
//! | message | field | 1.8 | 1.9 | 1.10 |
//! | --- | --- | --- | --- | --- |
//! | `Sample` | 2 | `values` | `values` | `attribute_indices` |
//! | `Sample` | 3 | `attribute_indices` | `attribute_indices` | `link_index` |
//! | `Sample` | 4 | `link_index` | `link_index` | `values` |
//! | `Profile` | 7 | `comment_strindices` | `profile_id` | `profile_id` |
//! | `Profile` | 8 to 12 | as 7 to 11 in 1.9 | | |
//!
//! Lists are packed, so each index and each list has its own wire type. A sample with only `values` may be a sample
//! with only `attribute_indices`; [`Signs`] describes how these requests are told apart. JSON has names instead of
//! numbers, and `json` accepts the older ones.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use crate::connect::{Codec, ConnectError};
use alluvium_profile::pprof::{BYTES, DecodeError, Reader, VARINT};

/// Number of a field that no message has, so that the decoder skips it.
const UNUSED: u32 = 15;

/// Converts the body of an export request to the current layout. A body that is already in this layout, JSON, and a
/// body that is no request are returned unchanged. The conversion replaces bytes in place and changes no length.
pub fn upgrade(codec: Codec, body: Bytes) -> Result<Bytes, ConnectError> {
    if codec == Codec::Json {
        return Ok(body);
    }
    match Signs::read(&body).map(|signs| signs.layout()) {
        // The decoder explains why the body is no request.
        Err(_) | Ok(Layout::Current) => Ok(body),
        Ok(Layout::TooOld) => Err(ConnectError::invalid(
            "the profiles have the layout of OTLP 1.7 or older: the sender must support OTLP 1.8 or newer",
        )),
        Ok(layout) => rewrite(layout, body)
            .map_err(|error| ConnectError::invalid(format!("cannot read the body as protobuf: {error}"))),
    }
}

/// Replaces the field numbers of a layout by the current ones.
fn rewrite(layout: Layout, body: Bytes) -> Result<Bytes, DecodeError> {
    // No other part of the program uses the body, so this does not copy it.
    let mut bytes: BytesMut = body.into();
    let message = 0..bytes.len();
    walk(&mut bytes, Place::Request, message, &mut |bytes, place, step| {
        if let Step::Field(field) = step
            && let Some(number) = layout.current_number(place, field.number)
            && let Some(tag) = bytes.get_mut(field.start)
        {
            // The number of a field below 16 is in the first byte of its tag, also if the tag is longer than needed.
            *tag = *tag & 0x87 | (number as u8) << 3;
        }
    })?;
    Ok(bytes.freeze())
}

/// The layout of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// The layout of OTLP 1.10, which newer versions have as well.
    Current,
    /// The layout of OTLP 1.9 only.
    Otlp9,
    /// The layout of OTLP 1.8 only.
    Otlp8,
    /// OTLP 1.7 and older, whose stacks are not in a table.
    TooOld,
}

impl Layout {
    /// Returns the current number of a field in this layout, or `None` if the number is the same.
    fn current_number(self, place: Place, number: u32) -> Option<u32> {
        match (place, number) {
            (Place::Sample, 2) => Some(4),
            (Place::Sample, 3 | 4) => Some(number - 1),
            (Place::Profile, 7) if self == Self::Otlp8 => Some(UNUSED),
            (Place::Profile, 8..=12) if self == Self::Otlp8 => Some(number - 1),
            _ => None,
        }
    }
}

/// What a request shows about its layout.
///
/// If a sample has both an index and a list of another kind, or any field that the layouts encode differently, the
/// layout is certain. Otherwise all samples have only field 2, either values or attributes, and possibly timestamps.
/// Then the request is in an older layout only if field 2 cannot be attributes, and can be values: a sample has neither
/// values nor timestamps, or an attribute is missing from the table; and no sample has another number of timestamps.
#[derive(Debug, Default)]
struct Signs {
    /// Samples of OTLP 1.10: field 3 is a number, or field 4 a list.
    has_current_samples: bool,
    /// Samples of OTLP 1.8 or 1.9: field 3 is a list, or field 4 a number.
    has_older_samples: bool,
    /// Profiles of OTLP 1.8: field 8 is an id, or another field is at its place of then.
    has_profiles_of_8: bool,
    /// Profiles or samples of OTLP 1.7 and older.
    is_too_old: bool,
    /// Number of entries in the table of attributes.
    attributes: u64,
    /// The sample that is being read.
    sample: SampleSigns,
    /// Largest number in field 2 of the samples without fields 3 and 4.
    largest: u64,
    /// Such a sample has no timestamps.
    has_untimed: bool,
    /// Such a sample has a different number of timestamps.
    has_other_times: bool,
}

/// What the fields of a sample say about the layout.
#[derive(Debug, Default)]
struct SampleSigns {
    is_certain: bool,
    numbers: usize,
    largest: u64,
    times: usize,
}

impl Signs {
    fn read(mut body: &[u8]) -> Result<Self, DecodeError> {
        let mut signs = Self::default();
        let message = 0..body.len();
        walk(&mut body, Place::Request, message, &mut |bytes, place, step| {
            signs.add(bytes, place, step);
        })?;
        Ok(signs)
    }

    fn add(&mut self, bytes: &[u8], place: Place, step: Step<'_>) {
        match (place, step) {
            (Place::Sample, Step::End) => self.end_sample(),
            (Place::Sample, Step::Field(field)) => self.add_sample(bytes, field),
            (Place::Profile, Step::Field(field)) => match (field.number, field.wire) {
                (3 | 6 | 13, BYTES) => self.is_too_old = true,
                (8, BYTES) | (9, VARINT) | (12, _) => self.has_profiles_of_8 = true,
                _ => {}
            },
            // OTLP 1.8 has the aggregation temporality here.
            (Place::ValueType, Step::Field(field)) => self.has_profiles_of_8 |= field.number == 3,
            (Place::Dictionary, Step::Field(field)) => self.attributes += u64::from(field.number == 6),
            _ => {}
        }
    }

    fn add_sample(&mut self, bytes: &[u8], field: &Field) {
        let content = bytes.get(field.content.clone()).unwrap_or_default();
        match (field.number, field.wire) {
            (2, BYTES | VARINT) => {
                let mut numbers = Reader::new(content, 0);
                while !numbers.rest().is_empty()
                    && let Ok(number) = numbers.varint()
                {
                    self.sample.numbers += 1;
                    self.sample.largest = self.sample.largest.max(number);
                }
            }
            (3, BYTES) | (4, VARINT) => {
                self.sample.is_certain = true;
                self.has_older_samples = true;
            }
            (3, VARINT) | (4, BYTES) => {
                self.sample.is_certain = true;
                self.has_current_samples = true;
            }
            (5, _) => self.sample.times += content.len() / 8,
            (6, _) => self.is_too_old = true,
            _ => {}
        }
    }

    fn end_sample(&mut self) {
        let sample = std::mem::take(&mut self.sample);
        if sample.is_certain || sample.numbers == 0 {
            return;
        }
        self.largest = self.largest.max(sample.largest);
        self.has_untimed |= sample.times == 0;
        self.has_other_times |= sample.times != 0 && sample.times != sample.numbers;
    }

    fn layout(&self) -> Layout {
        if self.is_too_old {
            Layout::TooOld
        } else if self.has_current_samples {
            Layout::Current
        } else if self.has_profiles_of_8 {
            Layout::Otlp8
        } else if self.has_older_samples || self.must_be_values() {
            Layout::Otlp9
        } else {
            Layout::Current
        }
    }

    /// Returns true if field 2 of the samples without other fields must be values.
    fn must_be_values(&self) -> bool {
        !self.has_other_times && (self.has_untimed || self.largest >= self.attributes.max(1))
    }
}

/// A message whose fields the layouts number differently, or that contains such messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Request,
    Resource,
    Scope,
    Profile,
    ValueType,
    Sample,
    Dictionary,
}

impl Place {
    /// Returns the message that a field contains, if it is one of these messages.
    fn inner(self, number: u32) -> Option<Self> {
        match (self, number) {
            (Self::Request, 1) => Some(Self::Resource),
            (Self::Request, 2) => Some(Self::Dictionary),
            (Self::Resource, 2) => Some(Self::Scope),
            (Self::Scope, 2) => Some(Self::Profile),
            (Self::Profile, 1) => Some(Self::ValueType),
            (Self::Profile, 2) => Some(Self::Sample),
            _ => None,
        }
    }
}

/// What [`walk`] finds in a message.
enum Step<'f> {
    Field(&'f Field),
    /// The end of the message.
    End,
}

/// A field of an encoded message.
struct Field {
    number: u32,
    wire: u8,
    /// Offset of the tag in the message.
    start: usize,
    /// Offsets of the value, without the length of a list or message.
    content: Range<usize>,
}

/// Visits the fields of a message and of the messages in it, in the order of the body.
fn walk<B: AsRef<[u8]>>(
    bytes: &mut B,
    place: Place,
    message: Range<usize>,
    visit: &mut impl FnMut(&mut B, Place, Step<'_>),
) -> Result<(), DecodeError> {
    let mut start = message.start;
    while let Some(field) = field_at(bytes.as_ref(), start, message.end)? {
        start = field.content.end;
        visit(bytes, place, Step::Field(&field));
        if field.wire == BYTES
            && let Some(inner) = place.inner(field.number)
        {
            walk(bytes, inner, field.content, visit)?;
        }
    }
    visit(bytes, place, Step::End);
    Ok(())
}

/// Reads the field at an offset. Returns `None` at the end of the message.
fn field_at(bytes: &[u8], start: usize, end: usize) -> Result<Option<Field>, DecodeError> {
    let mut reader = Reader::new(bytes.get(..end).unwrap_or_default(), start);
    let Some(tag) = reader.tag()? else { return Ok(None) };
    let content_start = if tag.wire == BYTES {
        reader.message()?.position()
    } else {
        let position = reader.position();
        reader.skip(tag)?;
        position
    };
    Ok(Some(Field {
        number: tag.field,
        wire: tag.wire,
        start,
        content: content_start..reader.position(),
    }))
}

#[cfg(test)]
mod tests;
