//! The write path: takes a profile from the caller to the acknowledgement.
//!
//! In: profiles of a tenant. Out: the refused profiles, once all other profiles are in the log and in the head
//! ([`append`]).

pub(in crate::store) mod append;
pub(in crate::store) mod budget;
