//! Deletion by age and by size, downsampling, and removal of files that no reader needs.
//!
//! In: live files, the clocks, and the free space of the disk. Out: jobs for `maintenance`. A wrong wall clock deletes
//! nothing ([`clock_watch`]).

pub(crate) mod aging;
pub(in crate::store) mod clock_watch;
pub(in crate::store) mod space;
pub(in crate::store) mod space_control;
pub(in crate::store) mod vacuum;
pub(in crate::store) mod vacuum_job;
