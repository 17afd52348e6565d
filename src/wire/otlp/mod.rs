//! OpenTelemetry profiles (OTLP, `v1development`).
//!
//! In: an export request, decoded from protobuf or its JSON. Out: decoded profiles, and the response. A profile of the
//! request becomes one profile for each service that its samples name. The module also builds export requests from
//! profiles. Names and types are Pyroscope's. A request contains each stack once and refers to it by number, so a small
//! request may become many times larger. Therefore the expanded size has a limit that follows from the request's size
//! (`budget`), and memory is charged before it is allocated.

mod attributes;
mod batch;
mod budget;
pub mod client;
mod columns;
mod dictionary;
mod error;
mod groups;
mod json;
mod kind;
mod layout;
pub mod messages;
mod weight;
mod write;

use bytes::Bytes;

use crate::connect::{self, Codec, ConnectError};
use alluvium_profile::DecodedProfile;

pub use batch::{ExportBatch, ExportOutcome};
pub use layout::upgrade;
pub use weight::export as weight;
pub use write::{Exported, Written, to_request};

/// Route of the call that exports profiles.
pub const EXPORT_ROUTE: &str = "opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";

/// Path of the export request without gRPC.
pub const HTTP_ROUTE: &str = "v1development/profiles";

/// Returns the content type of requests and responses without gRPC.
pub fn content_type(codec: Codec) -> &'static str {
    match codec {
        Codec::Proto => "application/x-protobuf",
        Codec::Json => "application/json",
    }
}

/// Reads the profiles in the body of a request in the current layout as [`ExportBatch::read`] does. A server calls
/// [`upgrade`] and charges the request's [`weight`] before it calls this function.
pub fn read(codec: Codec, body: Bytes, default_time_nanos: i64) -> Result<Vec<DecodedProfile>, ConnectError> {
    Ok(ExportBatch::read(&connect::decode(codec, body)?, default_time_nanos)?.profiles)
}

#[cfg(test)]
mod tests;
