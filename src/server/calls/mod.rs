//! Calls of services over Connect, gRPC and gRPC-Web.
//!
//! In: a request. Out: the method of a service, called with a decoded message, and its answer in the protocol of the
//! caller. [`perform`] is the part that all protocols share.

mod connect;
mod error;
pub(in crate::server) mod grpc;
pub(in crate::server) mod observe;
pub(in crate::server) mod perform;
pub(in crate::server) mod register;
