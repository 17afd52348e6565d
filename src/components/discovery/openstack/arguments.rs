//! Arguments of `discovery.openstack`.

use std::sync::Arc;

use crate::components::common::http::client::TlsArguments;
use crate::components::common::http::values::HttpUrl;
use crate::lang::attribute::{Interval, NotEmpty, Secret, choices};
use crate::lang::body::arguments;

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
        /// URL of the identity service; not set, all credentials are those of the environment.
        identity_endpoint: Option<HttpUrl>,
        /// Password to log in with.
        password: Option<Secret>,
        /// Port in the addresses of the targets.
        port: i64 = 80,
        /// Id of the project to log in to.
        project_id: Option<Arc<str>>,
        /// Name of the project to log in to.
        project_name: Option<Arc<str>>,
        /// Time from one look at the targets to the next.
        refresh_interval: Interval = "60s",
        /// Region of the instances or hypervisors.
        region: NotEmpty<Arc<str>>,
        /// What to look for: instance or hypervisor.
        role: Role,
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
    pub(crate) enum Role {
        Instance = "instance",
        Hypervisor = "hypervisor",
    }
}
