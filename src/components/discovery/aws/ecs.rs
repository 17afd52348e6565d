//! The role `ecs`: tasks of container clusters.
//!
//! In the network mode `awsvpc` a task has its own address. Any other task has the address of the EC2 instance that the
//! task runs on. The component requests these instances from EC2.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::common::arguments::targets::Target;
use crate::common::clouds::aws::client::{Aws, JsonService};
use crate::common::clouds::aws::ec2;
use crate::common::clouds::aws::ec2::Instance;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::http::paging::{Page, all_pages, ask_each, ask_lists};

const SERVICE: JsonService = JsonService {
    name: "ecs",
    prefix: "AmazonEC2ContainerServiceV20141113",
};
/// Maximum number of clusters, tasks or container instances in one request.
const BATCH: usize = 100;
/// Maximum number of services in one request.
const SERVICES_BATCH: usize = 10;
/// Type of the attachment that gives a task its own address.
const INTERFACE: &str = "ElasticNetworkInterface";

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cluster {
    cluster_arn: String,
    cluster_name: Option<String>,
    #[serde(default)]
    tags: Vec<Tag>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Service {
    service_arn: Option<String>,
    service_name: String,
    status: Option<String>,
    #[serde(default)]
    tags: Vec<Tag>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    task_arn: Option<String>,
    task_definition_arn: Option<String>,
    group: Option<String>,
    availability_zone: Option<String>,
    launch_type: Option<String>,
    desired_status: Option<String>,
    last_status: Option<String>,
    health_status: Option<String>,
    platform_family: Option<String>,
    platform_version: Option<String>,
    container_instance_arn: Option<String>,
    #[serde(default)]
    attachments: Vec<Attachment>,
    #[serde(default)]
    tags: Vec<Tag>,
}

#[derive(Deserialize)]
struct Attachment {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    details: Vec<Detail>,
}

#[derive(Deserialize)]
struct Detail {
    name: Option<String>,
    value: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerInstance {
    container_instance_arn: String,
    ec2_instance_id: Option<String>,
}

#[derive(Clone, Deserialize)]
struct Tag {
    key: Option<String>,
    value: Option<String>,
}

/// Objects that the tasks of one cluster refer to.
struct Surroundings {
    region: String,
    cluster: Cluster,
    services: BTreeMap<String, Service>,
    /// EC2 instances by the ARN of the container instance.
    machines: BTreeMap<String, Machine>,
    /// Public addresses by the ID of the network interface.
    public_addresses: BTreeMap<String, String>,
}

struct Machine {
    id: String,
    instance: Option<Instance>,
}

/// The addresses at which a task is reachable, and the network of these addresses.
#[derive(Default)]
struct TaskAddresses {
    address: Option<String>,
    public_address: Option<String>,
    subnet: Option<String>,
    network_mode: &'static str,
}

/// Returns a target for each task that has an address. An empty list of clusters stands for all clusters.
pub(super) async fn targets(
    aws: &Aws,
    clusters: Vec<String>,
    port: i64,
    concurrency: usize,
) -> Result<Vec<Target>, DiscoveryError> {
    let region = aws.region().await?.to_string();
    let clusters = if clusters.is_empty() {
        list(aws, "ListClusters", json!({}), "clusterArns").await?
    } else {
        clusters
    };
    let request = |batch: &[String]| json!({ "clusters": batch, "include": ["TAGS"] });
    let clusters: Vec<Cluster> = describe(
        aws,
        "DescribeClusters",
        "clusters",
        &clusters,
        BATCH,
        concurrency,
        request,
    )
    .await?;
    let region = region.as_str();
    // Clusters are read one after the other. The requests about one cluster run concurrently.
    let of_cluster = |cluster: Cluster| async move {
        let tasks = tasks(aws, &cluster.cluster_arn, concurrency).await?;
        if tasks.is_empty() {
            return Ok::<_, DiscoveryError>(Vec::new());
        }
        let surroundings = Surroundings::ask(aws, cluster, &tasks, region, concurrency).await?;
        Ok(tasks
            .iter()
            .filter_map(|task| surroundings.target(task, port))
            .collect())
    };
    ask_lists(clusters, 1, of_cluster).await
}

async fn tasks(aws: &Aws, cluster: &str, concurrency: usize) -> Result<Vec<Task>, DiscoveryError> {
    let arns = list(aws, "ListTasks", json!({ "cluster": cluster }), "taskArns").await?;
    let request = |batch: &[String]| json!({ "cluster": cluster, "tasks": batch, "include": ["TAGS"] });
    describe(aws, "DescribeTasks", "tasks", &arns, BATCH, concurrency, request).await
}

/// Returns the ARNs in the list `field` of all responses to `action`. Requests the list in pages of 100.
async fn list(aws: &Aws, action: &str, request: Value, field: &str) -> Result<Vec<String>, DiscoveryError> {
    let request = &request;
    let names = all_pages(|token: Option<String>| async move {
        let mut request = request.clone();
        request["maxResults"] = json!(BATCH);
        if let Some(token) = token {
            request["nextToken"] = json!(token);
        }
        let mut answer: BTreeMap<String, Value> = aws.call(SERVICE, action, &request).await?;
        let next = answer
            .remove("nextToken")
            .and_then(|token| token.as_str().map(str::to_owned));
        Ok(Page {
            items: of_answer(action, field, answer)?,
            next,
        })
    });
    names.await
}

/// Returns the descriptions of all objects in `names`. Requests them in batches.
async fn describe<T: DeserializeOwned>(
    aws: &Aws,
    action: &str,
    field: &str,
    names: &[String],
    batch: usize,
    concurrency: usize,
    request: impl Fn(&[String]) -> Value,
) -> Result<Vec<T>, DiscoveryError> {
    let requests: Vec<Value> = names.chunks(batch).map(request).collect();
    let ask = |request: Value| async move {
        let answer: BTreeMap<String, Value> = aws.call(SERVICE, action, &request).await?;
        of_answer(action, field, answer)
    };
    ask_lists(requests, concurrency, ask).await
}

fn of_answer<T: DeserializeOwned>(
    action: &str,
    field: &str,
    mut answer: BTreeMap<String, Value>,
) -> Result<Vec<T>, DiscoveryError> {
    let items = answer.remove(field).unwrap_or_else(|| json!([]));
    serde_json::from_value(items).map_err(|error| DiscoveryError::Malformed {
        description: format!("{action}: invalid `{field}` in the response"),
        source: error.into(),
    })
}

impl Surroundings {
    async fn ask(
        aws: &Aws,
        cluster: Cluster,
        tasks: &[Task],
        region: &str,
        concurrency: usize,
    ) -> Result<Self, DiscoveryError> {
        let arn = &cluster.cluster_arn;
        let names = list(aws, "ListServices", json!({ "cluster": arn }), "serviceArns").await?;
        let request = |batch: &[String]| json!({ "cluster": arn, "services": batch, "include": ["TAGS"] });
        let services: Vec<Service> = describe(
            aws,
            "DescribeServices",
            "services",
            &names,
            SERVICES_BATCH,
            concurrency,
            request,
        )
        .await?;
        let mut interfaces: Vec<String> = tasks
            .iter()
            .filter_map(|task| task.detail("networkInterfaceId"))
            .collect();
        interfaces.sort();
        interfaces.dedup();
        let ask = |batch: Vec<String>| async move { ec2::public_addresses(aws, &batch).await };
        let batches = interfaces.chunks(BATCH).map(<[String]>::to_vec).collect();
        let addresses = ask_each(batches, concurrency, ask).await?;
        Ok(Self {
            region: region.to_owned(),
            machines: machines(aws, arn, tasks, concurrency).await?,
            services: services
                .into_iter()
                .map(|service| (service.service_name.clone(), service))
                .collect(),
            public_addresses: addresses.into_iter().flatten().collect(),
            cluster,
        })
    }

    fn target(&self, task: &Task, port: i64) -> Option<Target> {
        let machine = task
            .container_instance_arn
            .as_ref()
            .and_then(|arn| self.machines.get(arn));
        let instance = machine.and_then(|machine| machine.instance.as_ref());
        let attachment = self.attachment(task, instance);
        let address = attachment.address?;
        let mut labels = MetaLabels::new("__meta_ecs_");
        labels
            .set("ip_address", &address)
            .set("region", &self.region)
            .set("network_mode", attachment.network_mode)
            .set_some("launch_type", task.launch_type.as_ref())
            .set_some("health_status", task.health_status.as_ref())
            .set("cluster_arn", &self.cluster.cluster_arn)
            .set_some("cluster", self.cluster.cluster_name.as_ref())
            .set_some("task_group", task.group.as_ref())
            .set_some("task_arn", task.task_arn.as_ref())
            .set_some("task_definition", task.task_definition_arn.as_ref())
            .set_some("availability_zone", task.availability_zone.as_ref())
            .set_some("desired_status", task.desired_status.as_ref())
            .set_some("last_status", task.last_status.as_ref())
            .set_some("subnet_id", attachment.subnet)
            .set_some("public_ip", attachment.public_address)
            .set_some("platform_family", task.platform_family.as_ref())
            .set_some("platform_version", task.platform_version.as_ref())
            .set_some("container_instance_arn", task.container_instance_arn.as_ref())
            .set_some("ec2_instance_id", machine.map(|machine| &machine.id))
            .set_some("ec2_instance_type", instance.and_then(|own| own.instance_type.as_ref()))
            .set_some(
                "ec2_instance_private_ip",
                instance.and_then(|own| own.private_ip_address.as_ref()),
            )
            .set_some(
                "ec2_instance_public_ip",
                instance.and_then(|own| own.ip_address.as_ref()),
            )
            .set_each("tag_cluster_", tags(&self.cluster.tags))
            .set_each("tag_task_", tags(&task.tags));
        if let Some(instance) = instance {
            labels.set_each("tag_ec2_", instance.tags());
        }
        let name = task.group.as_ref().and_then(|group| group.strip_prefix("service:"));
        if let Some(service) = name.and_then(|name| self.services.get(name)) {
            labels
                .set("service", &service.service_name)
                .set_some("service_arn", service.service_arn.as_ref())
                .set_some("service_status", service.status.as_ref())
                .set_each("tag_service_", tags(&service.tags));
        }
        Some(labels.with_address(host_port(&address, port)))
    }

    fn attachment(&self, task: &Task, instance: Option<&Instance>) -> TaskAddresses {
        if task.interface().is_some() {
            let interface = task.detail("networkInterfaceId");
            TaskAddresses {
                address: task.detail("privateIPv4Address"),
                public_address: interface.and_then(|interface| self.public_addresses.get(&interface).cloned()),
                subnet: task.detail("subnetId"),
                network_mode: "awsvpc",
            }
        } else if let Some(instance) = instance {
            TaskAddresses {
                address: instance.private_ip_address.clone(),
                public_address: instance.ip_address.clone(),
                subnet: instance.subnet_id.clone(),
                network_mode: "bridge",
            }
        } else {
            TaskAddresses::default()
        }
    }
}

/// Returns the EC2 instances that the tasks of a cluster run on.
async fn machines(
    aws: &Aws,
    cluster: &str,
    tasks: &[Task],
    concurrency: usize,
) -> Result<BTreeMap<String, Machine>, DiscoveryError> {
    let mut arns: Vec<String> = tasks
        .iter()
        .filter_map(|task| task.container_instance_arn.clone())
        .collect();
    arns.sort();
    arns.dedup();
    let request = |batch: &[String]| json!({ "cluster": cluster, "containerInstances": batch });
    let (action, field) = ("DescribeContainerInstances", "containerInstances");
    let hosts: Vec<ContainerInstance> = describe(aws, action, field, &arns, BATCH, concurrency, request).await?;
    let ids: Vec<String> = hosts.iter().filter_map(|host| host.ec2_instance_id.clone()).collect();
    let ask = |batch: Vec<String>| async move { ec2::by_id(aws, &batch).await };
    let batches = ids.chunks(BATCH).map(<[String]>::to_vec).collect();
    let hosting: Vec<Instance> = ask_lists(batches, concurrency, ask).await?;
    let by_id = hosting
        .into_iter()
        .map(|instance| (instance.instance_id.clone(), instance));
    let mut instances: BTreeMap<String, Instance> = by_id.collect();
    let machine = |host: ContainerInstance| {
        let id = host.ec2_instance_id?;
        let instance = instances.remove(&id);
        Some((host.container_instance_arn, Machine { id, instance }))
    };
    Ok(hosts.into_iter().filter_map(machine).collect())
}

impl Task {
    fn interface(&self) -> Option<&Attachment> {
        self.attachments
            .iter()
            .find(|attachment| attachment.kind.as_deref() == Some(INTERFACE))
    }

    /// Returns a detail of the task's network interface.
    fn detail(&self, name: &str) -> Option<String> {
        let mut details = self.interface()?.details.iter();
        details
            .find(|detail| detail.name.as_deref() == Some(name))?
            .value
            .clone()
    }
}

fn tags(tags: &[Tag]) -> impl Iterator<Item = (&String, &String)> {
    tags.iter()
        .filter_map(|tag| Some((tag.key.as_ref()?, tag.value.as_ref()?)))
}
