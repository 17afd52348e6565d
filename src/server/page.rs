//! The server's page: the files of `ui/dist/server`, embedded.
//!
//! In debug builds they are read from the source tree at run time. How they are served is the business of `admin::page`.

use rust_embed::RustEmbed;

use crate::admin::page::{Page, PageSource};

#[derive(RustEmbed)]
#[folder = "ui/dist/server"]
#[allow_missing = true]
struct Files;

/// Views of the page, those that are to come among them.
const VIEWS: [&str; 11] = [
    "",
    "profile",
    "compare",
    "labels",
    "samples",
    "sql",
    "pipeline",
    "graph",
    "status",
    "explore",
    "comparison",
];

/// Says in the document whether a collector runs in this process, whose components the page can show.
const NO_COLLECTOR: &str = "data-collector=\"no\"";
const COLLECTOR: &str = "data-collector=\"yes\"";

/// The page; `with_collector` offers the view of the pipeline.
pub fn page(with_collector: bool) -> Page {
    Page::new(PageSource {
        file: Files::get,
        document: "index.html",
        views: &VIEWS,
        replace: with_collector.then_some((NO_COLLECTOR, COLLECTOR)),
    })
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::response::Response;
    use http::header::{CONTENT_TYPE, ETAG};
    use http::{HeaderMap, StatusCode};

    use super::*;

    fn get(path: &str) -> Option<Response> {
        page(false).get(path, &HeaderMap::new())
    }

    #[test]
    fn views_are_the_document_and_others_are_not_found() {
        for path in VIEWS {
            let response = get(path).unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
            assert!(response.headers().contains_key("content-security-policy"));
        }
        for path in [
            "nothing",
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

    #[tokio::test]
    async fn the_document_says_whether_a_collector_runs_here() {
        let text = |with| async move {
            let response = page(with).get("index.html", &HeaderMap::new()).unwrap();
            let tag = response.headers()[ETAG].to_str().unwrap().to_owned();
            let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
            (tag, String::from_utf8(body.to_vec()).unwrap())
        };
        let (without, with) = (text(false).await, text(true).await);
        assert!(without.1.contains(NO_COLLECTOR) && !without.1.contains(COLLECTOR));
        assert!(with.1.contains(COLLECTOR) && !with.1.contains(NO_COLLECTOR));
        assert_ne!(without.0, with.0, "a kept document is not taken for the other");
    }
}
