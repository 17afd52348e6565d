//! The HTTP client of components, together with its credentials.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};
use url::Url;

use crate::client::connections::Connections;
use crate::client::error::ClientError;
use crate::client::oauth2::TokenCache;
use crate::client::options::{ClientOptions, Credential, basic};

/// HTTP client with its credentials. Clones share connections.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: Connections,
    headers: HeaderMap,
    credential: Credential,
    token: TokenCache,
}

impl HttpClient {
    /// Creates a client. Reads certificate files but opens no connection.
    pub fn new(options: &ClientOptions) -> Result<Self, ClientError> {
        let token = match &options.credential {
            Credential::OAuth2(oauth2) => TokenCache::new(oauth2)?,
            _ => TokenCache::default(),
        };
        Ok(Self {
            client: Connections::new(options)?,
            headers: options.headers.clone(),
            credential: options.credential.clone(),
            token,
        })
    }

    /// Returns the connections of the client, which send requests without its credentials.
    pub fn client(&self) -> &Connections {
        &self.client
    }

    /// Returns the headers of the next request: the configured ones and the current credentials.
    pub async fn headers(&self) -> Result<HeaderMap, ClientError> {
        let mut headers = self.headers.clone();
        let authorization = match &self.credential {
            Credential::None => return Ok(headers),
            Credential::Basic { username, password } => basic(username, &password.read().await?),
            Credential::Authorization { scheme, credentials } => {
                format!("{scheme} {}", credentials.read().await?.trim_ascii_end())
            }
            Credential::OAuth2(oauth2) => format!("Bearer {}", self.token.token(oauth2).await?),
            Credential::Provided(provider) => {
                format!("Bearer {}", provider.token().await.map_err(ClientError::Provided)?)
            }
        };
        let mut value = HeaderValue::from_str(&authorization)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
        Ok(headers)
    }

    /// Starts a GET with credentials, to send with [`Connections::send`].
    pub async fn get(&self, url: Url) -> Result<reqwest::RequestBuilder, ClientError> {
        Ok(self.client.request(Method::GET, url).headers(self.headers().await?))
    }
}
