//! Components that export the content or the paths of files on this machine.

pub(crate) mod file;
pub(crate) mod file_match;
