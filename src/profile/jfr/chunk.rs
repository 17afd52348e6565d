//! The header of a chunk: where it ends, and where in it metadata and constants are.
//!
//! Versions 1 and 2 have the same 68 bytes, numbers in full, the highest byte first.

use crate::profile::jfr::error::{JfrError, JfrErrorKind};
use crate::profile::jfr::reader::Reader;

/// Length of the header in bytes. The first event stands behind it.
pub(super) const HEADER_BYTES: usize = 68;

const MAGIC: [u8; 4] = *b"FLR\0";
/// Bit of the features: numbers in events are compressed.
const COMPRESSED: u32 = 1;

/// A chunk: an independent recording of a span of time, with its own metadata and constants. Positions are in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Where its header begins.
    pub start: usize,
    /// Where the next chunk begins.
    pub end: usize,
    /// Where the last event with constants begins.
    pub constants: usize,
    /// Where the event with the metadata begins.
    pub metadata: usize,
    /// Start of the time that it covers, Unix nanoseconds.
    pub start_nanos: i64,
    /// Length of that time in nanoseconds.
    pub duration_nanos: i64,
    /// Ticks of durations a second; 1 at least.
    pub ticks_per_second: i64,
}

impl Chunk {
    /// Reads the header at `start` of `file`.
    pub(super) fn read(file: &[u8], start: usize) -> Result<Self, JfrError> {
        let mut reader = Reader::new(file, start);
        let here = reader;
        if reader.fixed()? != MAGIC {
            return Err(here.error(JfrErrorKind::Magic));
        }
        let major = u16::from_be_bytes(reader.fixed()?);
        let minor = u16::from_be_bytes(reader.fixed()?);
        if !(1..=2).contains(&major) {
            return Err(here.error(JfrErrorKind::Version { major, minor }));
        }
        let mut number = || reader.fixed().map(i64::from_be_bytes);
        let size = number()?;
        let (constants, metadata) = (number()?, number()?);
        let (start_nanos, duration_nanos) = (number()?, number()?);
        let (_start_ticks, ticks_per_second) = (number()?, number()?);
        if u32::from_be_bytes(reader.fixed()?) & COMPRESSED == 0 {
            return Err(here.error(JfrErrorKind::Uncompressed));
        }
        let left = file.len() - start;
        let length = usize::try_from(size)
            .ok()
            .filter(|length| (HEADER_BYTES..=left).contains(length))
            .ok_or_else(|| here.error(JfrErrorKind::ChunkSize { size, left }))?;
        let inside = |what, at: i64| {
            usize::try_from(at)
                .ok()
                .filter(|at| (HEADER_BYTES..length).contains(at))
                .map(|at| start + at)
                .ok_or_else(|| here.error(JfrErrorKind::Outside { what, at, size: length }))
        };
        Ok(Self {
            start,
            end: start + length,
            constants: inside("constants", constants)?,
            metadata: inside("metadata", metadata)?,
            start_nanos,
            duration_nanos,
            ticks_per_second: ticks_per_second.max(1),
        })
    }

    /// What of `file` is before the end of the chunk, to be read from `position` on.
    pub(super) fn reader<'a>(&self, file: &'a [u8], position: usize) -> Reader<'a> {
        Reader::new(file.get(..self.end).unwrap_or_default(), position)
    }

    /// Nanoseconds of so many ticks.
    pub(super) fn nanos(&self, ticks: u64) -> i64 {
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_per_second.unsigned_abs());
        i64::try_from(nanos).unwrap_or(i64::MAX)
    }
}
