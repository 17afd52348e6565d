//! Components that read values from other systems into a configuration.

pub(crate) mod http;
pub(crate) mod kubernetes;
pub(crate) mod s3;
pub(crate) mod vault;
