//! What can be wrong with the bytes of a recording: the kind of fault and the byte at which it was found.

use crate::profile::pprof::DecodeError;

/// The bytes are not a recording that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed recording at byte {offset}: {kind}")]
pub struct JfrError {
    /// Offset in the uncompressed bytes; in those of the labels for [`JfrErrorKind::Labels`].
    pub offset: usize,
    /// What was found at this byte.
    pub kind: JfrErrorKind,
}

/// The kinds of faults in a recording.
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
    /// A format of the future, or of Java 8 before it was opened.
    #[error("version {major}.{minor} of the format, 1 and 2 are read")]
    Version {
        /// The number before the point.
        major: u16,
        /// The number after the point.
        minor: u16,
    },
    /// Recorders have an option to write all numbers in full; nobody uses it.
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
    /// A chunk ends behind the file, as one does whose recording was not finished, or before its own header.
    #[error("chunk of {size} bytes, {left} are left: was the recording not finished?")]
    ChunkSize {
        /// Number of bytes that the header says.
        size: i64,
        /// Number of bytes that are left.
        left: usize,
    },
    /// A part of a chunk that is not in it.
    #[error("{what} of the chunk at {at}, outside of its {size} bytes")]
    Outside {
        /// Name of the part of the chunk.
        what: &'static str,
        /// Offset from the start of the chunk.
        at: i64,
        /// Length of the chunk in bytes.
        size: usize,
    },
    /// An event is shorter than what tells so.
    #[error("event of {0} bytes")]
    EventSize(u64),
    /// One event stands where another is needed.
    #[error("event of type {found}, not of type {expected}")]
    EventType {
        /// The type that the event has.
        found: u64,
        /// The type that the place asks for.
        expected: u64,
    },
    /// An event with constants points to one that is not before it.
    #[error("previous constants at {0}, which is not before these")]
    PreviousConstants(i64),
    /// A string in an encoding that is not known.
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
    /// Metadata with an attribute that is no number.
    #[error("attribute `{0}` is not a number")]
    Attribute(&'static str),
    /// A type that the metadata does not describe.
    #[error("type {0} is not described")]
    UnknownType(u64),
    /// Types within types, or elements within elements, without end.
    #[error("nested more than {0} deep")]
    Nesting(usize),
    /// Values that take no bytes, over and over.
    #[error("its values take more than {0} steps to read")]
    Work(u64),
    /// What is read takes more memory than is allowed for a recording of this size.
    #[error("what it holds takes more than {limit} bytes in memory, which is the limit for a recording of this size")]
    Memory {
        /// Most bytes that are allowed.
        limit: usize,
    },
    /// The labels that came with the recording.
    #[error("labels: {0}")]
    Labels(DecodeError),
}
