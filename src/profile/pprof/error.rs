//! What can be wrong with the bytes of a profile: the kind of fault and the byte at which it was found.
//!
//! The texts are for whoever sent the profile; nothing here decides what is done about it.

/// The bytes are not a valid profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed profile at byte {offset}: {kind}")]
pub struct DecodeError {
    /// Offset in the uncompressed bytes.
    pub offset: usize,
    /// What was found at this byte.
    pub kind: DecodeErrorKind,
}

/// The kinds of faults in a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// There are no bytes at all.
    #[error("empty profile")]
    Empty,
    /// Offsets must fit 32 bits.
    #[error("profile of {0} bytes, the decoder takes at most 4 GiB")]
    TooLarge(usize),
    /// The bytes end within a varint.
    #[error("truncated varint")]
    TruncatedVarint,
    /// A varint of more than 64 bits.
    #[error("varint longer than 64 bits")]
    OverlongVarint,
    /// A field reaches beyond the message that holds it.
    #[error("truncated field: {length} bytes announced, {left} left")]
    TruncatedField {
        /// Announced length in bytes.
        length: u64,
        /// Number of bytes that are left.
        left: usize,
    },
    /// Field numbers are 1 to 2^29 - 1.
    #[error("field number {0} is not allowed")]
    FieldNumber(u64),
    /// A wire type that protobuf does not have, or a group.
    #[error("unknown wire type {0}")]
    UnknownWireType(u8),
    /// A known field in an encoding it cannot have.
    #[error("{message} field {field} has wire type {wire}")]
    WrongWireType {
        /// Name of the message that it is in.
        message: &'static str,
        /// Number of the field in it.
        field: u32,
        /// Wire type that was found.
        wire: u8,
    },
    /// A string that is not UTF-8.
    #[error("string {index} is not valid UTF-8")]
    Utf8 {
        /// Index in the string table.
        index: usize,
    },
    /// The first string must be the empty one.
    #[error("string 0 is not empty")]
    FirstString,
    /// An index beyond the string table.
    #[error("string index {index} is out of range, the table has {count}")]
    StringIndex {
        /// Index that was referred to.
        index: i64,
        /// Length of the string table.
        count: usize,
    },
    /// An id is 0; ids start at 1.
    #[error("{what} id is 0")]
    ZeroId {
        /// mapping, location or function.
        what: &'static str,
    },
    /// Two messages with one id.
    #[error("{what} id {id} occurs twice")]
    DuplicateId {
        /// mapping, location or function.
        what: &'static str,
        /// The id that is not as it must be.
        id: u64,
    },
    /// A reference to a message that is not there.
    #[error("{what} id {id} does not exist")]
    DanglingId {
        /// mapping, location or function.
        what: &'static str,
        /// The id that is not as it must be.
        id: u64,
    },
    /// Tiny messages that would take far more memory than bytes of the profile.
    #[error("its messages would take {bytes} bytes in memory, at most {limit} are allowed for a profile of this size")]
    Expansion {
        /// Bytes that the columns would take.
        bytes: usize,
        /// Largest number that is allowed.
        limit: usize,
    },
    /// More comments than anybody writes.
    #[error("profile has more than {limit} comments")]
    TooManyComments {
        /// Largest number that is allowed.
        limit: usize,
    },
    /// A profile must say what its values are.
    #[error("profile has no sample types")]
    NoSampleTypes,
    /// More kinds of values than are looked at.
    #[error("profile has more than {0} sample types")]
    SampleTypes(usize),
    /// One value a sample type.
    #[error("sample has {found} values, the profile has {expected} sample types")]
    ValueCount {
        /// Number of values of the sample.
        found: usize,
        /// Sample types of the profile.
        expected: usize,
    },
}
