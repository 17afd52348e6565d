//! `discovery.uyuni`: discovers the systems that a Uyuni server monitors.
//!
//! In: the responses to three XML-RPC calls, made in a session of ten minutes. Out: a target for each endpoint of each
//! system.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::Method;
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::common::arguments::targets::Target;
use crate::common::clouds::expiring::{Expiring, Lasting};
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::client::{TlsArguments, Transport};
use crate::common::http::values::HttpUrl;
use crate::common::http::web_api::WebApi;
use alluvium_lang::attribute::{Interval, Secret};
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

#[cfg(test)]
mod tests;
mod xml_rpc;

/// Lifetime that a login requests for its session.
const SESSION: Duration = Duration::from_mins(10);

arguments! {
    /// Arguments of `discovery.uyuni`.
    pub(crate) struct UyuniArguments {
        /// Entitlement that a system must have.
        entitlement: Arc<str> = "monitoring_entitled",
        /// Password to log in with.
        password: Secret,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "1m",
        /// Separator of the groups in the label `__meta_uyuni_groups`.
        separator: Arc<str> = ",",
        /// URL of the Uyuni server.
        server: HttpUrl,
        /// User name to log in with.
        username: Arc<str>,
    }
    blocks {
        /// TLS settings of connections to the server.
        tls_config: Option<TlsArguments>,
    }
    shared { transport: Transport }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<UyuniArguments> = polled::definition::<Uyuni>(
    "discovery.uyuni",
    "`discovery.uyuni` finds the systems that a Uyuni server monitors.",
);

struct Uyuni {
    api: WebApi,
    arguments: UyuniArguments,
    session: Expiring<String>,
}

#[derive(Deserialize)]
struct System {
    id: i64,
    #[serde(default)]
    system_groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Endpoint {
    system_id: i64,
    endpoint_name: String,
    port: i64,
    path: String,
    module: String,
    exporter_name: String,
    tls_enabled: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Network {
    system_id: i64,
    hostname: String,
    primary_fqdn: String,
}

impl Discovery for Uyuni {
    type Arguments = UyuniArguments;

    fn new(arguments: &UyuniArguments, context: &Context) -> Result<Self, ComponentError> {
        let client = arguments
            .transport
            .options(&context.user_agent, arguments.tls_config.as_ref());
        Ok(Self {
            api: WebApi::with_options(&client, arguments.server.url())?,
            arguments: arguments.clone(),
            session: Expiring::default(),
        })
    }

    fn interval(&self) -> Duration {
        self.arguments.refresh_interval.get()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let session = self.session.get(self.log_in()).await?;
        let listed = self.list(&session).await;
        if listed.is_err() {
            // The server may have ended the session.
            self.session.forget().await;
        }
        listed
    }
}

impl Uyuni {
    async fn log_in(&self) -> Result<Lasting<String>, DiscoveryError> {
        let ends = SystemTime::now() + SESSION;
        let user = json!(&*self.arguments.username);
        let parameters = [user, json!(&*self.arguments.password.0), json!(SESSION.as_secs())];
        Ok(Lasting {
            value: self.call("auth.login", &parameters).await?,
            ends: Some(ends),
        })
    }

    async fn list(&self, session: &str) -> Result<Vec<Target>, DiscoveryError> {
        let session = json!(session);
        let entitlement = json!(&*self.arguments.entitlement);
        let method = "system.listSystemGroupsForSystemsWithEntitlement";
        let systems: Vec<System> = self.call(method, &[session.clone(), entitlement]).await?;
        let groups: BTreeMap<i64, &Vec<Group>> = systems.iter().map(|one| (one.id, &one.system_groups)).collect();
        let of_systems = [session, json!(groups.keys().collect::<Vec<_>>())];
        let endpoints: Vec<Endpoint> = self.call("system.monitoring.listEndpoints", &of_systems).await?;
        let networks: Vec<Network> = self.call("system.getNetworkForSystems", &of_systems).await?;
        let networks: BTreeMap<i64, &Network> = networks.iter().map(|network| (network.system_id, network)).collect();
        let no_network = Network::default();
        let target = |endpoint: &Endpoint| {
            let groups = groups
                .get(&endpoint.system_id)
                .into_iter()
                .flat_map(|groups| groups.iter());
            let groups: Vec<&str> = groups.map(|group| &*group.name).collect();
            let network = networks.get(&endpoint.system_id).copied().unwrap_or(&no_network);
            endpoint.target(network, &groups.join(&self.arguments.separator))
        };
        Ok(endpoints.iter().map(target).collect())
    }

    async fn call<T: DeserializeOwned>(&self, method: &str, parameters: &[Value]) -> Result<T, DiscoveryError> {
        let request = self.api.request(Method::POST, self.api.url(["rpc", "api"]));
        let request = request
            .header(CONTENT_TYPE, "text/xml")
            .body(xml_rpc::request(method, parameters));
        let answer = self.api.send(request).await?;
        let failed = format!("{method} at {} failed", answer.url);
        let value = xml_rpc::response(&answer.body).map_err(|error| DiscoveryError::Malformed {
            description: failed.clone(),
            source: error.into(),
        })?;
        serde_json::from_value(value).map_err(|error| DiscoveryError::Malformed {
            description: format!("{failed}: unexpected response"),
            source: error.into(),
        })
    }
}

impl Endpoint {
    fn target(&self, network: &Network, groups: &str) -> Target {
        let scheme = if self.tls_enabled { "https" } else { "http" };
        let mut labels = MetaLabels::new("__meta_uyuni_");
        labels
            .set("minion_hostname", &network.hostname)
            .set("primary_fqdn", &network.primary_fqdn)
            .set("system_id", self.system_id)
            .set("groups", groups)
            .set("endpoint_name", &self.endpoint_name)
            .set("exporter", &self.exporter_name)
            .set("proxy_module", &self.module)
            .set("metrics_path", &self.path)
            .set("scheme", scheme);
        labels.with_address(host_port(&network.hostname, self.port))
    }
}
