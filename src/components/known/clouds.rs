//! Discoveries that ask the API of a hosting company: DigitalOcean, Google, Hetzner, IONOS, Linode, OVHcloud, Scaleway.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::components::common::http_client::{HttpClientArguments, TlsArguments, Transport};
use crate::components::common::{checks, discovery};
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::{Interval, NotEmpty, Secret, choices};
use crate::lang::body::arguments;
use crate::pipeline::component::{Definition, Stability, no_metrics};

arguments! {
    /// Arguments of `discovery.digitalocean`.
    pub(crate) struct DigitalOceanArguments {
        /// Bearer token to send with every request.
        bearer_token: Option<Secret>,
        /// File with a bearer token; read for every request.
        bearer_token_file: Option<PathBuf>,
        /// Port of a target whose port is not known otherwise.
        port: i64 = 80,
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "1m",
    }
    shared { transport: Transport }
    check DigitalOceanArguments::check;
}

impl DigitalOceanArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        checks::exactly_one(&[
            ("bearer_token", self.bearer_token.is_some()),
            ("bearer_token_file", self.bearer_token_file.is_some()),
        ])
    }
}

/// The definition of `discovery.digitalocean`.
pub(crate) const DIGITALOCEAN: Definition<DigitalOceanArguments> = Definition {
    name: "discovery.digitalocean",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.digitalocean` finds the droplets of DigitalOcean.",
};

arguments! {
    /// Arguments of `discovery.gce`.
    pub(crate) struct GceArguments {
        /// Filter that the API applies, in its own language.
        filter: Option<Arc<str>>,
        /// Port of a target whose port is not known otherwise.
        port: i64 = 80,
        /// Project of the instances.
        project: Arc<str>,
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "60s",
        /// Text between the tags in the label that holds them all.
        tag_separator: Arc<str> = ",",
        /// Zone that the instances are in.
        zone: Arc<str>,
    }
}

/// The definition of `discovery.gce`.
pub(crate) const GCE: Definition<GceArguments> = Definition {
    name: "discovery.gce",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.gce` finds the instances of Google Compute Engine.",
};

arguments! {
    /// Arguments of `discovery.hetzner`.
    pub(crate) struct HetznerArguments {
        /// Port of a target whose port is not known otherwise.
        port: i64 = 80,
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "60s",
        /// What to look for: hcloud or robot.
        role: HetznerRole,
    }
    shared { client: HttpClientArguments }
}

choices! {
    /// What is looked for at Hetzner.
    pub(crate) enum HetznerRole {
        Cloud = "hcloud",
        Robot = "robot",
    }
}

/// The definition of `discovery.hetzner`.
pub(crate) const HETZNER: Definition<HetznerArguments> = Definition {
    name: "discovery.hetzner",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.hetzner` finds the servers of Hetzner Cloud or Hetzner Robot.",
};

arguments! {
    /// Arguments of `discovery.ionos`.
    pub(crate) struct IonosArguments {
        /// Id of the data center of the servers.
        datacenter_id: NotEmpty<Arc<str>>,
        /// Port of a target whose port is not known otherwise.
        port: i64 = 80,
        /// Time from one look at the targets to the next.
        refresh_interval: Interval = "60s",
    }
    shared { client: HttpClientArguments }
}

/// The definition of `discovery.ionos`.
pub(crate) const IONOS: Definition<IonosArguments> = Definition {
    name: "discovery.ionos",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.ionos` finds the servers of a data center of IONOS.",
};

arguments! {
    /// Arguments of `discovery.linode`.
    pub(crate) struct LinodeArguments {
        /// Port of a target whose port is not known otherwise.
        port: i64 = 80,
        /// Time from one look at the targets to the next.
        refresh_interval: Interval = "60s",
        /// Region to look at; empty is all.
        region: Arc<str> = "",
        /// Text between the tags in the label that holds them all.
        tag_separator: Arc<str> = ",",
    }
    shared { client: HttpClientArguments }
}

/// The definition of `discovery.linode`.
pub(crate) const LINODE: Definition<LinodeArguments> = Definition {
    name: "discovery.linode",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.linode` finds the instances of Linode.",
};

arguments! {
    /// Arguments of `discovery.ovhcloud`.
    pub(crate) struct OvhcloudArguments {
        /// Key of the application.
        application_key: NotEmpty<Arc<str>>,
        /// Secret of the application.
        application_secret: NotEmpty<Secret>,
        /// Key of the consumer of the API.
        consumer_key: NotEmpty<Secret>,
        /// Endpoint of the API, by name.
        endpoint: NotEmpty<Arc<str>> = "ovh-eu",
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "60s",
        /// What to look for: dedicated_server or vps.
        service: OvhcloudService,
    }
}

choices! {
    /// What is looked for at OVHcloud.
    pub(crate) enum OvhcloudService {
        DedicatedServer = "dedicated_server",
        Vps = "vps",
    }
}

/// The definition of `discovery.ovhcloud`.
pub(crate) const OVHCLOUD: Definition<OvhcloudArguments> = Definition {
    name: "discovery.ovhcloud",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.ovhcloud` finds the dedicated servers or the virtual private servers of OVHcloud.",
};

arguments! {
    /// Arguments of `discovery.scaleway`.
    pub(crate) struct ScalewayArguments {
        /// Access key of the project.
        access_key: NotEmpty<Arc<str>>,
        /// URL of the API, for tests and proxies.
        api_url: Arc<str> = "https://api.scaleway.com",
        /// Part of the name that a server must have.
        name_filter: Option<Arc<str>>,
        /// Port of a target whose port is not known otherwise.
        port: i64 = 80,
        /// Id of the project of the servers.
        project_id: NotEmpty<Arc<str>>,
        /// Time from one look at the targets to the next.
        refresh_interval: Duration = "60s",
        /// What to look for: instance or baremetal.
        role: ScalewayRole,
        /// Secret of the access key.
        secret_key: Option<Secret>,
        /// File with the secret of the access key.
        secret_key_file: Option<PathBuf>,
        /// Tags that a server must have, all of them.
        tags_filter: Option<Vec<Arc<str>>>,
        /// Zone that the servers are in.
        zone: Arc<str> = "fr-par-1",
    }
    blocks {
        /// Certificates of client and server.
        tls_config: Option<TlsArguments>,
    }
    shared { transport: Transport }
    check ScalewayArguments::check;
}

choices! {
    /// What is looked for at Scaleway.
    pub(crate) enum ScalewayRole {
        Instance = "instance",
        BareMetal = "baremetal",
    }
}

impl ScalewayArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        checks::exactly_one(&[
            ("secret_key", self.secret_key.is_some()),
            ("secret_key_file", self.secret_key_file.is_some()),
        ])
    }
}

/// The definition of `discovery.scaleway`.
pub(crate) const SCALEWAY: Definition<ScalewayArguments> = Definition {
    name: "discovery.scaleway",
    stability: Stability::GenerallyAvailable,
    exports: discovery::EXPORTS,
    metrics: no_metrics,
    build: None,
    doc: "`discovery.scaleway` finds the instances or the bare metal servers of Scaleway.",
};
