//! The flags `--cluster.*` of `alluvium run`: Alloy's, and two of our own.
//!
//! In: a command line. Out: how the collector takes part in a cluster. Without `--cluster.enabled` the others have no
//! effect, as in Alloy; what is not supported is refused by name with it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::Args;

use crate::base::net::hostname;
use crate::cli::services::go::{GoFlag as _, go_duration};
use crate::cluster::Options;

/// How the collector shares targets with others.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// Share targets with other collectors, in components that have a block `clustering { enabled = true }`.
    #[arg(long = "cluster.enabled", go_bool = false)]
    pub enabled: bool,
    /// Name of this collector, which no other has; the host's name when not given.
    #[arg(long = "cluster.node-name", default_value = "")]
    pub node_name: String,
    /// Address at which others reach this collector, HOST or HOST:PORT; found when not given.
    #[arg(long = "cluster.advertise-address", default_value = "")]
    pub advertise_address: String,
    /// Network interfaces whose address is taken, when the port is open on all; `all` for any.
    #[arg(long = "cluster.advertise-interfaces", default_value = "eth0,en0")]
    pub advertise_interfaces: String,
    /// Address of the datagrams between collectors (UDP); that of the HTTP endpoints when not given (not in Alloy).
    #[arg(long = "cluster.listen-addr", default_value = "", value_name = "HOST:PORT")]
    pub listen_addr: String,
    /// File with a secret of 16 bytes or more that all collectors of the cluster have (not in Alloy).
    #[arg(
        long = "cluster.secret-file",
        value_name = "FILE",
        env = "ALLUVIUM_CLUSTER_SECRET_FILE"
    )]
    pub secret_file: Option<PathBuf>,
    /// Collectors to join, separated by commas: HOST, HOST:PORT, or a name after dns+, dnssrv+ or dnssrvnoa+.
    #[arg(long = "cluster.join-addresses", default_value = "")]
    pub join_addresses: String,
    /// Where to ask for collectors to join; refused with `--cluster.enabled`.
    #[arg(
        long = "cluster.discover-peers",
        default_value = "",
        conflicts_with = "join_addresses"
    )]
    pub discover_peers: String,
    /// How often collectors to join are looked for again; 0 for never.
    #[arg(long = "cluster.rejoin-interval", default_value = "60s", value_parser = go_duration)]
    pub rejoin_interval: Duration,
    /// How many of them are asked each time; 0 for all.
    #[arg(long = "cluster.max-join-peers", default_value_t = 5)]
    pub max_join_peers: u32,
    /// Name that all collectors of a cluster share.
    #[arg(long = "cluster.name", default_value = "")]
    pub name: String,
    /// TLS between collectors; refused with `--cluster.enabled`.
    #[arg(long = "cluster.enable-tls", go_bool = false)]
    pub enable_tls: bool,
    /// Without effect, as there is no TLS between collectors.
    #[arg(long = "cluster.tls-ca-path", default_value = "")]
    pub tls_ca_path: String,
    /// Without effect, as there is no TLS between collectors.
    #[arg(long = "cluster.tls-cert-path", default_value = "")]
    pub tls_cert_path: String,
    /// Without effect, as there is no TLS between collectors.
    #[arg(long = "cluster.tls-key-path", default_value = "")]
    pub tls_key_path: String,
    /// Without effect, as there is no TLS between collectors.
    #[arg(long = "cluster.tls-server-name", default_value = "")]
    pub tls_server_name: String,
    /// Collectors that must be there before this one takes targets.
    #[arg(long = "cluster.wait-for-size", default_value_t = 0)]
    pub wait_for_size: u32,
    /// How long to wait for them; 0 for ever.
    #[arg(long = "cluster.wait-timeout", default_value = "0s", value_parser = go_duration)]
    pub wait_timeout: Duration,
}

impl ClusterArgs {
    /// Refuses what is not supported, by name.
    pub(in crate::cli) fn check(&self) -> anyhow::Result<()> {
        let absent = [
            (
                !self.discover_peers.is_empty(),
                "cluster.discover-peers",
                "name the collectors, or a name of the domain name system that has them all, with \
                 --cluster.join-addresses",
            ),
            (
                self.enable_tls,
                "cluster.enable-tls",
                "what collectors say to each other holds names and addresses only; --cluster.secret-file keeps \
                 strangers out",
            ),
        ];
        for (given, name, reason) in absent {
            if given && self.enabled {
                bail!("--{name}: not supported: {reason}; leave the flag out");
            }
        }
        Ok(())
    }

    /// The name of this collector.
    pub(super) fn name_of_this(&self) -> String {
        match self.node_name.as_str() {
            "" => hostname(),
            name => name.to_owned(),
        }
    }

    /// How this collector takes part; `None` when it runs alone.
    pub(in crate::cli) fn options(&self) -> Option<Options> {
        self.enabled.then(|| Options {
            name: self.name_of_this(),
            cluster: self.name.clone(),
            listen: self.listen_addr.clone(),
            advertise: self.advertise_address.clone(),
            interfaces: self.advertise_interfaces.clone(),
            join: self.join_addresses.clone(),
            rejoin_interval: self.rejoin_interval,
            most_joined: self.max_join_peers as usize,
            wait_for_size: self.wait_for_size as usize,
            wait_timeout: self.wait_timeout,
            secret: self.secret_file.clone(),
        })
    }

    /// The effective flags as `name=value`, for the support bundle. None of them is a secret.
    pub(in crate::cli) fn shown(&self) -> Vec<String> {
        let duration = |value: Duration| crate::base::duration::format(value);
        let secret_file = self.secret_file.as_ref().map(|path| path.display().to_string());
        vec![
            format!("cluster.advertise-address={}", self.advertise_address),
            format!("cluster.advertise-interfaces={}", self.advertise_interfaces),
            format!("cluster.discover-peers={}", self.discover_peers),
            format!("cluster.enable-tls={}", self.enable_tls),
            format!("cluster.enabled={}", self.enabled),
            format!("cluster.join-addresses={}", self.join_addresses),
            format!("cluster.listen-addr={}", self.listen_addr),
            format!("cluster.max-join-peers={}", self.max_join_peers),
            format!("cluster.name={}", self.name),
            format!("cluster.node-name={}", self.node_name),
            format!("cluster.rejoin-interval={}", duration(self.rejoin_interval)),
            format!("cluster.secret-file={}", secret_file.unwrap_or_default()),
            format!("cluster.tls-ca-path={}", self.tls_ca_path),
            format!("cluster.tls-cert-path={}", self.tls_cert_path),
            format!("cluster.tls-key-path={}", self.tls_key_path),
            format!("cluster.tls-server-name={}", self.tls_server_name),
            format!("cluster.wait-for-size={}", self.wait_for_size),
            format!("cluster.wait-timeout={}", duration(self.wait_timeout)),
        ]
    }
}
