//! Cache clusters and their nodes, as the API describes them.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::common::arguments::targets::Target;
use crate::common::discovery::meta_labels::MetaLabels;
use crate::discovery::aws::elements::{Endpoint, List, Tag, Time, elements};

elements! {
    /// A cache cluster as the API describes it.
    pub(super) struct CacheCluster {
        labels {
            arn: String = "ARN",
            at_rest_encryption_enabled: String = "AtRestEncryptionEnabled",
            auth_token_enabled: String = "AuthTokenEnabled",
            auth_token_last_modified: Time = "AuthTokenLastModifiedDate",
            auto_minor_version_upgrade: String = "AutoMinorVersionUpgrade",
            cache_cluster_create_time: Time = "CacheClusterCreateTime",
            cache_cluster_id: String = "CacheClusterId",
            cache_cluster_status: String = "CacheClusterStatus",
            cache_node_type: String = "CacheNodeType",
            cache_subnet_group_name: String = "CacheSubnetGroupName",
            client_download_landing_page: String = "ClientDownloadLandingPage",
            engine: String = "Engine",
            engine_version: String = "EngineVersion",
            ip_discovery: String = "IpDiscovery",
            network_type: String = "NetworkType",
            num_cache_nodes: String = "NumCacheNodes",
            preferred_availability_zone: String = "PreferredAvailabilityZone",
            preferred_maintenance_window: String = "PreferredMaintenanceWindow",
            preferred_outpost_arn: String = "PreferredOutpostArn",
            replication_group_id: String = "ReplicationGroupId",
            replication_group_log_delivery_enabled: String = "ReplicationGroupLogDeliveryEnabled",
            snapshot_retention_limit: String = "SnapshotRetentionLimit",
            snapshot_window: String = "SnapshotWindow",
            transit_encryption_enabled: String = "TransitEncryptionEnabled",
            transit_encryption_mode: String = "TransitEncryptionMode",
        }
        parts {
            configuration_endpoint: Option<Endpoint> = "ConfigurationEndpoint",
            log_deliveries: List<LogDelivery> = "LogDeliveryConfigurations",
            nodes: List<CacheNode> = "CacheNodes",
            notification: Option<Notification> = "NotificationConfiguration",
            parameter_group: Option<ParameterGroup> = "CacheParameterGroup",
            pending: Option<PendingValues> = "PendingModifiedValues",
            security_groups: List<SecurityGroup> = "SecurityGroups",
        }
    }
}

elements! {
    /// A node of a cache cluster.
    pub(super) struct CacheNode {
        labels {
            availability_zone: String = "CustomerAvailabilityZone",
            create_time: Time = "CacheNodeCreateTime",
            customer_outpost_arn: String = "CustomerOutpostArn",
            id: String = "CacheNodeId",
            parameter_group_status: String = "ParameterGroupStatus",
            source_cache_node_id: String = "SourceCacheNodeId",
            status: String = "CacheNodeStatus",
        }
        parts {
            endpoint: Option<Endpoint> = "Endpoint",
        }
    }
}

elements! {
    /// The topic to which a cluster sends notifications.
    pub(super) struct Notification {
        labels {
            topic_arn: String = "TopicArn",
            topic_status: String = "TopicStatus",
        }
    }
}

elements! {
    /// The parameter group of a cluster.
    pub(super) struct ParameterGroup {
        labels {
            cache_parameter_group: String = "CacheParameterGroupName",
        }
    }
}

elements! {
    /// Settings that a cluster will have after its next change.
    pub(super) struct PendingValues {
        labels {
            auth_token_status: String = "AuthTokenStatus",
            cache_node_type: String = "CacheNodeType",
            engine_version: String = "EngineVersion",
            num_cache_nodes: String = "NumCacheNodes",
            transit_encryption_enabled: String = "TransitEncryptionEnabled",
            transit_encryption_mode: String = "TransitEncryptionMode",
        }
        parts {
            removed_nodes: List<String> = "CacheNodeIdsToRemove",
        }
    }
}

elements! {
    /// A security group of a cluster.
    pub(super) struct SecurityGroup {
        labels {
            id: String = "SecurityGroupId",
            status: String = "Status",
        }
    }
}

elements! {
    /// A destination to which a cluster sends a log.
    pub(super) struct LogDelivery {
        labels {
            destination_type: String = "DestinationType",
            log_format: String = "LogFormat",
            log_type: String = "LogType",
            message: String = "Message",
            status: String = "Status",
        }
        parts {
            details: Option<Destination> = "DestinationDetails",
        }
    }
}

/// A destination of a log in CloudWatch or Kinesis.
#[derive(Deserialize)]
pub(super) struct Destination {
    #[serde(rename = "CloudWatchLogsDetails")]
    cloud_watch: Option<LogGroup>,
    #[serde(rename = "KinesisFirehoseDetails")]
    kinesis: Option<DeliveryStream>,
}

elements! {
    /// A log group in CloudWatch.
    struct LogGroup {
        labels {
            log_group: String = "LogGroup",
        }
    }
}

elements! {
    /// A delivery stream in Kinesis.
    struct DeliveryStream {
        labels {
            delivery_stream: String = "DeliveryStream",
        }
    }
}

impl CacheCluster {
    /// Returns a target for each node.
    pub(super) fn targets(&self, tags: &List<Tag>) -> Vec<Target> {
        let cluster_labels = self.cluster_labels(tags);
        let target = |node: &CacheNode| {
            let mut labels = cluster_labels.clone();
            labels.set_each("cache_cluster_node_", node.labels());
            let Some(endpoint) = &node.endpoint else {
                // A node that is still being created has no endpoint.
                return labels.into_target();
            };
            labels.set_each("cache_cluster_node_endpoint_", endpoint.labels());
            match endpoint.host_port() {
                Some(address) => labels.with_address(address),
                None => labels.into_target(),
            }
        };
        self.nodes.0.iter().map(target).collect()
    }

    /// Returns the member of `groups` to which the cluster belongs. The member can be the id of the cluster itself,
    /// because Alloy uses the name in the ARN of a replication group as the id of a cache cluster.
    pub(super) fn group<'a>(&self, groups: &'a BTreeSet<String>) -> Option<&'a String> {
        let names = [&self.replication_group_id, &self.cache_cluster_id];
        names.into_iter().flatten().find_map(|name| groups.get(name))
    }

    fn cluster_labels(&self, tags: &List<Tag>) -> MetaLabels {
        let mut labels = MetaLabels::new("__meta_elasticache_");
        labels
            .set("deployment_option", "node")
            .set_each("cache_cluster_", self.labels())
            .set_each("cache_cluster_tag_", tags.pairs());
        if let Some(endpoint) = &self.configuration_endpoint {
            labels.set_each("cache_cluster_configuration_endpoint_", endpoint.labels());
        }
        if let Some(notification) = &self.notification {
            labels.set_each("cache_cluster_notification_", notification.labels());
        }
        if let Some(group) = &self.parameter_group {
            labels.set_each("cache_cluster_", group.labels());
        }
        if let Some(pending) = &self.pending {
            let prefix = "cache_cluster_pending_modified_values_";
            labels.set_each(prefix, pending.labels());
            if !pending.removed_nodes.0.is_empty() {
                let nodes = pending.removed_nodes.0.join(",");
                labels.set(&format!("{prefix}cache_node_ids_to_remove"), nodes);
            }
        }
        for (index, delivery) in self.log_deliveries.0.iter().enumerate() {
            let prefix = "cache_cluster_log_delivery_configuration_";
            labels.set_each(prefix, numbered(index, delivery.labels()));
            if let Some(group) = delivery.details.as_ref().and_then(|own| own.cloud_watch.as_ref()) {
                labels.set_each(prefix, numbered(index, group.labels()));
            }
            if let Some(stream) = delivery.details.as_ref().and_then(|own| own.kinesis.as_ref()) {
                labels.set_each(prefix, numbered(index, stream.labels()));
            }
        }
        for (index, group) in self.security_groups.0.iter().enumerate() {
            let prefix = "cache_cluster_security_group_membership_";
            labels.set_each(prefix, numbered(index, group.labels()));
        }
        labels
    }
}

/// Appends the index of an object to the names of its labels.
fn numbered(
    index: usize,
    labels: impl Iterator<Item = (&'static str, String)>,
) -> impl Iterator<Item = (String, String)> {
    labels.map(move |(name, text)| (format!("{name}_{index}"), text))
}
