//! Arguments of `discovery.openstack`.

use std::sync::Arc;

use crate::common::http::client::TlsArguments;
use crate::common::http::values::HttpUrl;
use alluvium_lang::attribute::{Interval, NotEmpty, Secret, choices};
use alluvium_lang::body::arguments;

arguments! {
    /// Arguments of `discovery.openstack`.
    pub(crate) struct OpenStackArguments {
        /// If true, the instances of all projects become targets. Only an administrator may list them.
        all_tenants: bool = false,
        /// ID of the application credential.
        application_credential_id: Option<Arc<str>>,
        /// Name of the application credential.
        application_credential_name: Option<Arc<str>>,
        /// Secret of the application credential.
        application_credential_secret: Option<Secret>,
        /// Type of the API endpoint: `public`, `internal` or `admin`.
        availability: Availability = "public",
        /// ID of the domain of the user and the project.
        domain_id: Option<Arc<str>>,
        /// Name of the domain of the user and the project.
        domain_name: Option<Arc<str>>,
        /// URL of the identity service. If it is not set, the URL and all credentials come from the environment.
        identity_endpoint: Option<HttpUrl>,
        /// Password to log in with.
        password: Option<Secret>,
        /// Port in the address of each target.
        port: i64 = 80,
        /// ID of the project to log in to.
        project_id: Option<Arc<str>>,
        /// Name of the project to log in to.
        project_name: Option<Arc<str>>,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "60s",
        /// Region of the instances or hypervisors.
        region: NotEmpty<Arc<str>>,
        /// Kind of targets to discover: `instance` or `hypervisor`.
        role: Role,
        /// ID of the user to log in as.
        userid: Option<Arc<str>>,
        /// Name of the user to log in as.
        username: Option<Arc<str>>,
    }
    blocks {
        /// TLS settings of connections to the API.
        tls_config: Option<TlsArguments>,
    }
}

choices! {
    /// The type of endpoint that requests are sent to.
    pub(crate) enum Availability {
        Public = "public",
        Internal = "internal",
        Admin = "admin",
    }
}

choices! {
    /// The kind of OpenStack resource to discover.
    pub(crate) enum Role {
        Instance = "instance",
        Hypervisor = "hypervisor",
    }
}
