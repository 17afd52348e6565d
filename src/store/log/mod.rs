//! The write-ahead log: segment files of checksummed records, written and synced by one thread.
//!
//! In: records of accepted profiles. Out: an acknowledgement when the record is on disk, and the records again when the
//! store is opened. Records that cannot be used are kept beside the log ([`damaged`]).

pub(in crate::store) mod cut;
pub(in crate::store) mod damaged;
pub(in crate::store) mod reader;
pub(in crate::store) mod record;
pub(in crate::store) mod segment;
pub(in crate::store) mod wal;
