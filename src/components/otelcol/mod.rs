//! `otelcol.*`: profiles of OpenTelemetry, in and out. The other signals are refused by name.

pub(crate) mod receiver;
