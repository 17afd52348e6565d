//! Errors of decoding a profile: the kind of error and the byte at which it was found.
//!
//! The messages are for the sender of the profile. The caller decides how to react.

/// The bytes are not a valid profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed profile at byte {offset}: {kind}")]
pub struct DecodeError {
    /// Offset in the uncompressed bytes.
    pub offset: usize,
    /// The kind of the error found there.
    pub kind: DecodeErrorKind,
}

/// Kinds of errors in a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// There are no bytes at all.
    #[error("empty profile")]
    Empty,
    /// The profile is too large, because offsets must fit into 32 bits.
    #[error("profile has {0} bytes, the limit is 4 GiB")]
    TooLarge(usize),
    /// The bytes end within a varint.
    #[error("truncated varint")]
    TruncatedVarint,
    /// A varint has more than 64 bits.
    #[error("varint longer than 64 bits")]
    OverlongVarint,
    /// A field extends beyond the message that contains it.
    #[error("truncated field: {length} bytes announced, {left} left")]
    TruncatedField {
        /// Announced length in bytes.
        length: u64,
        /// Number of bytes that are left.
        left: usize,
    },
    /// The field number is invalid. Field numbers are 1 to 2^29 - 1.
    #[error("field number {0} is not allowed")]
    FieldNumber(u64),
    /// The wire type does not exist in protobuf, or is a group.
    #[error("unknown wire type {0}")]
    UnknownWireType(u8),
    /// A known field has the wrong wire type.
    #[error("{message} field {field} has wire type {wire}")]
    WrongWireType {
        /// Name of the message that contains the field.
        message: &'static str,
        /// Number of the field in the message.
        field: u32,
        /// Wire type that was found.
        wire: u8,
    },
    /// A string is not valid UTF-8.
    #[error("string {index} is not valid UTF-8")]
    Utf8 {
        /// Index in the string table.
        index: usize,
    },
    /// The first string of the string table must be empty, but it is not.
    #[error("string 0 is not empty")]
    FirstString,
    /// An index is beyond the end of the string table.
    #[error("string index {index} is out of range, the table has {count}")]
    StringIndex {
        /// The index that does not exist.
        index: i64,
        /// Length of the string table.
        count: usize,
    },
    /// An id is 0, but ids start at 1.
    #[error("{what} id is 0")]
    ZeroId {
        /// Kind of message: mapping, location or function.
        what: &'static str,
    },
    /// Two messages have the same id.
    #[error("{what} id {id} occurs twice")]
    DuplicateId {
        /// Kind of message: mapping, location or function.
        what: &'static str,
        /// The id that occurs twice.
        id: u64,
    },
    /// A reference to a message that does not exist.
    #[error("{what} id {id} does not exist")]
    DanglingId {
        /// Kind of message: mapping, location or function.
        what: &'static str,
        /// The id that does not exist.
        id: u64,
    },
    /// Many tiny messages would take far more memory than the profile has bytes.
    #[error("its messages would take {bytes} bytes in memory, at most {limit} are allowed for a profile of this size")]
    Expansion {
        /// Number of bytes that the columns would take.
        bytes: usize,
        /// Maximum number of bytes that is allowed.
        limit: usize,
    },
    /// Too many functions and mappings, or labels, refer to long texts. A shared text counts for each object that
    /// refers to it, because code that compares the objects reads the text once per object.
    #[error(
        "its functions and mappings, or its labels, refer to more than {limit} bytes of texts, the limit for a profile \
            of this size"
    )]
    Texts {
        /// Maximum number of bytes that is allowed.
        limit: usize,
    },
    /// There are more comments than allowed.
    #[error("profile has more than {limit} comments")]
    TooManyComments {
        /// Maximum number of comments that is allowed.
        limit: usize,
    },
    /// The profile does not describe the meaning of its values.
    #[error("profile has no sample types")]
    NoSampleTypes,
    /// There are more sample types than allowed.
    #[error("profile has more than {0} sample types")]
    SampleTypes(usize),
    /// A sample does not have exactly one value per sample type.
    #[error("sample has {count} values, the profile has {expected} sample types")]
    ValueCount {
        /// Number of values of the sample.
        count: usize,
        /// Number of sample types of the profile.
        expected: usize,
    },
}
