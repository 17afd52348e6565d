//! Answers from the statistics of files: what tenants have stored, and what a query would read.
//!
//! In: the files of a snapshot. Out: times, rows and bytes. No file is opened.

pub(in crate::query) mod impact;
pub(in crate::query) mod stored;
