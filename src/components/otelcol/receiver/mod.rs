//! `otelcol.receiver.*`: components that receive profiles by OTLP.

pub(crate) mod otlp;
