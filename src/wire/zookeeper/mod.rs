//! A client of ZooKeeper that reads nodes and learns of their changes: what the discoveries need, and no more.
//!
//! In: addresses and paths. Out: nodes, and the paths of those that changed since. A session ends with its connection:
//! who loses it connects anew and reads again. Nothing is written, so nothing is lost with a session.

mod messages;
mod session;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use session::Node;
pub(crate) use session::{Session, ZooKeeperError};
