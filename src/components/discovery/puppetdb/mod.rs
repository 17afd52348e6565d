//! `discovery.puppetdb`: discovers the resources in a PuppetDB.
//!
//! In: the response to a query, a list of resources. Out: a target for each resource.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port, label_name};
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::client::HttpClientArguments;
use crate::common::http::values::HttpUrl;
use crate::common::http::web_api::WebApi;
use crate::common::serving::server::Port;
use alluvium_lang::attribute::Interval;
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

#[cfg(test)]
mod tests;

arguments! {
    /// Arguments of `discovery.puppetdb`.
    pub(crate) struct PuppetDbArguments {
        /// If true, the parameters of a resource become labels. Parameters may contain secrets.
        include_parameters: bool = false,
        /// Port in the address of each target.
        port: Port = 80,
        /// Query in the Puppet Query Language (PQL).
        query: Arc<str>,
        /// Time between two refreshes of the targets, and the timeout of a request.
        refresh_interval: Interval = "60s",
        /// URL of the PuppetDB server.
        url: HttpUrl,
    }
    shared { client: HttpClientArguments }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<PuppetDbArguments> = polled::definition::<PuppetDb>(
    "discovery.puppetdb",
    "`discovery.puppetdb` finds the resources of a PuppetDB.",
);

struct PuppetDb {
    api: WebApi,
    arguments: PuppetDbArguments,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Resource {
    certname: String,
    resource: String,
    #[serde(rename = "type")]
    kind: String,
    title: String,
    exported: bool,
    tags: Option<Vec<String>>,
    file: Option<String>,
    environment: Option<String>,
    parameters: Option<Map<String, Value>>,
}

impl Discovery for PuppetDb {
    type Arguments = PuppetDbArguments;

    fn new(arguments: &PuppetDbArguments, context: &Context) -> Result<Self, ComponentError> {
        let api = WebApi::new(&arguments.client, &context.user_agent, arguments.url.url())?;
        Ok(Self {
            api: api.with_timeout(arguments.refresh_interval.get()),
            arguments: arguments.clone(),
        })
    }

    fn interval(&self) -> Duration {
        self.arguments.refresh_interval.get()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let url = self.api.url(["pdb", "query", "v4"]);
        let query = json!({"query": &*self.arguments.query});
        let request = self
            .api
            .request(Method::POST, url)
            .header(CONTENT_TYPE, "application/json");
        let request = request.header(ACCEPT, "application/json").body(query.to_string());
        let resources: Vec<Resource> = self.api.send(request).await?.json()?;
        Ok(resources.iter().map(|resource| self.target(resource)).collect())
    }
}

impl PuppetDb {
    fn target(&self, resource: &Resource) -> Target {
        let mut labels = MetaLabels::new("__meta_puppetdb_");
        labels
            .set("query", &self.arguments.query)
            .set("certname", &resource.certname)
            .set("resource", &resource.resource)
            .set("type", &resource.kind)
            .set("title", &resource.title)
            .set("exported", resource.exported)
            .set("file", resource.file.as_deref().unwrap_or_default())
            .set("environment", resource.environment.as_deref().unwrap_or_default())
            .set_list("tags", ",", resource.tags.as_deref().unwrap_or_default());
        if self.arguments.include_parameters {
            add_parameters("parameter_", resource.parameters.iter().flatten(), &mut labels);
        }
        labels.with_address(host_port(&resource.certname, self.arguments.port.0))
    }
}

/// Sets a label for each parameter. Joins the names of nested parameters by `_`. The JSON parser limits the nesting,
/// and thereby the depth of the recursion.
fn add_parameters<'a>(
    prefix: &str,
    parameters: impl Iterator<Item = (&'a String, &'a Value)>,
    labels: &mut MetaLabels,
) {
    for (name, value) in parameters {
        let name = format!("{prefix}{}", label_name(name));
        match value {
            Value::Object(inner) => add_parameters(&format!("{name}_"), inner.iter(), labels),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| text(item).unwrap_or_default()).collect();
                labels.set_some(&name, Some(items.join(",")).filter(|text| !text.is_empty()));
            }
            value => {
                labels.set_some(&name, text(value).filter(|text| !text.is_empty()));
            }
        }
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
