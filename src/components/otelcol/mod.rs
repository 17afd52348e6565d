//! `otelcol.*`: components that receive and send OpenTelemetry profiles. They reject all other signals by name.

pub(crate) mod exporter;
pub(crate) mod receiver;
