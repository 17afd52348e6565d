//! Protobuf's JSON format: names in camel case, 64-bit numbers as strings, and no fields with default values.
//!
//! In: descriptions of the messages in the generated code, one line for each field ([`ToJson`], [`Fields`]). Out: JSON
//! text and messages. Clients may be newer than the server. Therefore unknown fields are ignored, and unknown enum
//! names become the default. Rules: <https://protobuf.dev/programming-guides/json/>.

mod read;
mod write;

pub(crate) use read::FromJson;
pub(crate) use read::{Enum, Field, Fields, Hex, read};
pub(crate) use write::{HexText, ToJson, Writer};

#[cfg(test)]
mod tests;
