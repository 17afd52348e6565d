//! Lists that an API returns in pages, and concurrent requests for the items of a list.

use std::pin::pin;

use futures::{StreamExt as _, TryStreamExt as _};

use crate::common::http::api_error::ApiError;

/// Maximum number of items of one list. It equals the maximum number of targets of a discovery.
const MAX_ITEMS: usize = 100_000;
/// Maximum number of pages. The limit ends the requests to an API that always names a next page.
const MAX_PAGES: usize = 10_000;

/// One page of a paged list.
#[derive(Debug)]
pub(crate) struct Page<T, N> {
    /// The items of this page.
    pub(crate) items: Vec<T>,
    /// Token for the next page; `None` on the last page.
    pub(crate) next: Option<N>,
}

/// Returns the items of all pages. `ask` requests the page that a token names; `None` stands for the first page.
pub(crate) async fn all_pages<T, N, E: From<ApiError>, A: Future<Output = Result<Page<T, N>, E>>>(
    mut ask: impl FnMut(Option<N>) -> A,
) -> Result<Vec<T>, E> {
    let (mut all, mut next) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let page = ask(next).await?;
        all.extend(page.items);
        if all.len() > MAX_ITEMS {
            return Err(ApiError::TooManyItems(MAX_ITEMS).into());
        }
        next = page.next;
        if next.is_none() {
            return Ok(all);
        }
    }
    Err(ApiError::TooManyPages(MAX_PAGES).into())
}

/// Returns the items of all pages of an API that numbers its pages from one. `ask` returns the items of a page, and
/// whether more pages follow.
pub(crate) async fn numbered_pages<T, E: From<ApiError>, A: Future<Output = Result<(Vec<T>, HasMore), E>>>(
    mut ask: impl FnMut(usize) -> A,
) -> Result<Vec<T>, E> {
    let all = all_pages(|number: Option<usize>| {
        let number = number.unwrap_or(1);
        let response = ask(number);
        async move {
            let (items, has_more) = response.await?;
            let next = (has_more == HasMore::Yes).then_some(number + 1);
            Ok(Page { items, next })
        }
    });
    all.await
}

/// Whether another page follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HasMore {
    /// Another page follows this one.
    Yes,
    /// No page follows this one.
    No,
}

impl From<bool> for HasMore {
    fn from(has_more: bool) -> Self {
        if has_more { Self::Yes } else { Self::No }
    }
}

/// Calls `ask` for each item, with at most `concurrency` concurrent calls, and returns the results in the order of the
/// items. Fails at the first error.
pub(crate) async fn ask_each<I, T, E, A: Future<Output = Result<T, E>>>(
    items: Vec<I>,
    concurrency: usize,
    ask: impl FnMut(I) -> A,
) -> Result<Vec<T>, E> {
    let responses = futures::stream::iter(items).map(ask).buffered(concurrency.max(1));
    responses.try_collect().await
}

/// Calls `ask` as [`ask_each`] does, and returns the items of all lists. Fails if the lists have too many items
/// together.
pub(crate) async fn ask_lists<I, T, E: From<ApiError>, A: Future<Output = Result<Vec<T>, E>>>(
    items: Vec<I>,
    concurrency: usize,
    ask: impl FnMut(I) -> A,
) -> Result<Vec<T>, E> {
    let mut lists = pin!(futures::stream::iter(items).map(ask).buffered(concurrency.max(1)));
    let mut all = Vec::new();
    while let Some(list) = lists.try_next().await? {
        all.extend(list);
        if all.len() > MAX_ITEMS {
            return Err(ApiError::TooManyItems(MAX_ITEMS).into());
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pages_are_asked_for_until_the_last_and_not_for_ever() {
        let ask = |next: Option<u32>| async move {
            let number = next.unwrap_or_default();
            Ok::<_, ApiError>(Page {
                items: vec![number],
                next: (number < 2).then_some(number + 1),
            })
        };
        assert_eq!(all_pages(ask).await.unwrap(), [0, 1, 2]);
        let endless = |_: Option<()>| async {
            Ok::<_, ApiError>(Page {
                items: vec![0; 0],
                next: Some(()),
            })
        };
        assert_eq!(
            all_pages(endless).await.unwrap_err().to_string(),
            "a list has more than 10000 pages"
        );
    }

    #[tokio::test]
    async fn lists_of_several_requests_are_limited_together() {
        let ask = |count: usize| async move { Ok::<_, ApiError>(vec![(); count]) };
        assert_eq!(ask_lists(vec![2, 0, 1], 2, ask).await.unwrap().len(), 3);
        assert_eq!(ask_lists(vec![MAX_ITEMS], 2, ask).await.unwrap().len(), MAX_ITEMS);
        let error = ask_lists(vec![MAX_ITEMS, 1], 2, ask).await.unwrap_err().to_string();
        assert_eq!(error, "a list has more than 100000 items");
    }
}
