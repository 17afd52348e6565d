//! `discovery.consul`, `discovery.consulagent` and `discovery.nomad`: targets from HashiCorp's catalogs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::components::common::discovery;
use crate::components::common::http_client::{HttpClientArguments, TlsArguments};
use crate::lang::attribute::{Interval, NotEmpty, Secret};
use crate::lang::body::arguments;
use crate::pipeline::component::{Definition, Stability, no_metrics};

arguments! {
    /// Arguments of `discovery.consul`.
    pub(crate) struct ConsulArguments {
        /// Whether any server may answer, not only the leader.
        allow_stale: bool = true,
        /// Namespace of the services (Consul Enterprise).
        namespace: Option<Arc<str>>,
        /// Metadata that a node must have for its services to count.
        node_meta: Option<BTreeMap<Arc<str>, Arc<str>>>,
        /// Admin partition of the services (Consul Enterprise).
        partition: Option<Arc<str>>,
    }
    shared { catalog: Catalog, client: HttpClientArguments }
}

arguments! {
    /// Arguments of `discovery.consulagent`.
    pub(crate) struct ConsulAgentArguments {}
    blocks {
        /// Certificates of client and server.
        tls_config: Option<TlsArguments>,
    }
    shared { catalog: Catalog }
}

arguments! {
    /// Arguments of `discovery.nomad`.
    pub(crate) struct NomadArguments {
        /// Whether any server may answer, not only the leader.
        allow_stale: bool = true,
        /// Namespace of the services.
        namespace: Arc<str> = "default",
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "60s",
        /// Region that the servers are in.
        region: Arc<str> = "global",
        /// URL of the server, with its port.
        server: NotEmpty<Arc<str>> = "http://localhost:4646",
        /// Text between the tags in the label that holds them all.
        tag_separator: Arc<str> = ",",
    }
    shared { client: HttpClientArguments }
}

arguments! {
    /// What is asked of a Consul agent.
    pub(crate) struct Catalog {
        /// Data center; not set, that of the agent.
        datacenter: Option<Arc<str>>,
        /// Password (old form of basic_auth).
        password: Option<Secret>,
        /// Time from one look at the targets to the next.
        refresh_interval: Interval = "30s",
        /// Scheme of the agent's URL: http or https.
        scheme: Arc<str> = "http",
        /// Host and port of the agent.
        server: Arc<str> = "localhost:8500",
        /// Services to look for; not set, all.
        services: Option<Vec<Arc<str>>>,
        /// Text between the tags in the label that holds them all.
        tag_separator: Arc<str> = ",",
        /// Tags that a service must have, all of them.
        tags: Option<Vec<Arc<str>>>,
        /// Token of the API, sent with every request.
        token: Option<Secret>,
        /// User (old form of basic_auth).
        username: Option<Arc<str>>,
    }
}

/// The definition of `discovery.consul`.
pub(crate) const CONSUL: Definition<ConsulArguments> = Definition {
    name: "discovery.consul",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.consul` finds the services of a Consul catalog.",
};

/// The definition of `discovery.consulagent`.
pub(crate) const CONSUL_AGENT: Definition<ConsulAgentArguments> = Definition {
    name: "discovery.consulagent",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.consulagent` finds the services of one Consul agent.",
};

/// The definition of `discovery.nomad`.
pub(crate) const NOMAD: Definition<NomadArguments> = Definition {
    name: "discovery.nomad",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.nomad` finds the services of a Nomad cluster.",
};
