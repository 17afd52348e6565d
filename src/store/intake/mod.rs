//! The write path: all steps from the arrival of a profile to its acknowledgement.
//!
//! In: profiles of a tenant. Out: the refused profiles, once all other profiles are in the log and in the head
//! ([`append`]).

pub(in crate::store) mod append;
pub(in crate::store) mod budget;
