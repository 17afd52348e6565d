//! Size and time limits of the HTTP server.

use std::time::Duration;

/// Size and time limits of the HTTP server. Limits of profiles and series belong to the store, and limits of queries to
/// the engine.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// Maximum size of a push on the wire, in bytes. A larger push is refused with status 413. Pyroscope's
    /// `ingestion_body_limit_mb` is 256.
    pub body_bytes: usize,
    /// Maximum size of a push after decompression, in bytes. A larger push is refused with status 413.
    pub unpacked_body_bytes: usize,
    /// Maximum size of a query request in bytes, on the wire and after decompression. A larger request is refused with
    /// status 413.
    pub question_bytes: usize,
    /// Maximum memory in bytes of the received bodies, decompressed bodies and decoded messages of all requests. If the
    /// memory is used up, further requests wait. After the wait, they are refused with status 503.
    pub memory_bytes: usize,
    /// Maximum time that a request waits for the memory of decoded messages. The maximum is twice as long for
    /// decompressed bodies, and three times as long for received bodies.
    pub memory_wait: Duration,
    /// Maximum total size in bytes of responses that are being written or that clients have not read yet. Above this
    /// size, requests are refused with status 503.
    pub answers_bytes: usize,
    /// Timeout for receiving a body. After the timeout, the request is refused with status 408.
    pub body_timeout: Duration,
    /// Period for measuring the rate of a body. In each period, at least 16 KiB must arrive, and at least an eighth of
    /// the memory that the body holds. A slower body is refused if other requests wait for that memory.
    pub slow_body_time: Duration,
    /// Default number of nodes of a flame graph. The value of Pyroscope is 8192.
    pub flamegraph_nodes: i64,
    /// Maximum number of nodes that a request may ask for. The value of Pyroscope is 1048576.
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

/// Maximum size of a request about the server itself, in bytes. Such a request contains at most the name of a service.
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
