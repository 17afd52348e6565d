//! Computes from the statistics of files how much data tenants have stored, and how much data a query would read.
//!
//! In: the files of a snapshot. Out: times, rows and bytes. A file is opened only if its statistics do not
//! suffice.

pub(in crate::query) mod impact;
pub(in crate::query) mod stored;
