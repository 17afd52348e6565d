//! Components that listen: arguments of servers, TLS, the run loop, bodies within limits, and gRPC.

pub(crate) mod generations;
pub(crate) mod grpc;
pub(crate) mod intake;
pub(crate) mod listening;
pub(crate) mod server;
pub mod server_tls;
