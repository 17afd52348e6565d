//! A ZooKeeper client that reads nodes and watches their changes. It supports only the requests that the discovery
//! components need.
//!
//! In: addresses and paths. Out: nodes, and the paths of nodes that changed after they were read. A session ends with
//! its connection. After a disconnect, the caller connects and reads again. The client never writes, so nothing is lost
//! with a session.

mod messages;
mod session;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use session::Node;
pub use session::{Session, ZooKeeperError};
