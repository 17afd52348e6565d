//! Size and time limits of the HTTP side.

use std::time::Duration;

/// Size and time limits of the HTTP side. Limits of profiles and series belong to the store, those of queries to the
/// engine.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// Maximum size of a push on the wire; larger ones give 413. Pyroscope's `ingestion_body_limit_mb` is 256.
    pub body_bytes: usize,
    /// Maximum size of a push after decompression; larger ones give 413.
    pub unpacked_body_bytes: usize,
    /// Maximum size of a query request, on the wire and after decompression; larger ones give 413.
    pub question_bytes: usize,
    /// Memory of bodies, decompressed bodies and decoded messages of all requests together, in bytes; further requests
    /// wait, and get 503 after the wait.
    pub memory_bytes: usize,
    /// How long a request waits for memory at the last stage; twice as long at the one before it, three times at the
    /// first.
    pub memory_wait: Duration,
    /// Total size of answers that are being written or that clients have not read yet, in bytes; beyond it requests get
    /// 503.
    pub answers_bytes: usize,
    /// Time limit for receiving a body; 408 after it.
    pub body_timeout: Duration,
    /// A body gives way to requests that wait for its memory when fewer than 16 KiB arrived in this time, or less than
    /// an eighth of the memory that it holds.
    pub slow_body_time: Duration,
    /// Default number of nodes of a flame graph. Pyroscope: 8192.
    pub flamegraph_nodes: i64,
    /// Maximum number of nodes that a request may ask for. Pyroscope: 1048576.
    pub max_flamegraph_nodes: i64,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body_bytes: 64 << 20,
            unpacked_body_bytes: 64 << 20,
            question_bytes: 1 << 20,
            memory_bytes: 256 << 20,
            memory_wait: Duration::from_secs(5),
            answers_bytes: 256 << 20,
            body_timeout: Duration::from_mins(1),
            slow_body_time: Duration::from_secs(1),
            flamegraph_nodes: 8192,
            max_flamegraph_nodes: 1 << 20,
        }
    }
}

/// Maximum size of a question about the server itself, in bytes: it names a service at most.
const ABOUT_SERVER_BYTES: usize = 4 << 10;

impl ServerLimits {
    /// Limit of a body with profiles.
    pub(crate) fn push(&self) -> BodyLimit {
        BodyLimit {
            bytes: self.body_bytes,
            unpacked_bytes: self.unpacked_body_bytes,
        }
    }

    /// Limit of a body with a query.
    pub(crate) fn question(&self) -> BodyLimit {
        BodyLimit {
            bytes: self.question_bytes,
            unpacked_bytes: self.question_bytes,
        }
    }

    /// Limit of a body with a question about the server itself. Some of these need no credential.
    pub(crate) fn about_server(&self) -> BodyLimit {
        let bytes = self.question_bytes.min(ABOUT_SERVER_BYTES);
        BodyLimit {
            bytes,
            unpacked_bytes: bytes,
        }
    }
}

/// Maximum size of a body in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimit {
    /// Size as received over the wire.
    pub bytes: usize,
    /// Size after decompression.
    pub unpacked_bytes: usize,
}
