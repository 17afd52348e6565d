//! The role `msk`: brokers and controllers of provisioned Kafka clusters.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::common::arguments::targets::Target;
use crate::common::clouds::aws::client::Aws;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::http::paging::{Page, all_pages, ask_each, ask_lists};

const SERVICE: &str = "kafka";
/// Query parameter for the page size: the maximum that the API allows.
const PAGE: (&str, &str) = ("maxResults", "100");
/// The type of cluster whose nodes the API can list.
const PROVISIONED: &str = "PROVISIONED";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Clusters {
    #[serde(default)]
    cluster_info_list: Vec<Cluster>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct One {
    cluster_info: Cluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cluster {
    cluster_arn: String,
    cluster_name: Option<String>,
    cluster_type: Option<String>,
    current_version: Option<String>,
    state: Option<String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    provisioned: Option<Provisioned>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Provisioned {
    current_broker_software_info: Option<Software>,
    open_monitoring: Option<OpenMonitoring>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Software {
    configuration_arn: Option<String>,
    configuration_revision: Option<i64>,
    kafka_version: Option<String>,
}

#[derive(Deserialize)]
struct OpenMonitoring {
    prometheus: Option<Exporters>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Exporters {
    jmx_exporter: Option<Exporter>,
    node_exporter: Option<Exporter>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Exporter {
    enabled_in_broker: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Nodes {
    #[serde(default)]
    node_info_list: Vec<Node>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    #[serde(rename = "nodeARN")]
    arn: Option<String>,
    added_to_cluster_time: Option<String>,
    instance_type: Option<String>,
    broker_node_info: Option<Broker>,
    controller_node_info: Option<Controller>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Broker {
    #[serde(rename = "attachedENIId")]
    attached_eni_id: Option<String>,
    broker_id: Option<f64>,
    client_subnet: Option<String>,
    client_vpc_ip_address: Option<String>,
    #[serde(default)]
    endpoints: Vec<String>,
}

#[derive(Deserialize)]
struct Controller {
    #[serde(default)]
    endpoints: Vec<String>,
}

/// Returns a target for each endpoint of each node. An empty list of ARNs stands for all clusters.
pub(super) async fn targets(
    aws: &Aws,
    arns: Vec<String>,
    port: i64,
    concurrency: usize,
) -> Result<Vec<Target>, DiscoveryError> {
    let clusters = if arns.is_empty() {
        all_clusters(aws).await?
    } else {
        let one = |arn: String| async move {
            let answer: One = aws.get(SERVICE, &["api", "v2", "clusters", &arn], &[]).await?;
            Ok::<_, DiscoveryError>(answer.cluster_info)
        };
        ask_each(arns, concurrency, one).await?
    };
    let is_provisioned = |cluster: &Cluster| cluster.cluster_type.as_deref() == Some(PROVISIONED);
    let clusters = clusters.into_iter().filter(is_provisioned).collect();
    let of_cluster = |cluster: Cluster| async move {
        let nodes = nodes(aws, &cluster.cluster_arn).await?;
        Ok::<_, DiscoveryError>(
            nodes
                .iter()
                .flat_map(|node| node_targets(&cluster, node, port))
                .collect(),
        )
    };
    ask_lists(clusters, concurrency, of_cluster).await
}

async fn all_clusters(aws: &Aws) -> Result<Vec<Cluster>, DiscoveryError> {
    let clusters = all_pages(|token: Option<String>| async move {
        let mut query = vec![("clusterTypeFilter", PROVISIONED), PAGE];
        query.extend(token.as_deref().map(|token| ("nextToken", token)));
        let answer: Clusters = aws.get(SERVICE, &["api", "v2", "clusters"], &query).await?;
        Ok(Page {
            items: answer.cluster_info_list,
            next: answer.next_token,
        })
    });
    clusters.await
}

async fn nodes(aws: &Aws, arn: &str) -> Result<Vec<Node>, DiscoveryError> {
    let nodes = all_pages(|token: Option<String>| async move {
        let mut query = vec![PAGE];
        query.extend(token.as_deref().map(|token| ("nextToken", token)));
        let answer: Nodes = aws.get(SERVICE, &["v1", "clusters", arn, "nodes"], &query).await?;
        Ok(Page {
            items: answer.node_info_list,
            next: answer.next_token,
        })
    });
    nodes.await
}

fn node_targets(cluster: &Cluster, node: &Node, port: i64) -> Vec<Target> {
    let provisioned = cluster.provisioned.as_ref();
    let software = provisioned.and_then(|own| own.current_broker_software_info.as_ref());
    let exporters = provisioned.and_then(|own| own.open_monitoring.as_ref()?.prometheus.as_ref());
    let is_enabled = |exporter: &Exporter| exporter.enabled_in_broker.unwrap_or_default();
    let mut labels = MetaLabels::new("__meta_msk_");
    labels
        .set("cluster_arn", &cluster.cluster_arn)
        .set_some("cluster_name", cluster.cluster_name.as_ref())
        .set_some("cluster_state", cluster.state.as_ref())
        .set_some("cluster_type", cluster.cluster_type.as_ref())
        .set_some("cluster_version", cluster.current_version.as_ref())
        .set_some(
            "cluster_kafka_version",
            software.and_then(|own| own.kafka_version.as_ref()),
        )
        .set_some(
            "cluster_configuration_arn",
            software.and_then(|own| own.configuration_arn.as_ref()),
        )
        .set_some(
            "cluster_configuration_revision",
            software.and_then(|own| own.configuration_revision),
        )
        .set_some(
            "cluster_jmx_exporter_enabled",
            exporters.and_then(|own| own.jmx_exporter.as_ref()).map(is_enabled),
        )
        .set_each("cluster_tag_", &cluster.tags)
        .set_some("node_arn", node.arn.as_ref())
        .set_some("node_added_time", node.added_to_cluster_time.as_ref())
        .set_some("node_instance_type", node.instance_type.as_ref());
    let (endpoints, index_label) = match (&node.broker_node_info, &node.controller_node_info) {
        (Some(broker), _) => {
            labels
                .set("node_type", "BROKER")
                .set_some("node_attached_eni", broker.attached_eni_id.as_ref())
                .set_some("broker_id", broker.broker_id)
                .set_some("broker_client_subnet", broker.client_subnet.as_ref())
                .set_some("broker_client_vpc_ip", broker.client_vpc_ip_address.as_ref())
                .set_some(
                    "broker_node_exporter_enabled",
                    exporters.and_then(|own| own.node_exporter.as_ref()).map(is_enabled),
                );
            (&broker.endpoints, "broker_endpoint_index")
        }
        (None, Some(controller)) => {
            labels.set("node_type", "CONTROLLER");
            (&controller.endpoints, "controller_endpoint_index")
        }
        (None, None) => return Vec::new(),
    };
    let target = |(index, endpoint): (usize, &String)| {
        labels.set(index_label, index);
        labels.with_address(host_port(endpoint, port))
    };
    endpoints.iter().enumerate().map(target).collect()
}
