//! Looks up AWS credentials, and assumes roles with them.
//!
//! In: arguments and the environment. Out: credentials, which are cached until shortly before they expire. The lookup
//! order is the same as in the AWS tools: arguments, environment variables, web identity, profile, container, machine.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::Utc;
use http::Method;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use url::Url;

use crate::common::clouds::aws::account::Account;
use crate::common::clouds::aws::metadata;
use crate::common::clouds::aws::metadata::Metadata;
use crate::common::clouds::aws::profiles::{Profile, Profiles};
use crate::common::clouds::cloud_error::CloudError;
use crate::common::clouds::environment::Environment;
use crate::common::clouds::expiring::{Expiring, Lasting};
use crate::common::http::web_api::{WebApi, built};
use alluvium_wire::sigv4::{Credentials, Scope, sign};

/// Version of the API of the token service.
pub(super) const STS_VERSION: &str = "2011-06-15";
/// Session name of assumed roles in AWS logs, if none is configured.
const SESSION: &str = "alluvium";
/// Settings of a profile that select an unsupported source of credentials.
const REFUSED: [&str; 3] = ["credential_process", "sso_session", "sso_start_url"];

/// Finds credentials and caches them until shortly before they expire.
#[derive(Debug)]
pub(super) struct CredentialSource {
    pub(super) account: Account,
    pub(super) external_id: Option<Arc<str>>,
    pub(super) environment: Environment,
    pub(super) metadata: Metadata,
    /// Client of the token service (STS).
    pub(super) api: WebApi,
    pub(super) cache: Expiring<Credentials>,
}

/// A role to assume, and the settings of the request that assumes it.
struct Role {
    arn: Arc<str>,
    external_id: Option<Arc<str>>,
    session: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "AssumeRoleResult", alias = "AssumeRoleWithWebIdentityResult")]
    result: Outcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Outcome {
    credentials: CredentialDocument,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CredentialDocument {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    expiration: String,
}

impl CredentialSource {
    /// Returns valid credentials for requests to a region.
    pub(super) async fn get(&self, region: &str) -> Result<Credentials, CloudError> {
        let credentials = self.cache.get(self.find(region)).await;
        credentials.map_err(|error| CloudError::Credentials {
            cloud: "AWS",
            source: Box::new(error),
        })
    }

    /// Returns the name of the profile, and whether the arguments or the environment name it.
    pub(super) fn profile(&self) -> (String, IsAsked) {
        let named = self.account.profile.as_ref().map(ToString::to_string);
        let named = named.or_else(|| self.environment.get("AWS_PROFILE"));
        named.map_or(("default".to_owned(), IsAsked::No), |name| (name, IsAsked::Yes))
    }

    async fn find(&self, region: &str) -> Result<Lasting<Credentials>, CloudError> {
        let base = self.own(region).await?;
        let Some(arn) = &self.account.role_arn else {
            return Ok(base);
        };
        let role = Role {
            arn: arn.clone(),
            external_id: self.external_id.clone(),
            session: None,
        };
        self.assume(&role, &base.value, region).await
    }

    /// Returns the base credentials. If the argument `role_arn` is set, the caller assumes that role with them.
    async fn own(&self, region: &str) -> Result<Lasting<Credentials>, CloudError> {
        if let (Some(access_key), Some(secret_key)) = (&self.account.access_key, &self.account.secret_key) {
            return Ok(Lasting::forever(Credentials {
                access_key: access_key.clone(),
                secret_key: secret_key.0.clone(),
                session_token: None,
            }));
        }
        // A profile named by the arguments takes precedence over environment variables.
        if self.account.profile.is_none() {
            if let Some(credentials) = self.of_variables() {
                return Ok(credentials);
            }
            if let Some(file) = self.environment.get("AWS_WEB_IDENTITY_TOKEN_FILE") {
                let arn = self.environment.get("AWS_ROLE_ARN");
                let arn = arn.ok_or(CloudError::Setting("AWS_WEB_IDENTITY_TOKEN_FILE needs AWS_ROLE_ARN"))?;
                let session = self.environment.get("AWS_ROLE_SESSION_NAME");
                return self.web_identity(&file, &arn, session.as_deref(), region).await;
            }
        }
        if let Some(credentials) = self.of_profile(region).await? {
            return Ok(credentials);
        }
        match self.metadata.of_container().await? {
            Some(credentials) => Ok(credentials),
            None => self.metadata.of_machine().await,
        }
    }

    fn of_variables(&self) -> Option<Lasting<Credentials>> {
        Some(Lasting::forever(Credentials {
            access_key: self.environment.get("AWS_ACCESS_KEY_ID")?.into(),
            secret_key: self.environment.get("AWS_SECRET_ACCESS_KEY")?.into(),
            session_token: self.environment.get("AWS_SESSION_TOKEN").map(Arc::from),
        }))
    }

    /// Returns the credentials of the profile, after assuming the roles along its `source_profile` chain. Returns
    /// `None` if the profile contains no credentials, or if there is no default profile.
    async fn of_profile(&self, region: &str) -> Result<Option<Lasting<Credentials>>, CloudError> {
        let profiles = Profiles::read(&self.environment).await?;
        let (mut name, is_asked) = self.profile();
        let (mut roles, mut visited) = (Vec::new(), BTreeSet::new());
        let first = loop {
            let profile = match profiles.get(&name) {
                Some(profile) => profile,
                None if is_asked == IsAsked::No && roles.is_empty() => return Ok(None),
                None => return Err(CloudError::Profile(format!("there is no profile `{name}`"))),
            };
            let setting = |name: &str| profile.get(name).filter(|value| !value.is_empty());
            let role = setting("role_arn").filter(|_| setting("web_identity_token_file").is_none());
            if let Some(arn) = role {
                roles.push(Role {
                    arn: arn.as_str().into(),
                    external_id: setting("external_id").map(|id| id.as_str().into()),
                    session: setting("role_session_name").cloned(),
                });
                if let Some(source) = setting("source_profile").filter(|source| **source != name) {
                    if !visited.insert(name) {
                        let cycle = format!("the profile `{source}` refers to itself by source_profile");
                        return Err(CloudError::Profile(cycle));
                    }
                    name = source.clone();
                    continue;
                }
            }
            break self.of_settings(&name, profile, region).await?;
        };
        let Some(mut credentials) = first else {
            if roles.is_empty() {
                return Ok(None);
            }
            let missing = format!("the profile `{name}` has a role but no credentials to assume it");
            return Err(CloudError::Profile(missing));
        };
        for role in roles.iter().rev() {
            credentials = self.assume(role, &credentials.value, region).await?;
        }
        Ok(Some(credentials))
    }

    /// Returns the credentials in the settings of one profile, before its role is assumed.
    async fn of_settings(
        &self,
        name: &str,
        profile: &Profile,
        region: &str,
    ) -> Result<Option<Lasting<Credentials>>, CloudError> {
        let setting = |name: &str| profile.get(name).filter(|value| !value.is_empty());
        if let (Some(access_key), Some(secret_key)) = (setting("aws_access_key_id"), setting("aws_secret_access_key")) {
            return Ok(Some(Lasting::forever(Credentials {
                access_key: access_key.as_str().into(),
                secret_key: secret_key.as_str().into(),
                session_token: setting("aws_session_token").map(|token| token.as_str().into()),
            })));
        }
        if let (Some(file), Some(arn)) = (setting("web_identity_token_file"), setting("role_arn")) {
            let session = setting("role_session_name").map(String::as_str);
            return self.web_identity(file, arn, session, region).await.map(Some);
        }
        match setting("credential_source").map(String::as_str) {
            Some("Environment") => return Ok(self.of_variables()),
            Some("EcsContainer") => return self.metadata.of_container().await,
            Some("Ec2InstanceMetadata") => return self.metadata.of_machine().await.map(Some),
            Some(other) => {
                let unknown = format!("the profile `{name}` has the unknown credential_source `{other}`");
                return Err(CloudError::Profile(unknown));
            }
            None => {}
        }
        match REFUSED.iter().find(|refused| setting(refused).is_some()) {
            Some(refused) => {
                let refusal = format!("the profile `{name}` uses {refused}, which is not supported");
                Err(CloudError::Profile(refusal))
            }
            None => Ok(None),
        }
    }

    async fn assume(
        &self,
        role: &Role,
        credentials: &Credentials,
        region: &str,
    ) -> Result<Lasting<Credentials>, CloudError> {
        let mut form = vec![
            ("Action", "AssumeRole"),
            ("Version", STS_VERSION),
            ("RoleArn", &role.arn),
            ("RoleSessionName", role.session.as_deref().unwrap_or(SESSION)),
        ];
        form.extend(role.external_id.as_deref().map(|id| ("ExternalId", id)));
        let mut request = self.token_request(&form, region)?;
        let scope = Scope { service: "sts", region };
        sign(&mut request, credentials, scope, Utc::now())?;
        let credentials_of_role = self.ask(request).await;
        credentials_of_role.map_err(|error| CloudError::Role {
            role: role.arn.to_string(),
            source: Box::new(error),
        })
    }

    async fn web_identity(
        &self,
        file: &str,
        arn: &str,
        session: Option<&str>,
        region: &str,
    ) -> Result<Lasting<Credentials>, CloudError> {
        let token = metadata::read(file).await?;
        let form = [
            ("Action", "AssumeRoleWithWebIdentity"),
            ("Version", STS_VERSION),
            ("RoleArn", arn),
            ("RoleSessionName", session.unwrap_or(SESSION)),
            ("WebIdentityToken", token.trim()),
        ];
        let credentials = self.ask(self.token_request(&form, region)?).await;
        credentials.map_err(|error| CloudError::WebIdentity {
            role: arn.to_owned(),
            source: Box::new(error),
        })
    }

    fn token_request(&self, form: &[(&str, &str)], region: &str) -> Result<reqwest::Request, CloudError> {
        let url = endpoint(&self.environment, "sts", region)?;
        let form = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let request = self.api.request(Method::POST, url);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        Ok(built(request.body(form))?)
    }

    async fn ask(&self, request: reqwest::Request) -> Result<Lasting<Credentials>, CloudError> {
        let answer: Answer = self.api.execute(request).await?.xml()?;
        let credentials = answer.result.credentials;
        Ok(Lasting {
            ends: Some(metadata::time(&credentials.expiration)?),
            value: Credentials {
                access_key: credentials.access_key_id.into(),
                secret_key: credentials.secret_access_key.into(),
                session_token: Some(credentials.session_token.into()),
            },
        })
    }
}

/// Whether the arguments or the environment name the profile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IsAsked {
    Yes,
    No,
}

/// Returns the URL of a service in a region. Environment variables can override the URL.
pub(super) fn endpoint(environment: &Environment, service: &str, region: &str) -> Result<Url, CloudError> {
    let variable = format!("AWS_ENDPOINT_URL_{}", service.to_uppercase());
    let named = environment
        .get(&variable)
        .or_else(|| environment.get("AWS_ENDPOINT_URL"));
    let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
    let url = named.unwrap_or_else(|| format!("https://{service}.{region}.amazonaws.com{suffix}/"));
    url.parse().map_err(|source| CloudError::Url {
        subject: format!("the endpoint `{url}` of {service}"),
        source,
    })
}
