//! The embedded page: the files of `ui/dist` and the headers that let browsers keep them and keep them safe.
//!
//! In: a path without the prefix. Out: a file, `index.html` for the page's own routes, or nothing. Files with a hash in their name never change
//! and are kept for ever; everything else is asked for again with its tag. In debug builds files are read from `ui/dist` at
//! run time.

use std::collections::HashMap;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use parking_lot::Mutex;
use rust_embed::RustEmbed;

use crate::wire::connect;

#[derive(RustEmbed)]
#[folder = "ui/dist"]
#[allow_missing = true]
struct Files;

/// Routes of the page: each is `index.html`. Anything else that is no file is not found.
const PAGE_ROUTES: [&str; 11] = [
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

/// Nothing may come from another host, and nobody may frame the page.
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// Shown when the program was built without the page.
const NO_PAGE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Alluvium</title>\
<h1>Alluvium is running</h1><p>This program was built without its page. In the source tree run \
<code>npm ci &amp;&amp; npm run build</code> in <code>ui/</code>, then build again.</p>\
<p>The API works: see <code>docs/http-api.md</code>.</p></html>";

/// The files, with those compressed that are worth it.
#[derive(Debug, Default)]
pub struct Page {
    /// By path: tag of the file and its gzip form. As many entries as there are text files.
    compressed: Mutex<HashMap<String, (String, Bytes)>>,
}

struct Asset {
    bytes: Bytes,
    tag: String,
}

fn asset(path: &str) -> Option<Asset> {
    let file = Files::get(path)?;
    let hash = file.metadata.sha256_hash();
    let tag = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    Some(Asset {
        bytes: match file.data {
            std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            std::borrow::Cow::Owned(bytes) => bytes.into(),
        },
        tag,
    })
}

impl Page {
    /// The answer to GET of `path`, which has no prefix and no `/` at its start; `None` when there is no such file or page.
    pub fn get(&self, path: &str, headers: &HeaderMap) -> Option<Response> {
        let path = path.trim_end_matches('/');
        if let Some(asset) = Some(path).filter(|path| is_clean(path)).and_then(asset) {
            return Some(self.respond(path, asset, headers));
        }
        if !PAGE_ROUTES.contains(&path) {
            return None;
        }
        Some(match asset("index.html") {
            Some(asset) => self.respond("index.html", asset, headers),
            None => with_headers("index.html", NO_PAGE.into_response()),
        })
    }

    fn respond(&self, path: &str, asset: Asset, headers: &HeaderMap) -> Response {
        let quoted = format!("\"{}\"", asset.tag);
        let is_known = headers
            .get_all(IF_NONE_MATCH)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|tag| tag.trim().trim_start_matches("W/") == quoted);
        let mut response = match is_known {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => self.encoded(path, asset, headers),
        };
        if let Ok(value) = HeaderValue::from_str(&quoted) {
            response.headers_mut().insert(ETAG, value);
        }
        with_headers(path, response)
    }

    /// The file in the best form that the browser accepts: made at build time (`.br`, `.gz`), else gzip made once here.
    fn encoded(&self, path: &str, file: Asset, headers: &HeaderMap) -> Response {
        let answer = |bytes: Bytes, encoding: &'static str| {
            ([(CONTENT_ENCODING, HeaderValue::from_static(encoding))], bytes).into_response()
        };
        for (encoding, suffix) in [("br", "br"), ("gzip", "gz")] {
            if connect::accepts(headers, encoding)
                && let Some(packed) = asset(&format!("{path}.{suffix}"))
            {
                return answer(packed.bytes, encoding);
            }
        }
        if !is_text(path) || !connect::accepts(headers, "gzip") {
            return file.bytes.into_response();
        }
        let mut cache = self.compressed.lock();
        if let Some((tag, packed)) = cache.get(path)
            && *tag == file.tag
        {
            return answer(packed.clone(), "gzip");
        }
        let (bytes, is_compressed) = connect::compress(true, file.bytes);
        if !is_compressed {
            return bytes.into_response();
        }
        cache.insert(path.to_owned(), (file.tag, bytes.clone()));
        answer(bytes, "gzip")
    }
}

/// In debug builds the path reaches the file system; rust-embed keeps it inside the folder, and this keeps oddities away from it.
fn is_clean(path: &str) -> bool {
    !path.is_empty()
        && path
            .split('/')
            .all(|part| !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', '\0']))
}

fn with_headers(path: &str, mut response: Response) -> Response {
    let headers = response.headers_mut();
    let is_hashed = path.starts_with("assets/");
    let cache = if is_hashed {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    for (name, value) in [
        (CONTENT_TYPE, content_type(path)),
        (CACHE_CONTROL, cache),
        (VARY, "accept-encoding"),
        (
            HeaderName::from_static("content-security-policy"),
            CONTENT_SECURITY_POLICY,
        ),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn extension(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, extension)| extension)
}

fn content_type(path: &str) -> &'static str {
    match extension(path) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn is_text(path: &str) -> bool {
    matches!(
        extension(path),
        "html" | "js" | "mjs" | "css" | "json" | "map" | "svg" | "txt" | "wasm"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str) -> Option<Response> {
        Page::default().get(path, &HeaderMap::new())
    }

    #[test]
    fn page_routes_are_the_index_and_others_are_not_found() {
        for path in PAGE_ROUTES {
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
}
