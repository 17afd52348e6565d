//! Client of the AWS metadata services of a machine or container: its region, and the credentials of its role.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::DateTime;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;
use url::Url;

use crate::common::clouds::cloud_error::CloudError;
use crate::common::clouds::environment::Environment;
use crate::common::clouds::expiring::Lasting;
use crate::common::http::api_error::ApiError;
use crate::common::http::web_api::{Answer, WebApi};
use alluvium_pipeline::component::ComponentError;
use alluvium_wire::client::ClientOptions;
use alluvium_wire::sigv4::Credentials;

/// URL of the instance metadata service, unless an environment variable contains a different URL.
const MACHINE: &str = "http://169.254.169.254/";
/// URL of the metadata service in an ECS container.
const CONTAINER: &str = "http://169.254.170.2";
/// Timeout of a request. Outside of AWS, no server responds.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Header that carries a token of the metadata service (IMDSv2).
const TOKEN: HeaderName = HeaderName::from_static("x-aws-ec2-metadata-token");
/// Header that requests a lifetime of 60 s for a token. Each token is used immediately.
const TOKEN_LASTS: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds"),
    HeaderValue::from_static("60"),
);

/// A client of the metadata services, which can be reached only from the machine or the container itself.
#[derive(Debug)]
pub(super) struct Metadata {
    api: WebApi,
    environment: Environment,
}

/// Credentials in the JSON form of both services.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CredentialDocument {
    access_key_id: String,
    secret_access_key: String,
    token: Option<String>,
    expiration: Option<String>,
}

impl Metadata {
    /// Creates the client. `AWS_EC2_METADATA_SERVICE_ENDPOINT` overrides the URL of the instance metadata service.
    pub(super) fn new(environment: &Environment, user_agent: &Arc<str>) -> Result<Self, ComponentError> {
        let named = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        let base = named.as_deref().unwrap_or(MACHINE);
        let base = base
            .parse()
            .map_err(|error| ComponentError(format!("AWS_EC2_METADATA_SERVICE_ENDPOINT is not a URL: {error}")))?;
        Ok(Self {
            api: WebApi::with_options(&ClientOptions::new(user_agent.clone()), &base)?.with_timeout(TIMEOUT),
            environment: environment.clone(),
        })
    }

    /// Returns the region of the machine.
    pub(super) async fn region(&self) -> Result<Arc<str>, CloudError> {
        let answer = self.machine(&["meta-data", "placement", "region"]).await?;
        Ok(String::from_utf8_lossy(&answer.body).trim().into())
    }

    /// Returns one item of the machine's identity document, which AWS signs: `document`, `signature` or `pkcs7`.
    pub(super) async fn identity(&self, part: &str) -> Result<String, CloudError> {
        let answer = self.machine(&["dynamic", "instance-identity", part]).await?;
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
    }

    /// Returns the credentials of the machine's role.
    pub(super) async fn of_machine(&self) -> Result<Lasting<Credentials>, CloudError> {
        let roles = self.machine(&["meta-data", "iam", "security-credentials", ""]).await?;
        let roles = String::from_utf8_lossy(&roles.body);
        let role = roles.lines().next().unwrap_or_default().trim();
        if role.is_empty() {
            return Err(CloudError::Setting("the machine has no role"));
        }
        let answer = self
            .machine(&["meta-data", "iam", "security-credentials", role])
            .await?;
        credentials(&answer)
    }

    /// Returns the credentials of the container's role; `None` if the environment contains no URL for them.
    pub(super) async fn of_container(&self) -> Result<Option<Lasting<Credentials>>, CloudError> {
        let relative = self.environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        let full = self.environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI");
        let Some(url) = relative.map(|path| format!("{CONTAINER}{path}")).or(full) else {
            return Ok(None);
        };
        let url: Url = url.parse().map_err(|source| CloudError::Url {
            subject: "AWS_CONTAINER_CREDENTIALS_FULL_URI".to_owned(),
            source,
        })?;
        let token = match self.environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            Some(path) => Some(read(&path).await?),
            None => self.environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
        };
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, secret(token.trim())?);
        }
        credentials(&self.api.get(url, headers).await?).map(Some)
    }

    async fn machine(&self, path: &[&str]) -> Result<Answer, CloudError> {
        let disabled = self.environment.get("AWS_EC2_METADATA_DISABLED");
        if disabled.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            let disabled = "AWS_EC2_METADATA_DISABLED disables the instance metadata service";
            return Err(CloudError::Setting(disabled));
        }
        let (name, value) = TOKEN_LASTS;
        let token = self.api.request(Method::PUT, self.api.url(["latest", "api", "token"]));
        let token = self.api.send(token.header(name, value)).await?;
        let token = secret(String::from_utf8_lossy(&token.body).trim())?;
        let path = ["latest"].into_iter().chain(path.iter().copied());
        let headers = HeaderMap::from_iter([(TOKEN, token)]);
        Ok(self.api.get(self.api.url(path), headers).await?)
    }
}

/// Reads a file that contains a token.
pub(super) async fn read(path: &str) -> Result<String, CloudError> {
    let text = tokio::fs::read_to_string(path).await;
    text.map_err(|source| CloudError::File {
        path: path.into(),
        source,
    })
}

/// Parses a time in the format of AWS.
pub(super) fn time(text: &str) -> Result<SystemTime, CloudError> {
    let time = DateTime::parse_from_rfc3339(text);
    time.map(SystemTime::from).map_err(|source| CloudError::Expiration {
        text: text.to_owned(),
        source,
    })
}

fn secret(text: &str) -> Result<HeaderValue, ApiError> {
    let mut value = HeaderValue::from_str(text).map_err(|source| ApiError::Header {
        subject: "the token",
        source,
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn credentials(answer: &Answer) -> Result<Lasting<Credentials>, CloudError> {
    let credentials: CredentialDocument = answer.json()?;
    Ok(Lasting {
        ends: credentials.expiration.as_deref().map(time).transpose()?,
        value: Credentials {
            access_key: credentials.access_key_id.into(),
            secret_key: credentials.secret_access_key.into(),
            session_token: credentials.token.map(Arc::from),
        },
    })
}
