//! `discovery.eureka`: discovers the instances of a Eureka registry.
//!
//! In: the registry's list of applications, as XML. Out: a target for each instance.

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::client::HttpClientArguments;
use crate::common::http::values::HttpUrl;
use crate::common::http::web_api::WebApi;
use alluvium_lang::attribute::Interval;
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

#[cfg(test)]
mod tests;

/// Port of an instance that is registered without a port.
const DEFAULT_PORT: i64 = 80;

arguments! {
    /// Arguments of `discovery.eureka`.
    pub(crate) struct EurekaArguments {
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "30s",
        /// URL of the Eureka registry.
        server: HttpUrl,
    }
    shared { client: HttpClientArguments }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<EurekaArguments> = polled::definition::<Eureka>(
    "discovery.eureka",
    "`discovery.eureka` finds the instances of a Eureka registry.",
);

struct Eureka {
    api: WebApi,
    interval: Duration,
}

#[derive(Deserialize)]
struct Applications {
    #[serde(default)]
    application: Vec<Application>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Application {
    name: String,
    instance: Vec<Instance>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Instance {
    host_name: String,
    home_page_url: String,
    status_page_url: String,
    health_check_url: String,
    ip_addr: String,
    vip_address: String,
    secure_vip_address: String,
    status: String,
    port: Option<Port>,
    secure_port: Option<Port>,
    data_center_info: Option<DataCenter>,
    metadata: Metadata,
    country_id: i64,
    instance_id: String,
}

#[derive(Deserialize)]
struct Port {
    #[serde(rename = "$text")]
    number: i64,
    #[serde(rename = "@enabled", default)]
    enabled: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct DataCenter {
    name: String,
    metadata: Metadata,
}

/// The content of an XML element: the text of each child element by its name, and the value of each attribute by its
/// name with a leading `@`.
type Metadata = BTreeMap<String, String>;

impl Discovery for Eureka {
    type Arguments = EurekaArguments;

    fn new(arguments: &EurekaArguments, context: &Context) -> Result<Self, ComponentError> {
        Ok(Self {
            api: WebApi::new(&arguments.client, &context.user_agent, arguments.server.url())?,
            interval: arguments.refresh_interval.get(),
        })
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        // Request XML explicitly: a registry can also send JSON, which has another structure.
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/xml"))]);
        let all: Applications = self.api.get(self.api.url(["apps"]), headers).await?.xml()?;
        let of_application = |app: &Application| -> Vec<Target> {
            app.instance.iter().map(|instance| instance.target(&app.name)).collect()
        };
        Ok(all.application.iter().flat_map(of_application).collect())
    }
}

impl Instance {
    fn target(&self, application: &str) -> Target {
        let center = self.data_center_info.as_ref();
        let mut labels = MetaLabels::new("__meta_eureka_app_");
        labels
            .set("name", application)
            .set("instance_hostname", &self.host_name)
            .set("instance_homepage_url", &self.home_page_url)
            .set("instance_statuspage_url", &self.status_page_url)
            .set("instance_healthcheck_url", &self.health_check_url)
            .set("instance_ip_addr", &self.ip_addr)
            .set("instance_vip_address", &self.vip_address)
            .set("instance_secure_vip_address", &self.secure_vip_address)
            .set("instance_status", &self.status)
            .set("instance_country_id", self.country_id)
            .set("instance_id", &self.instance_id)
            .set_some("instance_port", self.port.as_ref().map(|port| port.number))
            .set_some("instance_port_enabled", self.port.as_ref().map(|port| port.enabled))
            .set_some(
                "instance_secure_port",
                self.secure_port.as_ref().map(|port| port.number),
            )
            .set_some(
                "instance_secure_port_enabled",
                self.secure_port.as_ref().map(|port| port.enabled),
            )
            .set_some("instance_datacenterinfo_name", center.map(|center| &center.name))
            .set_each(
                "instance_datacenterinfo_metadata_",
                center.into_iter().flat_map(|center| elements(&center.metadata)),
            )
            .set_each("instance_metadata_", elements(&self.metadata));
        let port = self.port.as_ref().map_or(DEFAULT_PORT, |port| port.number);
        let mut target = labels.with_address(host_port(&self.host_name, port));
        target.insert("instance".into(), self.instance_id.as_str().into());
        target
    }
}

fn elements(metadata: &Metadata) -> impl Iterator<Item = (&String, &String)> {
    metadata.iter().filter(|(name, _)| !name.starts_with('@'))
}
