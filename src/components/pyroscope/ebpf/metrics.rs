//! Metrics of `pyroscope.ebpf`: the metrics of Alloy, and the outcome of every tick of the clock.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use alluvium_ebpf::{Accounts, Omission, OmissionCounts, Refusal, RefusalCounts};
use alluvium_telemetry::metrics::Scope;
use alluvium_unwind::Stop;

type Labels = Vec<(&'static str, String)>;

/// Handles of the component's metrics.
#[derive(Clone, Default)]
pub(super) struct EbpfMetrics {
    /// Number of targets that can match a process.
    pub active_targets: Gauge,
    /// Number of sessions that started.
    pub sessions: Counter,
    /// Number of sessions that failed to start.
    pub sessions_failing: Counter,
    /// Bytes of the forwarded profiles.
    pub bytes: Counter,
    /// Samples in the forwarded profiles.
    pub samples: Counter,
    /// Profiles that were dropped or refused.
    pub dropped: Counter,
    /// Bytes of unwind tables.
    table_bytes: Gauge,
    name_bytes: Gauge,
    sample_rate: Gauge,
    cpu_seconds: Family<Labels, Counter<f64, AtomicU64>>,
    profiles: Family<Labels, Counter>,
    ticks: Counter,
    outcomes: Family<Labels, Counter>,
    stacks: Family<Labels, Counter>,
    files_refused: Family<Labels, Counter>,
    left_out: Family<Labels, Counter>,
}

impl EbpfMetrics {
    /// Creates the handles and registers the metrics in `scope`.
    pub(super) fn new(scope: &Scope) -> Self {
        let metrics = Self::default();
        scope.register(
            "pyroscope_ebpf_active_targets",
            "Number of targets that can match a process",
            metrics.active_targets.clone(),
        );
        scope.register(
            "pyroscope_ebpf_profiling_sessions",
            "Profiling sessions that started",
            metrics.sessions.clone(),
        );
        scope.register(
            "pyroscope_ebpf_profiling_sessions_failing",
            "Profiling sessions that failed to start",
            metrics.sessions_failing.clone(),
        );
        scope.register(
            "pyroscope_ebpf_pprof_bytes",
            "Bytes of the forwarded profiles",
            metrics.bytes.clone(),
        );
        scope.register(
            "pyroscope_ebpf_pprof_samples",
            "Samples in the forwarded profiles",
            metrics.samples.clone(),
        );
        scope.register(
            "pyroscope_ebpf_pprofs_dropped",
            "Profiles that were dropped or that a receiver refused",
            metrics.dropped.clone(),
        );
        scope.register(
            "pyroscope_ebpf_pprofs",
            "Forwarded profiles, by service",
            metrics.profiles.clone(),
        );
        scope.register(
            "pyroscope_ebpf_unwind_table_bytes",
            "Bytes of unwind tables",
            metrics.table_bytes.clone(),
        );
        scope.register(
            "pyroscope_ebpf_name_bytes",
            "Bytes of function names and their indexes",
            metrics.name_bytes.clone(),
        );
        scope.register(
            "pyroscope_ebpf_sample_rate",
            "Current number of ticks per second on each CPU; below sample_rate while budget.cpu_percent is used up",
            metrics.sample_rate.clone(),
        );
        scope.register(
            "pyroscope_ebpf_cpu_seconds",
            "CPU time of profiling in seconds, in the kernel and in threads of this process",
            metrics.cpu_seconds.clone(),
        );
        scope.register(
            "pyroscope_ebpf_ticks",
            "Ticks that were due, on all CPUs together",
            metrics.ticks.clone(),
        );
        scope.register(
            "pyroscope_ebpf_tick_outcomes",
            "Ticks by outcome; the sum of all outcomes is the number of ticks",
            metrics.outcomes.clone(),
        );
        scope.register(
            "pyroscope_ebpf_stacks",
            "Sampled stacks, by the reason why unwinding stopped",
            metrics.stacks.clone(),
        );
        scope.register(
            "pyroscope_ebpf_files_refused",
            "Files of processes that the profiler refused to read, by reason",
            metrics.files_refused.clone(),
        );
        scope.register(
            "pyroscope_ebpf_left_out",
            "Parts of files and processes that were left out because of a limit, by kind",
            metrics.left_out.clone(),
        );
        metrics
    }

    /// Counts a forwarded profile of a service.
    pub(super) fn profile(&self, service: &str) {
        self.profiles
            .get_or_create_owned(&vec![("service_name", service.to_owned())])
            .inc();
    }

    /// Counts the files that were refused between two states of the counters.
    pub(super) fn refused(&self, before: &RefusalCounts, after: &RefusalCounts) {
        for (index, reason) in Refusal::ALL.iter().enumerate() {
            self.files_refused
                .get_or_create_owned(&vec![("reason", reason.name().to_owned())])
                .inc_by(after[index].saturating_sub(before[index]));
        }
    }

    /// Counts the parts of files and processes that were left out between two states of the counters.
    pub(super) fn left_out(&self, before: &OmissionCounts, after: &OmissionCounts) {
        for (index, omission) in Omission::ALL.iter().enumerate() {
            self.left_out
                .get_or_create_owned(&vec![("what", omission.name().to_owned())])
                .inc_by(after[index].saturating_sub(before[index]));
        }
    }

    /// Sets the gauges and the CPU time at the end of an interval.
    pub(super) fn state(&self, accounts: &Accounts, hertz: u32, name_bytes: usize) {
        let gauge = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        self.table_bytes.set(gauge(accounts.table_bytes));
        self.name_bytes.set(gauge(name_bytes as u64));
        self.sample_rate.set(i64::from(hertz));
        for (part, nanos) in [("kernel", accounts.kernel_nanos), ("agent", accounts.agent_nanos)] {
            let seconds = self.cpu_seconds.get_or_create_owned(&vec![("part", part.to_owned())]);
            let growth = nanos as f64 / 1e9 - seconds.get();
            if growth > 0.0 {
                seconds.inc_by(growth);
            }
        }
    }

    /// Counts the ticks and stacks between two states of the accounts. `profiled` and `no_target` are the numbers of
    /// samples with and without a target.
    pub(super) fn account(&self, before: &Accounts, after: &Accounts, profiled: u64, no_target: u64) {
        self.ticks.inc_by(after.expected.saturating_sub(before.expected));
        let outcome = |name: &str, count: u64| {
            self.outcomes
                .get_or_create_owned(&vec![("outcome", name.to_owned())])
                .inc_by(count);
        };
        outcome("missed", after.missed.saturating_sub(before.missed));
        outcome(
            "not_looked_at",
            after.ignored + after.filtered - before.ignored - before.filtered,
        );
        outcome("profiled", profiled);
        outcome("no_target", no_target);
        outcome("ring_full", after.ring_full - before.ring_full);
        outcome("idle", after.idle - before.idle);
        outcome("malformed", after.malformed - before.malformed);
        for (index, stop) in Stop::ALL.iter().enumerate() {
            self.stacks
                .get_or_create_owned(&vec![("end", stop.name().to_owned())])
                .inc_by(after.by_stop[index] - before.by_stop[index]);
        }
    }
}
