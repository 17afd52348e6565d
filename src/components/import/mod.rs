//! The sources of modules: `import.file`, `import.string`, `import.http`, `import.git`.
//!
//! Each exports the texts that it found and their folder, which `pipeline::run` reads. They are blocks of the
//! configuration language, built and run as components are.

pub(crate) mod file;
pub(crate) mod git;
pub(crate) mod http;
pub(crate) mod string;
