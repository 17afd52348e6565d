//! The output of `perf script`: a line for each sample, followed by its frames, the leaf first.
//!
//! In: text. Out: stacks. The command is the outermost frame. A frame with an unknown function has the name of its
//! binary in square brackets. [`read_events`] determines the meaning of the samples from the file. [`count_samples`]
//! only counts the samples, and its caller determines their meaning. `/ingest`, files and format detection all use this
//! module.

mod event;
mod line;
mod stacks;
mod walk;

pub(crate) use event::read_events;
use line::{Frame, Sample};
pub(crate) use stacks::{count_samples, size};
pub(crate) use walk::is_like;
