//! Serves an embedded page: its files, caching, and security headers.
//!
//! In: a path without the URL prefix of the page. Out: a file, the page's HTML document if the path is one of its
//! views, or `None`. Files with a hash in their name never change and are cached permanently. All other files are
//! revalidated with their `ETag`. The collector and the server each embed a folder of `ui/dist`.

use std::collections::HashMap;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use parking_lot::Mutex;
use rust_embed::EmbeddedFile;

use alluvium_base::encoding;

/// All content must come from this host, and other pages must not embed this page in a frame.
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// Folder of speedscope, which is a separate page.
const SPEEDSCOPE: &str = "speedscope/";

/// Policy for speedscope, which adds CSS rules to a style element that it creates. The hash of the empty text allows
/// the empty element. A style element with any text is refused, as on the main page.
const SPEEDSCOPE_POLICY: &str = "default-src 'self'; \
    style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// Document that is served if the program was built without the files of the page.
const NO_PAGE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Alluvium</title>\
<h1>Alluvium is running</h1><p>This program was built without its page. In the source tree run \
<code>npm ci &amp;&amp; npm run build</code> in <code>ui/</code>, then build again.</p>\
<p>The API works: see <code>docs/http-api.md</code>.</p></html>";

/// The files of a page, with gzip copies of the text files.
pub struct Page {
    source: PageSource,
    /// `ETag` and gzip form of each compressed file, by path. There is at most one entry per text file.
    compressed: Mutex<HashMap<String, (String, Bytes)>>,
}

/// Source of the files of a page.
#[derive(Debug, Clone)]
pub struct PageSource {
    /// Returns the file at a path, if there is one.
    pub file: fn(&str) -> Option<EmbeddedFile>,
    pub document: &'static str,
    /// Paths of the page's views, each served with the document. Other paths without a file return 404.
    pub views: Vec<String>,
    /// A text in the document, and its replacement.
    pub replace: Option<(&'static str, &'static str)>,
}

struct Asset {
    bytes: Bytes,
    tag: String,
}

impl Page {
    /// Creates a page that serves the files of `source`.
    pub fn new(source: PageSource) -> Self {
        Self {
            source,
            compressed: Mutex::default(),
        }
    }

    /// Returns the response to GET of `path`, which has no prefix and no leading `/`. Returns `None` when there is no
    /// such file or view.
    pub fn get(&self, path: &str, headers: &HeaderMap) -> Option<Response> {
        let path = path.trim_end_matches('/');
        if path != self.source.document
            && let Some(asset) = Some(path)
                .filter(|path| is_clean(path))
                .and_then(|path| self.asset(path))
        {
            return Some(self.respond(path, asset, headers));
        }
        if path != self.source.document && !self.source.views.iter().any(|view| view == path) {
            return None;
        }
        Some(self.document(headers))
    }

    /// Returns the document with status 404. The page itself shows that the view does not exist.
    pub fn not_found(&self, headers: &HeaderMap) -> Response {
        let mut headers = headers.clone();
        headers.remove(IF_NONE_MATCH);
        let mut response = self.document(&headers);
        *response.status_mut() = StatusCode::NOT_FOUND;
        response
    }

    fn document(&self, headers: &HeaderMap) -> Response {
        match self.asset(self.source.document) {
            Some(asset) => self.respond(self.source.document, asset, headers),
            None => with_headers(self.source.document, NO_PAGE.into_response()),
        }
    }

    fn asset(&self, path: &str) -> Option<Asset> {
        let file = (self.source.file)(path)?;
        let hash = file.metadata.sha256_hash();
        let mut tag: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let mut bytes = match file.data {
            std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            std::borrow::Cow::Owned(bytes) => bytes.into(),
        };
        if path == self.source.document
            && let Some((from, to)) = self.source.replace
            && let Ok(text) = std::str::from_utf8(&bytes)
        {
            bytes = text.replace(from, to).into();
            tag.push_str("-1");
        }
        Some(Asset { bytes, tag })
    }

    fn respond(&self, path: &str, asset: Asset, headers: &HeaderMap) -> Response {
        let quoted = format!("\"{}\"", asset.tag);
        let is_known = headers
            .get_all(IF_NONE_MATCH)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|tag| tag.trim().trim_start_matches("W/") == quoted);
        let mut response = if is_known {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            self.encoded(path, asset, headers)
        };
        if let Ok(value) = HeaderValue::from_str(&quoted) {
            response.headers_mut().insert(ETAG, value);
        }
        with_headers(path, response)
    }

    /// Returns the file in the best encoding that the browser accepts. Files compressed at build time (`.br`, `.gz`)
    /// come first; otherwise, the file is compressed with gzip once and cached.
    fn encoded(&self, path: &str, file: Asset, headers: &HeaderMap) -> Response {
        let answer = |bytes: Bytes, encoding: &'static str| {
            ([(CONTENT_ENCODING, HeaderValue::from_static(encoding))], bytes).into_response()
        };
        for (encoding, suffix) in [("br", "br"), ("gzip", "gz")] {
            if encoding::accepts(headers, encoding)
                && let Some(packed) = self.asset(&format!("{path}.{suffix}"))
            {
                return answer(packed.bytes, encoding);
            }
        }
        if !is_text(path) || !encoding::accepts(headers, "gzip") {
            return file.bytes.into_response();
        }
        let mut cache = self.compressed.lock();
        if let Some((tag, packed)) = cache.get(path)
            && *tag == file.tag
        {
            return answer(packed.clone(), "gzip");
        }
        let Some(packed) = encoding::gzip(&file.bytes) else {
            return file.bytes.into_response();
        };
        cache.insert(path.to_owned(), (file.tag, packed.clone()));
        answer(packed, "gzip")
    }
}

/// Returns true when the path is safe to look up. In debug builds, the path reaches the file system. rust-embed keeps
/// the path inside the folder, and this check rejects unusual paths first.
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
    let policy = if path.starts_with(SPEEDSCOPE) {
        SPEEDSCOPE_POLICY
    } else {
        CONTENT_SECURITY_POLICY
    };
    for (name, value) in [
        (CONTENT_TYPE, content_type(path)),
        (CACHE_CONTROL, cache),
        (VARY, "accept-encoding"),
        (HeaderName::from_static("content-security-policy"), policy),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        // Some browsers do not support `frame-ancestors`.
        (HeaderName::from_static("x-frame-options"), "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
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

    #[test]
    fn no_page_may_hold_styles_or_scripts_of_its_own() {
        for (path, styles) in [("index.html", "default-src"), ("speedscope/index.html", "style-src")] {
            let response = with_headers(path, Response::default());
            let policy = response.headers()["content-security-policy"].to_str().unwrap();
            assert!(policy.contains(styles) && !policy.contains("unsafe"), "{policy}");
        }
    }
}
