//! Discoveries that ask a registry of services: Eureka, Kuma, Marathon, PuppetDB, Uyuni, and Nerve and Serverset in
//! ZooKeeper.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::components::common::http_client::{HttpClientArguments, TlsArguments, Transport};
use crate::components::common::http_values::HttpUrl;
use crate::components::common::{checks, discovery};
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::{FromValue, Interval, NotEmpty, Secret, wrong};
use crate::lang::body::arguments;
use crate::lang::schema::Kind;
use crate::lang::value::Value;
use crate::pipeline::component::{Definition, Stability, no_metrics};

arguments! {
    /// Arguments of `discovery.eureka`.
    pub(crate) struct EurekaArguments {
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "30s",
        /// URL of the Eureka registry.
        server: HttpUrl,
    }
    shared { client: HttpClientArguments }
}

/// The definition of `discovery.eureka`.
pub(crate) const EUREKA: Definition<EurekaArguments> = Definition {
    name: "discovery.eureka",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.eureka` finds the instances of a Eureka registry.",
};

arguments! {
    /// Arguments of `discovery.kuma`.
    pub(crate) struct KumaArguments {
        /// Longest time that a request may take.
        fetch_timeout: Interval = "2m",
        /// Time from one look at the targets to the next.
        refresh_interval: Interval = "30s",
        /// URL of the control plane.
        server: Arc<str>,
    }
    shared { client: HttpClientArguments }
}

/// The definition of `discovery.kuma`.
pub(crate) const KUMA: Definition<KumaArguments> = Definition {
    name: "discovery.kuma",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.kuma` finds the proxies of a Kuma control plane.",
};

arguments! {
    /// Arguments of `discovery.marathon`.
    pub(crate) struct MarathonArguments {
        /// Token of DC/OS, sent with every request.
        auth_token: Option<Secret>,
        /// File with the token of DC/OS.
        auth_token_file: Option<PathBuf>,
        /// Time from one look at the targets to the next.
        refresh_interval: Interval = "30s",
        /// URLs of the Marathon servers.
        servers: NotEmpty<Vec<Arc<str>>>,
    }
    shared { client: HttpClientArguments }
    check MarathonArguments::check;
}

impl MarathonArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        let token = ("auth_token", self.auth_token.is_some());
        let file = ("auth_token_file", self.auth_token_file.is_some());
        let client = &self.client;
        checks::at_most_one(&[token, file, ("basic_auth", client.basic_auth.is_some())])?;
        let bearer = ("bearer_token", client.bearer_token.is_some());
        let bearer_file = ("bearer_token_file", client.bearer_token_file.is_some());
        checks::at_most_one(&[token, file, bearer, bearer_file])?;
        checks::at_most_one(&[token, file, ("authorization", client.authorization.is_some())])
    }
}

/// The definition of `discovery.marathon`.
pub(crate) const MARATHON: Definition<MarathonArguments> = Definition {
    name: "discovery.marathon",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.marathon` finds the tasks of a Marathon cluster.",
};

arguments! {
    /// Arguments of `discovery.nerve`.
    pub(crate) struct NerveArguments {
        /// Paths in ZooKeeper to look at.
        paths: Vec<Arc<str>>,
        /// Servers of ZooKeeper, HOST:PORT.
        servers: Vec<Arc<str>>,
        /// Longest silence before a session with ZooKeeper is over.
        timeout: Interval = "10s",
    }
}

/// The definition of `discovery.nerve`.
pub(crate) const NERVE: Definition<NerveArguments> = Definition {
    name: "discovery.nerve",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.nerve` finds the services that Nerve writes into ZooKeeper.",
};

arguments! {
    /// Arguments of `discovery.puppetdb`.
    pub(crate) struct PuppetDbArguments {
        /// Whether the parameters of a resource become labels; they may hold secrets.
        include_parameters: bool = false,
        /// Port of a target whose port is not known otherwise.
        port: i64 = 80,
        /// Query in the Puppet Query Language.
        query: Arc<str>,
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "60s",
        /// URL of the PuppetDB server.
        url: HttpUrl,
    }
    shared { client: HttpClientArguments }
}

/// The definition of `discovery.puppetdb`.
pub(crate) const PUPPETDB: Definition<PuppetDbArguments> = Definition {
    name: "discovery.puppetdb",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.puppetdb` finds the resources of a PuppetDB.",
};

arguments! {
    /// Arguments of `discovery.serverset`.
    pub(crate) struct ServersetArguments {
        /// Paths in ZooKeeper to look at.
        paths: NotEmpty<Vec<ZooKeeperPath>>,
        /// Servers of ZooKeeper, HOST:PORT.
        servers: NotEmpty<Vec<Arc<str>>>,
        /// Longest silence before a session with ZooKeeper is over.
        timeout: Interval = "10s",
    }
}

/// A path in ZooKeeper, which begins at its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ZooKeeperPath(Arc<str>);

impl FromValue for ZooKeeperPath {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let path = Arc::<str>::from_value(name, value)?;
        if !path.starts_with('/') {
            return Err(wrong(format!("`{path}` must begin with /")));
        }
        Ok(Self(path))
    }
}

/// The definition of `discovery.serverset`.
pub(crate) const SERVERSET: Definition<ServersetArguments> = Definition {
    name: "discovery.serverset",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.serverset` finds the members of serversets in ZooKeeper.",
};

arguments! {
    /// Arguments of `discovery.uyuni`.
    pub(crate) struct UyuniArguments {
        /// Entitlement that a system must have.
        entitlement: Arc<str> = "monitoring_entitled",
        /// Password to log in with.
        password: Secret,
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "1m",
        /// Text between the groups in the label that holds them all.
        separator: Arc<str> = ",",
        /// URL of the Uyuni server.
        server: HttpUrl,
        /// User name that the server knows.
        username: Arc<str>,
    }
    blocks {
        /// Certificates of client and server.
        tls_config: Option<TlsArguments>,
    }
    shared { transport: Transport }
}

/// The definition of `discovery.uyuni`.
pub(crate) const UYUNI: Definition<UyuniArguments> = Definition {
    name: "discovery.uyuni",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.uyuni` finds the systems that a Uyuni server monitors.",
};
