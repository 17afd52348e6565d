//! `discovery.ovhcloud`: discovers the dedicated servers or the virtual private servers of OVHcloud.
//!
//! In: the names of all servers, and the details and addresses of each server, from signed requests. Out: a target for
//! each server that has an address. `__address__` has no port.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use ring::digest;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::OnceCell;
use url::Url;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::MetaLabels;
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::api_error::ApiError;
use crate::common::http::json_values::{text, texts};
use crate::common::http::paging::ask_each;
use crate::common::http::values::http_url;
use crate::common::http::web_api::WebApi;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, Interval, NotEmpty, Secret, choices, wrong};
use alluvium_lang::body::arguments;
use alluvium_lang::schema::Kind;
use alluvium_lang::value;
use alluvium_pipeline::component::{ComponentError, Context, Definition};
use alluvium_wire::client::{ClientOptions, ProxyOptions};

#[cfg(test)]
mod tests;

/// Maximum number of servers that are read concurrently.
const AT_ONCE: usize = 8;
/// OVHcloud's APIs: the name of each API in the configuration, and its base URL.
const ENDPOINTS: &[(&str, &str)] = &[
    ("ovh-eu", "https://eu.api.ovh.com/1.0"),
    ("ovh-ca", "https://ca.api.ovh.com/1.0"),
    ("ovh-us", "https://api.us.ovhcloud.com/1.0"),
    ("kimsufi-eu", "https://eu.api.kimsufi.com/1.0"),
    ("kimsufi-ca", "https://ca.api.kimsufi.com/1.0"),
    ("soyoustart-eu", "https://eu.api.soyoustart.com/1.0"),
    ("soyoustart-ca", "https://ca.api.soyoustart.com/1.0"),
];
/// Labels of a target, each with the JSON path of its value in the dedicated server.
const DEDICATED_LABELS: &[(&str, &str)] = &[
    ("commercial_range", "/commercialRange"),
    ("datacenter", "/datacenter"),
    ("link_speed", "/linkSpeed"),
    ("name", "/name"),
    ("no_intervention", "/noIntervention"),
    ("os", "/os"),
    ("rack", "/rack"),
    ("reverse", "/reverse"),
    ("server_id", "/serverId"),
    ("state", "/state"),
    ("support_level", "/supportLevel"),
];
/// Labels of a target, each with the JSON path of its value in the virtual private server.
const VPS_LABELS: &[(&str, &str)] = &[
    ("cluster", "/cluster"),
    ("disk", "/model/disk"),
    ("display_name", "/displayName"),
    ("maximum_additional_ip", "/model/maximumAdditionnalIp"),
    ("memory", "/model/memory"),
    ("memory_limit", "/memoryLimit"),
    ("model_name", "/model/name"),
    ("model_vcore", "/model/vcore"),
    ("name", "/name"),
    ("netboot_mode", "/netbootMode"),
    ("offer", "/model/offer"),
    ("offer_type", "/offerType"),
    ("state", "/state"),
    ("vcore", "/vcore"),
    ("version", "/model/version"),
    ("zone", "/zone"),
];

arguments! {
    /// Arguments of `discovery.ovhcloud`.
    pub(crate) struct OvhcloudArguments {
        /// Application key for the API.
        application_key: NotEmpty<Arc<str>>,
        /// Application secret for the API.
        application_secret: NotEmpty<Secret>,
        /// Consumer key for the API.
        consumer_key: NotEmpty<Secret>,
        /// Endpoint of the API: `ovh-eu`, `ovh-ca`, `ovh-us`, `kimsufi-eu`, `kimsufi-ca`, `soyoustart-eu`,
        /// `soyoustart-ca`, or a URL.
        endpoint: Endpoint = "ovh-eu",
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "60s",
        /// Kind of targets to discover: `dedicated_server` or `vps`.
        service: Service,
    }
}

choices! {
    /// The kind of OVHcloud server to discover.
    pub(crate) enum Service {
        DedicatedServer = "dedicated_server",
        Vps = "vps",
    }
}

/// Base URL of the OVHcloud API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint(Url);

impl FromValue for Endpoint {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &value::Value) -> Result<Self, ArgumentError> {
        let text = Arc::<str>::from_value(name, value)?;
        let endpoint = ENDPOINTS.iter().find(|(name, _)| **name == *text);
        let url = endpoint.map_or(&*text, |(_, url)| url);
        let names: Vec<&str> = ENDPOINTS.iter().map(|(name, _)| *name).collect();
        let unknown = |_| {
            wrong(format!(
                "unknown {name} \"{text}\": must be a URL or one of {}",
                names.join(", ")
            ))
        };
        http_url(url).map(Self).map_err(unknown)
    }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<OvhcloudArguments> = polled::definition::<Ovhcloud>(
    "discovery.ovhcloud",
    "`discovery.ovhcloud` finds the dedicated servers or the virtual private servers of OVHcloud.",
);

struct Ovhcloud {
    api: WebApi,
    /// Seconds by which the API's clock is ahead of the local clock. Signatures include the time of the API.
    ahead: OnceCell<i64>,
    arguments: OvhcloudArguments,
}

impl Discovery for Ovhcloud {
    type Arguments = OvhcloudArguments;

    fn new(arguments: &OvhcloudArguments, context: &Context) -> Result<Self, ComponentError> {
        let options = ClientOptions {
            proxy: ProxyOptions {
                from_environment: true,
                ..ProxyOptions::default()
            },
            ..ClientOptions::new(context.user_agent.clone())
        };
        Ok(Self {
            api: WebApi::with_options(&options, &arguments.endpoint.0)?,
            ahead: OnceCell::new(),
            arguments: arguments.clone(),
        })
    }

    fn interval(&self) -> Duration {
        self.arguments.refresh_interval.get()
    }

    /// Lists the servers. Skips a server that cannot be read. Returns an error if the list cannot be read, or if every
    /// server in it was skipped.
    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let names: Vec<String> = self.ask(&self.path()).await?;
        let target = |name: String| async move { Ok::<_, DiscoveryError>(self.target(&name).await) };
        let (mut targets, mut failures) = (Vec::new(), Vec::new());
        for target in ask_each(names, AT_ONCE, target).await? {
            match target {
                Ok(target) => targets.push(target),
                Err(error) => failures.push(error),
            }
        }
        for error in &failures {
            tracing::warn!(error = error.to_string(), "skipped a server of OVHcloud");
        }
        match failures.pop() {
            Some(error) if targets.is_empty() => Err(error),
            _ => Ok(targets),
        }
    }
}

impl Ovhcloud {
    fn path(&self) -> Vec<&str> {
        match self.arguments.service {
            Service::DedicatedServer => vec!["dedicated", "server"],
            Service::Vps => vec!["vps"],
        }
    }

    async fn target(&self, name: &str) -> Result<Target, DiscoveryError> {
        let mut path = self.path();
        path.push(name);
        let server: Value = self.ask(&path).await?;
        path.push("ips");
        let (ipv4, ipv6) = addresses(&self.ask::<Vec<String>>(&path).await?);
        let address = ipv4.as_ref().or(ipv6.as_ref());
        let address = address.ok_or_else(|| DiscoveryError::Response(format!("the server {name} has no address")))?;
        let address = address.clone();
        let mut labels = match self.arguments.service {
            Service::DedicatedServer => {
                let mut labels = MetaLabels::new("__meta_ovhcloud_dedicated_server_");
                labels.set_json(&server, DEDICATED_LABELS);
                labels
            }
            Service::Vps => {
                let mut labels = MetaLabels::new("__meta_ovhcloud_vps_");
                // The label has the form in which Go prints a list.
                let centers = format!("[{}]", texts(&server, "/model/datacenter").join(" "));
                labels.set_json(&server, VPS_LABELS).set("datacenter", centers);
                labels
            }
        };
        labels.set_some("ipv4", ipv4).set_some("ipv6", ipv6);
        let mut target = labels.with_address(address);
        target.insert("instance".into(), text(&server, "/name").unwrap_or(name).into());
        Ok(target)
    }

    async fn ask<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, DiscoveryError> {
        let url = self.api.url(path.iter().copied());
        let headers = self.signed(&url).await?;
        Ok(self.api.get(url, headers).await?.json()?)
    }

    /// Returns the headers of a GET: the application and consumer keys, the time, and the signature.
    async fn signed(&self, url: &Url) -> Result<HeaderMap, ApiError> {
        let ask = || async {
            let server_time: i64 = self.api.json(self.api.url(["auth", "time"])).await?;
            Ok::<i64, ApiError>(server_time - Utc::now().timestamp())
        };
        let now = (Utc::now().timestamp() + self.ahead.get_or_try_init(ask).await?).to_string();
        let secret = self.arguments.application_secret.0.without_line_break();
        let consumer = self.arguments.consumer_key.0.without_line_break();
        // The key may also be the content of a file.
        let application = self.arguments.application_key.0.trim_end_matches(['\r', '\n']);
        let text = format!("{secret}+{consumer}+{}+{url}++{now}", Method::GET);
        let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
        let signature = digest.as_ref().iter().fold("$1$".to_owned(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let mut headers = HeaderMap::new();
        for (name, text) in [
            ("x-ovh-application", application),
            ("x-ovh-consumer", consumer),
            ("x-ovh-timestamp", &now),
            ("x-ovh-signature", &signature),
        ] {
            let value = HeaderValue::from_str(text);
            let mut value = value.map_err(|source| ApiError::Header {
                subject: "an OVHcloud key",
                source,
            })?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(headers)
    }
}

/// Returns the last IPv4 and the last IPv6 address. Skips networks, except networks of a single address (`/32`).
fn addresses(texts: &[String]) -> (Option<String>, Option<String>) {
    let (mut ipv4, mut ipv6) = (None, None);
    for text in texts {
        let address = text.strip_suffix("/32").unwrap_or(text);
        match address.parse::<IpAddr>() {
            Ok(address) if address.is_unspecified() => {}
            Ok(IpAddr::V4(address)) => ipv4 = Some(address.to_string()),
            Ok(IpAddr::V6(address)) => ipv6 = Some(address.to_string()),
            Err(_) => {}
        }
    }
    (ipv4, ipv6)
}
