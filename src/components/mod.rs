//! The components, one folder each: the path is the name.
//!
//! [`ALL`] is the one list of them. Components do not import each other; what they share is in [`common`]. Deleting a
//! folder and its line here removes a component.

use crate::components::discovery::{
    file as discovery_file, process as discovery_process, relabel as discovery_relabel,
};
use crate::components::import::{file as import_file, git as import_git, http as import_http, string as import_string};
use crate::components::local::file as local_file;
use crate::components::pyroscope::{
    ebpf as pyroscope_ebpf, relabel as pyroscope_relabel, scrape as pyroscope_scrape, write as pyroscope_write,
};
use crate::components::remote::http as remote_http;
use crate::pipeline::component::AnyDefinition;

pub mod common;
pub mod discovery;
pub mod import;
pub mod known;
pub mod local;
pub mod pyroscope;
pub mod remote;

/// Every component, sorted by name. Those of [`known`] cannot run yet.
pub const ALL: &[&dyn AnyDefinition] = &[
    &known::aws::AWS,
    &known::azure::DEFINITION,
    &known::consul::CONSUL,
    &known::consul::CONSUL_AGENT,
    &known::clouds::DIGITALOCEAN,
    &known::network::DNS,
    &known::docker::DOCKER,
    &known::docker::DOCKER_SWARM,
    &known::aws::EC2,
    &known::registries::EUREKA,
    &discovery_file::DEFINITION,
    &known::clouds::GCE,
    &known::clouds::HETZNER,
    &known::network::HTTP,
    &known::clouds::IONOS,
    &known::kubernetes::KUBELET,
    &known::kubernetes::KUBERNETES,
    &known::registries::KUMA,
    &known::aws::LIGHTSAIL,
    &known::clouds::LINODE,
    &known::registries::MARATHON,
    &known::registries::NERVE,
    &known::consul::NOMAD,
    &known::private_clouds::OPENSTACK,
    &known::clouds::OVHCLOUD,
    &discovery_process::DEFINITION,
    &known::registries::PUPPETDB,
    &discovery_relabel::DEFINITION,
    &known::clouds::SCALEWAY,
    &known::registries::SERVERSET,
    &known::private_clouds::TRITON,
    &known::registries::UYUNI,
    &import_file::DEFINITION,
    &import_git::DEFINITION,
    &import_http::DEFINITION,
    &import_string::DEFINITION,
    &local_file::DEFINITION,
    &known::local::FILE_MATCH,
    &known::exporter_self::DEFINITION,
    &pyroscope_ebpf::DEFINITION,
    &known::pyroscope_enrich::DEFINITION,
    &known::pyroscope_java::DEFINITION,
    &known::pyroscope_receive_http::DEFINITION,
    &pyroscope_relabel::DEFINITION,
    &pyroscope_scrape::DEFINITION,
    &pyroscope_write::DEFINITION,
    &remote_http::DEFINITION,
    &known::remote::CONFIG_MAP,
    &known::remote::SECRET,
    &known::remote::S3,
    &known::vault::DEFINITION,
];

/// The component called `name`.
pub fn find(name: &str) -> Option<&'static dyn AnyDefinition> {
    ALL.iter().copied().find(|definition| definition.name() == name)
}

#[cfg(test)]
mod tests;
