//! The components. Each has its own folder, whose path is the component's name.
//!
//! [`ALL`] lists all components. Components do not import each other. [`common`] contains the code that they share. To
//! remove a component, delete its folder and its line here.

use crate::components::discovery::{
    aws as discovery_aws, ec2 as discovery_ec2, file as discovery_file, http as discovery_http,
    lightsail as discovery_lightsail, process as discovery_process, relabel as discovery_relabel,
};
use crate::components::import::{file as import_file, git as import_git, http as import_http, string as import_string};
use crate::components::local::{file as local_file, file_match as local_file_match};
use crate::components::otelcol::exporter::{otlp as otelcol_exporter_otlp, otlphttp as otelcol_exporter_otlphttp};
use crate::components::otelcol::receiver::otlp as otelcol_receiver_otlp;
use crate::components::prometheus::exporter::own as prometheus_exporter_self;
use crate::components::pyroscope::{
    ebpf as pyroscope_ebpf, enrich as pyroscope_enrich, java as pyroscope_java, receive_http as pyroscope_receive_http,
    relabel as pyroscope_relabel, scrape as pyroscope_scrape, write as pyroscope_write,
};
use crate::components::remote::{http as remote_http, s3 as remote_s3, vault as remote_vault};
use crate::pipeline::component::AnyDefinition;

pub(crate) mod common;
pub(crate) mod discovery;
pub(crate) mod import;
pub(crate) mod local;
pub(crate) mod otelcol;
pub(crate) mod prometheus;
pub(crate) mod pyroscope;
pub(crate) mod remote;

/// Every component, sorted by name.
pub const ALL: &[&dyn AnyDefinition] = &[
    &discovery_aws::DEFINITION,
    &discovery::azure::DEFINITION,
    &discovery::consul::DEFINITION,
    &discovery::consulagent::DEFINITION,
    &discovery::digitalocean::DEFINITION,
    &discovery::dns::DEFINITION,
    &discovery::docker::DEFINITION,
    &discovery::dockerswarm::DEFINITION,
    &discovery_ec2::DEFINITION,
    &discovery::eureka::DEFINITION,
    &discovery_file::DEFINITION,
    &discovery::gce::DEFINITION,
    &discovery::hetzner::DEFINITION,
    &discovery_http::DEFINITION,
    &discovery::ionos::DEFINITION,
    &discovery::kubelet::DEFINITION,
    &discovery::kubernetes::DEFINITION,
    &discovery::kuma::DEFINITION,
    &discovery_lightsail::DEFINITION,
    &discovery::linode::DEFINITION,
    &discovery::marathon::DEFINITION,
    &discovery::nerve::DEFINITION,
    &discovery::nomad::DEFINITION,
    &discovery::openstack::DEFINITION,
    &discovery::ovhcloud::DEFINITION,
    &discovery_process::DEFINITION,
    &discovery::profiles::DEFINITION,
    &discovery::puppetdb::DEFINITION,
    &discovery_relabel::DEFINITION,
    &discovery::scaleway::DEFINITION,
    &discovery::serverset::DEFINITION,
    &discovery::triton::DEFINITION,
    &discovery::uyuni::DEFINITION,
    &import_file::DEFINITION,
    &import_git::DEFINITION,
    &import_http::DEFINITION,
    &import_string::DEFINITION,
    &local_file::DEFINITION,
    &local_file_match::DEFINITION,
    &otelcol_exporter_otlp::DEFINITION,
    &otelcol_exporter_otlphttp::DEFINITION,
    &otelcol_receiver_otlp::DEFINITION,
    &prometheus_exporter_self::DEFINITION,
    &pyroscope_ebpf::DEFINITION,
    &pyroscope_enrich::DEFINITION,
    &pyroscope_java::DEFINITION,
    &pyroscope_receive_http::DEFINITION,
    &pyroscope_relabel::DEFINITION,
    &pyroscope_scrape::DEFINITION,
    &pyroscope_write::DEFINITION,
    &remote_http::DEFINITION,
    &remote::kubernetes::configmap::DEFINITION,
    &remote::kubernetes::secret::DEFINITION,
    &remote_s3::DEFINITION,
    &remote_vault::DEFINITION,
];

/// Returns the component called `name`.
pub fn find(name: &str) -> Option<&'static dyn AnyDefinition> {
    ALL.iter().copied().find(|definition| definition.name() == name)
}

#[cfg(test)]
mod tests;
