//! The components. Each component has its own folder. The path of the folder is the component's name.
//!
//! [`ALL`] lists all components. Components do not import each other. [`common`] contains the code that they share. To
//! remove a component, delete its folder, the `mod` line in the parent module, and the line in [`ALL`].

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests send requests with a plain client")
)]

use alluvium_pipeline::component::AnyDefinition;

pub mod common;
pub(crate) mod discovery;
pub(crate) mod import;
pub(crate) mod local;
pub(crate) mod otelcol;
pub(crate) mod prometheus;
pub(crate) mod pyroscope;
pub(crate) mod remote;

/// Every component, sorted by name.
// The prefix `self` distinguishes the module `pyroscope` from the crate of the same name.
pub const ALL: &[&dyn AnyDefinition] = &[
    &self::discovery::aws::DEFINITION,
    &self::discovery::azure::DEFINITION,
    &self::discovery::consul::DEFINITION,
    &self::discovery::consulagent::DEFINITION,
    &self::discovery::digitalocean::DEFINITION,
    &self::discovery::dns::DEFINITION,
    &self::discovery::docker::DEFINITION,
    &self::discovery::dockerswarm::DEFINITION,
    &self::discovery::ec2::DEFINITION,
    &self::discovery::eureka::DEFINITION,
    &self::discovery::file::DEFINITION,
    &self::discovery::gce::DEFINITION,
    &self::discovery::hetzner::DEFINITION,
    &self::discovery::http::DEFINITION,
    &self::discovery::ionos::DEFINITION,
    &self::discovery::kubelet::DEFINITION,
    &self::discovery::kubernetes::DEFINITION,
    &self::discovery::kuma::DEFINITION,
    &self::discovery::lightsail::DEFINITION,
    &self::discovery::linode::DEFINITION,
    &self::discovery::marathon::DEFINITION,
    &self::discovery::nerve::DEFINITION,
    &self::discovery::nomad::DEFINITION,
    &self::discovery::openstack::DEFINITION,
    &self::discovery::ovhcloud::DEFINITION,
    &self::discovery::process::DEFINITION,
    &self::discovery::profiles::DEFINITION,
    &self::discovery::puppetdb::DEFINITION,
    &self::discovery::relabel::DEFINITION,
    &self::discovery::scaleway::DEFINITION,
    &self::discovery::serverset::DEFINITION,
    &self::discovery::triton::DEFINITION,
    &self::discovery::uyuni::DEFINITION,
    &self::import::file::DEFINITION,
    &self::import::git::DEFINITION,
    &self::import::http::DEFINITION,
    &self::import::string::DEFINITION,
    &self::local::file::DEFINITION,
    &self::local::file_match::DEFINITION,
    &self::otelcol::exporter::otlp::DEFINITION,
    &self::otelcol::exporter::otlphttp::DEFINITION,
    &self::otelcol::receiver::otlp::DEFINITION,
    &self::prometheus::exporter::own::DEFINITION,
    &self::pyroscope::ebpf::DEFINITION,
    &self::pyroscope::enrich::DEFINITION,
    &self::pyroscope::java::DEFINITION,
    &self::pyroscope::receive_http::DEFINITION,
    &self::pyroscope::relabel::DEFINITION,
    &self::pyroscope::scrape::DEFINITION,
    &self::pyroscope::write::DEFINITION,
    &self::remote::http::DEFINITION,
    &self::remote::kubernetes::configmap::DEFINITION,
    &self::remote::kubernetes::secret::DEFINITION,
    &self::remote::s3::DEFINITION,
    &self::remote::vault::DEFINITION,
];

/// Returns the component called `name`.
pub fn find(name: &str) -> Option<&'static dyn AnyDefinition> {
    ALL.iter().copied().find(|definition| definition.name() == name)
}

#[cfg(test)]
mod tests;
