//! The output of `perf script`: a line for each sample, followed by its frames, the leaf first.
//!
//! In: text. Out: stacks. The command is the outermost frame. A frame with an unknown function has the name of its
//! binary in square brackets. [`by_event`] determines the meaning of the samples from the file. [`counted`] only counts
//! the samples, and its caller determines their meaning. `/ingest`, files and format detection all use this module.

mod event;
mod line;
mod stacks;
mod walk;

pub(crate) use event::by_event;
use line::{Frame, Sample};
pub(crate) use stacks::{counted, size};
pub(crate) use walk::is_like;
