//! Components that bring values from elsewhere into a configuration.

pub(crate) mod http;
pub(crate) mod kubernetes;
pub(crate) mod s3;
pub(crate) mod vault;
