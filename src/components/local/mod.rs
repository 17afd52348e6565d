//! Components that export files of this machine: their content, or their paths.

pub(crate) mod file;
pub(crate) mod file_match;
