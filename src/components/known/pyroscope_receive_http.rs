//! `pyroscope.receive_http`: profiles that programs send.

use std::time::Duration;

use crate::components::common::fanout::Receivers;
use crate::components::common::server::{GrpcServer, HttpServer};
use crate::lang::body::arguments;
use crate::pipeline::component::{Definition, Stability, no_metrics};

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
    }
}

/// The definition of `pyroscope.receive_http`.
pub(crate) const DEFINITION: Definition<ReceiveArguments> = Definition {
    name: "pyroscope.receive_http",
    stability: Stability::GenerallyAvailable,
    exports: &[],
    metrics: no_metrics,
    build: None,
    doc: "`pyroscope.receive_http` takes the profiles that programs and other collectors send.",
};
