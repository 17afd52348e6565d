//! The open store: the type [`store::Store`], its threads, and the recovery at the start.
//!
//! In: a data folder and a configuration. Out: a running store, or a read-only snapshot of the folder ([`read_only`]).

pub(in crate::store) mod applier;
pub(in crate::store) mod flusher;
pub(in crate::store) mod folder;
pub(in crate::store) mod read_only;
pub(in crate::store) mod replay;
pub(in crate::store) mod store;
