//! Errors of reading a recording: the kind of error and the byte at which it was found.

use crate::profile::pprof::DecodeError;

/// The bytes are not a recording that can be read.
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
    /// Offsets must fit 32 bits.
    #[error("recording of {0} bytes, at most 4 GiB are read")]
    TooLarge(usize),
    /// A chunk begins with `FLR\0`.
    #[error("no chunk begins here")]
    Magic,
    /// An unknown newer version, or that of Java 8 before its recorder became open source.
    #[error("version {major}.{minor} of the format, 1 and 2 are read")]
    Version {
        /// The number before the point.
        major: u16,
        /// The number after the point.
        minor: u16,
    },
    /// All numbers are uncompressed, a recorder option that is not used in practice.
    #[error("its numbers are not compressed")]
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
    #[error("chunk of {size} bytes, {left} are left: was the recording not finished?")]
    ChunkSize {
        /// Number of bytes that the header says.
        size: i64,
        /// Number of bytes that are left.
        left: usize,
    },
    /// A part of a chunk lies outside of it.
    #[error("{what} of the chunk at {at}, outside of its {size} bytes")]
    Outside {
        /// Name of the part of the chunk.
        what: &'static str,
        /// Offset from the start of the chunk.
        at: i64,
        /// Length of the chunk in bytes.
        size: usize,
    },
    /// An event is shorter than its own size field.
    #[error("event of {0} bytes")]
    EventSize(u64),
    /// An event has another type than expected.
    #[error("event of type {found}, not of type {expected}")]
    EventType {
        /// The type that the event has.
        found: u64,
        /// The type that was expected.
        expected: u64,
    },
    /// An event with constants points to one that is not before it.
    #[error("previous constants at {0}, which is not before these")]
    PreviousConstants(i64),
    /// A string has an unknown encoding.
    #[error("string of encoding {0}")]
    TextEncoding(u8),
    /// Metadata that refers to a string that it does not have.
    #[error("string {index}, the metadata has {count}")]
    TextIndex {
        /// The index that was referred to.
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
    #[error("nested more than {0} deep")]
    Nesting(usize),
    /// Too many values that take no bytes.
    #[error("its values take more than {0} steps to read")]
    Work(u64),
    /// Reading takes more memory than is allowed for a recording of this size.
    #[error("what it holds takes more than {limit} bytes in memory, which is the limit for a recording of this size")]
    Memory {
        /// Most bytes that are allowed.
        limit: usize,
    },
    /// The labels that came with the recording.
    #[error("labels: {0}")]
    Labels(DecodeError),
}
