//! `discovery.serverset`: discovers the members of serversets in ZooKeeper.
//!
//! In: the ZooKeeper nodes at and below the configured paths. Out: a target for each node that describes a member.

use std::collections::BTreeMap;

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
    "discovery.serverset",
    "`discovery.serverset` finds the members of serversets in ZooKeeper.",
);

/// A member in the form in which a serverset stores it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Member {
    service_endpoint: Endpoint,
    #[serde(default)]
    additional_endpoints: BTreeMap<String, Endpoint>,
    #[serde(default)]
    status: String,
    #[serde(default)]
    shard: i64,
}

#[derive(Deserialize)]
struct Endpoint {
    host: String,
    port: i64,
}

impl zookeeper_tree::Member for Member {
    fn target(self, path: &str) -> Target {
        let Endpoint { host, port } = &self.service_endpoint;
        let others = &self.additional_endpoints;
        let mut labels = MetaLabels::new("__meta_serverset_");
        labels
            .set("path", path)
            .set("endpoint_host", host)
            .set("endpoint_port", port)
            .set_each("endpoint_host_", others.iter().map(|(name, other)| (name, &other.host)))
            .set_each("endpoint_port_", others.iter().map(|(name, other)| (name, other.port)))
            .set("status", &self.status)
            .set("shard", self.shard);
        labels.with_address(host_port(host, port))
    }
}
