//! Sends a request to a target: over the network, or to the program's own endpoints without a socket.

use bytes::Bytes;
use url::{Position, Url};

use crate::pyroscope::scrape::response::ResponseError;
use crate::pyroscope::scrape::scrape_error::ScrapeError;
use alluvium_pipeline::component::own_http::OwnHttp;
use alluvium_wire::client::HttpClient;

/// Sends a GET request with the credentials of `client`. A URL of the program's own endpoints uses no socket.
pub(super) async fn send(client: &HttpClient, own_http: &OwnHttp, url: &Url) -> Result<reqwest::Response, ScrapeError> {
    if own_http.is_at(url.host_str().unwrap_or_default(), url.port()) {
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let mut request = http::Request::get(path).body(Bytes::new())?;
        *request.headers_mut() = client.headers().await?;
        return Ok(own_http.send(request).await.into());
    }
    let request = client.get(url.clone()).await?;
    Ok(client.client().send(request).await.map_err(ResponseError::Send)?)
}
