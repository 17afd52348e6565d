//! Live debugging: the data that flows through components, for clients that watch.
//!
//! In: calls of components through the [`LiveHandle`] in their context. Out: entries for watchers, and counters of the
//! flow over each edge. Without a watcher, an event costs one relaxed load, and counting sent data costs one or two
//! relaxed additions: no entry is created, nothing is allocated. Each watcher has a bounded queue and a sampling
//! probability that is applied before an entry is created. Entries that do not fit are counted and reported. This
//! module depends neither on HTTP nor on the controller.

mod entry;
mod flows;
mod hub;
#[cfg(test)]
mod tests;
mod watcher;

pub use entry::{Change, Outcome, Relabeled};
pub use entry::{Entry, ProfileFacts, Step};
pub use entry::{LabelSet, TimedEntry};
pub use flows::{Edge, FlowCount, TargetCount};
pub use hub::LiveHub;
pub use hub::{LiveHandle, Watch};
pub use watcher::Batch;
