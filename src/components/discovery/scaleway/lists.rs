//! Reads lists of Scaleway's API, page by page.

use http::HeaderMap;
use serde_json::Value;
use url::Url;

use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::http::json_values::take_list;
use crate::common::http::paging::numbered_pages;
use crate::common::http::web_api::WebApi;

/// Number of items in a page: the maximum that the API allows.
const PAGE: usize = 100;

/// Reads lists of the API. Each request contains the header with the secret key.
pub(super) struct Lists<'a> {
    pub(super) api: &'a WebApi,
    pub(super) headers: HeaderMap,
}

impl Lists<'_> {
    /// Returns all items of a list. `field` is the path of the list in a response. `size` is the name of the query
    /// parameter for the page size.
    pub(super) async fn all(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        size: &str,
        field: &str,
    ) -> Result<Vec<Value>, DiscoveryError> {
        let all = numbered_pages(|number| async move {
            let mut url: Url = self.api.url(path.iter().copied());
            url.query_pairs_mut()
                .extend_pairs(query)
                .append_pair("page", &number.to_string())
                .append_pair(size, &PAGE.to_string());
            let mut answer: Value = self.api.get(url, self.headers.clone()).await?.json()?;
            let items = take_list(&mut answer, field)?;
            let has_more = items.len() >= PAGE;
            Ok((items, has_more.into()))
        });
        all.await
    }
}
