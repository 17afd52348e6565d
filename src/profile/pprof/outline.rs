//! The first pass over a profile: checks the outer framing, counts the messages, and computes the memory of the columns
//! before any column is allocated.

use crate::pprof::error::{DecodeError, DecodeErrorKind};
use crate::pprof::model::{Function, Line, Location, Mapping, SampleLabel, ValueType};
use crate::pprof::reader::{BYTES, Reader, VARINT};

// Repeated fields of `Profile`.
pub(super) const SAMPLE_TYPE: u32 = 1;
pub(super) const SAMPLE: u32 = 2;
pub(super) const MAPPING: u32 = 3;
pub(super) const LOCATION: u32 = 4;
pub(super) const FUNCTION: u32 = 5;
pub(super) const STRING_TABLE: u32 = 6;

/// Limits the memory of the columns: this many bytes for each byte of the profile, in addition to [`FREE_BYTES`].
/// Profiles of real programs take 1 to 6. Only runs of empty messages come close to the theoretical maximum of 30.
pub(crate) const MAX_EXPANSION: usize = 16;

/// Number of bytes that the columns of every profile may take regardless of its size.
pub(crate) const FREE_BYTES: usize = 64 << 10;

/// Maximum number of comments of a profile.
const MAX_COMMENTS: usize = 4096;

/// Bytes of an entry in the table for ids that are not 1, 2, 3, ...: key, value and the spare room of a hash table.
const SPARSE_ID_BYTES: usize = 28;

/// Returns the maximum number of bytes that `decode` allocates for a profile of `size` bytes.
pub fn max_column_bytes(size: usize) -> usize {
    size.saturating_mul(MAX_EXPANSION).saturating_add(FREE_BYTES)
}

/// The number of messages of one kind, and the range of the profile that contains them.
#[derive(Clone, Copy, Default)]
pub(super) struct Run {
    pub(super) count: usize,
    first: usize,
    end: usize,
}

impl Run {
    /// Iterates over readers of the messages. The framing was checked when the run was found.
    pub(super) fn messages(self, data: &[u8], field: u32) -> impl Iterator<Item = Reader<'_>> {
        let mut reader = Reader::new(data.get(..self.end).unwrap_or_default(), self.first);
        std::iter::from_fn(move || {
            while let Ok(Some(tag)) = reader.tag() {
                if tag.field == field {
                    return reader.message().ok();
                }
                reader.skip(tag).ok()?;
            }
            None
        })
    }
}

/// Result of the first pass.
#[derive(Default)]
pub(super) struct Outline<'a> {
    /// Runs by field number. Index 0 is not used.
    pub(super) runs: [Run; 7],
    pub(super) locations_in_samples: usize,
    pub(super) values: usize,
    pub(super) labels: usize,
    pub(super) period_type: Option<Reader<'a>>,
    pub(super) comments: Vec<Number>,
    pub(super) lines: usize,
    pub(super) drop_frames: Number,
    pub(super) keep_frames: Number,
    pub(super) default_sample_type: Number,
    pub(super) time_nanos: i64,
    pub(super) duration_nanos: i64,
    pub(super) period: i64,
}

/// An int64 and its offset.
#[derive(Clone, Copy, Default)]
pub(super) struct Number {
    pub(super) value: u64,
    pub(super) offset: usize,
}

impl<'a> Outline<'a> {
    pub(super) fn read(data: &'a [u8]) -> Result<Self, DecodeError> {
        let mut outline = Self::default();
        let mut reader = Reader::new(data, 0);
        loop {
            let offset = reader.position();
            let Some(tag) = reader.tag()? else {
                return Ok(outline);
            };
            match (tag.field, tag.wire) {
                (SAMPLE_TYPE..=STRING_TABLE, BYTES) => {
                    let message = reader.message()?;
                    let run = &mut outline.runs[tag.field as usize];
                    if run.count == 0 {
                        run.first = offset;
                    }
                    run.count += 1;
                    run.end = reader.position();
                    match tag.field {
                        SAMPLE => outline.count_sample(message)?,
                        LOCATION => outline.count_lines(message)?,
                        _ => {}
                    }
                }
                (7, VARINT) => outline.drop_frames = number(&mut reader)?,
                (8, VARINT) => outline.keep_frames = number(&mut reader)?,
                (9, VARINT) => outline.time_nanos = reader.varint()? as i64,
                (10, VARINT) => outline.duration_nanos = reader.varint()? as i64,
                (11, BYTES) => outline.period_type = Some(reader.message()?),
                (12, VARINT) => outline.period = reader.varint()? as i64,
                (13, VARINT) => {
                    let comment = number(&mut reader)?;
                    outline.add_comment(comment)?;
                }
                (13, BYTES) => {
                    let mut packed = reader.message()?;
                    while !packed.is_at_end() {
                        outline.add_comment(number(&mut packed)?)?;
                    }
                }
                (14, VARINT) => outline.default_sample_type = number(&mut reader)?,
                (1..=14, _) => return Err(reader.wrong_wire_type("profile", tag)),
                _ => reader.skip(tag)?,
            }
        }
    }

    /// Counts the entries of a sample. A packed field has as many numbers as bytes without the continuation bit.
    fn count_sample(&mut self, mut sample: Reader<'_>) -> Result<(), DecodeError> {
        let packed = |bytes: &[u8]| bytes.iter().filter(|byte| **byte < 0x80).count();
        while let Some(tag) = sample.tag()? {
            match (tag.field, tag.wire) {
                (1, BYTES) => self.locations_in_samples += packed(sample.message()?.rest()),
                (2, BYTES) => self.values += packed(sample.message()?.rest()),
                (3, BYTES) => {
                    sample.message()?;
                    self.labels += 1;
                }
                (1, VARINT) => {
                    sample.varint()?;
                    self.locations_in_samples += 1;
                }
                (2, VARINT) => {
                    sample.varint()?;
                    self.values += 1;
                }
                (1..=3, _) => return Err(sample.wrong_wire_type("sample", tag)),
                _ => sample.skip(tag)?,
            }
        }
        Ok(())
    }

    /// Adds a comment. The number of comments is limited, because one byte of a packed field becomes 32 bytes.
    fn add_comment(&mut self, comment: Number) -> Result<(), DecodeError> {
        if self.comments.len() == MAX_COMMENTS {
            return Err(DecodeError {
                offset: comment.offset,
                kind: DecodeErrorKind::TooManyComments { limit: MAX_COMMENTS },
            });
        }
        self.comments.push(comment);
        Ok(())
    }

    /// Returns the number of bytes that the columns will take, including tables of ids.
    pub(super) fn column_bytes(&self) -> usize {
        let count = |field: u32| self.runs[field as usize].count;
        let parts = [
            (count(SAMPLE_TYPE), size_of::<ValueType<'_>>()),
            // Start of the stack and start of the labels.
            (count(SAMPLE), 2 * size_of::<u32>()),
            (count(MAPPING), size_of::<Mapping<'_>>() + SPARSE_ID_BYTES),
            (count(LOCATION), size_of::<Location>() + SPARSE_ID_BYTES),
            (count(FUNCTION), size_of::<Function<'_>>() + SPARSE_ID_BYTES),
            (count(STRING_TABLE), size_of::<&str>()),
            (self.lines, size_of::<Line>()),
            (self.locations_in_samples, size_of::<u32>()),
            (self.values, size_of::<i64>()),
            (self.labels, size_of::<SampleLabel<'_>>()),
        ];
        parts.into_iter().fold(0, |sum: usize, (count, bytes)| {
            sum.saturating_add(count.saturating_mul(bytes))
        })
    }

    /// Counts the lines of a location.
    #[inline]
    fn count_lines(&mut self, mut location: Reader<'_>) -> Result<(), DecodeError> {
        while let Some(tag) = location.tag()? {
            self.lines += usize::from(tag.field == 4);
            location.skip(tag)?;
        }
        Ok(())
    }
}

/// Reads the int64 at the reader's position.
#[inline]
pub(super) fn number(reader: &mut Reader<'_>) -> Result<Number, DecodeError> {
    let offset = reader.position();
    Ok(Number {
        value: reader.varint()?,
        offset,
    })
}
