//! The cluster: collectors that share targets, so that each is scraped by one of them.
//!
//! In: flags, and datagrams of other collectors. Out: a [`Cluster`] for components. `membership` is the protocol by
//! which members find and watch each other, over messages that `codec` reads and `envelope` proves; `agent` gives it a
//! socket and a clock, and `join` the addresses of others. `ring` says which member owns what, and `view` shows it to
//! components. Knows nothing of targets. `docs/adr/0013-clustering.md` says why it is so.

mod advertise;
mod agent;
mod codec;
mod envelope;
mod join;
mod member;
mod membership;
mod metrics;
mod readiness;
pub(crate) mod ring;
mod view;

pub(crate) use agent::{Agent, ClusterError, Options};
#[cfg(test)]
pub(crate) use member::Member;
pub use view::Cluster;
pub(crate) use view::{Owner, Part, View};
