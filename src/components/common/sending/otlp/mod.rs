//! Code that both OTLP exporters share: arguments, requests built from profiles, and the component with its queue. The
//! exporters differ in their client and its transport.

mod arguments;
mod content;
mod delivery;
mod exporter;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use arguments::{Compression, GrpcTls, HttpTls, RetryOnFailure};
pub(crate) use delivery::Delivery;
pub(crate) use exporter::{Exporter, build};
