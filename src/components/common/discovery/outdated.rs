//! The reason why a discovery exports some targets that are out of date.

use std::fmt;
use std::sync::Arc;

use crate::common::discovery::discovery_error::DiscoveryError;

/// The reason why a discovery exports some targets that are out of date, although it could list other targets.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Outdated {
    /// Some parts of a discovery could not be listed.
    #[error("{first}{}", and_more(*.others))]
    Parts {
        /// Error of the first failed part.
        #[source]
        first: Arc<DiscoveryError>,
        /// Number of other failed parts.
        others: usize,
    },
    /// ZooKeeper has no node at some of the configured paths.
    #[error("zookeeper has no node {}", .0.join(", "))]
    NoNodes(Vec<String>),
}

fn and_more(others: usize) -> impl fmt::Display {
    fmt::from_fn(move |text| match others {
        0 => Ok(()),
        _ => write!(text, " (and {others} more)"),
    })
}
