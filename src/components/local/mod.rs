//! Components that bring what stands on this machine into a configuration.

pub(crate) mod file;
pub(crate) mod file_match;
