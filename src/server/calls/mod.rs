//! Calls of services over Connect, gRPC and gRPC-Web.
//!
//! In: a request. Out: the response of a service's method, in the protocol of the caller. [`perform`] contains the
//! steps that all protocols share.

mod connect;
mod error;
pub(in crate::server) mod grpc;
mod method;
pub(in crate::server) mod observe;
pub(in crate::server) mod perform;
pub(in crate::server) mod register;
