//! The sources of modules: `import.file`, `import.string`, `import.http`, `import.git`.
//!
//! Each import exports the texts that it read and their folder, for `pipeline::run`. Imports are blocks of the
//! configuration language, and are built and run like components.

pub(crate) mod file;
pub(crate) mod git;
pub(crate) mod http;
pub(crate) mod string;
