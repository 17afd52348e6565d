//! Metrics of the cluster, under Alloy's names where Alloy has them.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::envelope::Refused;
use crate::view::{Part, View};
use alluvium_telemetry::metrics::Scope;

type Labels = Vec<(&'static str, String)>;

/// Handles of the metrics of one member.
pub(super) struct ClusterMetrics {
    part: Family<Labels, Gauge>,
    members: Family<Labels, Gauge>,
    observers: Gauge,
    is_ready: Gauge,
    /// Number of members that this member waits for.
    pub min_members: Gauge,
    pub received: Counter,
    pub received_bytes: Counter,
    refused: Family<Labels, Counter>,
    pub sent: Counter,
    pub sent_bytes: Counter,
    /// Datagrams that could not be sent.
    pub not_sent: Counter,
}

impl ClusterMetrics {
    /// Creates the handles and registers them in `scope`.
    pub(super) fn new(scope: &Scope) -> Self {
        let metrics = Self {
            part: Family::default(),
            members: Family::default(),
            observers: Gauge::default(),
            is_ready: Gauge::default(),
            min_members: Gauge::default(),
            received: Counter::default(),
            received_bytes: Counter::default(),
            refused: Family::default(),
            sent: Counter::default(),
            sent_bytes: Counter::default(),
            not_sent: Counter::default(),
        };
        for refused in Refused::ALL {
            drop(metrics.refused.get_or_create_owned(&reason(refused)));
        }
        scope.register(
            "cluster_node_info",
            "1 for the current state of this node, 0 for the other states",
            metrics.part.clone(),
        );
        scope.register(
            "cluster_node_peers",
            "Nodes of the cluster, including this one, by state",
            metrics.members.clone(),
        );
        scope.register(
            "cluster_node_update_observers",
            "Components that are notified of changes",
            metrics.observers.clone(),
        );
        scope.register(
            "cluster_ready_for_traffic",
            "1 if this node takes its share of the targets",
            metrics.is_ready.clone(),
        );
        scope.register(
            "cluster_minimum_size",
            "Minimum number of nodes that this node waits for",
            metrics.min_members.clone(),
        );
        scope.register(
            "cluster_transport_rx_packets",
            "Datagrams received from nodes",
            metrics.received.clone(),
        );
        scope.register(
            "cluster_transport_rx_bytes",
            "Bytes of the datagrams received from nodes",
            metrics.received_bytes.clone(),
        );
        scope.register(
            "cluster_transport_rx_packets_failed",
            "Datagrams that were refused, by reason",
            metrics.refused.clone(),
        );
        scope.register(
            "cluster_transport_tx_packets",
            "Datagrams sent to nodes",
            metrics.sent.clone(),
        );
        scope.register(
            "cluster_transport_tx_bytes",
            "Bytes of the datagrams sent to nodes",
            metrics.sent_bytes.clone(),
        );
        scope.register(
            "cluster_transport_tx_packets_failed",
            "Datagrams that could not be sent",
            metrics.not_sent.clone(),
        );
        metrics
    }

    /// Counts a refused datagram.
    pub(super) fn refused(&self, refused: Refused) {
        self.refused.get_or_create_owned(&reason(refused)).inc();
    }

    /// Exports a view and the number of its observers.
    pub(super) fn show(&self, view: &View, observers: usize) {
        for part in Part::ALL {
            let is_own = i64::from(part == view.part);
            self.part.get_or_create_owned(&state(part)).set(is_own);
            let others = if part == Part::Participant {
                view.members.len() as i64 - 1
            } else {
                0
            };
            self.members.get_or_create_owned(&state(part)).set(others + is_own);
        }
        self.observers.set(observers as i64);
        self.is_ready.set(i64::from(view.part == Part::Participant));
    }
}

fn state(part: Part) -> Labels {
    vec![("state", part.name().to_owned())]
}

fn reason(refused: Refused) -> Labels {
    vec![("reason", refused.name().to_owned())]
}
