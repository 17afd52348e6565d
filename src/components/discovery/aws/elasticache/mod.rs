//! The role `elasticache`: serverless caches and the nodes of cache clusters.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::arguments::targets::Target;
use crate::common::clouds::aws::client::{Aws, QueryService};
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::http::paging::ask_lists;
use crate::discovery::aws::elasticache::arns::{ArnError, Selection};
use crate::discovery::aws::elasticache::cluster::CacheCluster;
use crate::discovery::aws::elasticache::serverless::ServerlessCache;
use crate::discovery::aws::elements::{List, Tag};
use crate::discovery::aws::query_lists::{Paging, list, paged_list};

mod arns;
mod cluster;
mod serverless;

const SERVICE: QueryService = QueryService {
    name: "elasticache",
    version: "2015-02-02",
};
const SERVERLESS_PAGING: Paging = Paging {
    size: ("MaxResults", "50"),
    token: "NextToken",
};
const CLUSTERS_PAGING: Paging = Paging {
    size: ("MaxRecords", "100"),
    token: "Marker",
};

/// Checks that each text is the ARN of a cache.
pub(super) fn check_arns(arns: &[Arc<str>]) -> Result<(), ArnError> {
    Selection::read(arns).map(drop)
}

/// Returns a target for each serverless cache, and for each node of each cache cluster. An empty list of ARNs stands
/// for all caches.
pub(super) async fn targets(aws: &Aws, arns: &[Arc<str>], concurrency: usize) -> Result<Vec<Target>, DiscoveryError> {
    let selection = Selection::read(arns).map_err(|error| DiscoveryError::Configuration(error.into()))?;
    let (caches, clusters) = match selection {
        None => (described_caches(aws, &[]).await?, described_clusters(aws, None).await?),
        Some(selection) => {
            let named = |name: String| async move {
                let parameters = [("ServerlessCacheName".to_owned(), name)];
                described_caches(aws, &parameters).await
            };
            (
                ask_lists(selection.serverless.into_iter().collect(), concurrency, named).await?,
                selected_clusters(aws, selection.clusters, &selection.groups, concurrency).await?,
            )
        }
    };
    let of_cache = |cache: ServerlessCache| async move {
        let tags = tags(aws, cache.arn.as_ref()).await?;
        Ok::<_, DiscoveryError>(vec![cache.target(&tags)])
    };
    let of_cluster = |cluster: CacheCluster| async move {
        let tags = tags(aws, cluster.arn.as_ref()).await?;
        Ok::<_, DiscoveryError>(cluster.targets(&tags))
    };
    let mut targets = ask_lists(caches, concurrency, of_cache).await?;
    targets.extend(ask_lists(clusters, concurrency, of_cluster).await?);
    Ok(targets)
}

/// Returns the cache clusters with these ids, and the cache clusters of these replication groups. A cache cluster that
/// is selected twice is returned once.
async fn selected_clusters(
    aws: &Aws,
    mut ids: BTreeSet<String>,
    groups: &BTreeSet<String>,
    concurrency: usize,
) -> Result<Vec<CacheCluster>, DiscoveryError> {
    let mut clusters = Vec::new();
    if !groups.is_empty() {
        // The API cannot list the cache clusters of one replication group.
        clusters = described_clusters(aws, None).await?;
        clusters.retain(|cluster| cluster.group(groups).is_some());
        let represented: BTreeSet<&String> = clusters.iter().filter_map(|cluster| cluster.group(groups)).collect();
        if let Some(missing) = groups.iter().find(|group| !represented.contains(group)) {
            let message = format!("DescribeCacheClusters: the replication group `{missing}` has no cache cluster");
            return Err(DiscoveryError::Response(message));
        }
    }
    for id in clusters.iter().filter_map(|cluster| cluster.cache_cluster_id.as_ref()) {
        ids.remove(id);
    }
    let of_id = |id: String| async move { described_clusters(aws, Some(id)).await };
    clusters.extend(ask_lists(ids.into_iter().collect(), concurrency, of_id).await?);
    Ok(clusters)
}

async fn described_caches(aws: &Aws, parameters: &[(String, String)]) -> Result<Vec<ServerlessCache>, DiscoveryError> {
    paged_list(aws, SERVICE, "DescribeServerlessCaches", SERVERLESS_PAGING, parameters).await
}

async fn described_clusters(aws: &Aws, id: Option<String>) -> Result<Vec<CacheCluster>, DiscoveryError> {
    let mut parameters = vec![("ShowCacheNodeInfo".to_owned(), "true".to_owned())];
    parameters.extend(id.map(|id| ("CacheClusterId".to_owned(), id)));
    paged_list(aws, SERVICE, "DescribeCacheClusters", CLUSTERS_PAGING, &parameters).await
}

/// Returns the tags of a resource. The descriptions of caches contain no tags.
async fn tags(aws: &Aws, arn: Option<&String>) -> Result<List<Tag>, DiscoveryError> {
    let Some(arn) = arn else {
        return Ok(List::default());
    };
    let parameters = [("ResourceName".to_owned(), arn.clone())];
    Ok(List(list(aws, SERVICE, "ListTagsForResource", &parameters).await?))
}
