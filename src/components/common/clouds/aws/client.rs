//! Signed requests to AWS services.
//!
//! In: a service and a request. Out: the response. The client looks up region and credentials at the first use. After a
//! failed request it looks up the credentials again, because wrong credentials may be the cause.

use std::sync::Arc;

use chrono::Utc;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method};
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;
use url::Url;

use crate::common::clouds::aws::account::Account;
use crate::common::clouds::aws::credentials;
use crate::common::clouds::aws::credentials::{CredentialSource, IsAsked};
use crate::common::clouds::aws::metadata::Metadata;
use crate::common::clouds::aws::profiles::Profiles;
use crate::common::clouds::cloud_error::CloudError;
use crate::common::clouds::environment::Environment;
use crate::common::clouds::expiring::Expiring;
use crate::common::http::web_api::{Answer, WebApi, built};
use alluvium_pipeline::component::ComponentError;
use alluvium_wire::client::ClientOptions;
use alluvium_wire::sigv4::{Scope, sign};

/// Hosts of the token service (STS): the host of the region `us-east-1`, and the global host without a region.
const HOME_STS: &str = "sts.us-east-1.amazonaws.com";
const GLOBAL_STS: &str = "sts.amazonaws.com";

/// A client of AWS services for one account.
#[derive(Debug)]
pub(crate) struct Aws {
    api: WebApi,
    credentials: CredentialSource,
    region: OnceCell<Arc<str>>,
}

/// An AWS service that accepts forms and responds with XML.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryService {
    /// Name of the service, as in its URL.
    pub(crate) name: &'static str,
    /// Version of the service's API.
    pub(crate) version: &'static str,
}

/// An AWS service that accepts JSON and responds with JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonService {
    /// Name of the service, as in its URL.
    pub(crate) name: &'static str,
    /// Prefix of an action in the header `X-Amz-Target`.
    pub(crate) prefix: &'static str,
}

impl Aws {
    /// Creates the client of an account. `external_id` is sent when the account's `role_arn` is assumed.
    pub(crate) fn new(
        account: &Account,
        external_id: Option<Arc<str>>,
        options: &ClientOptions,
        environment: Environment,
    ) -> Result<Self, ComponentError> {
        let home = credentials::endpoint(&environment, "sts", "us-east-1");
        let home = home.map_err(|error| ComponentError(error.to_string()))?;
        let api = WebApi::with_options(options, &home)?;
        Ok(Self {
            credentials: CredentialSource {
                account: account.clone(),
                external_id,
                metadata: Metadata::new(&environment, &options.user_agent)?,
                environment,
                api: api.clone(),
                cache: Expiring::default(),
            },
            api,
            region: OnceCell::new(),
        })
    }

    /// Returns the region of requests: from the arguments, the environment, the profile, or the instance metadata.
    pub(crate) async fn region(&self) -> Result<Arc<str>, CloudError> {
        let region = self.region.get_or_try_init(|| self.find_region()).await?;
        Ok(region.clone())
    }

    /// Sends a form to a service and reads the response as XML.
    pub(crate) async fn query<T: DeserializeOwned>(
        &self,
        service: QueryService,
        action: &str,
        parameters: &[(String, String)],
    ) -> Result<T, CloudError> {
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("Action", action)
            .append_pair("Version", service.version)
            .extend_pairs(parameters)
            .finish();
        let request = self.api.request(Method::POST, self.endpoint(service.name).await?);
        let request = request
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form);
        let answer = self.send(service.name, built(request)?).await;
        let read = answer.and_then(|answer| Ok(answer.xml()?));
        read.map_err(|error: CloudError| error.of_action(action))
    }

    /// Sends JSON to a service and reads the response as JSON.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        service: JsonService,
        action: &str,
        parameters: &serde_json::Value,
    ) -> Result<T, CloudError> {
        let request = self.api.request(Method::POST, self.endpoint(service.name).await?);
        let request = request
            .header(CONTENT_TYPE, "application/x-amz-json-1.1")
            .header("x-amz-target", format!("{}.{action}", service.prefix))
            .body(parameters.to_string());
        let answer = self.send(service.name, built(request)?).await;
        let read = answer.and_then(|answer| Ok(answer.json()?));
        read.map_err(|error: CloudError| error.of_action(action))
    }

    /// Sends a GET for a path of a service and reads the response as JSON.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        service: &str,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<T, CloudError> {
        let mut url = self.endpoint(service).await?;
        // This cannot fail, because only a URL without a host has no path segments.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let request = built(self.api.request(Method::GET, with_query(url, query)))?;
        Ok(self.send(service, request).await?.json()?)
    }

    /// Returns the URL of a service: the argument `endpoint`, or else the URL of AWS.
    async fn endpoint(&self, service: &str) -> Result<Url, CloudError> {
        match &self.credentials.account.endpoint {
            Some(endpoint) => Ok(endpoint.url().clone()),
            None => credentials::endpoint(&self.credentials.environment, service, &self.region().await?),
        }
    }

    /// Signs a request and sends it.
    pub(crate) async fn send(&self, service: &str, mut request: reqwest::Request) -> Result<Answer, CloudError> {
        let region = self.region().await?;
        let credentials = self.credentials.get(&region).await?;
        let scope = Scope {
            service,
            region: &region,
        };
        sign(&mut request, &credentials, scope, Utc::now())?;
        let answer = self.api.execute(request).await;
        if answer.is_err() {
            self.credentials.cache.forget().await;
        }
        Ok(answer?)
    }

    /// Returns a signed `GetCallerIdentity` request without sending it. The signature also covers `headers`. A server
    /// that receives this request can send it to AWS, and the response names the signer.
    pub(crate) async fn identity_request(&self, headers: HeaderMap) -> Result<reqwest::Request, CloudError> {
        let region = self.region().await?;
        let credentials = self.credentials.get(&region).await?;
        let mut url = credentials::endpoint(&self.credentials.environment, "sts", &region)?;
        if url.host_str() == Some(HOME_STS) {
            // A signature for `us-east-1` is also valid at the global host, which other programs use by default.
            let _ = url.set_host(Some(GLOBAL_STS));
        }
        let form = format!("Action=GetCallerIdentity&Version={}", credentials::STS_VERSION);
        let request = self.api.request(Method::POST, url).headers(headers);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded; charset=utf-8");
        let mut request = built(request.body(form))?;
        let scope = Scope {
            service: "sts",
            region: &region,
        };
        sign(&mut request, &credentials, scope, Utc::now())?;
        Ok(request)
    }

    /// Returns one item of the machine's identity document, which AWS signs: `document`, `signature` or `pkcs7`.
    pub(crate) async fn machine_identity(&self, part: &str) -> Result<String, CloudError> {
        self.credentials.metadata.identity(part).await
    }

    async fn find_region(&self) -> Result<Arc<str>, CloudError> {
        let CredentialSource {
            account,
            environment,
            metadata,
            ..
        } = &self.credentials;
        if let Some(region) = &account.region {
            return Ok(region.clone());
        }
        let variable = ["AWS_REGION", "AWS_DEFAULT_REGION"]
            .into_iter()
            .find_map(|name| environment.get(name));
        if let Some(region) = variable {
            return Ok(region.into());
        }
        let (name, is_asked) = self.credentials.profile();
        let profiles = Profiles::read(environment).await?;
        match profiles.get(&name) {
            Some(profile) => {
                if let Some(region) = profile.get("region") {
                    return Ok(region.as_str().into());
                }
            }
            None if is_asked == IsAsked::Yes => {
                return Err(CloudError::Profile(format!("there is no profile `{name}`")));
            }
            None => {}
        }
        let region = metadata.region().await;
        region.map_err(|error| CloudError::Region {
            source: Box::new(error),
        })
    }
}

fn with_query(mut url: Url, query: &[(&str, &str)]) -> Url {
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    url
}
