//! Metric handles of the store, registered once. Every name starts with `alluvium_store_`.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use crate::store::common::disk_wait::DiskWaits;
use crate::telemetry::metrics::Scope;

/// The label `reason` of refused profiles and dropped values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Reason {
    /// One of the fixed reasons in `ingest`, `quota` and `limits`.
    pub(crate) reason: &'static str,
}

/// The label `job` of the maintenance metrics.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct JobLabel {
    /// `compact`, `downsample`, `retention`, `delete` or `vacuum`.
    pub(crate) job: &'static str,
}

/// The metric handles. Clones share the values.
#[derive(Clone)]
pub(crate) struct Metrics {
    pub(crate) profiles: Counter,
    /// Uncompressed bytes of the acknowledged profiles.
    pub(crate) profile_bytes: Counter,
    /// Sample rows of the acknowledged profiles.
    pub(crate) samples: Counter,
    pub(crate) rejected: Family<Reason, Counter>,
    /// Values that normalisation or relabel rules dropped.
    pub(crate) dropped_values: Family<Reason, Counter>,
    /// Time to write and sync one group of records, in seconds.
    pub(crate) log_sync_seconds: Histogram,
    /// Bytes written to the log.
    pub(crate) log_bytes: Counter,
    /// Failed writes to the log.
    pub(crate) log_failures: Counter,
    /// Time that each thread has waited for the disk.
    pub(crate) waits: DiskWaits,
    /// Estimated memory of all heads, in bytes.
    pub(crate) head_bytes: Gauge,
    /// Flushes that have committed all tables.
    pub(crate) flushes: Counter,
    /// Flushes that failed. The store retries them.
    pub(crate) flush_failures: Counter,
    pub(crate) flush_seconds: Histogram,
    pub(crate) files: Gauge,
    /// Profiles that the start replayed from the log.
    pub(crate) replayed: Counter,
    /// Damaged records that were moved out of the log.
    pub(crate) records_put_aside: Counter,
    /// Bytes of the log that the start could not read, without torn tails.
    pub(crate) damaged_bytes: Counter,
    /// Parquet files that maintenance skips because their contents do not match their checksums.
    pub(crate) damaged_files: Counter,
    /// Memory of the names that maintenance holds. The server reports it with its other memory.
    pub(crate) maintenance_bytes: Gauge,
    /// Maintenance jobs that succeeded.
    pub(crate) job_runs: Family<JobLabel, Counter>,
    pub(crate) job_errors: Family<JobLabel, Counter>,
    /// Bytes of the files that jobs replaced or deleted.
    pub(crate) job_bytes_in: Family<JobLabel, Counter>,
    /// Bytes of the files that jobs wrote.
    pub(crate) job_bytes_out: Family<JobLabel, Counter>,
    pub(crate) job_seconds: Family<JobLabel, Histogram, fn() -> Histogram>,
    /// Requests for deletions that are not finished yet.
    pub(crate) deletions_waiting: Gauge,
    /// Jobs that are due but not done.
    pub(crate) jobs_waiting: Gauge,
    /// Files that are no longer part of a table but are kept until their grace period ends.
    pub(crate) dead_files: Gauge,
    /// Forward jumps of the clock that stopped deletion by age.
    pub(crate) clock_jumps: Counter,
    /// 1 while deletion by age is stopped because the clock has jumped.
    pub(crate) clock_doubted: Gauge,
}

impl Metrics {
    /// Registers the metrics in `scope`.
    pub(crate) fn new(scope: &Scope) -> Self {
        let metrics = Self {
            profiles: Counter::default(),
            profile_bytes: Counter::default(),
            samples: Counter::default(),
            rejected: Family::default(),
            dropped_values: Family::default(),
            // 0.25 ms to 4 s: from the sync of a fast disk to a stall that users notice.
            log_sync_seconds: Histogram::new(exponential_buckets(0.000_25, 2.0, 15)),
            log_bytes: Counter::default(),
            log_failures: Counter::default(),
            waits: DiskWaits::default(),
            head_bytes: Gauge::default(),
            flushes: Counter::default(),
            flush_failures: Counter::default(),
            flush_seconds: Histogram::new(exponential_buckets(0.01, 2.0, 14)),
            files: Gauge::default(),
            replayed: Counter::default(),
            records_put_aside: Counter::default(),
            damaged_bytes: Counter::default(),
            damaged_files: Counter::default(),
            maintenance_bytes: Gauge::default(),
            job_runs: Family::default(),
            job_errors: Family::default(),
            job_bytes_in: Family::default(),
            job_bytes_out: Family::default(),
            job_seconds: Family::new_with_constructor(job_histogram),
            deletions_waiting: Gauge::default(),
            jobs_waiting: Gauge::default(),
            dead_files: Gauge::default(),
            clock_jumps: Counter::default(),
            clock_doubted: Gauge::default(),
        };
        let Self {
            profiles,
            profile_bytes,
            samples,
            rejected,
            dropped_values,
            log_sync_seconds,
            log_bytes,
            log_failures,
            waits,
            head_bytes,
            flushes,
            flush_failures,
            flush_seconds,
            files,
            replayed,
            records_put_aside,
            damaged_bytes,
            damaged_files,
            maintenance_bytes: _,
            job_runs,
            job_errors,
            job_bytes_in,
            job_bytes_out,
            job_seconds,
            deletions_waiting,
            jobs_waiting,
            dead_files,
            clock_jumps,
            clock_doubted,
        } = metrics.clone();
        scope.register("alluvium_store_appended_profiles", "Profiles acknowledged.", profiles);
        scope.register(
            "alluvium_store_appended_bytes",
            "Bytes of acknowledged profiles, uncompressed.",
            profile_bytes,
        );
        scope.register("alluvium_store_appended_samples", "Sample rows acknowledged.", samples);
        scope.register(
            "alluvium_store_rejected_profiles",
            "Profiles that the store refused, by reason.",
            rejected,
        );
        scope.register(
            "alluvium_store_dropped_values",
            "Values that the store dropped, by reason.",
            dropped_values,
        );
        scope.register(
            "alluvium_store_log_sync_seconds",
            "Time to write and sync one group of log records, in seconds.",
            log_sync_seconds,
        );
        scope.register(
            "alluvium_store_log_bytes",
            "Bytes written to the write-ahead log.",
            log_bytes,
        );
        scope.register(
            "alluvium_store_log_failures",
            "Failed writes to the write-ahead log.",
            log_failures,
        );
        scope.register(
            "alluvium_store_disk_wait_seconds",
            "Seconds since the last step of a thread's work on the disk; 0 while it is idle.",
            waits,
        );
        scope.register(
            "alluvium_store_head_bytes",
            "Estimated bytes of profiles in memory.",
            head_bytes,
        );
        scope.register(
            "alluvium_store_flushes",
            "Flushes that have committed all tables.",
            flushes,
        );
        scope.register(
            "alluvium_store_flush_failures",
            "Flushes that failed. The store retries them.",
            flush_failures,
        );
        scope.register(
            "alluvium_store_flush_seconds",
            "Duration of a flush in seconds.",
            flush_seconds,
        );
        scope.register("alluvium_store_files", "Parquet files that belong to a table.", files);
        scope.register(
            "alluvium_store_replayed_profiles",
            "Profiles that the start replayed from the log.",
            replayed,
        );
        scope.register(
            "alluvium_store_records_put_aside",
            "Damaged records of the log that cannot be replayed or flushed. Each is kept in a file.",
            records_put_aside,
        );
        scope.register(
            "alluvium_store_damaged_bytes",
            "Bytes of the log that the start could not read.",
            damaged_bytes,
        );
        scope.register(
            "alluvium_store_damaged_files",
            "Parquet files that maintenance skips because their contents do not match their checksums.",
            damaged_files,
        );
        scope.register("alluvium_store_jobs", "Maintenance jobs that succeeded.", job_runs);
        scope.register(
            "alluvium_store_job_failures",
            "Maintenance jobs that failed.",
            job_errors,
        );
        scope.register(
            "alluvium_store_job_read_bytes",
            "Bytes of the files that jobs replaced or deleted.",
            job_bytes_in,
        );
        scope.register(
            "alluvium_store_job_written_bytes",
            "Bytes of the files that jobs wrote.",
            job_bytes_out,
        );
        scope.register(
            "alluvium_store_job_seconds",
            "Duration of maintenance jobs in seconds.",
            job_seconds,
        );
        scope.register(
            "alluvium_store_deletions_waiting",
            "Requests for deletions that are not finished yet.",
            deletions_waiting,
        );
        scope.register(
            "alluvium_store_jobs_waiting",
            "Maintenance jobs that are due but not done.",
            jobs_waiting,
        );
        scope.register(
            "alluvium_store_dead_files",
            "Files that no longer belong to a table but are not deleted yet.",
            dead_files,
        );
        scope.register(
            "alluvium_store_clock_jumps",
            "Jumps of the clock that stopped deletion by age.",
            clock_jumps,
        );
        scope.register(
            "alluvium_store_clock_doubted",
            "1 while deletion by age is stopped because the clock has jumped.",
            clock_doubted,
        );
        metrics
    }
}

fn job_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 2.0, 16))
}
