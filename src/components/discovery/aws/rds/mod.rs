//! The role `rds`: instances of database clusters.
//!
//! Amazon's API lists instances and clusters separately. The component requests the instances of each cluster, so
//! instances that belong to no cluster are not targets.

use std::collections::BTreeMap;

use crate::common::arguments::targets::Target;
use crate::common::clouds::aws::client::{Aws, QueryService};
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::discovery::schema::Filter;
use crate::common::http::paging::ask_lists;
use crate::discovery::aws::query_lists::{Paging, paged_list};
use crate::discovery::aws::rds::cluster::Cluster;
use crate::discovery::aws::rds::instance::Instance;

mod cluster;
mod instance;

const SERVICE: QueryService = QueryService {
    name: "rds",
    version: "2014-10-31",
};
const PAGING: Paging = Paging {
    size: ("MaxRecords", "100"),
    token: "Marker",
};
/// Name of the filter that selects the instances of a cluster.
const OF_CLUSTER: &str = "db-cluster-id";

/// Returns a target for each instance of each cluster. `clusters` contains ARNs or identifiers; an empty list stands
/// for all clusters. An instance must match all filters.
pub(super) async fn targets(
    aws: &Aws,
    clusters: Vec<String>,
    filters: &[Filter],
    port: i64,
    concurrency: usize,
) -> Result<Vec<Target>, DiscoveryError> {
    let clusters = if clusters.is_empty() {
        described_clusters(aws, &[]).await?
    } else {
        ask_lists(clusters, concurrency, |name| named_cluster(aws, name)).await?
    };
    let of_cluster = |cluster: Cluster| async move {
        let Some(arn) = &cluster.arn else {
            return Ok::<_, DiscoveryError>(Vec::new());
        };
        let instances = instances(aws, arn, filters).await?;
        Ok(instance_targets(&cluster, &instances, port))
    };
    ask_lists(clusters, concurrency, of_cluster).await
}

async fn named_cluster(aws: &Aws, name: String) -> Result<Vec<Cluster>, DiscoveryError> {
    let parameters = [("DBClusterIdentifier".to_owned(), name.clone())];
    let clusters = described_clusters(aws, &parameters).await?;
    if clusters.is_empty() {
        let message = format!("DescribeDBClusters: there is no cluster `{name}`");
        return Err(DiscoveryError::Response(message));
    }
    Ok(clusters)
}

async fn described_clusters(aws: &Aws, parameters: &[(String, String)]) -> Result<Vec<Cluster>, DiscoveryError> {
    paged_list(aws, SERVICE, "DescribeDBClusters", PAGING, parameters).await
}

async fn instances(aws: &Aws, cluster: &str, filters: &[Filter]) -> Result<Vec<Instance>, DiscoveryError> {
    let mut parameters = vec![
        ("Filters.Filter.1.Name".to_owned(), OF_CLUSTER.to_owned()),
        ("Filters.Filter.1.Values.Value.1".to_owned(), cluster.to_owned()),
    ];
    for (index, filter) in filters.iter().enumerate() {
        let name = format!("Filters.Filter.{}", index + 2);
        parameters.push((format!("{name}.Name"), filter.name.to_string()));
        for (index, value) in filter.values.0.iter().enumerate() {
            parameters.push((format!("{name}.Values.Value.{}", index + 1), value.to_string()));
        }
    }
    paged_list(aws, SERVICE, "DescribeDBInstances", PAGING, &parameters).await
}

fn instance_targets(cluster: &Cluster, instances: &[Instance], port: i64) -> Vec<Target> {
    let mut cluster_labels = MetaLabels::new("__meta_rds_");
    cluster_labels
        .set_each("cluster_", cluster.labels())
        .set_each("cluster_tag_", cluster.tags.pairs());
    let members = cluster.members.0.iter();
    let roles: BTreeMap<&String, &String> = members
        .filter_map(|member| Some((member.instance.as_ref()?, member.is_writer.as_ref()?)))
        .collect();
    let target = |instance: &Instance| {
        let mut labels = cluster_labels.clone();
        let is_writer = instance.identifier.as_ref().and_then(|name| roles.get(name));
        labels
            .set_each("instance_", instance.labels())
            .set_each("instance_tag_", instance.tags.pairs())
            .set_some("instance_is_cluster_writer", is_writer);
        if let Some(endpoint) = &instance.endpoint {
            labels.set_each("instance_endpoint_", endpoint.labels());
        }
        if let Some(listener) = &instance.listener_endpoint {
            labels.set_each("instance_listener_endpoint_", listener.labels());
        }
        if let Some(group) = &instance.subnet_group {
            labels.set_some("instance_subnet_group", group.name.as_ref());
        }
        // An instance that is still being created has no endpoint.
        let endpoint = instance.endpoint.as_ref().filter(|endpoint| endpoint.port.is_some());
        match endpoint.and_then(|endpoint| endpoint.address.as_ref()) {
            Some(address) => labels.with_address(host_port(address, port)),
            None => labels.into_target(),
        }
    };
    instances.iter().map(target).collect()
}
