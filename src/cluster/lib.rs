//! The cluster: collectors that share targets, so that each target is scraped by one collector.
//!
//! In: flags, and datagrams of other collectors. Out: a [`Cluster`] for components. `membership` is the protocol by
//! which members find and watch each other; `codec` encodes its messages and `envelope` authenticates them. `agent`
//! adds a socket and a clock, and `join` looks up the addresses of other members. `ring` computes a key from the labels
//! of a target and decides which member owns the key. `view` provides members and owners to components.
//! `docs/adr/0013-clustering.md` explains the design.

mod advertise;
mod agent;
mod codec;
mod envelope;
mod join;
mod member;
mod membership;
mod metrics;
mod readiness;
pub mod ring;
mod view;

pub use agent::{Agent, ClusterError, Options};
pub use member::Member;
pub use view::Cluster;
pub use view::{Owner, Part, View};
