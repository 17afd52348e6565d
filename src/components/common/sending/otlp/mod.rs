//! What the exporters of OpenTelemetry's protocol share: arguments, requests made of profiles, and the component over
//! its queue. They differ in their client and its transport.

mod arguments;
mod content;
mod delivery;
mod exporter;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use arguments::{ClientTls, Compression, RetryOnFailure};
pub(crate) use delivery::Delivery;
pub(crate) use exporter::{Exporter, build};
