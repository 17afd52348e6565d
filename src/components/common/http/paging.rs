//! Lists that an API gives in pages, and concurrent requests for a list of items.

use futures::{StreamExt as _, TryStreamExt as _};

/// Most items that are taken of one list: as many as a discovery exports.
const MAX_ITEMS: usize = 100_000;
/// Most pages that are requested: an API that always names a next page ends here.
const MAX_PAGES: usize = 10_000;

/// One page of a list that comes in pages.
#[derive(Debug)]
pub(crate) struct Page<T, N> {
    /// The items that the page holds.
    pub(crate) items: Vec<T>,
    /// What a request for the next page needs; `None` on the last page.
    pub(crate) next: Option<N>,
}

/// The items of all pages. `ask` requests a page; it gets `None` for the first.
pub(crate) async fn all_pages<T, N, A: Future<Output = Result<Page<T, N>, String>>>(
    mut ask: impl FnMut(Option<N>) -> A,
) -> Result<Vec<T>, String> {
    let (mut all, mut next) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let page = ask(next).await?;
        all.extend(page.items);
        if all.len() > MAX_ITEMS {
            return Err(format!("a list has more than {MAX_ITEMS} items"));
        }
        next = page.next;
        if next.is_none() {
            return Ok(all);
        }
    }
    Err(format!("a list has more than {MAX_PAGES} pages"))
}

/// The items of all pages of an API that numbers its pages from one. `ask` returns the items of a page, and whether
/// more pages follow.
pub(crate) async fn numbered_pages<T, A: Future<Output = Result<(Vec<T>, HasMore), String>>>(
    mut ask: impl FnMut(usize) -> A,
) -> Result<Vec<T>, String> {
    let all = all_pages(|number: Option<usize>| {
        let number = number.unwrap_or(1);
        let asked = ask(number);
        async move {
            let (items, more) = asked.await?;
            let next = (more == HasMore::Yes).then_some(number + 1);
            Ok(Page { items, next })
        }
    });
    all.await
}

/// Whether there is a page after this one.
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

/// Calls `ask` for each item, `at_once` at a time, and returns the answers in the order of the items. Fails at the
/// first error.
pub(crate) async fn each<I, T, A: Future<Output = Result<T, String>>>(
    items: Vec<I>,
    at_once: usize,
    ask: impl FnMut(I) -> A,
) -> Result<Vec<T>, String> {
    let asked = futures::stream::iter(items).map(ask).buffered(at_once.max(1));
    asked.try_collect().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pages_are_asked_for_until_the_last_and_not_for_ever() {
        let ask = |next: Option<u32>| async move {
            let number = next.unwrap_or_default();
            Ok(Page {
                items: vec![number],
                next: (number < 2).then_some(number + 1),
            })
        };
        assert_eq!(all_pages(ask).await.unwrap(), [0, 1, 2]);
        let endless = |_: Option<()>| async {
            Ok(Page {
                items: vec![0; 0],
                next: Some(()),
            })
        };
        assert_eq!(
            all_pages(endless).await.unwrap_err(),
            "a list has more than 10000 pages"
        );
    }
}
