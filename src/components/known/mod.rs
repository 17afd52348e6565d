//! Components that the language knows and that cannot run yet: their arguments, exports and checks.
//!
//! One file a component or a small family. A configuration that uses one is checked in full; `run` refuses it by name.
//! When a component is built its definition moves to a folder of its own and gets its builder there.

pub mod aws;
pub mod azure;
pub mod clouds;
pub mod consul;
pub mod docker;
pub mod exporter_self;
pub mod kubernetes;
pub mod local;
pub mod network;
pub mod private_clouds;
pub mod pyroscope_enrich;
pub mod pyroscope_java;
pub mod pyroscope_receive_http;
pub mod registries;
pub mod remote;
pub mod vault;
