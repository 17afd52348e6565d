//! A client of a server with the HTTP API of Prometheus.
//!
//! In: a range query. Out: the unchanged response of that server, or the error.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use tokio::sync::Semaphore;
use url::Url;

use crate::server::prometheus::range_query::RangeQuery;
use alluvium_profile::Tenants;
use alluvium_wire::call::TENANT_HEADER;
use alluvium_wire::client::{ClientOptions, Credential, HttpClient, Secret, read_decoded};
use alluvium_wire::connect::{Code, ConnectError};

/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 8 << 20;
/// Timeout of a query, including the time to read the response.
pub(in crate::server) const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum number of concurrent requests. Further queries wait in turn, within their timeout.
const MAX_CONCURRENT_REQUESTS: usize = 4;
/// Maximum number of characters of a Prometheus error that our error repeats.
const SHOWN_CHARS: usize = 1000;

/// A server with the HTTP API of Prometheus. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Prometheus {
    client: HttpClient,
    /// Address without user and password.
    base: Url,
    permits: Arc<Semaphore>,
}

/// Error when no client can be created for an address.
#[derive(Debug, thiserror::Error)]
pub enum PrometheusError {
    /// The address is not an HTTP URL of a server.
    #[error("the address of Prometheus must be http://HOST or https://HOST, optionally with a path")]
    Address,
    /// The HTTP client cannot be created.
    #[error("cannot create the HTTP client for Prometheus: {0}")]
    Client(String),
}

impl Prometheus {
    /// Creates a client of the server at `address`. The path of the address is the prefix of the server's routes. A
    /// user and a password in the address become basic authentication.
    ///
    /// # Errors
    /// Returns [`PrometheusError`] if the address is not an HTTP URL, or if the HTTP client cannot be created.
    pub fn new(address: &str) -> Result<Self, PrometheusError> {
        let mut base = Url::parse(address).map_err(|_| PrometheusError::Address)?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() || base.query().is_some() {
            return Err(PrometheusError::Address);
        }
        let mut options = ClientOptions::new(concat!("alluvium/", env!("CARGO_PKG_VERSION")).into());
        options.follow_redirects = false;
        options.proxy.from_environment = true;
        if !base.username().is_empty() {
            options.credential = Credential::Basic {
                username: decoded(base.username()).into(),
                password: Secret::Text(decoded(base.password().unwrap_or_default()).into()),
            };
            base.set_username("").map_err(|()| PrometheusError::Address)?;
            base.set_password(None).map_err(|()| PrometheusError::Address)?;
        }
        let client = HttpClient::new(&options).map_err(|error| PrometheusError::Client(error.to_string()))?;
        Ok(Self {
            client,
            base,
            permits: Arc::new(Semaphore::new(MAX_CONCURRENT_REQUESTS)),
        })
    }

    /// Returns the address, without user and password.
    pub(crate) fn address(&self) -> &str {
        self.base.as_str()
    }

    /// Sends a query and returns the response, within [`REQUEST_TIMEOUT`].
    pub(in crate::server) async fn query(
        &self,
        query: &RangeQuery,
        tenants: Option<&Tenants>,
    ) -> Result<Bytes, ConnectError> {
        let response = async {
            let permit = self.permits.acquire().await;
            let _permit = permit.map_err(|error| unavailable(error.to_string()))?;
            self.send(query, tenants).await
        };
        tokio::time::timeout(REQUEST_TIMEOUT, response)
            .await
            .unwrap_or_else(|_| {
                let message = format!("Prometheus did not respond within {} s", REQUEST_TIMEOUT.as_secs());
                Err(ConnectError::new(Code::DeadlineExceeded, message))
            })
    }

    async fn send(&self, query: &RangeQuery, tenants: Option<&Tenants>) -> Result<Bytes, ConnectError> {
        let mut request = self.client.get(query.url(&self.base)).await.map_err(|error| {
            tracing::warn!(error = %error, "cannot create a request to Prometheus");
            unavailable("cannot create a request to Prometheus".to_owned())
        })?;
        if let Some(tenants) = tenants {
            request = request.header(TENANT_HEADER, tenants.to_string());
        }
        let response = self.client.client().send(request).await;
        let response =
            response.map_err(|error| unavailable(format!("cannot send the query to Prometheus: {error}")))?;
        let status = response.status().as_u16();
        let body = read_decoded(response, MAX_RESPONSE_BYTES).await.map_err(|error| {
            ConnectError::new(
                Code::ResourceExhausted,
                format!("cannot read the response of Prometheus: {error}; query fewer series or use a longer step"),
            )
        })?;
        match status {
            200 => Ok(body),
            400 | 422 => Err(ConnectError::invalid(refusal(&body))),
            status => Err(unavailable(format!("Prometheus responded with status {status}"))),
        }
    }
}

/// The body of an error response of Prometheus.
#[derive(Deserialize)]
struct ErrorBody {
    error: String,
}

/// Returns the error for a query that Prometheus has rejected.
fn refusal(body: &[u8]) -> String {
    let error = serde_json::from_slice(body).map_or_else(|_| "no reason".to_owned(), |ErrorBody { error }| error);
    let shown: String = error.chars().take(SHOWN_CHARS).collect();
    format!("Prometheus rejected the query: {shown}")
}

fn unavailable(message: String) -> ConnectError {
    ConnectError::new(Code::Unavailable, message)
}

/// Decodes the percent-encoding of a URL's user or password.
fn decoded(text: &str) -> String {
    // A `+` does not mean a space in this part of a URL.
    let text = text.replace('+', "%2B");
    url::form_urlencoded::parse(text.as_bytes())
        .map(|(name, _)| name.into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_of_http_and_shown_without_its_password() {
        let prometheus = Prometheus::new("http://ada:p%40ss+1@metrics:9090/prefix/").unwrap();
        assert_eq!(prometheus.address(), "http://metrics:9090/prefix/");
        assert!(!format!("{prometheus:?}").contains("ss+1"));
        assert_eq!(decoded("p%40ss+1"), "p@ss+1");
        for address in ["metrics:9090", "file:///etc/passwd", "http://", "", "http://host/?a=b"] {
            assert!(Prometheus::new(address).is_err(), "{address}");
        }
    }

    #[test]
    fn the_reason_of_a_refusal_is_passed_on() {
        let message = refusal(b"{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse error\"}");
        assert_eq!(message, "Prometheus rejected the query: parse error");
        assert_eq!(refusal(b"<html>"), "Prometheus rejected the query: no reason");
    }
}
