//! Read-only SQL: checks, plans and runs a statement within its limits.
//!
//! In: the text of a statement and its parameters. Out: a stream of batches. Statements are checked before they are
//! planned ([`guard`]) and before they run ([`row_bytes`]).

mod explain;
mod guard;
mod row_bytes;
pub(in crate::query) mod session;
mod slices;
pub(in crate::query) mod statement;
mod threads;
mod watch;
mod widths;
