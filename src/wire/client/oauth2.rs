//! OAuth 2 client credentials (RFC 6749 section 4.4). The client requests a token once and uses it until shortly before
//! it expires.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::client::body::read_body;
use crate::client::connections::Connections;
use crate::client::error::{ClientError, OAuth2Error, SendError};
use crate::client::options::{OAuth2, basic};

/// A token is renewed this long before its expiry, so that it does not expire in transit.
const RENEW_BEFORE: Duration = Duration::from_secs(10);
/// Timeout of a request to the token server.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a response of the token server, in bytes.
const MAX_ANSWER: usize = 1 << 20;

/// The token of one client; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenCache {
    client: Option<Connections>,
    token: Arc<tokio::sync::Mutex<Option<Token>>>,
}

#[derive(Debug)]
struct Token {
    text: Arc<str>,
    expiry: Option<Instant>,
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    expires_in: Option<f64>,
}

impl TokenCache {
    pub(super) fn new(oauth2: &OAuth2) -> Result<Self, ClientError> {
        Ok(Self {
            client: Some(Connections::new(&oauth2.options)?),
            token: Arc::default(),
        })
    }

    /// Returns a valid token; requests one from the token server when there is none.
    pub(super) async fn token(&self, oauth2: &OAuth2) -> Result<Arc<str>, ClientError> {
        let client = self.client.as_ref().ok_or(OAuth2Error::NoClient)?;
        // The lock is deliberately held during the request: other callers wait for its result instead of sending
        // requests of their own.
        let mut held = self.token.lock().await;
        if let Some(token) = held.as_ref()
            && token.expiry.is_none_or(|expiry| Instant::now() < expiry)
        {
            return Ok(token.text.clone());
        }
        let secret = oauth2.client_secret.read().await?;
        // Servers expect the client secret in different parts of a request. The client tries the header first, because
        // RFC 6749 prefers it.
        let answer = match ask(client, oauth2, &secret, SecretLocation::Header).await {
            Ok(answer) => answer,
            Err(error) if error.is_refusal() => ask(client, oauth2, &secret, SecretLocation::Body).await?,
            Err(error) => return Err(error.into()),
        };
        let text: Arc<str> = answer.access_token.into();
        *held = Some(Token {
            text: text.clone(),
            expiry: answer.expires_in.filter(|seconds| *seconds > 0.0).map(|seconds| {
                let lifetime = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_hours(1));
                Instant::now() + lifetime.saturating_sub(RENEW_BEFORE)
            }),
        });
        Ok(text)
    }
}

/// The part of the request that contains the client secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SecretLocation {
    Header,
    Body,
}

async fn ask(
    client: &Connections,
    oauth2: &OAuth2,
    secret: &str,
    location: SecretLocation,
) -> Result<Answer, OAuth2Error> {
    let url = || Box::new(oauth2.token_url.clone());
    let failed = |source: SendError| OAuth2Error::Request { url: url(), source };
    let mut form = vec![("grant_type".to_owned(), "client_credentials".to_owned())];
    if !oauth2.scopes.is_empty() {
        form.push(("scope".to_owned(), oauth2.scopes.join(" ")));
    }
    for (name, value) in &oauth2.endpoint_params {
        form.push((name.to_string(), value.to_string()));
    }
    if location == SecretLocation::Body {
        form.push(("client_id".to_owned(), oauth2.client_id.to_string()));
        form.push(("client_secret".to_owned(), secret.to_owned()));
    }
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    let mut request = client
        .post(oauth2.token_url.clone())
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .timeout(TIMEOUT)
        .body(body);
    if location == SecretLocation::Header {
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        request = request.header(AUTHORIZATION, basic(&encode(&oauth2.client_id), &encode(secret)));
    }
    // A redirect to another host is followed without the client secret, or not at all.
    let response = client.send(request).await.map_err(failed)?;
    let status = response.status();
    let body = read_body(response, MAX_ANSWER).await;
    let body = body.map_err(|source| OAuth2Error::Body { url: url(), source })?;
    if !status.is_success() {
        return Err(OAuth2Error::Status { url: url(), status });
    }
    serde_json::from_slice(&body).map_err(|source| OAuth2Error::Response { url: url(), source })
}
