//! The errors of discoveries that cannot list their targets.
//!
//! Each kind of error requires a different action of the operator: to wait for a service, to correct credentials, a
//! file or the configuration, or to shorten a list.

use std::io;
use std::path::PathBuf;

use crate::common::discovery::schema::MAX_TARGETS;
use crate::common::discovery::target_groups::GroupError;
use crate::common::http::api_error::ApiError;
use alluvium_base::dns::DnsError;
use alluvium_wire::client::ClientError;
use alluvium_wire::zookeeper::ZooKeeperError;

/// An error of another layer, as the source of a [`DiscoveryError`].
pub(crate) type Source = Box<dyn std::error::Error + Send + Sync>;

/// The reason why a discovery cannot list its targets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiscoveryError {
    /// A request failed, or its response has an unexpected form.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The session with ZooKeeper failed.
    #[error(transparent)]
    ZooKeeper(#[from] ZooKeeperError),
    /// Names cannot be looked up.
    #[error(transparent)]
    Lookup(#[from] DnsError),
    /// An operation failed, such as one call of an API.
    #[error("{operation}: {source}")]
    Operation {
        /// The operation, or the service that received the request.
        operation: String,
        source: Box<DiscoveryError>,
    },
    /// All of several equivalent servers failed, each with its own error.
    #[error("{}", joined(.0))]
    Servers(Vec<DiscoveryError>),
    /// A response can be parsed, but lacks a value or contains a wrong value.
    #[error("{0}")]
    Response(String),
    /// A part of a response cannot be parsed.
    #[error("{description}: {source}")]
    Malformed {
        /// The part, and the server that sent it.
        description: String,
        source: Source,
    },
    /// Credentials are missing, cannot be obtained, or were refused.
    #[error(transparent)]
    Credentials(Source),
    #[error("cannot read {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// A file contains an invalid list of targets.
    #[error("{}:{source}", path.display())]
    Groups { path: PathBuf, source: GroupError },
    /// There are more targets than a discovery exports.
    #[error("found {0} targets, but at most {MAX_TARGETS} are exported")]
    TooManyTargets(usize),
    /// There are more nodes in ZooKeeper than a discovery watches.
    #[error("there are more than {0} nodes below the paths in zookeeper")]
    TooManyNodes(usize),
    /// The configuration or the environment is invalid, but only a request reveals the mistake.
    #[error(transparent)]
    Configuration(Source),
    /// The task that searches for files ended early.
    #[error("the search for files failed: {0}")]
    Search(#[source] tokio::task::JoinError),
}

impl From<ClientError> for DiscoveryError {
    fn from(error: ClientError) -> Self {
        Self::Credentials(error.into())
    }
}

fn joined(errors: &[DiscoveryError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
