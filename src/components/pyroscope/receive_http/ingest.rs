//! Turns a request to `/ingest` into a profile.
//!
//! The body stays unchanged, in any format. The URL parameter `name`, such as `shop{zone=eu}`, becomes labels, so that
//! relabel rules can act on them.

use std::sync::Arc;

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

use alluvium_profile::Labels;
use alluvium_profile::labels::{PROFILE_NAME, SERVICE_NAME};
use alluvium_profile::upload::Upload;
use alluvium_wire::connect::ConnectError;
use alluvium_wire::ingest::{self, IngestQuery};

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A request without its body.
#[derive(Debug)]
pub(super) struct IngestRequest {
    /// The labels from the parameter `name`, with the labels that a server adds.
    pub labels: Labels,
    /// Id that the sender assigned, if it is a collector; otherwise empty.
    pub id: Arc<str>,
    /// The head of the upload: its query, content type and content encoding. It precedes the body in the bytes of the
    /// profile.
    pub head: Vec<u8>,
}

impl IngestRequest {
    /// Reads query and headers. Returns an error for a name, time or id that no server accepts.
    pub(super) fn read(query: &str, headers: &HeaderMap, now_nanos: i64) -> Result<Self, ConnectError> {
        let read = IngestQuery::parse(query, now_nanos)?;
        let header = |name| {
            let value = headers.get(name).map(|value: &http::HeaderValue| value.to_str());
            value.and_then(Result::ok).unwrap_or_default()
        };
        let head = Upload::head(
            &forwarded_query(query, &read),
            header(CONTENT_TYPE),
            header(CONTENT_ENCODING),
        );
        Ok(Self {
            labels: with_service(&Labels::from_pairs(read.labels).with(PROFILE_NAME, &read.app)),
            id: ingest::upload_id(headers)?,
            head,
        })
    }
}

/// Adds the label that a server makes from the profile's name: `service_name`, or `app_name` if `service_name` exists.
pub(super) fn with_service(labels: &Labels) -> Labels {
    let name = labels.get(PROFILE_NAME).unwrap_or_default();
    match labels.get(SERVICE_NAME) {
        None => labels.with(SERVICE_NAME, name),
        Some(_) => labels.with("app_name", name),
    }
}

/// Returns the query without the parameter `name`. Absolute times replace missing and relative ones, because the
/// profile may be sent later.
fn forwarded_query(query: &str, read: &IngestQuery) -> String {
    let mut kept = url::form_urlencoded::Serializer::new(String::new());
    let mut times = [("from", read.from_nanos, false), ("until", read.until_nanos, false)];
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if key == "name" {
            continue;
        }
        let is_digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        match times.iter_mut().find(|(name, ..)| *name == key) {
            Some((.., is_given)) if is_digits => *is_given = true,
            Some(_) => continue,
            None => {}
        }
        kept.append_pair(&key, &value);
    }
    for (name, nanos, _) in times.iter().filter(|(.., is_given)| !is_given) {
        kept.append_pair(name, &(nanos / NANOS_PER_SECOND).to_string());
    }
    kept.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000 * NANOS_PER_SECOND;

    fn query_of(query: &str) -> String {
        let request = IngestRequest::read(query, &HeaderMap::new(), NOW).unwrap();
        Upload::read(&request.head.into()).unwrap().query.into()
    }

    #[test]
    fn the_query_is_kept_and_relative_times_become_absolute() {
        assert_eq!(
            query_of("name=shop.cpu%7Bzone%3Deu%7D&from=1699999990&until=1700000000&spyName=gospy&units=a%26b"),
            "from=1699999990&until=1700000000&spyName=gospy&units=a%26b"
        );
        assert_eq!(query_of("name=a&from=now-10s"), "from=1699999990&until=1700000000");
        assert_eq!(query_of("name=a&until="), "from=1700000000&until=1700000000");
    }

    #[test]
    fn the_name_becomes_labels_with_a_service() {
        let labels = |query| {
            IngestRequest::read(query, &HeaderMap::new(), NOW)
                .unwrap()
                .labels
                .to_string()
        };
        assert_eq!(
            labels("name=shop.cpu%7Bzone%3Deu%7D"),
            r#"{__name__="shop.cpu", service_name="shop.cpu", zone="eu"}"#
        );
        assert_eq!(
            labels("name=shop%7Bservice_name%3Dcart%7D"),
            r#"{__name__="shop", app_name="shop", service_name="cart"}"#
        );
        let error = IngestRequest::read("format=jfr", &HeaderMap::new(), NOW).unwrap_err();
        assert_eq!(
            (error.status, error.message.as_str()),
            (400, "name: service name is required")
        );
    }
}
