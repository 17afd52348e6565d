//! `otelcol.*`: components that receive and send OpenTelemetry profiles. They support no other signal: the receiver
//! rejects traces, metrics and logs in its configuration and in requests.

pub(crate) mod exporter;
pub(crate) mod receiver;
