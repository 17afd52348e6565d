//! `discovery.kuma`: discovers the proxies of a Kuma control plane through its monitoring assignment service.
//!
//! In: xDS v3 as JSON over HTTP. Each request names the last known version. The control plane answers when it has
//! another version. If nothing changes, it answers after `fetch_timeout`. Out: a target for each proxy.

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, StatusCode};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::MetaLabels;
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::client::HttpClientArguments;
use crate::common::http::values::HttpUrl;
use crate::common::http::web_api::WebApi;
use alluvium_base::net::hostname;
use alluvium_lang::attribute::Interval;
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

#[cfg(test)]
mod tests;

/// The type of the requested resources.
const ASSIGNMENT: &str = "type.googleapis.com/kuma.observability.v1.MonitoringAssignment";
/// Time that a request may take in addition to `fetch_timeout`.
const SLACK: Duration = Duration::from_secs(15);

arguments! {
    /// Arguments of `discovery.kuma`.
    pub(crate) struct KumaArguments {
        /// Maximum time that the control plane waits for a change before it answers.
        fetch_timeout: Interval = "2m",
        /// Time from a response to the next request.
        refresh_interval: Interval = "30s",
        /// URL of the control plane's monitoring assignment server.
        server: HttpUrl,
    }
    shared { client: HttpClientArguments }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<KumaArguments> = polled::definition::<Kuma>(
    "discovery.kuma",
    "`discovery.kuma` finds the proxies of a Kuma control plane.",
);

struct Kuma {
    api: WebApi,
    url: Url,
    interval: Duration,
    last: Mutex<Known>,
}

/// The last response of the control plane that had a new version.
#[derive(Clone, Default)]
struct Known {
    version: String,
    nonce: String,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered {
    #[serde(default)]
    version_info: String,
    #[serde(default)]
    nonce: String,
    type_url: String,
    #[serde(default)]
    resources: Vec<Assignment>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Assignment {
    mesh: String,
    service: String,
    labels: BTreeMap<String, String>,
    targets: Vec<Proxy>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Proxy {
    name: String,
    scheme: String,
    address: String,
    metrics_path: String,
    labels: BTreeMap<String, String>,
}

impl Discovery for Kuma {
    type Arguments = KumaArguments;

    fn new(arguments: &KumaArguments, context: &Context) -> Result<Self, ComponentError> {
        let wait = arguments.fetch_timeout.get();
        let api = WebApi::new(&arguments.client, &context.user_agent, arguments.server.url())?;
        let mut url = api.url(["v3", "discovery:monitoringassignments"]);
        let wait_text = format!("{}ms", wait.as_millis());
        url.query_pairs_mut().append_pair("fetch-timeout", &wait_text);
        Ok(Self {
            api: api.with_timeout(wait.saturating_add(SLACK)),
            url,
            interval: arguments.refresh_interval.get(),
            last: Mutex::default(),
        })
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let Known {
            version,
            nonce,
            targets,
        } = self.last.lock().clone();
        let question = json!({
            "version_info": version,
            "response_nonce": nonce,
            "type_url": ASSIGNMENT,
            "resource_names": [],
            "node": {"id": hostname()},
        });
        let request = self.api.request(Method::POST, self.url.clone());
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json");
        let answer = self.api.send(request.body(question.to_string())).await?;
        if answer.status == StatusCode::NOT_MODIFIED {
            return Ok(targets);
        }
        let discovered: Discovered = answer.json()?;
        if discovered.type_url != ASSIGNMENT {
            let (url, type_url) = (&answer.url, &discovered.type_url);
            let message = format!("{url} answered with `{type_url}`, not {ASSIGNMENT}");
            return Err(DiscoveryError::Response(message));
        }
        let targets: Vec<Target> = discovered.resources.iter().flat_map(Assignment::targets).collect();
        *self.last.lock() = Known {
            version: discovered.version_info,
            nonce: discovered.nonce,
            targets: targets.clone(),
        };
        Ok(targets)
    }
}

impl Assignment {
    fn targets(&self) -> impl Iterator<Item = Target> {
        self.targets.iter().map(|proxy| {
            let mut labels = MetaLabels::new("__meta_kuma_");
            labels
                .set_each("label_", &proxy.labels)
                .set_each("label_", &self.labels)
                .set("mesh", &self.mesh)
                .set("service", &self.service)
                .set("dataplane", &proxy.name);
            let mut target = labels.with_address(&*proxy.address);
            for (name, value) in [
                ("instance", &proxy.name),
                ("__scheme__", &proxy.scheme),
                ("__metrics_path__", &proxy.metrics_path),
            ] {
                target.insert(name.into(), value.as_str().into());
            }
            target
        })
    }
}
