//! Offline work on a data folder: check, sizes, repair and backup.
//!
//! In: a data folder, which a server may have open. Out: findings, each with a severity, sizes, or a consistent copy.
//! Only a repair changes the folder.

pub(crate) mod backup;
mod check_log;
pub(crate) mod findings;
pub mod inspect;
pub(crate) mod repair;
