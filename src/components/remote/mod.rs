//! Components that bring values from elsewhere into a configuration.

pub mod http;
