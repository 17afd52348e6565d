//! Bearer tokens of clouds: the response of a token server, and the header that carries a token.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::common::clouds::expiring::Lasting;
use crate::common::http::api_error::ApiError;
use crate::common::http::web_api::{Answer, WebApi};

/// Lifetime of a token if the response contains no lifetime.
const LIFETIME: Duration = Duration::from_mins(5);

#[derive(Deserialize)]
struct Token {
    access_token: String,
    /// Lifetime in seconds, as a number or as text.
    expires_in: Option<Value>,
}

/// Sends a form to a token server, and returns the token from the response.
pub(crate) async fn ask(api: &WebApi, url: Url, form: &[(&str, &str)]) -> Result<Lasting<Arc<str>>, ApiError> {
    let form = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    let request = api
        .request(Method::POST, url)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    of_answer(&api.send(request.body(form)).await?)
}

/// Returns the token of a response.
pub(crate) fn of_answer(answer: &Answer) -> Result<Lasting<Arc<str>>, ApiError> {
    let token: Token = answer.json()?;
    let seconds = token
        .expires_in
        .and_then(|lifetime| lifetime.as_u64().or_else(|| lifetime.as_str()?.parse().ok()));
    Ok(Lasting {
        value: token.access_token.into(),
        ends: SystemTime::now().checked_add(seconds.map_or(LIFETIME, Duration::from_secs)),
    })
}

/// Returns the `Authorization` header with a token.
pub(crate) fn header(token: &str) -> Result<HeaderMap, ApiError> {
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let mut value = value.map_err(|source| ApiError::Header {
        subject: "the token",
        source,
    })?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
}
