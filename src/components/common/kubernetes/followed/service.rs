//! The role `service`: a target for each port of a service, with the service's name in the cluster's DNS as address.

use crate::common::arguments::targets::Target;
use crate::common::discovery::meta_labels::MetaLabels;
use crate::common::kubernetes::followed::cluster::{Cluster, Discovered};
use crate::common::kubernetes::followed::store::{Described, StoredObject};
use crate::common::kubernetes::objects::{Key, Service, ServicePort};
use crate::common::kubernetes::pods::{PREFIX, set_object, with};

impl Described for Service {
    fn labels(&self) -> Target {
        let mut labels = MetaLabels::new(PREFIX);
        labels.set("namespace", &self.metadata.namespace);
        set_object(&mut labels, "service", &self.metadata);
        labels.into_target()
    }
}

/// The targets of a service.
impl Discovered for Service {
    fn targets(key: &Key, service: &StoredObject<Self>, cluster: &Cluster) -> Vec<Target> {
        let spec = &service.object.spec;
        let mut common_labels = service.labels.clone();
        cluster.attach_namespace(&mut common_labels, &key.namespace);
        let target = |port: &ServicePort| {
            let mut labels = MetaLabels::new(PREFIX);
            labels
                .set("service_port_name", &port.name)
                .set("service_port_number", port.port)
                .set("service_port_protocol", &port.protocol)
                .set("service_type", &spec.kind);
            match spec.kind.as_str() {
                "ExternalName" => labels.set("service_external_name", &spec.external_name),
                _ => labels.set("service_cluster_ip", &spec.cluster_ip),
            };
            if spec.kind == "LoadBalancer" {
                labels.set("service_loadbalancer_ip", load_balancer(&service.object));
            }
            with(
                &common_labels,
                labels.with_address(format!("{}.{}.svc:{}", key.name, key.namespace, port.port)),
            )
        };
        spec.ports.iter().map(target).collect()
    }

    fn is_touched(key: &Key, _: &StoredObject<Self>, cluster: &Cluster) -> bool {
        cluster.has_changed(&key.namespace, None, None)
    }
}

/// Returns the addresses of the load balancer, separated by commas. If the load balancer has no address yet, returns
/// the address that the service requests for it.
fn load_balancer(service: &Service) -> String {
    let ingress = &service.status.load_balancer.ingress;
    let addresses: Vec<&str> = ingress
        .iter()
        .map(|one| one.ip.as_str())
        .filter(|ip| !ip.is_empty())
        .collect();
    match addresses.as_slice() {
        [] => service.spec.load_balancer_ip.clone(),
        addresses => addresses.join(","),
    }
}
