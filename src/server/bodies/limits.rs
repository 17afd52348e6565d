//! Size and time limits of the HTTP server.

use std::time::Duration;

/// Size and time limits of the HTTP server. Limits of profiles and series belong to the store, and limits of queries to
/// the engine.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// Maximum size of a push on the wire. A larger push gets status 413. Pyroscope's `ingestion_body_limit_mb` is 256.
    pub body_bytes: usize,
    /// Maximum size of a push after decompression. A larger push gets status 413.
    pub unpacked_body_bytes: usize,
    /// Maximum size of a query request, on the wire and after decompression. A larger request gets status 413.
    pub question_bytes: usize,
    /// Memory of received bodies, decompressed bodies and decoded messages of all requests together, in bytes. Further
    /// requests wait, and get status 503 after the wait.
    pub memory_bytes: usize,
    /// Time that a request waits for memory at the last stage. It waits twice as long at the stage before it, and three
    /// times as long at the first stage.
    pub memory_wait: Duration,
    /// Total size in bytes of responses that are being written or that clients have not read yet. Above it, requests
    /// get status 503.
    pub answers_bytes: usize,
    /// Timeout for receiving a body. After it, the request gets status 408.
    pub body_timeout: Duration,
    /// Period for measuring the rate of a body. The body is refused if other requests wait for its memory, and less
    /// than 16 KiB or less than an eighth of its memory arrived in this period.
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

/// Maximum size of a request about the server itself, in bytes. It names at most a service.
const ABOUT_SERVER_BYTES: usize = 4 << 10;

impl ServerLimits {
    /// Returns the limit of a body with profiles.
    pub(crate) fn push(&self) -> BodyLimit {
        BodyLimit {
            bytes: self.body_bytes,
            unpacked_bytes: self.unpacked_body_bytes,
        }
    }

    /// Returns the limit of a body with a query.
    pub(crate) fn question(&self) -> BodyLimit {
        BodyLimit {
            bytes: self.question_bytes,
            unpacked_bytes: self.question_bytes,
        }
    }

    /// Returns the limit of a body with a request about the server itself. Some of these requests need no credential.
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
