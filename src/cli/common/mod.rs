//! Shared code of the commands: output, tables, times, and the flags of server and storage.

pub(in crate::cli) mod content;
pub(in crate::cli) mod flag_error;
pub(in crate::cli) mod folder;
pub(in crate::cli) mod output;
pub(in crate::cli) mod plain;
pub(in crate::cli) mod remote;
pub(in crate::cli) mod rights;
#[cfg(feature = "server")]
pub(in crate::cli) mod storage;
pub(in crate::cli) mod table;
pub(in crate::cli) mod time;
