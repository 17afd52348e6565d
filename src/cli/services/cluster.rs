//! The flags `--cluster.*` of `alluvium run`: Alloy's flags and two additional flags.
//!
//! In: a command line. Out: the collector's options for the cluster. Without `--cluster.enabled` the other flags have
//! no effect, as in Alloy. With `--cluster.enabled`, a flag that enables an unsupported feature is refused by name.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::Args;

use crate::cli::services::go::{GoFlag as _, go_duration};
use alluvium_base::net::hostname;
use alluvium_cluster::Options;

/// Flags for sharing targets with other collectors.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// Join a cluster and share targets with its other collectors, in components that have a block `clustering {
    /// enabled = true }`.
    #[arg(long = "cluster.enabled", go_bool = false)]
    pub enabled: bool,
    /// Name of this collector, unique in the cluster. Defaults to the host's name.
    #[arg(long = "cluster.node-name", default_value = "")]
    pub node_name: String,
    /// Address that other collectors use to reach this collector, HOST or HOST:PORT. Defaults to the listen address or,
    /// if the port is open on all interfaces, to the address of an interface in --cluster.advertise-interfaces.
    #[arg(long = "cluster.advertise-address", default_value = "")]
    pub advertise_address: String,
    /// Network interfaces whose address is advertised if the port is open on all interfaces; `all` for any.
    #[arg(long = "cluster.advertise-interfaces", default_value = "eth0,en0")]
    pub advertise_interfaces: String,
    /// Address on which datagrams of other collectors arrive (UDP). Defaults to the address of the HTTP endpoints (not
    /// in Alloy).
    #[arg(long = "cluster.listen-addr", default_value = "", value_name = "HOST:PORT")]
    pub listen_addr: String,
    /// File with a secret of 16 bytes or more, the same for all collectors of the cluster (not in Alloy).
    #[arg(
        long = "cluster.secret-file",
        value_name = "FILE",
        env = "ALLUVIUM_CLUSTER_SECRET_FILE"
    )]
    pub secret_file: Option<PathBuf>,
    /// Collectors to join, separated by commas: HOST, HOST:PORT, or a name after dns+, dnssrv+ or dnssrvnoa+.
    #[arg(long = "cluster.join-addresses", default_value = "")]
    pub join_addresses: String,
    /// Discovery of the collectors to join. Not supported: refused together with `--cluster.enabled`.
    #[arg(
        long = "cluster.discover-peers",
        default_value = "",
        conflicts_with = "join_addresses"
    )]
    pub discover_peers: String,
    /// Interval between lookups of the collectors to join; 0 for no further lookup once a collector is found.
    #[arg(long = "cluster.rejoin-interval", default_value = "60s", value_parser = go_duration)]
    pub rejoin_interval: Duration,
    /// Maximum number of collectors to contact at each lookup; 0 for all.
    #[arg(long = "cluster.max-join-peers", default_value_t = 5)]
    pub max_join_peers: u32,
    /// Name of the cluster, the same for all its collectors.
    #[arg(long = "cluster.name", default_value = "")]
    pub name: String,
    /// TLS between collectors. Not supported: refused together with `--cluster.enabled`.
    #[arg(long = "cluster.enable-tls", go_bool = false)]
    pub enable_tls: bool,
    /// File with certificate authorities for TLS between collectors. No effect, because TLS is not supported.
    #[arg(long = "cluster.tls-ca-path", default_value = "")]
    pub tls_ca_path: String,
    /// File with the certificate for TLS between collectors. No effect, because TLS is not supported.
    #[arg(long = "cluster.tls-cert-path", default_value = "")]
    pub tls_cert_path: String,
    /// File with the private key for TLS between collectors. No effect, because TLS is not supported.
    #[arg(long = "cluster.tls-key-path", default_value = "")]
    pub tls_key_path: String,
    /// Server name for TLS between collectors. No effect, because TLS is not supported.
    #[arg(long = "cluster.tls-server-name", default_value = "")]
    pub tls_server_name: String,
    /// Number of collectors that must be present before this collector scrapes its share of the targets.
    #[arg(long = "cluster.wait-for-size", default_value_t = 0)]
    pub wait_for_size: u32,
    /// Maximum time to wait for the number of collectors in --cluster.wait-for-size; 0 for no limit.
    #[arg(long = "cluster.wait-timeout", default_value = "0s", value_parser = go_duration)]
    pub wait_timeout: Duration,
}

impl ClusterArgs {
    /// Returns an error that names the flag if `--cluster.enabled` is set together with a flag of an unsupported
    /// feature.
    pub(in crate::cli) fn check(&self) -> anyhow::Result<()> {
        let absent = [
            (
                !self.discover_peers.is_empty(),
                "cluster.discover-peers",
                "name the collectors, or a DNS name that resolves to all of them, with \
                 --cluster.join-addresses",
            ),
            (
                self.enable_tls,
                "cluster.enable-tls",
                "messages between collectors contain only names and addresses; --cluster.secret-file keeps \
                 other programs out",
            ),
        ];
        for (is_given, name, reason) in absent {
            if is_given && self.enabled {
                bail!("--{name}: not supported: {reason}; leave the flag out");
            }
        }
        Ok(())
    }

    /// Returns the name of this collector.
    pub(super) fn name_of_this(&self) -> String {
        match self.node_name.as_str() {
            "" => hostname(),
            name => name.to_owned(),
        }
    }

    /// Returns the options for the cluster; `None` when this collector runs alone.
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

    /// Returns the effective flags as `name=value`, for the support bundle. None of them is a secret.
    pub(in crate::cli) fn shown(&self) -> Vec<String> {
        let duration = |value: Duration| alluvium_base::duration::format(value);
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
