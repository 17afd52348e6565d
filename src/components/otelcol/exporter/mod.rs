//! `otelcol.exporter.*`: what sends profiles to programs of OpenTelemetry.

pub(crate) mod otlp;
pub(crate) mod otlphttp;
