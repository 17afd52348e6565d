//! pprof: the protobuf format of `github.com/google/pprof/proto/profile.proto`. Profiles are decoded into columns that
//! borrow from the buffer, and encoded again. This module also handles gzip around profiles, and computes the identity
//! of stacks.
//!
//! Field numbers and validity rules follow profile.proto. Decoding limits its own memory. The store limits the contents
//! of a profile.

mod beside;
mod builder;
mod code;
mod compact;
mod count;
mod decode;
mod encode;
mod error;
mod gzip;
pub(crate) mod model;
mod outline;
mod reader;
mod stack_ids;
mod strings;
mod texts;

pub use beside::side_by_side;
pub use builder::Builder;
pub use code::Code;
pub use count::sample_count;
pub use decode::decode;
pub use encode::encode;
pub use error::DecodeError;
pub use error::DecodeErrorKind;
pub use gzip::{GzipError, MAX_RATIO, announced_size, is_gzip};
pub use gzip::{gunzip, gunzip_start, gzip};
pub use model::{Function, Line, Location, Mapping, Profile, SampleLabel, ValueType};
pub use outline::max_column_bytes;
pub use reader::{BYTES, Reader, VARINT};
pub(crate) use stack_ids::StackHasher;
pub use stack_ids::stack_ids;
pub use strings::MAX_SHORT_BYTES;
pub use strings::Strings;

#[cfg(test)]
mod tests;
