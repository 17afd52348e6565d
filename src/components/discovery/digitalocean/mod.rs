//! `discovery.digitalocean`: discovers the droplets of DigitalOcean.
//!
//! In: the pages of `/v2/droplets`. Out: a target for each droplet with an IPv4 address.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use url::Url;

use crate::common::arguments::checks;
use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::api_error::ApiError;
use crate::common::http::client::{HttpClientArguments, Transport};
use crate::common::http::json_values::{list, take_list, text, texts};
use crate::common::http::paging::numbered_pages;
use crate::common::http::values::{check_header_secret, http_url};
use crate::common::http::web_api::WebApi;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{Interval, Secret};
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

#[cfg(test)]
mod tests;

/// Base URL of DigitalOcean's API.
const API: &str = "https://api.digitalocean.com/";
/// Labels of a droplet, each with the JSON path of its value.
const LABELS: &[(&str, &str)] = &[
    ("droplet_id", "/id"),
    ("droplet_name", "/name"),
    ("image", "/image/slug"),
    ("image_name", "/image/name"),
    ("region", "/region/slug"),
    ("size", "/size_slug"),
    ("status", "/status"),
    ("vpc", "/vpc_uuid"),
];

arguments! {
    /// Arguments of `discovery.digitalocean`.
    pub(crate) struct DigitalOceanArguments {
        /// Bearer token to send with every request.
        bearer_token: Option<Secret>,
        /// File that contains the bearer token. It is read for every request.
        bearer_token_file: Option<PathBuf>,
        /// Port in the address of each target.
        port: i64 = 80,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "1m",
    }
    shared { transport: Transport }
    check DigitalOceanArguments::check;
}

impl DigitalOceanArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        check_header_secret("bearer_token", self.bearer_token.as_ref())?;
        checks::exactly_one(&[
            ("bearer_token", self.bearer_token.is_some()),
            ("bearer_token_file", self.bearer_token_file.is_some()),
        ])
    }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<DigitalOceanArguments> = polled::definition::<DigitalOcean>(
    "discovery.digitalocean",
    "`discovery.digitalocean` finds the droplets of DigitalOcean.",
);

struct DigitalOcean {
    api: WebApi,
    port: i64,
    interval: Duration,
}

impl Discovery for DigitalOcean {
    type Arguments = DigitalOceanArguments;

    fn new(arguments: &DigitalOceanArguments, context: &Context) -> Result<Self, ComponentError> {
        let api = http_url(API).map_err(ComponentError::new)?;
        Self::with_url(&api, arguments, context)
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let droplets = numbered_pages(|number| async move {
            let mut url = self.api.url(["v2", "droplets"]);
            // 200 is the maximum that the API allows.
            url.set_query(Some(&format!("page={number}&per_page=200")));
            let mut answer: Value = self.api.json(url).await?;
            let droplets = take_list(&mut answer, "/droplets")?;
            Ok::<_, ApiError>((droplets, text(&answer, "/links/pages/next").is_some().into()))
        });
        Ok(droplets
            .await?
            .iter()
            .filter_map(|droplet| self.target(droplet))
            .collect())
    }
}

impl DigitalOcean {
    fn with_url(url: &Url, arguments: &DigitalOceanArguments, context: &Context) -> Result<Self, ComponentError> {
        let client = HttpClientArguments {
            bearer_token: arguments.bearer_token.clone(),
            bearer_token_file: arguments.bearer_token_file.clone(),
            ..HttpClientArguments::with_transport(&arguments.transport)
        };
        Ok(Self {
            api: WebApi::new(&client, &context.user_agent, url)?,
            port: arguments.port,
            interval: arguments.refresh_interval.get(),
        })
    }

    fn target(&self, droplet: &Value) -> Option<Target> {
        let of_kind = |path: &str, kind: &str| -> Option<String> {
            let addresses = list(droplet, path)
                .iter()
                .find(|network| text(network, "/type") == Some(kind));
            addresses
                .and_then(|network| text(network, "/ip_address"))
                .map(str::to_owned)
        };
        list(droplet, "/networks/v4").first()?;
        let public = of_kind("/networks/v4", "public");
        let mut labels = MetaLabels::new("__meta_digitalocean_");
        labels
            .set_json(droplet, LABELS)
            .set_some("private_ipv4", of_kind("/networks/v4", "private"))
            .set_some("public_ipv4", public.as_ref())
            .set_some("public_ipv6", of_kind("/networks/v6", "public"))
            .set_list("features", ",", &texts(droplet, "/features"))
            .set_list("tags", ",", &texts(droplet, "/tags"));
        Some(labels.with_address(host_port(public.as_deref().unwrap_or_default(), self.port)))
    }
}
