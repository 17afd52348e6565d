//! Arguments of `pyroscope.receive_http`.

use std::time::Duration;

use crate::base::bytes::ByteBudget;
use crate::components::common::passing::fanout::Receivers;
use crate::components::common::serving::server::{GrpcServer, HttpServer};
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::ByteSize;
use crate::lang::body::arguments;

/// Bytes of the smallest body that the limits must let pass.
const MIN_BODY_BYTES: u64 = 64 << 10;

arguments! {
    /// Arguments of `pyroscope.receive_http`.
    pub(crate) struct ReceiveArguments {
        /// Longest time that passing on the upload of one debug file may take.
        debug_info_upload_timeout: Duration = "2m",
        /// Receivers of the profiles.
        forward_to: Receivers,
        /// How long requests under way may take to end when the server stops.
        graceful_shutdown_timeout: Duration = "30s",
    }
    blocks {
        /// The gRPC server, on a port of its own.
        grpc: GrpcServer,
        /// The HTTP server, which takes profiles.
        http: HttpServer { conn_limit = 16384 },
        /// Bounds of what requests may bring (not in Alloy).
        limits: Limits,
    }
}

arguments! {
    /// The body of `limits { }`.
    pub(crate) struct Limits {
        /// Bytes of the largest body, also when it is unpacked; a larger one is answered with 413.
        max_body_bytes: ByteSize = "64MiB",
        /// Bytes of all bodies that are in work; what comes on top is answered with 503 and Retry-After.
        max_bytes_in_flight: ByteSize = "256MiB",
    }
    check Limits::check;
}

impl Limits {
    /// The budget of all bodies that are in work.
    pub(crate) fn budget(&self) -> ByteBudget {
        ByteBudget::new(usize::try_from(self.max_bytes_in_flight.get()).unwrap_or(usize::MAX))
    }

    fn check(&self) -> Result<(), ArgumentError> {
        if self.max_body_bytes.get() < MIN_BODY_BYTES {
            let message = "max_body_bytes must be at least 64KiB";
            return Err(ArgumentError::new("max_body_bytes", message));
        }
        if self.max_bytes_in_flight < self.max_body_bytes {
            let message = "max_bytes_in_flight must not be less than max_body_bytes";
            return Err(ArgumentError::new("max_bytes_in_flight", message));
        }
        Ok(())
    }
}
