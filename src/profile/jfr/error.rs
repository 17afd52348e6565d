//! Errors of reading a recording: the kind of error and the byte at which it was found.

use crate::pprof::DecodeError;

/// The bytes are not a readable recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed recording at byte {offset}: {kind}")]
pub struct JfrError {
    /// Offset in the uncompressed bytes, or in the labels for [`JfrErrorKind::Labels`].
    pub offset: usize,
    /// The kind of the error found there.
    pub kind: JfrErrorKind,
}

/// Kinds of errors in a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JfrErrorKind {
    /// There are no bytes at all.
    #[error("empty recording")]
    Empty,
    /// The recording is too large, because offsets must fit into 32 bits.
    #[error("recording has {0} bytes, the limit is 4 GiB")]
    TooLarge(usize),
    /// No chunk begins here. A chunk begins with `FLR\0`.
    #[error("no chunk begins here")]
    Magic,
    /// The version is newer than the supported versions, or it is the version that Java 8 wrote before its recorder
    /// became open source.
    #[error("unsupported format version {major}.{minor}, only 1 and 2 are supported")]
    Version {
        /// The number before the point.
        major: u16,
        /// The number after the point.
        minor: u16,
    },
    /// All numbers are uncompressed, which is a recorder option that is not used in practice.
    #[error("recordings with uncompressed numbers are not supported")]
    Uncompressed,
    /// The bytes end within a value.
    #[error("{needed} bytes are needed, {left} are left")]
    Truncated {
        /// Number of bytes that the value takes.
        needed: u64,
        /// Number of bytes that are left.
        left: usize,
    },
    /// A chunk ends after the file, as in an unfinished recording, or before its own header ends.
    #[error("chunk has {size} bytes, but {left} are left: is the recording unfinished?")]
    ChunkSize {
        /// Number of bytes according to the header.
        size: i64,
        /// Number of bytes that are left.
        left: usize,
    },
    /// A part of a chunk lies outside of the chunk.
    #[error("the offset {offset} of the {part} is outside of the chunk, which has {size} bytes")]
    Outside {
        /// Name of the part of the chunk.
        part: &'static str,
        /// Offset from the start of the chunk.
        offset: i64,
        /// Length of the chunk in bytes.
        size: usize,
    },
    /// An event is shorter than its own size field.
    #[error("event size {0} is too small")]
    EventSize(u64),
    /// An event has another type than expected.
    #[error("event has type {type_id}, expected type {expected}")]
    EventType {
        /// The type that the event has.
        type_id: u64,
        /// The type that was expected.
        expected: u64,
    },
    /// An event with constants points to an event that is not before it.
    #[error("the offset {0} of the previous constants does not point backwards")]
    PreviousConstants(i64),
    /// A string has an unknown encoding.
    #[error("unknown string encoding {0}")]
    TextEncoding(u8),
    /// The metadata refers to a string that does not exist.
    #[error("string index {index} is out of range, the metadata has {count} strings")]
    TextIndex {
        /// The index of the missing string.
        index: u64,
        /// Number of strings in the table.
        count: usize,
    },
    /// An attribute of the metadata is not a number.
    #[error("attribute `{0}` is not a number")]
    Attribute(&'static str),
    /// A type is not described by the metadata.
    #[error("type {0} is not described")]
    UnknownType(u64),
    /// Types or elements are nested too deeply.
    #[error("types or elements are nested more than {0} deep")]
    Nesting(usize),
    /// Reading takes too many steps, because the recording has too many values that take no bytes.
    #[error("reading takes more than {0} steps, the limit for a recording of this size")]
    Work(u64),
    /// Reading takes more memory than is allowed for a recording of this size.
    #[error("its contents take more than {limit} bytes in memory, the limit for a recording of this size")]
    Memory {
        /// Maximum number of bytes that are allowed.
        limit: usize,
    },
    /// The labels that came with the recording cannot be read.
    #[error("labels: {0}")]
    Labels(DecodeError),
}
