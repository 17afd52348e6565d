//! Work on a data folder without the help of a server: check, sizes, repair and backup.
//!
//! In: a data folder. A server may have it open, except during a repair. Out: findings with their severities, or sizes,
//! or a consistent copy. Only a repair changes the folder.

pub(crate) mod backup;
mod check_log;
pub(crate) mod findings;
pub mod inspect;
pub(crate) mod repair;
