//! Live debugging: what flows through components, told to whoever looks.
//!
//! In: calls of components through the [`LiveHandle`] in their context. Out: entries for watchers, and counts of what
//! flowed over each edge. While nobody looks an event costs one relaxed load and a hand-over one or two relaxed
//! additions: no entry is made, nothing is allocated. Each watcher has a bounded queue and a sampling probability that
//! is asked before an entry is made; what does not fit is counted and said. Does not know HTTP, and does not find
//! components: the controller does.

mod entry;
mod flows;
mod hub;
#[cfg(test)]
mod tests;
mod watcher;

pub use entry::{Change, Entry, LabelSet, Outcome, ProfileFacts, Relabeled, Stamped, Step};
pub use flows::{Edge, FlowCount, TargetCount};
pub use hub::{LiveHandle, LiveHub, Watch};
pub use watcher::Batch;
