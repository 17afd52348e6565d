//! Offline work on a data folder: check, repair and backup.
//!
//! In: a data folder, which a server may have open. Out: findings, each with a severity, or a consistent copy.

pub(crate) mod backup;
mod check_log;
pub(crate) mod findings;
pub mod inspect;
pub(crate) mod repair;
