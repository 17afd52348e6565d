//! `discovery.openstack`: discovers the instances or the hypervisors of an OpenStack cloud.
//!
//! In: the lists of Nova and Neutron, page by page, requested with a token from Keystone. Out: a target for each
//! hypervisor, or for each address of each instance except floating addresses.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderMap;
use serde_json::Value;
use url::Url;

use crate::common::arguments::targets::Target;
use crate::common::clouds::environment::Environment;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::{MetaLabels, host_port};
use crate::common::discovery::polled;
use crate::common::discovery::polled::Discovery;
use crate::common::http::client::tls;
use crate::common::http::json_values::{list, pairs, take_list, text};
use crate::common::http::paging::{Page, all_pages};
use crate::common::http::web_api::WebApi;
use crate::discovery::openstack::arguments::{Availability, OpenStackArguments, Role};
use crate::discovery::openstack::keystone::{Keystone, Session};
use alluvium_pipeline::component::{ComponentError, Context, Definition};
use alluvium_wire::client::ClientOptions;

mod arguments;
mod keystone;
#[cfg(test)]
mod tests;

/// Labels of a target, each with the JSON path of its value in the instance. Newer versions of the API return the name
/// of the flavor, older versions its ID.
const INSTANCE_LABELS: &[(&str, &str)] = &[
    ("instance_flavor", "/flavor/id"),
    ("instance_flavor", "/flavor/original_name"),
    ("instance_id", "/id"),
    ("instance_image", "/image/id"),
    ("instance_name", "/name"),
    ("instance_status", "/status"),
    ("project_id", "/tenant_id"),
    ("user_id", "/user_id"),
];
/// Labels of a target, each with the JSON path of its value in the hypervisor.
const HYPERVISOR_LABELS: &[(&str, &str)] = &[
    ("hypervisor_host_ip", "/host_ip"),
    ("hypervisor_hostname", "/hypervisor_hostname"),
    ("hypervisor_id", "/id"),
    ("hypervisor_state", "/state"),
    ("hypervisor_status", "/status"),
    ("hypervisor_type", "/hypervisor_type"),
];

/// The component's definition.
pub(crate) const DEFINITION: Definition<OpenStackArguments> = polled::definition::<OpenStack>(
    "discovery.openstack",
    "`discovery.openstack` finds the instances or the hypervisors of an OpenStack cloud.",
);

struct OpenStack {
    api: WebApi,
    keystone: Keystone,
    arguments: OpenStackArguments,
}

impl Discovery for OpenStack {
    type Arguments = OpenStackArguments;

    fn new(arguments: &OpenStackArguments, context: &Context) -> Result<Self, ComponentError> {
        Self::within(arguments, context, &Environment::of_process())
    }

    fn interval(&self) -> Duration {
        self.arguments.refresh_interval.get()
    }

    async fn targets(&self) -> Result<Vec<Target>, DiscoveryError> {
        let session = self.keystone.session().await?;
        let targets = match self.arguments.role {
            Role::Instance => self.instances(&session).await,
            Role::Hypervisor => self.hypervisors(&session).await,
        };
        if targets.is_err() {
            self.keystone.forget().await;
        }
        targets
    }
}

impl OpenStack {
    fn within(
        arguments: &OpenStackArguments,
        context: &Context,
        environment: &Environment,
    ) -> Result<Self, ComponentError> {
        let options = ClientOptions {
            tls: tls(arguments.tls_config.as_ref()),
            ..ClientOptions::new(context.user_agent.clone())
        };
        let (url, login) = keystone::login(arguments, environment)?;
        let api = WebApi::with_options(&options, &url)?;
        Ok(Self {
            keystone: Keystone::new(api.clone(), login),
            api,
            arguments: arguments.clone(),
        })
    }

    async fn hypervisors(&self, session: &Session) -> Result<Vec<Target>, DiscoveryError> {
        let url = self.endpoint(session, "compute", &["os-hypervisors", "detail"])?;
        let hypervisors = self.all(session, url, "hypervisors").await?;
        let target = |hypervisor: &Value| {
            let mut labels = MetaLabels::new("__meta_openstack_");
            labels.set_json(hypervisor, HYPERVISOR_LABELS);
            labels.with_address(host_port(
                text(hypervisor, "/host_ip").unwrap_or_default(),
                self.arguments.port,
            ))
        };
        Ok(hypervisors.iter().map(target).collect())
    }

    async fn instances(&self, session: &Session) -> Result<Vec<Target>, DiscoveryError> {
        let floating = self.floating_addresses(session).await?;
        let mut url = self.endpoint(session, "compute", &["servers", "detail"])?;
        if self.arguments.all_tenants {
            url.query_pairs_mut().append_pair("all_tenants", "true");
        }
        let servers = self.all(session, url, "servers").await?;
        Ok(servers
            .iter()
            .flat_map(|server| self.instance(server, &floating))
            .collect())
    }

    /// Returns the floating addresses by instance and fixed address.
    async fn floating_addresses(
        &self,
        session: &Session,
    ) -> Result<BTreeMap<(String, String), String>, DiscoveryError> {
        let url = self.endpoint(session, "network", &["v2.0", "ports"])?;
        let ports = self.all(session, url, "ports").await?;
        let device = |port: &Value| Some((text(port, "/id")?.to_owned(), text(port, "/device_id")?.to_owned()));
        let devices: BTreeMap<String, String> = ports.iter().filter_map(device).collect();
        let url = self.endpoint(session, "network", &["v2.0", "floatingips"])?;
        let addresses = self.all(session, url, "floatingips").await?;
        let address = |own: &Value| {
            let device = devices.get(text(own, "/port_id")?)?;
            let fixed = text(own, "/fixed_ip_address")?.to_owned();
            Some(((device.clone(), fixed), text(own, "/floating_ip_address")?.to_owned()))
        };
        Ok(addresses.iter().filter_map(address).collect())
    }

    fn instance(&self, server: &Value, floating: &BTreeMap<(String, String), String>) -> Vec<Target> {
        let mut labels = MetaLabels::new("__meta_openstack_");
        labels
            .set_json(server, INSTANCE_LABELS)
            .set_each("tag_", pairs(server, "/metadata"));
        let id = text(server, "/id").unwrap_or_default();
        let pools = server.get("addresses").and_then(Value::as_object).into_iter().flatten();
        let addresses = pools.flat_map(|(pool, addresses)| list(addresses, "").iter().map(move |own| (pool, own)));
        let target = |(pool, own): (&String, &Value)| {
            let address = text(own, "/addr")?;
            if floating.values().any(|floating| floating == address) {
                return None;
            }
            let mut labels = labels.clone();
            labels
                .set("address_pool", pool)
                .set("private_ip", address)
                .set_some("public_ip", floating.get(&(id.to_owned(), address.to_owned())));
            Some(labels.with_address(host_port(address, self.arguments.port)))
        };
        addresses.filter_map(target).collect()
    }

    fn endpoint(&self, session: &Session, service: &str, path: &[&str]) -> Result<Url, DiscoveryError> {
        let interface = match self.arguments.availability {
            Availability::Public => "public",
            Availability::Internal => "internal",
            Availability::Admin => "admin",
        };
        let mut url = session.endpoint(service, interface, &self.arguments.region.0)?;
        // The catalog lists the URL of an endpoint with or without the version at its end.
        let has_version = url.path().trim_end_matches('/').ends_with("/v2.0");
        let path = if has_version {
            path.strip_prefix(&["v2.0"]).unwrap_or(path)
        } else {
            path
        };
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        Ok(url)
    }

    /// Returns all items of a list. A page contains the URL of the next page. Only the query of that URL
    /// differs from `url`.
    async fn all(&self, session: &Session, url: Url, field: &str) -> Result<Vec<Value>, DiscoveryError> {
        let url = &url;
        let all = all_pages(|query: Option<String>| async move {
            let mut url = url.clone();
            if let Some(query) = query {
                url.set_query(Some(&query));
            }
            let headers: HeaderMap = session.headers();
            let mut answer: Value = self.api.get(url, headers).await?.json()?;
            let links = list(&answer, &format!("/{field}_links")).iter();
            let next = links
                .filter(|link| text(link, "/rel") == Some("next"))
                .find_map(|link| text(link, "/href"));
            Ok(Page {
                next: next
                    .and_then(|next| next.split_once('?'))
                    .map(|(_, query)| query.to_owned()),
                items: take_list(&mut answer, &format!("/{field}"))?,
            })
        });
        all.await
    }
}
