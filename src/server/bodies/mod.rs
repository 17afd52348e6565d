//! Bodies of requests and responses, within limits on size, time, and the memory of all bodies together.
//!
//! In: the body of a request as a stream. Out: its decompressed bytes, charged to a budget until the request ends. A
//! second budget limits the bytes of responses.

pub(in crate::server) mod body;
mod budget;
pub(in crate::server) mod limits;
mod pace;
pub(in crate::server) mod sending;
pub(in crate::server) mod workers;
