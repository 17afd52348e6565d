//! Lists the instances of EC2 as targets.

use std::collections::BTreeMap;

use serde::Deserialize;
use tokio::sync::OnceCell;

use crate::common::arguments::targets::Target;
use crate::common::clouds::aws::client::{Aws, QueryService};
use crate::common::clouds::cloud_error::CloudError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::discovery::schema::Filter;
use crate::common::http::paging::{Page, all_pages};

const SERVICE: QueryService = QueryService {
    name: "ec2",
    version: "2016-11-15",
};
/// Number of instances on a page: the maximum that the API allows.
const PAGE: &str = "1000";

/// Ids of availability zones by name. The name of a zone differs between accounts, but its id is the same.
#[derive(Debug, Default)]
pub(crate) struct Zones(OnceCell<BTreeMap<String, String>>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ZonesAnswer {
    #[serde(default)]
    availability_zone_info: Items<Zone>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Zone {
    zone_name: Option<String>,
    zone_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InstancesAnswer {
    #[serde(default)]
    reservation_set: Items<Reservation>,
    next_token: Option<String>,
}

/// Instances that were started together.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reservation {
    owner_id: Option<String>,
    #[serde(default)]
    instances_set: Items<Instance>,
}

/// An instance as the API describes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Instance {
    /// Id of the instance in EC2.
    pub(crate) instance_id: String,
    /// Type of the machine, such as `m5.large`.
    pub(crate) instance_type: Option<String>,
    /// Private IPv4 address of the instance.
    pub(crate) private_ip_address: Option<String>,
    /// Public IPv4 address of the instance.
    pub(crate) ip_address: Option<String>,
    /// Subnet of the first network interface.
    pub(crate) subnet_id: Option<String>,
    image_id: Option<String>,
    instance_state: Option<State>,
    private_dns_name: Option<String>,
    dns_name: Option<String>,
    placement: Option<Placement>,
    platform: Option<String>,
    vpc_id: Option<String>,
    architecture: Option<String>,
    instance_lifecycle: Option<String>,
    #[serde(default)]
    tag_set: Items<Tag>,
    #[serde(default)]
    network_interface_set: Items<Interface>,
}

#[derive(Deserialize)]
struct State {
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Placement {
    availability_zone: Option<String>,
}

#[derive(Deserialize)]
struct Tag {
    key: Option<String>,
    value: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Interface {
    network_interface_id: Option<String>,
    subnet_id: Option<String>,
    attachment: Option<Attachment>,
    association: Option<Association>,
    #[serde(default)]
    ipv6_addresses_set: Items<Ipv6Address>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attachment {
    device_index: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Association {
    public_ip: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ipv6Address {
    ipv6_address: String,
    #[serde(default)]
    is_primary_ipv6: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InterfacesAnswer {
    #[serde(default)]
    network_interface_set: Items<Interface>,
    next_token: Option<String>,
}

/// A list in the API's XML form.
#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct Items<T> {
    #[serde(default)]
    item: Vec<T>,
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self { item: Vec::new() }
    }
}

impl Instance {
    /// Returns the tags that have a name and a value.
    pub(crate) fn tags(&self) -> impl Iterator<Item = (&String, &String)> {
        let tags = self.tag_set.item.iter();
        tags.filter_map(|tag| Some((tag.key.as_ref()?, tag.value.as_ref()?)))
    }
}

/// Returns a target for each instance that has an address and matches all filters.
pub(crate) async fn targets(
    aws: &Aws,
    filters: &[Filter],
    port: i64,
    zones: &Zones,
) -> Result<Vec<Target>, CloudError> {
    let region = aws.region().await?;
    let mut parameters = Vec::new();
    for (index, filter) in filters.iter().enumerate() {
        let name = format!("Filter.{}", index + 1);
        parameters.push((format!("{name}.Name"), filter.name.to_string()));
        for (index, value) in filter.values.0.iter().enumerate() {
            parameters.push((format!("{name}.Value.{}", index + 1), value.to_string()));
        }
    }
    parameters.push(("MaxResults".to_owned(), PAGE.to_owned()));
    let reservations = reservations(aws, &parameters).await?;
    let zones = zones.ids(aws).await;
    let of_reservation = |reservation: &Reservation| -> Vec<Target> {
        let instances = reservation.instances_set.item.iter();
        let labels = instances.filter_map(|instance| {
            let (mut labels, address) = labels(instance, zones)?;
            labels
                .set("region", &region)
                .set_some("owner_id", reservation.owner_id.as_ref());
            Some(labels.with_address(host_port(&address, port)))
        });
        labels.collect()
    };
    Ok(reservations.iter().flat_map(of_reservation).collect())
}

/// Returns the instances with these ids. `ids` may contain at most a thousand ids.
pub(crate) async fn by_id(aws: &Aws, ids: &[String]) -> Result<Vec<Instance>, CloudError> {
    let reservations = reservations(aws, &numbered("InstanceId", ids)).await?;
    Ok(reservations
        .into_iter()
        .flat_map(|reservation| reservation.instances_set.item)
        .collect())
}

/// Returns the public addresses by network interface id. Interfaces without a public address are skipped.
pub(crate) async fn public_addresses(aws: &Aws, ids: &[String]) -> Result<BTreeMap<String, String>, CloudError> {
    let parameters = &numbered("NetworkInterfaceId", ids);
    let interfaces = all_pages(|token: Option<String>| async move {
        let parameters = with_token(parameters, token);
        let answer: InterfacesAnswer = aws.query(SERVICE, "DescribeNetworkInterfaces", &parameters).await?;
        Ok::<_, CloudError>(Page {
            items: answer.network_interface_set.item,
            next: answer.next_token.filter(|token| !token.is_empty()),
        })
    });
    let address = |interface: Interface| Some((interface.network_interface_id?, interface.association?.public_ip?));
    Ok(interfaces.await?.into_iter().filter_map(address).collect())
}

async fn reservations(aws: &Aws, parameters: &[(String, String)]) -> Result<Vec<Reservation>, CloudError> {
    let reservations = all_pages(|token: Option<String>| async move {
        let parameters = with_token(parameters, token);
        let answer: InstancesAnswer = aws.query(SERVICE, "DescribeInstances", &parameters).await?;
        Ok(Page {
            items: answer.reservation_set.item,
            next: answer.next_token.filter(|token| !token.is_empty()),
        })
    });
    reservations.await
}

fn numbered(name: &str, values: &[String]) -> Vec<(String, String)> {
    let values = values.iter().enumerate();
    values
        .map(|(index, value)| (format!("{name}.{}", index + 1), value.clone()))
        .collect()
}

fn with_token(parameters: &[(String, String)], token: Option<String>) -> Vec<(String, String)> {
    let token = token.map(|token| ("NextToken".to_owned(), token));
    parameters.iter().cloned().chain(token).collect()
}

impl Zones {
    /// Returns the ids by zone name, or `None` if the zones cannot be listed. Without the ids, only one label is
    /// missing.
    async fn ids(&self, aws: &Aws) -> Option<&BTreeMap<String, String>> {
        let ask = async || {
            let answer: ZonesAnswer = aws.query(SERVICE, "DescribeAvailabilityZones", &[]).await?;
            let zones = answer.availability_zone_info.item.into_iter();
            Ok(zones
                .filter_map(|zone| Some((zone.zone_name?, zone.zone_id?)))
                .collect())
        };
        let ids: Result<_, CloudError> = self.0.get_or_try_init(ask).await;
        ids.inspect_err(|error| tracing::debug!(%error, "cannot list the ids of availability zones"))
            .ok()
    }
}

/// Returns the labels of an instance and its address: the private IPv4 address, or else the default IPv6 address.
fn labels(instance: &Instance, zones: Option<&BTreeMap<String, String>>) -> Option<(MetaLabels, String)> {
    let (primary, ipv6) = ipv6_addresses(instance);
    let default_ipv6 = primary.iter().chain(&ipv6).find(|address| !address.is_empty());
    let address = instance.private_ip_address.as_ref().or(default_ipv6)?;
    let mut labels = MetaLabels::new("__meta_ec2_");
    let zone = instance
        .placement
        .as_ref()
        .and_then(|placement| placement.availability_zone.as_ref());
    let zone_id = zones.zip(zone).and_then(|(zones, zone)| zones.get(zone));
    let state = instance.instance_state.as_ref().and_then(|state| state.name.as_ref());
    let public_ip = instance.ip_address.as_ref();
    labels
        .set("instance_id", &instance.instance_id)
        .set_some("default_ipv6_address", default_ipv6)
        .set_some("private_ip", instance.private_ip_address.as_ref())
        .set_some("private_dns_name", instance.private_dns_name.as_ref())
        .set_some("platform", instance.platform.as_ref())
        .set_some("public_ip", public_ip)
        .set_some("public_dns_name", public_ip.and(instance.dns_name.as_ref()))
        .set_some("ami", instance.image_id.as_ref())
        .set_some("availability_zone", zone)
        .set_some("availability_zone_id", zone_id)
        .set_some("instance_state", state)
        .set_some("instance_type", instance.instance_type.as_ref())
        .set_some("instance_lifecycle", instance.instance_lifecycle.as_ref())
        .set_some("architecture", instance.architecture.as_ref())
        .set_list("primary_ipv6_addresses", ",", &primary)
        .set_list("ipv6_addresses", ",", &ipv6)
        .set_each("tag_", instance.tags());
    if let Some(vpc) = &instance.vpc_id {
        let mut subnets: Vec<&str> = Vec::new();
        for subnet in instance
            .network_interface_set
            .item
            .iter()
            .filter_map(|own| own.subnet_id.as_deref())
        {
            if !subnets.contains(&subnet) {
                subnets.push(subnet);
            }
        }
        let subnets = subnets.join(",");
        labels
            .set("vpc_id", vpc)
            .set_some("primary_subnet_id", instance.subnet_id.as_ref());
        labels.set("subnet_id", format!(",{subnets},"));
    }
    Some((labels, address.clone()))
}

/// Returns the primary IPv6 address of each device, by device index, and all IPv6 addresses. The text of a device
/// without a primary address is empty.
fn ipv6_addresses(instance: &Instance) -> (Vec<String>, Vec<String>) {
    /// Maximum number of network interfaces, far above the limit of EC2.
    const MAX_DEVICES: usize = 1000;
    let (mut primary, mut all) = (Vec::new(), Vec::new());
    if instance.vpc_id.is_none() {
        return (primary, all);
    }
    for interface in instance
        .network_interface_set
        .item
        .iter()
        .filter(|own| own.subnet_id.is_some())
    {
        let index = interface
            .attachment
            .as_ref()
            .and_then(|attachment| attachment.device_index);
        for address in &interface.ipv6_addresses_set.item {
            all.push(address.ipv6_address.clone());
            if let Some(index) = index.filter(|index| address.is_primary_ipv6 && *index < MAX_DEVICES) {
                primary.resize(primary.len().max(index + 1), String::new());
                primary[index].clone_from(&address.ipv6_address);
            }
        }
    }
    (primary, all)
}
