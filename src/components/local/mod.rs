//! Components that bring what stands on this machine into a configuration.

pub mod file;
