//! The role `instance` of `discovery.scaleway`: lists instances.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::http::json_values::{list, text, texts};
use crate::discovery::scaleway::arguments::ScalewayArguments;
use crate::discovery::scaleway::lists::Lists;

/// Labels of a target, each with the JSON path of its value in the instance.
const LABELS: &[(&str, &str)] = &[
    ("boot_type", "/boot_type"),
    ("hostname", "/hostname"),
    ("id", "/id"),
    ("image_arch", "/image/arch"),
    ("image_id", "/image/id"),
    ("image_name", "/image/name"),
    ("location_cluster_id", "/location/cluster_id"),
    ("location_hypervisor_id", "/location/hypervisor_id"),
    ("location_node_id", "/location/node_id"),
    ("name", "/name"),
    ("organization_id", "/organization"),
    ("project_id", "/project"),
    ("public_ipv6", "/ipv6/address"),
    ("security_group_id", "/security_group/id"),
    ("security_group_name", "/security_group/name"),
    ("status", "/state"),
    ("type", "/commercial_type"),
    ("zone", "/zone"),
];
/// Maximum number of network interfaces in one request, so that their IDs fit into the URL.
const BATCH: usize = 50;

/// Returns a target for each instance that has an address. The private address takes precedence over public addresses,
/// and IPv4 over IPv6.
pub(super) async fn targets(lists: &Lists<'_>, arguments: &ScalewayArguments) -> Result<Vec<Target>, DiscoveryError> {
    let tags = arguments.tags_filter.as_deref().unwrap_or_default().join(",");
    let mut query = vec![("project", &*arguments.project_id.0)];
    query.extend(arguments.name_filter.as_deref().map(|name| ("name", name)));
    if !tags.is_empty() {
        query.push(("tags", &tags));
    }
    let zone = &*arguments.zone.0;
    let path = ["instance", "v1", "zones", zone, "servers"];
    let servers = lists.all(&path, &query, "per_page", "/servers").await?;
    let region = zone.rsplit_once('-').map_or(zone, |(region, _)| region);
    let private = private_addresses(lists, &servers, region).await?;
    let target = |server: &Value| target(server, region, &private, arguments.port);
    Ok(servers.iter().filter_map(target).collect())
}

/// Returns the IPv4 addresses of network interfaces by ID, for instances that have no other address.
async fn private_addresses(
    lists: &Lists<'_>,
    servers: &[Value],
    region: &str,
) -> Result<BTreeMap<String, String>, DiscoveryError> {
    let lacks_address = |server: &&Value| {
        ["/private_ip", "/public_ip", "/ipv6"]
            .iter()
            .all(|path| is_null(server, path))
    };
    let interfaces = servers
        .iter()
        .filter(lacks_address)
        .flat_map(|server| list(server, "/private_nics"));
    let ids: Vec<&str> = interfaces.filter_map(|interface| text(interface, "/id")).collect();
    let mut addresses = BTreeMap::new();
    for batch in ids.chunks(BATCH) {
        let mut query = vec![("resource_types", "instance_private_nic")];
        query.extend(batch.iter().map(|id| ("resource_ids", *id)));
        for own in lists
            .all(&["ipam", "v1", "regions", region, "ips"], &query, "page_size", "/ips")
            .await?
        {
            let is_ipv6 = own.get("is_ipv6").and_then(Value::as_bool).unwrap_or_default();
            let address = text(&own, "/address").and_then(|address| address.split('/').next());
            if let (Some(id), Some(address), false) = (text(&own, "/resource/id"), address, is_ipv6) {
                addresses.insert(id.to_owned(), address.to_owned());
            }
        }
    }
    Ok(addresses)
}

fn is_null(value: &Value, path: &str) -> bool {
    value.pointer(path).is_none_or(Value::is_null)
}

fn target(server: &Value, region: &str, private: &BTreeMap<String, String>, port: i64) -> Option<Target> {
    let of_family = |family: &str| -> Vec<&str> {
        let own = list(server, "/public_ips")
            .iter()
            .filter(|own| text(own, "/family") == Some(family));
        own.filter_map(|own| text(own, "/address")).collect()
    };
    let public = text(server, "/public_ip/address");
    let public_ipv4 = public.filter(|_| text(server, "/public_ip/family") != Some("inet6"));
    let outside = public.or_else(|| text(server, "/ipv6/address"));
    let of_interfaces = || {
        let mut ids = list(server, "/private_nics").iter().filter_map(|own| text(own, "/id"));
        ids.find_map(|id| private.get(id)).map(String::as_str)
    };
    let inside = text(server, "/private_ip").or_else(|| if outside.is_none() { of_interfaces() } else { None });
    let mut labels = MetaLabels::new("__meta_scaleway_instance_");
    labels
        .set_json(server, LABELS)
        .set("region", region)
        .set_some("private_ipv4", inside)
        .set_some("public_ipv4", public_ipv4)
        .set_list("public_ipv4_addresses", ",", &of_family("inet"))
        .set_list("public_ipv6_addresses", ",", &of_family("inet6"))
        .set_list("tags", ",", &texts(server, "/tags"));
    Some(labels.with_address(host_port(inside.or(outside)?, port)))
}
