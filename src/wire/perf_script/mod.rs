//! The output of `perf script`: a line for each sample, then its frames, the leaf first.
//!
//! In: text. Out: stacks. The command is the outermost frame; a function that is not known has the name of its binary
//! in square brackets. [`by_event`] reads what the samples stand for from the file itself, [`counted`] leaves that to
//! the caller. `/ingest`, files and their detection all read by this module.

mod event;
mod line;
mod stacks;
mod walk;

pub(crate) use event::by_event;
use line::{Frame, Sample};
pub(crate) use stacks::{counted, size};
pub(crate) use walk::is_like;
