//! Components that discover targets or rewrite them.

pub(crate) mod aws;
pub(crate) mod azure;
pub(crate) mod consul;
pub(crate) mod consulagent;
pub(crate) mod digitalocean;
pub(crate) mod dns;
pub(crate) mod docker;
pub(crate) mod dockerswarm;
pub(crate) mod ec2;
pub(crate) mod eureka;
pub(crate) mod file;
pub(crate) mod gce;
pub(crate) mod hetzner;
pub(crate) mod http;
pub(crate) mod ionos;
pub(crate) mod kubelet;
pub(crate) mod kubernetes;
pub(crate) mod kuma;
pub(crate) mod lightsail;
pub(crate) mod linode;
pub(crate) mod marathon;
pub(crate) mod nerve;
pub(crate) mod nomad;
#[cfg(test)]
mod null_lists;
pub(crate) mod openstack;
pub(crate) mod ovhcloud;
pub(crate) mod process;
pub(crate) mod profiles;
pub(crate) mod puppetdb;
pub(crate) mod relabel;
pub(crate) mod scaleway;
pub(crate) mod serverset;
pub(crate) mod triton;
pub(crate) mod uyuni;
