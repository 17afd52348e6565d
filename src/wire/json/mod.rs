//! Protobuf's JSON form: names in camel case, 64-bit numbers as texts, fields with their default value left out.
//!
//! In: what the generated code says of each message, a line a field ([`ToJson`], [`Fields`]). Out: texts and messages.
//! Clients may be newer than we are: unknown fields are passed over, and unknown names of an enumeration read as its
//! default. Rules: <https://protobuf.dev/programming-guides/json/>.

mod read;
mod write;

pub(crate) use read::FromJson;
pub(crate) use read::{Enum, Field, Fields, read};
pub(crate) use write::{ToJson, Writer};

#[cfg(test)]
mod tests;
