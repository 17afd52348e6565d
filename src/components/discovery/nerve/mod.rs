//! `discovery.nerve`: discovers the services that Nerve registers in ZooKeeper.
//!
//! In: the ZooKeeper nodes at and below the configured paths. Out: a target for each node that describes a member of a
//! service.

use serde::Deserialize;

use crate::common::arguments::targets::Target;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::discovery::polled;
use crate::common::discovery::zookeeper_tree;
use crate::common::discovery::zookeeper_tree::{Members, ZooKeeperArguments};
use alluvium_pipeline::component::Definition;

#[cfg(test)]
mod tests;

/// The component's definition.
pub(crate) const DEFINITION: Definition<ZooKeeperArguments> = polled::definition::<Members<Member>>(
    "discovery.nerve",
    "`discovery.nerve` finds the services that Nerve writes into ZooKeeper.",
);

/// A member of a service, as Nerve writes it.
#[derive(Deserialize)]
struct Member {
    host: String,
    port: i64,
    #[serde(default)]
    name: String,
}

impl zookeeper_tree::Member for Member {
    fn target(self, path: &str) -> Target {
        let mut labels = MetaLabels::new("__meta_nerve_");
        labels
            .set("path", path)
            .set("endpoint_host", &self.host)
            .set("endpoint_port", self.port)
            .set("endpoint_name", &self.name);
        labels.with_address(host_port(&self.host, self.port))
    }
}
