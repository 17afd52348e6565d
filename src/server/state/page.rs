//! The server's page: the embedded files of `ui/dist/server`.
//!
//! In debug builds the files are read from the source tree at run time. `admin::page` serves them.

use rust_embed::RustEmbed;

use alluvium_admin::page::{Page, PageSource};

#[derive(RustEmbed)]
#[folder = "ui/dist/server"]
#[allow_missing = true]
struct Files;

/// File with the paths of the views. The build of the page writes it.
const VIEWS: &str = "views.json";

/// Views that require a collector in this process.
const COLLECTOR_VIEWS: [&str; 2] = ["pipeline", "graph"];

/// Attribute of the document that tells the page whether a collector runs in this process.
const NO_COLLECTOR: &str = "data-collector=\"no\"";
const COLLECTOR: &str = "data-collector=\"yes\"";

/// Returns the page of a process that runs only the server.
pub(in crate::server) fn page() -> Page {
    let mut views = views();
    views.retain(|view| !COLLECTOR_VIEWS.contains(&view.as_str()));
    Page::new(PageSource {
        file: Files::get,
        document: "index.html",
        views,
        replace: None,
    })
}

/// Returns the page of a process that also runs a collector. This page has the pipeline views.
pub(super) fn page_with_collector() -> Page {
    Page::new(PageSource {
        file: Files::get,
        document: "index.html",
        views: views(),
        replace: Some((NO_COLLECTOR, COLLECTOR)),
    })
}

/// Returns the paths of all views. If the page was not built, the only view is the root, which shows a message.
fn views() -> Vec<String> {
    let listed = Files::get(VIEWS).and_then(|file| serde_json::from_slice(&file.data).ok());
    listed.unwrap_or_else(|| vec![String::new()])
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::response::Response;
    use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
    use http::{HeaderMap, StatusCode};

    use super::*;

    fn get(path: &str) -> Option<Response> {
        page().get(path, &HeaderMap::new())
    }

    #[test]
    fn views_are_the_document_and_others_are_not_found() {
        for path in ["", "profile", "profile/", "compare", "index.html"] {
            let response = get(path).unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
            assert!(response.headers().contains_key("content-security-policy"));
        }
        for path in ["pipeline", "graph"] {
            assert!(get(path).is_none(), "{path} without a collector");
            let response = page_with_collector().get(path, &HeaderMap::new()).unwrap();
            assert_eq!(response.status(), StatusCode::OK, "{path} with a collector");
        }
        for path in [
            "nothing",
            "comparison",
            "select",
            "assets/none.js",
            "../Cargo.toml",
            "..%2fCargo.toml",
            ".git",
            "assets/../../Cargo.toml",
            "a//b",
        ] {
            assert!(get(path).is_none(), "{path}");
        }
    }

    #[test]
    fn a_missing_view_is_the_page_with_404_whatever_the_browser_has_kept() {
        let etag = get("").unwrap().headers()[ETAG].clone();
        let headers = HeaderMap::from_iter([(IF_NONE_MATCH, etag)]);
        let response = page().not_found(&headers);
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        assert_eq!(response.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
    }

    #[test]
    fn the_page_lists_its_views_and_those_of_a_collector_are_among_them() {
        let all = views();
        assert!(
            COLLECTOR_VIEWS
                .iter()
                .all(|view| all.iter().any(|listed| listed == view))
        );
        assert!(all.contains(&String::new()));
    }

    #[tokio::test]
    async fn the_document_says_whether_a_collector_runs_here() {
        let text = |page: Page| async move {
            let response = page.get("index.html", &HeaderMap::new()).unwrap();
            let tag = response.headers()[ETAG].to_str().unwrap().to_owned();
            let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
            (tag, String::from_utf8(body.to_vec()).unwrap())
        };
        let (without, with) = (text(page()).await, text(page_with_collector()).await);
        assert!(without.1.contains(NO_COLLECTOR) && !without.1.contains(COLLECTOR));
        assert!(with.1.contains(COLLECTOR) && !with.1.contains(NO_COLLECTOR));
        assert_ne!(without.0, with.0, "a kept document is not taken for the other");
    }
}
