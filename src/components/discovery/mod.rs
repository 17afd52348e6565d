//! Components that find targets or change them.

pub mod file;
pub mod process;
pub mod relabel;
