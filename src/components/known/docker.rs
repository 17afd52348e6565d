//! `discovery.docker` and `discovery.dockerswarm`: targets from a Docker daemon.
//!
//! Schema and checks.

use crate::components::common::{checks, discovery, http_client};
use crate::lang::schema::{Arguments, Attribute, Kind, Schema, attributes, blocks};
use crate::pipeline::component::{ArgumentError, Definition, Stability};

const HOST: Attribute = Attribute::required(
    "host",
    Kind::String,
    "Address of the daemon: `unix:///var/run/docker.sock`, `tcp://HOST:PORT`, `http://HOST:PORT` or `https://HOST:PORT`.",
);
const SCHEMES: [&str; 5] = ["unix", "tcp", "http", "https", "npipe"];

/// `discovery.docker`
pub const DOCKER: Definition = Definition {
    name: "discovery.docker",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                HOST,
                Attribute::with_default(
                    "host_networking_host",
                    Kind::String,
                    "\"localhost\"",
                    "Host in the address of containers that use the network of the host.",
                ),
                Attribute::with_default(
                    "match_first_network",
                    Kind::Bool,
                    "true",
                    "Whether a container counts in the first of its networks only.",
                ),
                discovery::port("80"),
                discovery::refresh_interval("\"1m\""),
            ],
            http_client::ATTRIBUTES
        ),
        blocks: blocks!(&[discovery::FILTER], http_client::BLOCKS),
    },
    exports: discovery::EXPORTS,
    validate: check,
    build: None,
    doc: "`discovery.docker` finds the containers of a Docker daemon.",
};

/// `discovery.dockerswarm`
pub const DOCKER_SWARM: Definition = Definition {
    name: "discovery.dockerswarm",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                HOST,
                discovery::port("80"),
                discovery::refresh_interval("\"60s\""),
                Attribute::required("role", Kind::String, "What to look for: services, tasks or nodes."),
            ],
            http_client::ATTRIBUTES
        ),
        blocks: blocks!(&[discovery::FILTER], http_client::BLOCKS),
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        checks::choice(arguments, "", "role", &["services", "tasks", "nodes"])?;
        check(arguments)
    },
    build: None,
    doc: "`discovery.dockerswarm` finds the services, tasks or nodes of a Docker Swarm.",
};

fn check(arguments: &Arguments) -> Result<(), ArgumentError> {
    checks::not_empty(arguments, "", "host")?;
    let host = arguments.string("host");
    let scheme = host.split_once("://").map(|(scheme, _)| scheme);
    if !scheme.is_some_and(|scheme| SCHEMES.contains(&scheme)) {
        let message = format!("`{host}` must begin with one of unix://, tcp://, http://, https://, npipe://");
        return Err(checks::error("host", message));
    }
    discovery::check_refresh_interval(arguments)?;
    http_client::check(arguments, "")
}
