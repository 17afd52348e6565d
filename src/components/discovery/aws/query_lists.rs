//! Lists of services with a Query API. The services return lists in pages, and name the elements of a page differently.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::common::clouds::aws::client::{Aws, QueryService};
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::http::paging::{Page, all_pages};
use crate::discovery::aws::elements::List;

/// Parameters with which an action returns its list in pages.
#[derive(Clone, Copy)]
pub(super) struct Paging {
    /// Parameter for the number of items on a page, with the maximum that the API allows.
    pub(super) size: (&'static str, &'static str),
    /// Parameter for the token of a page.
    pub(super) token: &'static str,
}

#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct Answer<T> {
    #[serde(
        rename = "DescribeDBClustersResult",
        alias = "DescribeDBInstancesResult",
        alias = "DescribeServerlessCachesResult",
        alias = "DescribeCacheClustersResult",
        alias = "ListTagsForResourceResult"
    )]
    result: Outcome<T>,
}

#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct Outcome<T> {
    #[serde(
        default,
        rename = "DBClusters",
        alias = "DBInstances",
        alias = "ServerlessCaches",
        alias = "CacheClusters",
        alias = "TagList"
    )]
    list: List<T>,
    #[serde(rename = "Marker", alias = "NextToken")]
    next: Option<String>,
}

/// Returns the list of an action that has no pages.
pub(super) async fn list<T: DeserializeOwned>(
    aws: &Aws,
    service: QueryService,
    action: &str,
    parameters: &[(String, String)],
) -> Result<Vec<T>, DiscoveryError> {
    let answer: Answer<T> = aws.query(service, action, parameters).await?;
    Ok(answer.result.list.0)
}

/// Returns the items of all pages of an action's list.
pub(super) async fn paged_list<T: DeserializeOwned>(
    aws: &Aws,
    service: QueryService,
    action: &str,
    paging: Paging,
    parameters: &[(String, String)],
) -> Result<Vec<T>, DiscoveryError> {
    let Paging { size, token } = paging;
    let items = all_pages(|next: Option<String>| async move {
        let mut parameters = parameters.to_vec();
        parameters.push((size.0.to_owned(), size.1.to_owned()));
        parameters.extend(next.map(|next| (token.to_owned(), next)));
        let answer: Answer<T> = aws.query(service, action, &parameters).await?;
        Ok(Page {
            items: answer.result.list.0,
            next: answer.result.next.filter(|next| !next.is_empty()),
        })
    });
    items.await
}
