//! Sizes and times of the HTTP side.

use std::time::Duration;

/// Sizes and times of the HTTP side. Limits of profiles and series are the store's, those of questions the engine's.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// Largest push as it comes over the wire; 413 beyond it. Pyroscope's `ingestion_body_limit_mb` is 256.
    pub body_bytes: usize,
    /// Largest push after `Content-Encoding` is undone; 413 beyond it.
    pub unpacked_body_bytes: usize,
    /// Largest question, as it comes and after `Content-Encoding` is undone; 413 beyond it.
    pub question_bytes: usize,
    /// Largest single profile when uncompressed; 413 beyond it, 0 for none of its own. Only `/ingest` looks at it here,
    /// the store looks again.
    pub profile_bytes: usize,
    /// Memory of bodies, unpacked bodies and decoded messages of all requests together, in bytes; more wait, and get
    /// 503 in the end.
    pub memory_bytes: usize,
    /// How long a request waits for memory at its last stage; at the one before it twice as long, at the first three
    /// times.
    pub memory_wait: Duration,
    /// Bytes of all answers that clients have not read yet; 503 beyond it.
    pub answers_bytes: usize,
    /// Time within which a body must have come; 408 after it.
    pub body_timeout: Duration,
    /// Nodes of a flame graph when the question does not say. Pyroscope: 8192.
    pub flamegraph_nodes: i64,
    /// Most nodes of a flame graph that a question may ask for. Pyroscope: 1048576.
    pub max_flamegraph_nodes: i64,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body_bytes: 64 << 20,
            unpacked_body_bytes: 64 << 20,
            question_bytes: 1 << 20,
            profile_bytes: 4 << 20,
            memory_bytes: 256 << 20,
            memory_wait: Duration::from_secs(5),
            answers_bytes: 256 << 20,
            body_timeout: Duration::from_mins(1),
            flamegraph_nodes: 8192,
            max_flamegraph_nodes: 1 << 20,
        }
    }
}

impl ServerLimits {
    /// Of a body with profiles.
    pub(crate) fn push(&self) -> BodyLimit {
        BodyLimit {
            bytes: self.body_bytes,
            unpacked_bytes: self.unpacked_body_bytes,
        }
    }

    /// Of a body with a question.
    pub(crate) fn question(&self) -> BodyLimit {
        BodyLimit {
            bytes: self.question_bytes,
            unpacked_bytes: self.question_bytes,
        }
    }
}

/// How large a body may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimit {
    /// As it comes over the wire.
    pub bytes: usize,
    /// After `Content-Encoding` is undone.
    pub unpacked_bytes: usize,
}
