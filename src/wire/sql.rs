//! SQL over HTTP: request forms, response formats, and a client.
//!
//! In: headers and body of a request. Out: query text and format. The query engine produces and encodes the rows.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::call::{CallError, Caller};
use crate::connect::ConnectError;

/// Path of the route, without a leading slash.
pub const SQL_ROUTE: &str = "api/v1/sql";

/// Format of the rows in a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SqlFormat {
    /// One JSON object with columns and rows.
    #[default]
    Json,
    /// Comma-separated values, with a header line of column names.
    Csv,
    /// A stream in Arrow's IPC format.
    Arrow,
    /// A Parquet file with all rows.
    Parquet,
    /// The bytes of a pprof profile, from a single row with a single column of bytes.
    Pprof,
}

const FORMATS: [(SqlFormat, &str, &str); 5] = [
    (SqlFormat::Json, "json", "application/json"),
    (SqlFormat::Csv, "csv", "text/csv; charset=utf-8"),
    (SqlFormat::Arrow, "arrow", "application/vnd.apache.arrow.stream"),
    (SqlFormat::Parquet, "parquet", "application/vnd.apache.parquet"),
    (SqlFormat::Pprof, "pprof", "application/x-pprof"),
];

impl SqlFormat {
    /// Returns the content type of the response.
    pub fn content_type(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> &'static (SqlFormat, &'static str, &'static str) {
        FORMATS.iter().find(|row| row.0 == self).unwrap_or(&FORMATS[0])
    }

    /// Returns the format of the response: from `?format=`, otherwise from `Accept`, otherwise JSON.
    pub fn wanted(query: Option<&str>, headers: &HeaderMap) -> Result<Self, ConnectError> {
        let format_name = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes())
            .find(|(key, _)| key == "format")
            .map(|(_, value)| value.into_owned());
        if let Some(name) = format_name {
            return FORMATS
                .iter()
                .find(|row| row.1 == name)
                .map(|row| row.0)
                .ok_or_else(|| {
                    ConnectError::invalid(format!(
                        "format `{name}` is unknown: expected json, csv, arrow, parquet or pprof"
                    ))
                });
        }
        let accepted = headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(|kind| kind.split(';').next().unwrap_or_default().trim());
        for kind in accepted {
            if let Some(row) = FORMATS.iter().find(|row| row.2.split(';').next() == Some(kind)) {
                return Ok(row.0);
            }
        }
        Ok(Self::Json)
    }
}

#[derive(Serialize, Deserialize)]
struct SqlBody {
    query: String,
}

/// Returns the query text of a body: `{"query": "..."}` for `application/json`, otherwise the whole body.
pub fn read_query(headers: &HeaderMap, body: &[u8]) -> Result<String, ConnectError> {
    let is_json = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.trim_start().starts_with("application/json"));
    let query = if is_json {
        let body: SqlBody = serde_json::from_slice(body)
            .map_err(|error| ConnectError::invalid(format!("cannot read the body as {{\"query\": ...}}: {error}")))?;
        body.query
    } else {
        std::str::from_utf8(body)
            .map_err(|error| ConnectError::invalid(format!("the query is not UTF-8: {error}")))?
            .to_owned()
    };
    if query.trim().is_empty() {
        return Err(ConnectError::invalid("the query is empty"));
    }
    Ok(query)
}

/// Sends queries to a server over HTTP.
#[derive(Clone, Debug)]
pub struct SqlClient {
    caller: Caller,
}

impl SqlClient {
    /// Creates a client of the server that `caller` calls.
    pub fn new(caller: Caller) -> Self {
        Self { caller }
    }

    /// Runs a query. The server streams the body of the response while the query runs: read it with `chunk`.
    pub async fn query(&self, query: &str, format: SqlFormat) -> Result<reqwest::Response, CallError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(ACCEPT, HeaderValue::from_static(format.content_type()));
        self.caller.post(SQL_ROUTE, headers, query.to_owned().into()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(value))])
    }

    #[test]
    fn the_format_is_named_or_accepted_or_json() {
        let format_of = |query, accepted| SqlFormat::wanted(query, &accept(accepted)).unwrap();
        assert_eq!(format_of(Some("a=b&format=csv"), "application/json"), SqlFormat::Csv);
        assert_eq!(
            format_of(None, "text/html, application/vnd.apache.arrow.stream;q=0.9"),
            SqlFormat::Arrow
        );
        assert_eq!(format_of(None, "text/csv"), SqlFormat::Csv);
        assert_eq!(format_of(None, "application/vnd.apache.parquet"), SqlFormat::Parquet);
        assert_eq!(format_of(Some("format=pprof"), "*/*"), SqlFormat::Pprof);
        assert_eq!(format_of(None, "*/*"), SqlFormat::Json);
        assert!(SqlFormat::wanted(Some("format=xml"), &HeaderMap::new()).is_err());
    }

    #[test]
    fn the_query_is_text_or_json() {
        let json = HeaderMap::from_iter([(
            CONTENT_TYPE,
            HeaderValue::from_static("application/json; charset=utf-8"),
        )]);
        assert_eq!(read_query(&json, br#"{"query":"SELECT 1"}"#).unwrap(), "SELECT 1");
        assert_eq!(read_query(&HeaderMap::new(), b"SELECT 1").unwrap(), "SELECT 1");
        assert!(read_query(&json, b"SELECT 1").is_err());
        assert!(read_query(&HeaderMap::new(), b"  ").is_err());
        assert!(read_query(&HeaderMap::new(), b"\xff").is_err());
    }
}
