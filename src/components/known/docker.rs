//! `discovery.docker` and `discovery.dockerswarm`: targets from a Docker daemon.

use std::sync::Arc;

use crate::components::common::discovery::{self, Filter};
use crate::components::common::http_client::HttpClientArguments;
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::{FromValue, Interval, NotEmpty, choices, wrong};
use crate::lang::body::arguments;
use crate::lang::schema::Kind;
use crate::lang::value::Value;
use crate::pipeline::component::{Definition, Stability, no_metrics};

const SCHEMES: [&str; 5] = ["unix", "tcp", "http", "https", "npipe"];

arguments! {
    /// Arguments of `discovery.docker`.
    pub(crate) struct DockerArguments {
        /// Host in the address of containers that use the network of the host.
        host_networking_host: Arc<str> = "localhost",
        /// Whether a container counts in the first of its networks only.
        match_first_network: bool = true,
        /// Port of a target whose port is not known otherwise.
        port: i64 = 80,
        /// Time from one look at the targets to the next.
        refresh_interval: Interval = "1m",
    }
    blocks {
        /// What is looked for; all filters must match.
        filter: Vec<Filter>,
    }
    shared { daemon: Daemon, client: HttpClientArguments }
}

arguments! {
    /// Arguments of `discovery.dockerswarm`.
    pub(crate) struct SwarmArguments {
        /// Port of a target whose port is not known otherwise.
        port: i64 = 80,
        /// Time from one look at the targets to the next.
        refresh_interval: Interval = "60s",
        /// What to look for: services, tasks or nodes.
        role: SwarmRole,
    }
    blocks {
        /// What is looked for; all filters must match.
        filter: Vec<Filter>,
    }
    shared { daemon: Daemon, client: HttpClientArguments }
}

choices! {
    /// What is looked for in a swarm.
    pub(crate) enum SwarmRole {
        Services = "services",
        Tasks = "tasks",
        Nodes = "nodes",
    }
}

arguments! {
    /// Where the Docker daemon listens.
    pub(crate) struct Daemon {
        /// Address of the daemon: `unix:///var/run/docker.sock`, `tcp://HOST:PORT`, `http://HOST:PORT` or
        /// `https://HOST:PORT`.
        host: NotEmpty<DaemonAddress>,
    }
}

/// The address of a Docker daemon, with its scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DaemonAddress(Arc<str>);

impl FromValue for DaemonAddress {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let host = Arc::<str>::from_value(name, value)?;
        let scheme = host.split_once("://").map(|(scheme, _)| scheme);
        if !scheme.is_some_and(|scheme| SCHEMES.contains(&scheme)) {
            return Err(wrong(format!(
                "`{host}` must begin with one of unix://, tcp://, http://, https://, npipe://"
            )));
        }
        Ok(Self(host))
    }
}

/// The definition of `discovery.docker`.
pub(crate) const DOCKER: Definition<DockerArguments> = Definition {
    name: "discovery.docker",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.docker` finds the containers of a Docker daemon.",
};

/// The definition of `discovery.dockerswarm`.
pub(crate) const DOCKER_SWARM: Definition<SwarmArguments> = Definition {
    name: "discovery.dockerswarm",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.dockerswarm` finds the services, tasks or nodes of a Docker Swarm.",
};
