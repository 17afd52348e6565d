//! The header of a chunk: its end, and the positions of its metadata and constants.
//!
//! The header has the same 68 bytes in versions 1 and 2. Numbers are uncompressed and big endian.

use crate::jfr::error::{JfrError, JfrErrorKind};
use crate::jfr::reader::Reader;

/// Length of the header in bytes; the first event follows it.
pub(super) const HEADER_BYTES: usize = 68;

const MAGIC: [u8; 4] = *b"FLR\0";
/// Feature bit for compressed numbers in events.
const COMPRESSED: u32 = 1;

/// A chunk: an independent recording of a time span, with its own metadata and constants. Positions refer to the
/// file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Position of the chunk's header.
    pub start: usize,
    /// Start of the next chunk.
    pub end: usize,
    /// Start of the last event with constants.
    pub constants: usize,
    /// Start of the metadata event.
    pub metadata: usize,
    /// Start of the covered time as Unix time in nanoseconds.
    pub start_nanos: i64,
    /// Length of the covered time in nanoseconds.
    pub duration_nanos: i64,
    /// Number of clock ticks per second; at least 1. Events store durations in clock ticks.
    pub ticks_per_second: i64,
}

impl Chunk {
    /// Reads the header at `start` of `file`.
    pub(super) fn read(file: &[u8], start: usize) -> Result<Self, JfrError> {
        let mut reader = Reader::new(file, start);
        let origin = reader;
        if reader.fixed()? != MAGIC {
            return Err(origin.error(JfrErrorKind::Magic));
        }
        let major = u16::from_be_bytes(reader.fixed()?);
        let minor = u16::from_be_bytes(reader.fixed()?);
        if !(1..=2).contains(&major) {
            return Err(origin.error(JfrErrorKind::Version { major, minor }));
        }
        let mut number = || reader.fixed().map(i64::from_be_bytes);
        let size = number()?;
        let (constants, metadata) = (number()?, number()?);
        let (start_nanos, duration_nanos) = (number()?, number()?);
        let (_start_ticks, ticks_per_second) = (number()?, number()?);
        if u32::from_be_bytes(reader.fixed()?) & COMPRESSED == 0 {
            return Err(origin.error(JfrErrorKind::Uncompressed));
        }
        let left = file.len() - start;
        let length = usize::try_from(size)
            .ok()
            .filter(|length| (HEADER_BYTES..=left).contains(length))
            .ok_or_else(|| origin.error(JfrErrorKind::ChunkSize { size, left }))?;
        let file_offset = |part, offset: i64| {
            usize::try_from(offset)
                .ok()
                .filter(|offset| (HEADER_BYTES..length).contains(offset))
                .map(|offset| start + offset)
                .ok_or_else(|| {
                    origin.error(JfrErrorKind::Outside {
                        part,
                        offset,
                        size: length,
                    })
                })
        };
        Ok(Self {
            start,
            end: start + length,
            constants: file_offset("constants", constants)?,
            metadata: file_offset("metadata", metadata)?,
            start_nanos,
            duration_nanos,
            ticks_per_second: ticks_per_second.max(1),
        })
    }

    /// Returns a reader of `file` from `position` to the end of the chunk.
    pub(super) fn reader<'a>(&self, file: &'a [u8], position: usize) -> Reader<'a> {
        Reader::new(file.get(..self.end).unwrap_or_default(), position)
    }

    /// Converts clock ticks to nanoseconds.
    pub(super) fn nanos(&self, ticks: u64) -> i64 {
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_per_second.unsigned_abs());
        i64::try_from(nanos).unwrap_or(i64::MAX)
    }
}
