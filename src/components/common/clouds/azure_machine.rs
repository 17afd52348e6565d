//! The metadata service of an Azure machine: tokens of its identity, and facts about the machine.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use url::Url;

use crate::common::clouds::bearer;
use crate::common::clouds::cloud_error::CloudError;
use crate::common::clouds::environment::Environment;
use crate::common::clouds::expiring::Lasting;
use crate::common::http::api_error::ApiError;
use crate::common::http::web_api::WebApi;
use alluvium_pipeline::component::ComponentError;
use alluvium_wire::client::ClientOptions;

/// URL of the service, unless an environment variable contains a different URL.
const URL: &str = "http://169.254.169.254";
/// Timeout of a request. Outside of Azure, no server responds.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Header that the service requires in every request.
const METADATA: (HeaderName, HeaderValue) = (HeaderName::from_static("metadata"), HeaderValue::from_static("true"));

/// A client of the metadata service, which can be reached only from the machine itself.
#[derive(Debug)]
pub(crate) struct AzureMachine {
    api: WebApi,
    environment: Environment,
}

/// Facts about a machine. A text is empty if it does not apply.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Instance {
    /// Name of the virtual machine.
    pub(crate) name: String,
    /// Name of the scale set to which the machine belongs.
    pub(crate) vm_scale_set_name: String,
    /// Id of the subscription to which the machine belongs.
    pub(crate) subscription_id: String,
    /// Name of the machine's resource group.
    pub(crate) resource_group_name: String,
}

#[derive(Deserialize)]
struct Metadata {
    compute: Instance,
}

impl AzureMachine {
    /// Creates the client and sends no request. `AZURE_POD_IDENTITY_AUTHORITY_HOST` overrides the usual URL.
    pub(crate) fn new(user_agent: &Arc<str>, environment: Environment) -> Result<Self, ComponentError> {
        let host = environment.get("AZURE_POD_IDENTITY_AUTHORITY_HOST");
        let host = host.as_deref().unwrap_or(URL);
        let host = host
            .parse()
            .map_err(|error| ComponentError(format!("`{host}` is not a URL: {error}")))?;
        let options = ClientOptions::new(user_agent.clone());
        Ok(Self {
            api: WebApi::with_options(&options, &host)?.with_timeout(TIMEOUT),
            environment,
        })
    }

    /// Returns a token for `resource`, issued to the identity with the client id `client`. If `client` is empty, the
    /// machine's default identity is used. In App Service, `IDENTITY_ENDPOINT` contains the URL for the token.
    pub(crate) async fn token(&self, resource: &str, client: &str) -> Result<Lasting<Arc<str>>, CloudError> {
        let (mut url, version, (name, value)) = if let Some(endpoint) = self.environment.get("IDENTITY_ENDPOINT") {
            let url = endpoint.parse::<Url>();
            let url = url.map_err(|source| CloudError::Url {
                subject: "IDENTITY_ENDPOINT".to_owned(),
                source,
            })?;
            let value = self.environment.get("IDENTITY_HEADER");
            let value = value.ok_or(CloudError::Setting("IDENTITY_HEADER is not set"))?;
            let value = HeaderValue::from_str(&value).map_err(|source| ApiError::Header {
                subject: "IDENTITY_HEADER",
                source,
            })?;
            (url, "2019-08-01", (HeaderName::from_static("x-identity-header"), value))
        } else {
            let url = self.api.url(["metadata", "identity", "oauth2", "token"]);
            (url, "2018-02-01", METADATA)
        };
        url.query_pairs_mut()
            .append_pair("api-version", version)
            .append_pair("resource", resource);
        if !client.is_empty() {
            url.query_pairs_mut().append_pair("client_id", client);
        }
        let answer = self.api.get(url, HeaderMap::from_iter([(name, value)])).await?;
        Ok(bearer::of_answer(&answer)?)
    }

    /// Returns the facts about this machine from the metadata service.
    pub(crate) async fn instance(&self) -> Result<Instance, CloudError> {
        let mut url = self.api.url(["metadata", "instance"]);
        url.query_pairs_mut().append_pair("api-version", "2021-05-01");
        let answer = self.api.get(url, HeaderMap::from_iter([METADATA])).await?;
        let metadata: Metadata = answer.json()?;
        Ok(metadata.compute)
    }
}
