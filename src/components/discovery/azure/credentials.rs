//! Access tokens for Azure, obtained with a client secret, a workload identity, or the identity of the machine.

use std::sync::Arc;

use crate::common::clouds::azure_machine::AzureMachine;
use crate::common::clouds::bearer;
use crate::common::clouds::cloud_error::CloudError;
use crate::common::clouds::environment::Environment;
use crate::common::clouds::expiring::{Expiring, Lasting};
use crate::common::http::web_api::WebApi;
use crate::discovery::azure::cloud::Cloud;
use alluvium_lang::attribute::Secret;
use alluvium_pipeline::component::ComponentError;
use alluvium_wire::client::ClientOptions;

/// Type of a client assertion: a token of another issuer that proves the client's identity.
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The source of the access tokens.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// An application and its secret.
    Secret {
        tenant: Arc<str>,
        client: Arc<str>,
        secret: Secret,
    },
    /// A workload identity: environment variables name the token that Kubernetes mounts.
    Workload,
    /// An identity of the machine, by its client ID. An empty ID selects the machine's default identity.
    Machine(Arc<str>),
    /// The first of these that is available: a secret in environment variables, a workload identity, the identity of
    /// the machine. The field is the tenant for the secret and for the workload identity. It defaults to the
    /// environment variable `AZURE_TENANT_ID`.
    Any(Option<Arc<str>>),
}

/// Requests an access token and caches it until shortly before it expires.
#[derive(Debug)]
pub(super) struct Credentials {
    way: Way,
    cloud: Cloud,
    api: WebApi,
    machine: AzureMachine,
    environment: Environment,
    cache: Expiring<Arc<str>>,
}

impl Credentials {
    pub(super) fn new(
        way: Way,
        cloud: Cloud,
        options: &ClientOptions,
        environment: Environment,
    ) -> Result<Self, ComponentError> {
        Ok(Self {
            way,
            api: WebApi::with_options(options, &cloud.login)?,
            machine: AzureMachine::new(&options.user_agent, environment.clone())?,
            cloud,
            environment,
            cache: Expiring::default(),
        })
    }

    /// Returns an access token that is valid at present.
    pub(super) async fn token(&self) -> Result<Arc<str>, CloudError> {
        let token = self.cache.get(self.find()).await;
        token.map_err(|error| CloudError::Credentials {
            cloud: "Azure",
            source: Box::new(error),
        })
    }

    /// Drops the cached token, because the server may have rejected it.
    pub(super) async fn forget(&self) {
        self.cache.forget().await;
    }

    async fn find(&self) -> Result<Lasting<Arc<str>>, CloudError> {
        match &self.way {
            Way::Secret { tenant, client, secret } => self.by_secret(tenant, client, &secret.0).await,
            Way::Workload => self.of_workload(None).await,
            Way::Machine(client) => self.of_machine(client).await,
            Way::Any(tenant) => {
                let secret = self.environment.get("AZURE_CLIENT_SECRET");
                let client = self.environment.get("AZURE_CLIENT_ID");
                if let (Some(client), Some(secret)) = (&client, secret) {
                    let tenant = self.tenant(tenant.as_deref())?;
                    return self.by_secret(&tenant, client, &secret).await;
                }
                if self.environment.get("AZURE_FEDERATED_TOKEN_FILE").is_some() {
                    return self.of_workload(tenant.as_deref()).await;
                }
                self.of_machine(client.as_deref().unwrap_or_default()).await
            }
        }
    }

    async fn by_secret(&self, tenant: &str, client: &str, secret: &str) -> Result<Lasting<Arc<str>>, CloudError> {
        self.ask(tenant, client, &[("client_secret", secret)]).await
    }

    async fn of_workload(&self, tenant: Option<&str>) -> Result<Lasting<Arc<str>>, CloudError> {
        let (client, path) = (
            self.variable("AZURE_CLIENT_ID")?,
            self.variable("AZURE_FEDERATED_TOKEN_FILE")?,
        );
        let token = tokio::fs::read_to_string(&path).await;
        let token = token.map_err(|source| CloudError::File {
            path: path.into(),
            source,
        })?;
        let shown = [("client_assertion_type", ASSERTION), ("client_assertion", token.trim())];
        self.ask(&self.tenant(tenant)?, &client, &shown).await
    }

    async fn of_machine(&self, client: &str) -> Result<Lasting<Arc<str>>, CloudError> {
        self.machine.token(self.cloud.manager.as_str(), client).await
    }

    async fn ask(&self, tenant: &str, client: &str, shown: &[(&str, &str)]) -> Result<Lasting<Arc<str>>, CloudError> {
        let scope = format!("{}.default", self.cloud.manager);
        let mut form = vec![
            ("grant_type", "client_credentials"),
            ("client_id", client),
            ("scope", &scope),
        ];
        form.extend_from_slice(shown);
        let url = self.api.url([tenant, "oauth2", "v2.0", "token"]);
        Ok(bearer::ask(&self.api, url, &form).await?)
    }

    fn tenant(&self, tenant: Option<&str>) -> Result<String, CloudError> {
        tenant.map_or_else(|| self.variable("AZURE_TENANT_ID"), |tenant| Ok(tenant.to_owned()))
    }

    fn variable(&self, name: &str) -> Result<String, CloudError> {
        let value = self.environment.get(name);
        value.ok_or_else(|| CloudError::NoVariable(name.to_owned()))
    }
}
