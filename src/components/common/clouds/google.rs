//! Google's application default credentials, and the identity of a machine.
//!
//! Credentials are looked up in the order of Google's tools: the file that an environment variable names, the file in
//! the user's home folder, the metadata service of the machine. Out: a bearer token, which is cached until shortly
//! before it expires.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use crate::common::clouds::bearer;
use crate::common::clouds::cloud_error::CloudError;
use crate::common::clouds::environment::Environment;
use crate::common::clouds::expiring::{Expiring, Lasting};
use crate::common::http::web_api::WebApi;
use alluvium_pipeline::component::ComponentError;
use alluvium_wire::client::ClientOptions;
use alluvium_wire::jwt;

/// URL of the token server, unless the credentials file contains a different URL.
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
/// Host of the metadata service, unless an environment variable contains a different host.
const METADATA: &str = "169.254.169.254";
/// Header that the metadata service requires in every request.
const FLAVOR: (HeaderName, HeaderValue) = (
    HeaderName::from_static("metadata-flavor"),
    HeaderValue::from_static("Google"),
);
/// Lifetime of an assertion that a service account signs.
const LIFETIME: Duration = Duration::from_hours(1);

/// Path of the machine's service account at the metadata service.
const ACCOUNT: [&str; 5] = ["computeMetadata", "v1", "instance", "service-accounts", "default"];

/// Finds credentials, and caches the token that they yield.
#[derive(Debug)]
pub(crate) struct Google {
    /// Scope of the token, as Google names it.
    scope: &'static str,
    api: WebApi,
    machine: WebApi,
    environment: Environment,
    cache: Expiring<Arc<str>>,
}

/// A credentials file. It has no `Debug`, because it contains keys.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum File {
    ServiceAccount {
        client_email: String,
        private_key: String,
        private_key_id: Option<String>,
        token_uri: Option<String>,
    },
    AuthorizedUser {
        client_id: String,
        client_secret: String,
        refresh_token: String,
        token_uri: Option<String>,
    },
    ExternalAccount {},
    ImpersonatedServiceAccount {},
}

impl Google {
    /// Creates credentials for requests within `scope`, which is one of Google's scope URLs. Sends no request.
    pub(crate) fn new(
        scope: &'static str,
        options: &ClientOptions,
        environment: Environment,
    ) -> Result<Self, ComponentError> {
        let host = environment
            .get("GCE_METADATA_HOST")
            .unwrap_or_else(|| METADATA.to_owned());
        let url = |text: &str| {
            text.parse()
                .map_err(|error| ComponentError(format!("`{text}` is not a URL: {error}")))
        };
        let machine = ClientOptions::new(options.user_agent.clone());
        Ok(Self {
            scope,
            api: WebApi::with_options(options, &url(TOKEN_URL)?)?,
            machine: WebApi::with_options(&machine, &url(&format!("http://{host}/"))?)?
                .with_timeout(Duration::from_secs(5)),
            environment,
            cache: Expiring::default(),
        })
    }

    /// Returns an access token that is currently valid.
    pub(crate) async fn token(&self) -> Result<Arc<str>, CloudError> {
        let token = self.cache.get(self.find()).await;
        token.map_err(|error| CloudError::Credentials {
            cloud: "Google Cloud",
            source: Box::new(error),
        })
    }

    /// Discards the token, because a server may have refused it.
    pub(crate) async fn forget(&self) {
        self.cache.forget().await;
    }

    /// Returns a token with which the machine proves its identity to `audience`. Only machines of Google Cloud can
    /// request such a token.
    pub(crate) async fn machine_identity(&self, audience: &str) -> Result<String, CloudError> {
        let mut url = self.machine.url(ACCOUNT.into_iter().chain(["identity"]));
        url.query_pairs_mut()
            .append_pair("audience", audience)
            .append_pair("format", "full");
        let answer = self.machine.get(url, HeaderMap::from_iter([FLAVOR])).await?;
        Ok(String::from_utf8_lossy(&answer.body).trim().to_owned())
    }

    async fn find(&self) -> Result<Lasting<Arc<str>>, CloudError> {
        if let Some(path) = self
            .environment
            .get("GOOGLE_APPLICATION_CREDENTIALS")
            .map(PathBuf::from)
        {
            return self.of_file(&path).await;
        }
        let folder = self.environment.get("CLOUDSDK_CONFIG").map(PathBuf::from);
        let folder = folder.or_else(|| self.environment.at_home(".config/gcloud"));
        let own = folder.map(|folder| folder.join("application_default_credentials.json"));
        match own {
            Some(path) if tokio::fs::try_exists(&path).await.unwrap_or_default() => self.of_file(&path).await,
            _ => self.of_machine().await,
        }
    }

    async fn of_machine(&self) -> Result<Lasting<Arc<str>>, CloudError> {
        let mut url = self.machine.url(ACCOUNT.into_iter().chain(["token"]));
        url.query_pairs_mut().append_pair("scopes", self.scope);
        let answer = self.machine.get(url, HeaderMap::from_iter([FLAVOR])).await?;
        Ok(bearer::of_answer(&answer)?)
    }

    async fn of_file(&self, path: &std::path::Path) -> Result<Lasting<Arc<str>>, CloudError> {
        let text = tokio::fs::read_to_string(path).await;
        let text = text.map_err(|source| CloudError::File {
            path: path.to_owned(),
            source,
        })?;
        let file: File = serde_json::from_str(&text).map_err(|source| CloudError::CredentialsFile {
            path: path.to_owned(),
            source,
        })?;
        let url = |configured: Option<String>| -> Result<Url, CloudError> {
            let configured = configured.unwrap_or_else(|| TOKEN_URL.to_owned());
            configured.parse().map_err(|source| CloudError::Url {
                subject: format!("token_uri of {}", path.display()),
                source,
            })
        };
        match file {
            File::ServiceAccount {
                client_email,
                private_key,
                private_key_id,
                token_uri,
            } => {
                let url = url(token_uri)?;
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let claims = json!({
                    "iss": client_email,
                    "scope": self.scope,
                    "aud": url.as_str(),
                    "iat": now.as_secs(),
                    "exp": (now + LIFETIME).as_secs(),
                });
                let signed = jwt::sign_rs256(&private_key, private_key_id.as_deref(), &claims);
                let signed = signed.map_err(|source| CloudError::Key {
                    path: path.to_owned(),
                    source,
                })?;
                let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
                Ok(bearer::ask(&self.api, url, &[("grant_type", grant), ("assertion", &signed)]).await?)
            }
            File::AuthorizedUser {
                client_id,
                client_secret,
                refresh_token,
                token_uri,
            } => {
                let form = [
                    ("grant_type", "refresh_token"),
                    ("client_id", &client_id),
                    ("client_secret", &client_secret),
                    ("refresh_token", &refresh_token),
                ];
                Ok(bearer::ask(&self.api, url(token_uri)?, &form).await?)
            }
            File::ExternalAccount {} => Err(CloudError::CredentialsType {
                path: path.to_owned(),
                kind: "external_account",
            }),
            File::ImpersonatedServiceAccount {} => Err(CloudError::CredentialsType {
                path: path.to_owned(),
                kind: "impersonated_service_account",
            }),
        }
    }
}
