//! Deletion by age and by size, downsampling, and removal of files that no reader needs.
//!
//! In: live files, the clocks, and the free space of the disk. Out: jobs for `maintenance`. A wrong wall clock deletes
//! nothing ([`watch`]).

pub(crate) mod aging;
pub(in crate::store) mod room;
pub(in crate::store) mod space;
pub(in crate::store) mod vacuum;
pub(in crate::store) mod vacuum_job;
pub(in crate::store) mod watch;
