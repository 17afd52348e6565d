//! `otelcol.*`: profiles of OpenTelemetry, in and out. The other signals are refused by name.

pub(crate) mod exporter;
pub(crate) mod receiver;
