//! `discovery.linode`: discovers the instances of Linode.
//!
//! In: instances, addresses and IPv6 ranges, page by page. Out: a target for each instance with an IPv4 address.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use url::Url;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::api_error::ApiError;
use crate::common::http::client::HttpClientArguments;
use crate::common::http::json_values::{take_list, text, texts};
use crate::common::http::paging::numbered_pages;
use crate::common::http::values::http_url;
use crate::common::http::web_api::WebApi;
use alluvium_lang::attribute::Interval;
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

#[cfg(test)]
mod tests;

/// Base URL of the Linode API.
const API: &str = "https://api.linode.com/v4/";
/// Request header that filters a list.
const FILTER: HeaderName = HeaderName::from_static("x-filter");
/// Labels of a target, each with the JSON path of its value in the instance.
const LABELS: &[(&str, &str)] = &[
    ("gpus", "/specs/gpus"),
    ("group", "/group"),
    ("hypervisor", "/hypervisor"),
    ("image", "/image"),
    ("instance_id", "/id"),
    ("instance_label", "/label"),
    ("region", "/region"),
    ("specs_vcpus", "/specs/vcpus"),
    ("status", "/status"),
    ("type", "/type"),
];
/// Labels with sizes in bytes, each with the JSON path of its value in the instance. The API returns sizes in MiB.
const SIZES: &[(&str, &str)] = &[
    ("specs_disk_bytes", "/specs/disk"),
    ("specs_memory_bytes", "/specs/memory"),
    ("specs_transfer_bytes", "/specs/transfer"),
];

arguments! {
    /// Arguments of `discovery.linode`.
    pub(crate) struct LinodeArguments {
        /// Port in the address of each target.
        port: i64 = 80,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "60s",
        /// Region of the instances. An empty text selects all regions.
        region: Arc<str> = "",
        /// Separator of the items in list labels, such as `__meta_linode_tags`.
        tag_separator: Arc<str> = ",",
    }
    shared { client: HttpClientArguments }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<LinodeArguments> =
    polled::definition::<Linode>("discovery.linode", "`discovery.linode` finds the instances of Linode.");

struct Linode {
    api: WebApi,
    arguments: LinodeArguments,
}

/// The IP addresses of the account with their details, and the IPv6 ranges that are routed to these addresses.
struct Addresses {
    by_address: BTreeMap<String, Value>,
    /// IPv6 ranges by the address that they are routed to.
    ranges: BTreeMap<String, Vec<String>>,
}

impl Discovery for Linode {
    type Arguments = LinodeArguments;

    fn new(arguments: &LinodeArguments, context: &Context) -> Result<Self, ComponentError> {
        let api = http_url(API).map_err(ComponentError::new)?;
        Self::with_url(&api, arguments, context)
    }

    fn interval(&self) -> Duration {
        self.arguments.refresh_interval.get()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let instances = self.all(&["linode", "instances"]).await?;
        let addresses = self.all(&["networking", "ips"]).await?.into_iter();
        let by_address = addresses.filter_map(|own| Some((text(&own, "/address")?.to_owned(), own)));
        let mut addresses = Addresses {
            by_address: by_address.collect(),
            ranges: BTreeMap::new(),
        };
        for range in self.all(&["networking", "ipv6", "ranges"]).await? {
            let (start, prefix) = (text(&range, "/range"), range.get("prefix"));
            if let (Some(route_target), Some(start), Some(prefix)) = (text(&range, "/route_target"), start, prefix) {
                addresses
                    .ranges
                    .entry(route_target.to_owned())
                    .or_default()
                    .push(format!("{start}/{prefix}"));
            }
        }
        Ok(instances
            .iter()
            .filter_map(|instance| self.target(instance, &addresses))
            .collect())
    }
}

impl Linode {
    fn with_url(url: &Url, arguments: &LinodeArguments, context: &Context) -> Result<Self, ComponentError> {
        Ok(Self {
            api: WebApi::new(&arguments.client, &context.user_agent, url)?,
            arguments: arguments.clone(),
        })
    }

    async fn all(&self, path: &[&str]) -> Result<Vec<Value>, DiscoveryError> {
        let mut headers = HeaderMap::new();
        if !self.arguments.region.is_empty() {
            let filter = HeaderValue::try_from(json!({ "region": &*self.arguments.region }).to_string());
            let filter = filter.map_err(|source| ApiError::Header {
                subject: "the region",
                source,
            })?;
            headers.insert(FILTER, filter);
        }
        let headers = &headers;
        let all = numbered_pages(|number| async move {
            let mut url = self.api.url(path.iter().copied());
            url.set_query(Some(&format!("page={number}&page_size=500")));
            let mut answer: Value = self.api.get(url, headers.clone()).await?.json()?;
            let items = take_list(&mut answer, "/data")?;
            let pages = answer
                .get("pages")
                .and_then(Value::as_u64)
                .and_then(|pages| usize::try_from(pages).ok());
            Ok((items, (number < pages.unwrap_or_default()).into()))
        });
        all.await
    }

    fn target(&self, instance: &Value, addresses: &Addresses) -> Option<Target> {
        let own = texts(instance, "/ipv4");
        own.first()?;
        let (mut public, mut private, mut extra) = (None, None, Vec::new());
        for address in own.iter().filter_map(|own| addresses.by_address.get(*own)) {
            let is_public = address.get("public").and_then(Value::as_bool).unwrap_or_default();
            let first = if is_public { &mut public } else { &mut private };
            match first {
                None => *first = Some(address),
                Some(_) => extra.extend(text(address, "/address")),
            }
        }
        let slaac = text(instance, "/ipv6")
            .and_then(|own| own.split('/').next())
            .unwrap_or_default();
        let backups = instance
            .pointer("/backups/enabled")
            .and_then(Value::as_bool)
            .unwrap_or_default();
        let separator = &*self.arguments.tag_separator;
        let mut labels = MetaLabels::new("__meta_linode_");
        labels
            .set_json(instance, LABELS)
            .set("backups", if backups { "enabled" } else { "disabled" })
            .set_list("tags", separator, &texts(instance, "/tags"))
            .set_list("extra_ips", separator, &extra)
            .set_list(
                "ipv6_ranges",
                separator,
                addresses.ranges.get(slaac).map_or(&[], Vec::as_slice),
            );
        for (name, path) in SIZES {
            let size = instance.pointer(path).and_then(Value::as_u64);
            labels.set_some(name, size.and_then(|size| size.checked_mul(1 << 20)));
        }
        let public_ipv6 = addresses.by_address.get(slaac);
        for (name, address) in [
            ("private_ipv4", private),
            ("public_ipv4", public),
            ("public_ipv6", public_ipv6),
        ] {
            let Some(address) = address else { continue };
            labels.set_some(name, text(address, "/address"));
            labels.set_some(
                &format!("{name}_rdns"),
                text(address, "/rdns").filter(|rdns| *rdns != "null"),
            );
        }
        let address = public.and_then(|own| text(own, "/address")).unwrap_or_default();
        Some(labels.with_address(host_port(address, self.arguments.port)))
    }
}
