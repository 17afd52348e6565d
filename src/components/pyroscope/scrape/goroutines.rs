//! Full goroutine dumps of targets: handles `POST /goroutines?target=URL` below the path of the component.
//!
//! In: a request, and the loop whose URL it names. Out: the text that Go's `net/http/pprof` writes for `debug=2`, or a
//! status with the reason. The URL must be that of a running loop, so that a caller cannot choose where the component
//! sends requests and credentials. The method is POST, because the target stops all its goroutines while it collects
//! their stacks: links and images of foreign pages must not cause that.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use url::{Url, form_urlencoded};

use crate::pyroscope::scrape::request;
use crate::pyroscope::scrape::response::{ResponseError, check_status, excerpt};
use crate::pyroscope::scrape::scrape_error::ScrapeError;
use alluvium_pipeline::component::large_responses::LargeResponses;
use alluvium_pipeline::component::own_http::OwnHttp;
use alluvium_wire::client::{BodyError, HttpClient, read_decoded};

/// Path below the path of the component.
const PATH: &str = "/goroutines";

/// Maximum size of a dump in bytes. Go itself ends a dump at this size.
const MAX_DUMP_BYTES: usize = 64 << 20;

/// The reason why there is no dump.
#[derive(Debug, thiserror::Error)]
pub(super) enum DumpError {
    #[error("the component serves only `POST {PATH}?target=URL`")]
    UnknownPath,
    #[error("use POST: the target stops its goroutines while it writes a dump")]
    WrongMethod,
    #[error(
        "the query parameter `target` is missing: it is the URL of a target, as in the debug info of the component"
    )]
    MissingTarget,
    /// No running loop scrapes goroutines from this URL.
    #[error("this component does not scrape goroutines from `{0}` right now")]
    UnknownTarget(String),
    #[error("other dumps are being transferred: try again later")]
    Busy,
    #[error("the target did not send the dump within {0}")]
    Timeout(String),
    /// The request could not be sent.
    #[error(transparent)]
    Request(#[from] ScrapeError),
    /// The target refused the request.
    #[error(transparent)]
    Response(#[from] ResponseError),
    #[error("cannot read the dump: {0}")]
    Body(#[from] BodyError),
    #[error("the response of the target is not a goroutine dump; it starts with `{0}`")]
    NotADump(String),
}

impl DumpError {
    fn status(&self) -> StatusCode {
        match self {
            Self::UnknownPath | Self::UnknownTarget(_) => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::MissingTarget => StatusCode::BAD_REQUEST,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Timeout(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Request(_) | Self::Response(_) | Self::Body(_) | Self::NotADump(_) => StatusCode::BAD_GATEWAY,
        }
    }
}

/// A target whose goroutines a running loop scrapes.
pub(super) struct GoroutineTarget {
    /// URL of the goroutine profile.
    pub url: Url,
    /// Timeout of the request.
    pub timeout: Duration,
    /// The HTTP client of the loop.
    pub client: HttpClient,
    /// The program's own endpoints.
    pub own_http: OwnHttp,
}

/// Checks path and method of a request, and returns the URL that it names.
pub(super) fn requested_url(request: &Request<Bytes>) -> Result<String, DumpError> {
    if request.uri().path() != PATH {
        return Err(DumpError::UnknownPath);
    }
    if request.method() != Method::POST {
        return Err(DumpError::WrongMethod);
    }
    let query = request.uri().query().unwrap_or_default();
    let target = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "target");
    target.map(|(_, url)| url.into_owned()).ok_or(DumpError::MissingTarget)
}

/// Returns the response with the dump of the target, or with the reason why there is none.
pub(super) async fn respond(
    target: Result<GoroutineTarget, DumpError>,
    large_responses: &LargeResponses,
) -> Response<Bytes> {
    let dump = match target {
        Ok(target) => target.dump(large_responses).await,
        Err(error) => Err(error),
    };
    let (status, body) = match dump {
        Ok(dump) => (StatusCode::OK, dump),
        Err(error) => (error.status(), format!("{error}\n").into()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

impl GoroutineTarget {
    async fn dump(&self, large_responses: &LargeResponses) -> Result<Bytes, DumpError> {
        let reservation = large_responses.reserve().ok_or(DumpError::Busy)?;
        let url = dump_url(&self.url);
        let read = async {
            let response = request::send(&self.client, &self.own_http, &url).await?;
            let status = response.status();
            let body = read_decoded(response, MAX_DUMP_BYTES).await?;
            check_status(status, &body)?;
            check(&body)?;
            Ok::<_, DumpError>(body)
        };
        let timeout_error = |_| DumpError::Timeout(alluvium_base::duration::format(self.timeout));
        let body = tokio::time::timeout(self.timeout, read).await.map_err(timeout_error)?;
        body.map(|body| reservation.hold(body))
    }
}

/// Returns the URL of the dump that belongs to the URL of a goroutine profile. The parameter `seconds` is removed,
/// because Go refuses it together with `debug`.
fn dump_url(profile: &Url) -> Url {
    let pairs = profile.query_pairs().into_owned();
    let pairs: Vec<(String, String)> = pairs.filter(|(name, _)| name != "debug" && name != "seconds").collect();
    let mut url = profile.clone();
    url.query_pairs_mut()
        .clear()
        .extend_pairs(&pairs)
        .append_pair("debug", "2");
    url
}

/// Refuses a body that does not begin with the header of a goroutine, such as `goroutine 1 [running]:`.
fn check(body: &[u8]) -> Result<(), DumpError> {
    if body.is_empty() {
        return Err(ResponseError::Empty.into());
    }
    let number = body.strip_prefix(b"goroutine ").and_then(|rest| rest.first());
    match number {
        Some(digit) if digit.is_ascii_digit() => Ok(()),
        _ => Err(DumpError::NotADump(excerpt(body))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_a_dump_keeps_the_parameters_of_the_profile() {
        for (profile, dump) in [
            (
                "http://h:1/debug/pprof/goroutine",
                "http://h:1/debug/pprof/goroutine?debug=2",
            ),
            (
                "https://h:1/app/debug/pprof/goroutine?debug=1&seconds=14&token=a%26b",
                "https://h:1/app/debug/pprof/goroutine?token=a%26b&debug=2",
            ),
        ] {
            assert_eq!(dump_url(&profile.parse().unwrap()).as_str(), dump);
        }
    }

    #[test]
    fn only_the_text_of_goroutines_is_a_dump() {
        assert!(check(b"goroutine 1 [running]:\nmain.main()\n").is_ok());
        for body in [
            &b"goroutine profile: total 5\n"[..],
            b"<html>",
            &[0x1f, 0x8b],
            b"",
            b"goroutine ",
        ] {
            assert!(check(body).is_err(), "{}", excerpt(body));
        }
    }
}
