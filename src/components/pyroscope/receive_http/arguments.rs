//! Arguments of `pyroscope.receive_http`.

use std::time::Duration;

use crate::common::passing::fanout::Receivers;
use crate::common::serving::server::{GrpcServer, HttpServer};
use alluvium_base::bytes::ByteBudget;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::ByteSize;
use alluvium_lang::body::arguments;

/// Smallest allowed value of the limit for a body, in bytes.
const MIN_BODY_BYTES: u64 = 64 << 10;

arguments! {
    /// Arguments of `pyroscope.receive_http`.
    pub(crate) struct ReceiveArguments {
        /// Timeout for forwarding the upload of one debug file.
        #[no_effect = "debug files are not accepted"]
        debug_info_upload_timeout: Duration = "2m",
        /// Receivers of the profiles.
        forward_to: Receivers,
        /// Time that requests in progress have to finish when the server stops.
        graceful_shutdown_timeout: Duration = "30s",
    }
    blocks {
        /// A port for gRPC calls only. It is closed by default, because the port of `http` also accepts gRPC calls.
        grpc: Option<GrpcServer>,
        /// The HTTP server that receives profiles.
        http: HttpServer { conn_limit = 16384 },
        /// Limits for requests (not in Alloy).
        limits: Limits,
    }
    check ReceiveArguments::check;
}

arguments! {
    /// The body of `limits { }`.
    pub(crate) struct Limits {
        /// Maximum size of a body in bytes, before and after decompression. A larger body is rejected with 413.
        max_body_bytes: ByteSize = "64MiB",
        /// Maximum total size of all bodies being processed, in bytes. Requests beyond this limit are rejected with 503
        /// and Retry-After.
        max_bytes_in_flight: ByteSize = "256MiB",
    }
    check Limits::check;
}

impl ReceiveArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        let Some(grpc) = &self.grpc else {
            return Ok(());
        };
        let (own, other) = (&grpc.listen.listen_address, &self.http.listen.listen_address);
        let is_same_address = own == other || own.is_empty() || other.is_empty();
        if grpc.listen_port.0 != 0 && grpc.listen_port == self.http.listen_port && is_same_address {
            let message = format!("the port of the block http is {} as well", grpc.listen_port.0);
            return Err(ArgumentError::new("grpc.listen_port", message));
        }
        Ok(())
    }
}

impl Limits {
    /// Returns the budget for all bodies being processed.
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
