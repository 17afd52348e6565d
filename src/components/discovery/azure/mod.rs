//! `discovery.azure`: discovers the virtual machines of Azure, including the virtual machines of scale sets.
//!
//! In: machines, scale sets and network interfaces from the Resource Manager. Out: a target for each machine that has a
//! primary network interface.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use url::Url;

use crate::common::arguments::checks;
use crate::common::arguments::targets::Target;
use crate::common::clouds::bearer;
use crate::common::clouds::environment::Environment;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::client::{HttpClientArguments, TlsArguments, Transport};
use crate::common::http::json_values::{list, pairs, take_list, text};
use crate::common::http::paging::{Page, all_pages, ask_each};
use crate::common::http::web_api::WebApi;
use crate::discovery::azure::cloud::{Cloud, CloudName};
use crate::discovery::azure::credentials::{Credentials, Way};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{Interval, NotEmpty, Secret};
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{ComponentError, Context, Definition};

mod cloud;
mod credentials;
#[cfg(test)]
mod tests;

/// Version of the API for machines and their interfaces.
const VERSION: &str = "2023-09-01";
/// Version of the API for the network interfaces of scale sets.
const SCALE_SET_VERSION: &str = "2018-10-01";
/// Maximum number of concurrent requests for network interfaces.
const AT_ONCE: usize = 20;
/// Number of refreshes for which network interfaces are cached. Interfaces seldom change, and each interface costs a
/// request.
const LOOKS: usize = 10;
/// Labels of a machine, each with the JSON path of its value.
const LABELS: &[(&str, &str)] = &[
    ("machine_computer_name", "/properties/osProfile/computerName"),
    ("machine_id", "/id"),
    ("machine_location", "/location"),
    ("machine_name", "/name"),
    ("machine_os_type", "/properties/storageProfile/osDisk/osType"),
    ("machine_size", "/properties/hardwareProfile/vmSize"),
];

arguments! {
    /// Arguments of `discovery.azure`.
    pub(crate) struct AzureArguments {
        /// Azure cloud of the machines: `AzurePublicCloud`, `AzureChinaCloud` or `AzureUSGovernment`.
        environment: CloudName = "AzurePublicCloud",
        /// Port in the address of each target.
        port: i64 = 80,
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "5m",
        /// Resource group of the machines. Defaults to all resource groups.
        resource_group: Option<Arc<str>>,
        /// ID of the subscription that owns the machines.
        subscription_id: NotEmpty<Arc<str>>,
    }
    blocks {
        /// Authenticates with a managed identity of the machine on which the collector runs.
        managed_identity: Option<ManagedIdentity>,
        /// Authenticates as an application with a secret.
        oauth: Option<OAuth>,
        /// Authenticates with the first of these credentials that exists: environment variables, a workload identity,
        /// a managed identity of the collector's machine. Azure's own tools use the same order.
        sdk_auth: Option<SdkAuth>,
        /// TLS settings for the connection to the server.
        tls_config: Option<TlsArguments>,
        /// Authenticates with the workload identity of a Kubernetes pod.
        workload_identity: Option<WorkloadIdentity>,
    }
    shared { transport: Transport }
    check AzureArguments::check;
}

arguments! {
    /// The body of `managed_identity { }`.
    pub(crate) struct ManagedIdentity {
        /// Client ID of the managed identity. If empty, the default identity of the collector's machine is used.
        client_id: Arc<str>,
    }
}

arguments! {
    /// The body of `oauth { }`.
    pub(crate) struct OAuth {
        /// Client ID of the registered application.
        client_id: NotEmpty<Arc<str>>,
        /// Secret of the application.
        client_secret: NotEmpty<Secret>,
        /// ID of the tenant in which the application is registered.
        tenant_id: NotEmpty<Arc<str>>,
    }
}

arguments! {
    /// The body of `sdk_auth { }`.
    pub(crate) struct SdkAuth {
        /// ID of the tenant. Defaults to the environment variable `AZURE_TENANT_ID`.
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

    fn way(&self) -> Way {
        if let Some(oauth) = &self.oauth {
            Way::Secret {
                tenant: oauth.tenant_id.0.clone(),
                client: oauth.client_id.0.clone(),
                secret: oauth.client_secret.0.clone(),
            }
        } else if let Some(identity) = &self.managed_identity {
            Way::Machine(identity.client_id.clone())
        } else if let Some(sdk) = &self.sdk_auth {
            Way::Any(sdk.tenant_id.clone())
        } else {
            Way::Workload
        }
    }

    /// Returns the tenant that the arguments name.
    fn tenant(&self) -> Option<&Arc<str>> {
        let sdk = self.sdk_auth.as_ref().and_then(|sdk| sdk.tenant_id.as_ref());
        self.oauth.as_ref().map(|oauth| &oauth.tenant_id.0).or(sdk)
    }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<AzureArguments> = polled::definition::<Azure>(
    "discovery.azure",
    "`discovery.azure` finds the virtual machines of Azure.",
);

struct Azure {
    api: WebApi,
    credentials: Credentials,
    arguments: AzureArguments,
    interfaces: Mutex<Interfaces>,
}

/// Cache of network interfaces, by ID.
#[derive(Default)]
struct Interfaces {
    looks: usize,
    known: BTreeMap<String, Arc<Value>>,
}

/// A machine, with the name of its scale set if it has one.
struct Machine {
    value: Value,
    scale_set: Option<String>,
}

impl Discovery for Azure {
    type Arguments = AzureArguments;

    fn new(arguments: &AzureArguments, context: &Context) -> Result<Self, ComponentError> {
        let cloud = arguments.environment.cloud();
        let cloud = cloud.map_err(|error| ComponentError(error.to_string()))?;
        Self::with_cloud(cloud, arguments, context, Environment::of_process())
    }

    fn interval(&self) -> Duration {
        self.arguments.refresh_interval.get()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let targets = self.list().await;
        if targets.is_err() {
            self.credentials.forget().await;
        }
        targets
    }
}

impl Azure {
    fn with_cloud(
        cloud: Cloud,
        arguments: &AzureArguments,
        context: &Context,
        environment: Environment,
    ) -> Result<Self, ComponentError> {
        let client = HttpClientArguments {
            tls_config: arguments.tls_config.clone(),
            ..HttpClientArguments::with_transport(&arguments.transport)
        };
        let options = client.options(&context.user_agent);
        Ok(Self {
            api: WebApi::with_options(&options, &cloud.manager)?,
            credentials: Credentials::new(arguments.way(), cloud, &options, environment)?,
            arguments: arguments.clone(),
            interfaces: Mutex::default(),
        })
    }

    async fn list(&self) -> Result<Vec<Target>, DiscoveryError> {
        let scope = self.scope();
        let path = |kind: &str| format!("{scope}/providers/Microsoft.Compute/{kind}");
        let single_machines = self.values(path("virtualMachines")).await?.into_iter();
        let mut machines: Vec<Machine> = single_machines
            .map(|value| Machine { value, scale_set: None })
            .collect();
        for scale_set in self.values(path("virtualMachineScaleSets")).await? {
            let (Some(id), Some(name)) = (text(&scale_set, "/id"), text(&scale_set, "/name")) else {
                let missing = "a scale set has no id or no name";
                return Err(DiscoveryError::Response(missing.to_owned()));
            };
            let machine = |value| Machine {
                value,
                scale_set: Some(name.to_owned()),
            };
            machines.extend(
                self.values(format!("{id}/virtualMachines"))
                    .await?
                    .into_iter()
                    .map(machine),
            );
        }
        self.start_look();
        let targets = ask_each(machines, AT_ONCE, |machine| self.target(machine)).await?;
        Ok(targets.into_iter().flatten().collect())
    }

    fn scope(&self) -> String {
        let subscription = format!("/subscriptions/{}", self.arguments.subscription_id.0);
        match &self.arguments.resource_group {
            Some(group) => format!("{subscription}/resourceGroups/{group}"),
            None => subscription,
        }
    }

    /// Returns all values of a list. All pages have the same path, so only the query of `nextLink` is used.
    async fn values(&self, path: String) -> Result<Vec<Value>, DiscoveryError> {
        let path = path.as_str();
        let values = all_pages(|query: Option<String>| async move {
            let query = query.unwrap_or_else(|| format!("api-version={VERSION}"));
            let mut answer: Value = self
                .api
                .get(self.url(path, &query), self.header().await?)
                .await?
                .json()?;
            let next = text(&answer, "/nextLink").and_then(|next| next.split_once('?'));
            Ok(Page {
                next: next.map(|(_, query)| query.to_owned()),
                items: take_list(&mut answer, "/value")?,
            })
        });
        values.await
    }

    fn url(&self, path: &str, query: &str) -> Url {
        let mut url = self.api.url([]);
        url.set_path(path);
        url.set_query(Some(query));
        url
    }

    async fn header(&self) -> Result<http::HeaderMap, DiscoveryError> {
        Ok(bearer::header(&self.credentials.token().await?)?)
    }

    /// Counts a refresh. Clears the cache of interfaces after [`LOOKS`] refreshes.
    fn start_look(&self) {
        let mut interfaces = self.interfaces.lock();
        interfaces.looks += 1;
        if interfaces.looks > LOOKS {
            *interfaces = Interfaces {
                looks: 1,
                ..Interfaces::default()
            };
        }
    }

    /// Returns a network interface, or `None` if it no longer exists.
    async fn interface(&self, id: &str, machine: &Machine) -> Result<Option<Arc<Value>>, DiscoveryError> {
        let known = self.interfaces.lock().known.get(id).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let version = machine.scale_set.as_ref().map_or(VERSION, |_| SCALE_SET_VERSION);
        let query = format!("api-version={version}&$expand=ipConfigurations/publicIPAddress");
        let Some(answer) = self.api.find(self.url(id, &query), self.header().await?).await? else {
            return Ok(None);
        };
        let interface = Arc::new(answer.json()?);
        self.interfaces
            .lock()
            .known
            .insert(id.to_owned(), Arc::clone(&interface));
        Ok(Some(interface))
    }

    /// Returns the target of a machine. Returns `None` if the machine is switched off and therefore has no primary
    /// interface, or if one of its interfaces no longer exists.
    async fn target(&self, machine: Machine) -> Result<Option<Target>, DiscoveryError> {
        let value = &machine.value;
        let mut labels = MetaLabels::new("__meta_azure_");
        labels
            .set("subscription_id", &self.arguments.subscription_id.0)
            .set_some("tenant_id", self.arguments.tenant())
            .set_json(value, LABELS)
            .set_some("machine_resource_group", text(value, "/id").and_then(resource_group))
            .set_some("machine_scale_set", machine.scale_set.as_ref())
            .set_each("machine_tag_", pairs(value, "/tags"));
        for reference in list(value, "/properties/networkProfile/networkInterfaces") {
            let Some(id) = text(reference, "/id") else { continue };
            let Some(interface) = self.interface(id, &machine).await? else {
                tracing::warn!(
                    interface = id,
                    "network interface no longer exists, its machine is skipped"
                );
                return Ok(None);
            };
            match interface.pointer("/properties/primary").and_then(Value::as_bool) {
                Some(true) => {}
                Some(false) => continue,
                None => return Ok(None),
            }
            let path = "/properties/ipConfigurations/0/properties/privateIPAddress";
            let name = text(value, "/name").unwrap_or_default();
            let address = text(&interface, path)
                .ok_or_else(|| DiscoveryError::Response(format!("the machine {name} has no private address")))?;
            let public = "/properties/ipConfigurations/0/properties/publicIPAddress/properties/ipAddress";
            labels.set_some("machine_public_ip", text(&interface, public));
            labels.set("machine_private_ip", address);
            return Ok(Some(labels.with_address(host_port(address, self.arguments.port))));
        }
        Ok(None)
    }
}

/// Returns the resource group in the ID of a resource.
fn resource_group(id: &str) -> Option<&str> {
    let mut segments = id
        .split('/')
        .skip_while(|segment| !segment.eq_ignore_ascii_case("resourceGroups"));
    segments.nth(1)
}
