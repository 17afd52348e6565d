//! Discoveries that ask a cloud of one's own: OpenStack and Triton.

use std::sync::Arc;
use std::time::Duration;

use crate::components::common::discovery;
use crate::components::common::http_client::TlsArguments;
use crate::lang::attribute::{Interval, Secret, choices};
use crate::lang::body::arguments;
use crate::pipeline::component::{Definition, Stability, no_metrics};

arguments! {
    /// Arguments of `discovery.openstack`.
    pub(crate) struct OpenStackArguments {
        /// Whether instances of all projects are looked at; needs the rights of an administrator.
        all_tenants: bool = false,
        /// Id of the application credential.
        application_credential_id: Option<Arc<str>>,
        /// Name of the application credential.
        application_credential_name: Option<Arc<str>>,
        /// Secret of the application credential.
        application_credential_secret: Option<Secret>,
        /// Endpoint of the API: public, internal or admin.
        availability: Availability = "public",
        /// Id of the domain of user and project.
        domain_id: Option<Arc<str>>,
        /// Name of the domain of user and project.
        domain_name: Option<Arc<str>>,
        /// URL of the identity service.
        identity_endpoint: Option<Arc<str>>,
        /// Password to log in with.
        password: Option<Secret>,
        /// Port of a target whose port is not known otherwise.
        port: i64 = 80,
        /// Id of the project to log in to.
        project_id: Option<Arc<str>>,
        /// Name of the project to log in to.
        project_name: Option<Arc<str>>,
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "60s",
        /// Region of the instances or hypervisors.
        region: Arc<str>,
        /// What to look for: instance or hypervisor.
        role: OpenStackRole,
        /// Id of the user to log in as.
        userid: Option<Arc<str>>,
        /// Name of the user to log in as.
        username: Option<Arc<str>>,
    }
    blocks {
        /// Certificates of client and server.
        tls_config: Option<TlsArguments>,
    }
}

choices! {
    /// Which endpoint of OpenStack is asked.
    pub(crate) enum Availability {
        Public = "public",
        Internal = "internal",
        Admin = "admin",
    }
}

choices! {
    /// What is looked for in OpenStack.
    pub(crate) enum OpenStackRole {
        Instance = "instance",
        Hypervisor = "hypervisor",
    }
}

/// The definition of `discovery.openstack`.
pub(crate) const OPENSTACK: Definition<OpenStackArguments> = Definition {
    name: "discovery.openstack",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.openstack` finds the instances or the hypervisors of an OpenStack cloud.",
};

arguments! {
    /// Arguments of `discovery.triton`.
    pub(crate) struct TritonArguments {
        /// Account of the containers.
        account: Arc<str>,
        /// End of the names of the targets.
        dns_suffix: Arc<str>,
        /// Host of the discovery endpoint.
        endpoint: Arc<str>,
        /// Groups to look at; not set, all.
        groups: Option<Vec<Arc<str>>>,
        /// Port of the discovery endpoint.
        port: i64 = 9163,
        /// Time from one look at the targets to the next.
        refresh_interval: Interval = "60s",
        /// What to look for: container or cn (compute nodes).
        role: TritonRole = "container",
        /// Version of the discovery API.
        version: i64 = 1,
    }
    blocks {
        /// Certificates of client and server.
        tls_config: Option<TlsArguments>,
    }
}

choices! {
    /// What is looked for in Triton.
    pub(crate) enum TritonRole {
        Container = "container",
        ComputeNode = "cn",
    }
}

/// The definition of `discovery.triton`.
pub(crate) const TRITON: Definition<TritonArguments> = Definition {
    name: "discovery.triton",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.triton` finds the containers or the compute nodes of a Triton cloud.",
};
