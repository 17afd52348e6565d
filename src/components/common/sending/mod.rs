//! Sends profiles to endpoints: the queue on disk, retries, and OTLP.

pub(crate) mod otlp;
pub(crate) mod outbox;
