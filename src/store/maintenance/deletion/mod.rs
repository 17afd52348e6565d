//! Deletion of profiles by selector and time range.
//!
//! In: a request, which is kept on disk. Out: files without the selected rows. A request that a crash interrupts is
//! finished at the next start.

pub(in crate::store) mod job;
pub mod request;
