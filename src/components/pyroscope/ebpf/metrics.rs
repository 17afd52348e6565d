//! Metrics of `pyroscope.ebpf`: Alloy's, and where every tick of the clock went.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::ebpf::Accounts;
use crate::telemetry::metrics::Scope;
use crate::unwind::Stop;

type Labels = Vec<(&'static str, String)>;

/// Handles of the component's metrics.
#[derive(Clone, Default)]
pub struct EbpfMetrics {
    /// Targets that can match a process.
    pub active_targets: Gauge,
    /// Times that profiling began.
    pub sessions: Counter,
    /// Times that it could not.
    pub sessions_failing: Counter,
    /// Bytes of profiles handed on.
    pub bytes: Counter,
    /// Samples in them.
    pub samples: Counter,
    /// Profiles that were not taken.
    pub dropped: Counter,
    /// Bytes of unwind tables.
    pub table_bytes: Gauge,
    profiles: Family<Labels, Counter>,
    ticks: Counter,
    outcomes: Family<Labels, Counter>,
    stacks: Family<Labels, Counter>,
}

impl EbpfMetrics {
    /// Registers the metrics.
    pub fn new(scope: &Scope) -> Self {
        let metrics = Self::default();
        scope.register(
            "pyroscope_ebpf_active_targets",
            "Targets that can match a process",
            metrics.active_targets.clone(),
        );
        scope.register(
            "pyroscope_ebpf_profiling_sessions",
            "Times that profiling began",
            metrics.sessions.clone(),
        );
        scope.register(
            "pyroscope_ebpf_profiling_sessions_failing",
            "Times that profiling could not begin",
            metrics.sessions_failing.clone(),
        );
        scope.register(
            "pyroscope_ebpf_pprof_bytes",
            "Bytes of profiles handed on",
            metrics.bytes.clone(),
        );
        scope.register(
            "pyroscope_ebpf_pprof_samples",
            "Samples of profiles handed on",
            metrics.samples.clone(),
        );
        scope.register(
            "pyroscope_ebpf_pprofs_dropped",
            "Profiles that were not taken",
            metrics.dropped.clone(),
        );
        scope.register(
            "pyroscope_ebpf_pprofs",
            "Profiles handed on, by service",
            metrics.profiles.clone(),
        );
        scope.register(
            "pyroscope_ebpf_unwind_table_bytes",
            "Bytes of unwind tables",
            metrics.table_bytes.clone(),
        );
        scope.register(
            "pyroscope_ebpf_ticks",
            "Ticks of the clock on all CPUs",
            metrics.ticks.clone(),
        );
        scope.register(
            "pyroscope_ebpf_tick_outcomes",
            "Ticks by where they went; all of them together are the ticks",
            metrics.outcomes.clone(),
        );
        scope.register(
            "pyroscope_ebpf_stacks",
            "Sampled stacks by how their walk ended",
            metrics.stacks.clone(),
        );
        metrics
    }

    /// Counts a profile of a service.
    pub fn profile(&self, service: &str) {
        self.profiles
            .get_or_create_owned(&vec![("service_name", service.to_owned())])
            .inc();
    }

    /// Counts what came between two states of the accounts. `no_target` of the samples belonged to no target.
    pub fn account(&self, before: &Accounts, after: &Accounts, profiled: u64, no_target: u64) {
        self.ticks.inc_by(after.ticks - before.ticks);
        let outcome = |name: &str, count: u64| {
            self.outcomes
                .get_or_create_owned(&vec![("outcome", name.to_owned())])
                .inc_by(count);
        };
        outcome("profiled", profiled);
        outcome("no_target", no_target);
        outcome("ring_full", after.ring_full - before.ring_full);
        outcome("no_memory", after.no_scratch - before.no_scratch);
        outcome("idle", after.idle - before.idle);
        outcome("malformed", after.malformed - before.malformed);
        for (index, stop) in Stop::ALL.iter().enumerate() {
            self.stacks
                .get_or_create_owned(&vec![("end", stop.name().to_owned())])
                .inc_by(after.by_stop[index] - before.by_stop[index]);
        }
    }
}
