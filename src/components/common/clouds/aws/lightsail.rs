//! Lists the instances of Lightsail as targets.

use serde::Deserialize;
use serde_json::json;

use crate::common::arguments::targets::Target;
use crate::common::clouds::aws::client::{Aws, JsonService};
use crate::common::clouds::cloud_error::CloudError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::http::paging::{Page, all_pages};

const SERVICE: JsonService = JsonService {
    name: "lightsail",
    prefix: "Lightsail_20161128",
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    instances: Vec<Instance>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Instance {
    name: Option<String>,
    support_code: Option<String>,
    location: Option<Location>,
    blueprint_id: Option<String>,
    bundle_id: Option<String>,
    private_ip_address: Option<String>,
    public_ip_address: Option<String>,
    #[serde(default)]
    ipv6_addresses: Vec<String>,
    state: Option<State>,
    #[serde(default)]
    tags: Vec<Tag>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    availability_zone: Option<String>,
}

#[derive(Deserialize)]
struct State {
    name: Option<String>,
}

#[derive(Deserialize)]
struct Tag {
    key: Option<String>,
    value: Option<String>,
}

/// Returns a target for each instance with a private address.
pub(crate) async fn targets(aws: &Aws, port: i64) -> Result<Vec<Target>, CloudError> {
    let region = aws.region().await?;
    let instances = all_pages(|token: Option<String>| async move {
        let parameters = token.map_or_else(|| json!({}), |token| json!({ "pageToken": token }));
        let answer: Answer = aws.call(SERVICE, "GetInstances", &parameters).await?;
        Ok::<_, CloudError>(Page {
            items: answer.instances,
            next: answer.next_page_token,
        })
    });
    let instances = instances.await?;
    Ok(instances
        .iter()
        .filter_map(|instance| target(instance, &region, port))
        .collect())
}

fn target(instance: &Instance, region: &str, port: i64) -> Option<Target> {
    let address = instance.private_ip_address.as_ref()?;
    let mut labels = MetaLabels::new("__meta_lightsail_");
    let zone = instance
        .location
        .as_ref()
        .and_then(|location| location.availability_zone.as_ref());
    labels
        .set("private_ip", address)
        .set("region", region)
        .set_some("availability_zone", zone)
        .set_some("blueprint_id", instance.blueprint_id.as_ref())
        .set_some("bundle_id", instance.bundle_id.as_ref())
        .set_some("instance_name", instance.name.as_ref())
        .set_some(
            "instance_state",
            instance.state.as_ref().and_then(|state| state.name.as_ref()),
        )
        .set_some("instance_support_code", instance.support_code.as_ref())
        .set_some("public_ip", instance.public_ip_address.as_ref());
    labels.set_list("ipv6_addresses", ",", &instance.ipv6_addresses);
    let tags = instance.tags.iter();
    labels.set_each(
        "tag_",
        tags.filter_map(|tag| Some((tag.key.as_ref()?, tag.value.as_ref()?))),
    );
    Some(labels.with_address(host_port(address, port)))
}
