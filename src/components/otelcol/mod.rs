//! `otelcol.*`: components that receive and send OpenTelemetry profiles. The components reject all other signals by
//! name.

pub(crate) mod exporter;
pub(crate) mod receiver;
