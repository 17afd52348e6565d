//! Deletion of profiles by selector and time range.
//!
//! In: a request, which is kept on disk. Out: files without the selected rows. If a crash interrupts a request, the
//! next start finishes it.

pub mod deletion_error;
pub(in crate::store) mod job;
pub mod request;
