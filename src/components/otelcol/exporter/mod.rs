//! `otelcol.exporter.*`: components that send profiles by OTLP.

pub(crate) mod otlp;
pub(crate) mod otlphttp;
