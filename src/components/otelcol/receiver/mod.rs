//! `otelcol.receiver.*`: what takes the profiles of OpenTelemetry.

pub(crate) mod otlp;
