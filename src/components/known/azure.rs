//! `discovery.azure`: targets from Azure's API.

use std::sync::Arc;
use std::time::Duration;

use crate::components::common::http_client::{TlsArguments, Transport};
use crate::components::common::{checks, discovery};
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::Secret;
use crate::lang::body::arguments;
use crate::pipeline::component::{Definition, Stability, no_metrics};

arguments! {
    /// Arguments of `discovery.azure`.
    pub(crate) struct AzureArguments {
        /// Cloud of Azure that is asked.
        environment: Arc<str> = "AzurePublicCloud",
        /// Port of a target whose port is not known otherwise.
        port: i64 = 80,
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "5m",
        /// Resource group to look at; not set, all.
        resource_group: Option<Arc<str>>,
        /// Subscription to look at.
        subscription_id: Option<Arc<str>>,
    }
    blocks {
        /// Credentials: an identity of the machine.
        managed_identity: Option<ManagedIdentity>,
        /// Credentials: an application and its secret.
        oauth: Option<OAuth>,
        /// Credentials: as Azure's own tools find them.
        sdk_auth: Option<SdkAuth>,
        /// Certificates of client and server.
        tls_config: Option<TlsArguments>,
        /// Credentials: the identity of a workload in Kubernetes.
        workload_identity: Option<WorkloadIdentity>,
    }
    shared { transport: Transport }
    check AzureArguments::check;
}

arguments! {
    /// The body of `managed_identity { }`.
    pub(crate) struct ManagedIdentity {
        /// Id of the managed identity.
        client_id: Arc<str>,
    }
}

arguments! {
    /// The body of `oauth { }`.
    pub(crate) struct OAuth {
        /// Id of the registered application.
        client_id: Arc<str>,
        /// Secret of the application.
        client_secret: Secret,
        /// Id of the tenant that the application is in.
        tenant_id: Arc<str>,
    }
}

arguments! {
    /// The body of `sdk_auth { }`.
    pub(crate) struct SdkAuth {
        /// Id of the tenant; not set, the one of the credentials.
        tenant_id: Option<Arc<str>>,
    }
}

arguments! {
    /// The body of `workload_identity { }`.
    pub(crate) struct WorkloadIdentity {}
}

impl AzureArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        checks::exactly_one(&[
            ("oauth", self.oauth.is_some()),
            ("managed_identity", self.managed_identity.is_some()),
            ("sdk_auth", self.sdk_auth.is_some()),
            ("workload_identity", self.workload_identity.is_some()),
        ])
    }
}

/// The definition of `discovery.azure`.
pub(crate) const DEFINITION: Definition<AzureArguments> = Definition {
    name: "discovery.azure",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.azure` finds the virtual machines of Azure.",
};
