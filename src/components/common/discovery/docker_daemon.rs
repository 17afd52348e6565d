//! The API of a Docker daemon: its address, lists of its objects, such as containers, and the labels of its networks.
//!
//! In: the arguments of a client of the daemon. Out: lists of objects. Podman has the same API. Paths contain no API
//! version, so the daemon uses its newest version.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::meta_labels::MetaLabels;
use crate::common::discovery::schema::Filter;
use crate::common::http::client::HttpClientArguments;
use crate::common::http::values::http_url;
use crate::common::http::web_api::WebApi;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, NotEmpty, wrong};
use alluvium_lang::body::arguments;
use alluvium_lang::schema::Kind;
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{ComponentError, Context};

arguments! {
    /// Address of the Docker daemon, and the arguments of its client.
    pub(crate) struct Daemon {
        /// Address of the daemon: `unix:///var/run/docker.sock`, `tcp://HOST:PORT`, `http://HOST:PORT` or
        /// `https://HOST:PORT`.
        host: NotEmpty<DaemonAddress>,
    }
    shared { client: HttpClientArguments }
    check Daemon::check;
}

/// The address of a Docker daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DaemonAddress {
    written: Arc<str>,
    location: DaemonEndpoint,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum DaemonEndpoint {
    Socket(PathBuf),
    /// A `tcp://` address, stored as an `http://` URL. The client arguments decide whether TLS is used.
    Tcp(Url),
    Web(Url),
}

/// Labels of an object. If an object has no labels, Docker omits the field or sends null.
pub(crate) type ObjectLabels = Option<BTreeMap<String, String>>;

/// A client of a Docker daemon.
pub(crate) struct DockerApi {
    api: WebApi,
    host: Arc<str>,
}

/// The networks of a daemon, by id.
pub(crate) struct Networks(BTreeMap<String, Network>);

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "PascalCase")]
struct Network {
    id: String,
    name: String,
    scope: String,
    internal: bool,
    ingress: bool,
    labels: ObjectLabels,
}

impl FromValue for DaemonAddress {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let written = Arc::<str>::from_value(name, value)?;
        let location = match written.split_once("://") {
            Some(("unix", path)) if path.starts_with('/') => DaemonEndpoint::Socket(path.into()),
            Some(("unix", _)) => return Err(wrong(format!("`{written}` must have a path that begins with /"))),
            Some(("tcp", rest)) => DaemonEndpoint::Tcp(http_url(&format!("http://{rest}")).map_err(wrong)?),
            Some(("http" | "https", _)) => DaemonEndpoint::Web(http_url(&written).map_err(wrong)?),
            _ => {
                return Err(wrong(format!(
                    "`{written}` must begin with one of unix://, tcp://, http://, https://"
                )));
            }
        };
        Ok(Self { written, location })
    }
}

impl Daemon {
    /// Returns an error for client arguments that a Unix socket does not support.
    fn check(&self) -> Result<(), ArgumentError> {
        let is_socket = matches!(self.host.0.location, DaemonEndpoint::Socket(_));
        let proxy = &self.client.transport.proxy;
        for (name, is_given) in [
            ("tls_config", self.client.tls_config.is_some()),
            ("proxy_url", proxy.proxy_url.is_some()),
        ] {
            if is_socket && is_given {
                let message = format!("{name} cannot be used with a unix:// host");
                return Err(ArgumentError::new(name, message));
            }
        }
        Ok(())
    }
}

impl DockerApi {
    /// Creates a client of the daemon. `timeout` limits each request.
    pub(crate) fn new(daemon: &Daemon, context: &Context, timeout: Duration) -> Result<Self, ComponentError> {
        let Daemon { host, client } = daemon;
        let DaemonAddress { written, location } = &host.0;
        let mut options = client.options(&context.user_agent);
        let base = match location {
            DaemonEndpoint::Socket(path) => {
                options.unix_socket = Some(path.clone());
                http_url("http://docker")
            }
            DaemonEndpoint::Tcp(url) if client.tls_config.is_some() => {
                http_url(&url.as_str().replacen("http", "https", 1))
            }
            DaemonEndpoint::Tcp(url) | DaemonEndpoint::Web(url) => Ok(url.clone()),
        };
        let api = WebApi::with_options(&options, &base.map_err(ComponentError::new)?)?;
        Ok(Self {
            api: api.with_timeout(timeout),
            host: written.clone(),
        })
    }

    /// Returns the objects of the list at `path` that match all filters.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        filters: &[Filter],
    ) -> Result<Vec<T>, DiscoveryError> {
        let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for filter in filters {
            let values = filter.values.0.iter().map(|value| &**value);
            by_name.entry(&filter.name).or_default().extend(values);
        }
        let mut url = self.api.url(path.split('/'));
        if !by_name.is_empty() {
            let filters = serde_json::json!(by_name).to_string();
            url.query_pairs_mut().append_pair("filters", &filters);
        }
        let listed = self.api.json(url).await;
        listed.map_err(|error| DiscoveryError::Operation {
            operation: format!("docker at {}", self.host),
            source: Box::new(error.into()),
        })
    }

    /// Returns the networks of the daemon, by id.
    pub(crate) async fn networks(&self) -> Result<Networks, DiscoveryError> {
        let listed: Vec<Network> = self.list("networks", &[]).await?;
        let by_id = listed.into_iter().map(|network| (network.id.clone(), network));
        Ok(Networks(by_id.collect()))
    }
}

impl Networks {
    /// Adds the labels of the network `id` to `labels`, if the network exists.
    pub(crate) fn label(&self, id: &str, labels: &mut MetaLabels) {
        let Some(network) = self.0.get(id) else { return };
        labels
            .set("network_id", &network.id)
            .set("network_name", &network.name)
            .set("network_scope", &network.scope)
            .set("network_internal", network.internal)
            .set("network_ingress", network.ingress)
            .set_each("network_label_", network.labels.iter().flatten());
    }
}
