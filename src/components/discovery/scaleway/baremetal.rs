//! The role `baremetal` of `discovery.scaleway`: lists bare metal servers.

use serde_json::Value;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::http::json_values::{list, text, texts};
use crate::discovery::scaleway::arguments::ScalewayArguments;
use crate::discovery::scaleway::lists::Lists;

/// Labels of a target, each with the JSON path of its value in the server.
const LABELS: &[(&str, &str)] = &[
    ("id", "/id"),
    ("name", "/name"),
    ("project_id", "/project_id"),
    ("status", "/status"),
    ("zone", "/zone"),
];

/// Returns a target for each server that has an address. IPv4 takes precedence over IPv6.
pub(super) async fn targets(lists: &Lists<'_>, arguments: &ScalewayArguments) -> Result<Vec<Target>, DiscoveryError> {
    let mut query = vec![("project_id", &*arguments.project_id.0)];
    query.extend(arguments.name_filter.as_deref().map(|name| ("name", name)));
    query.extend(arguments.tags_filter.iter().flatten().map(|tag| ("tags", &**tag)));
    let zone = &*arguments.zone.0;
    let all = async |resource: &str, query: &[(&str, &str)], field: &str| {
        lists
            .all(&["baremetal", "v1", "zones", zone, resource], query, "page_size", field)
            .await
    };
    let servers = all("servers", &query, "/servers").await?;
    let (offers, systems) = (all("offers", &[], "/offers").await?, all("os", &[], "/os").await?);
    let target = |server: &Value| target(server, &offers, &systems, arguments.port);
    Ok(servers.iter().filter_map(target).collect())
}

fn target(server: &Value, offers: &[Value], systems: &[Value], port: i64) -> Option<Target> {
    let by_id = |all: &[Value], path: &str| -> Option<Value> {
        let id = text(server, path)?;
        all.iter().find(|own| text(own, "/id") == Some(id)).cloned()
    };
    let of_version = |version: &str| {
        let own = list(server, "/ips")
            .iter()
            .find(|own| text(own, "/version") == Some(version));
        own.and_then(|own| text(own, "/address"))
    };
    let (ipv4, ipv6) = (of_version("IPv4"), of_version("IPv6"));
    let mut labels = MetaLabels::new("__meta_scaleway_baremetal_");
    labels
        .set_json(server, LABELS)
        .set_some("public_ipv4", ipv4)
        .set_some("public_ipv6", ipv6)
        .set_list("tags", ",", &texts(server, "/tags"));
    if let Some(offer) = by_id(offers, "/offer_id") {
        labels.set_json(&offer, &[("type", "/name")]);
    }
    if let Some(system) = by_id(systems, "/install/os_id") {
        labels.set_json(&system, &[("os_name", "/name"), ("os_version", "/version")]);
    }
    Some(labels.with_address(host_port(ipv4.or(ipv6)?, port)))
}
