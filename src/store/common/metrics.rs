//! Metric handles of the store, registered once; every name starts with `alluvium_store_`.

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
    /// One of the closed set that `ingest` and `limits` use.
    pub(crate) reason: &'static str,
}

/// The label `job` of maintenance.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct JobLabel {
    /// `compact`, `downsample`, `retention`, `delete` or `vacuum`.
    pub(crate) job: &'static str,
}

/// Handles; clones share the values.
#[derive(Clone)]
pub(crate) struct Metrics {
    pub(crate) profiles: Counter,
    /// Bytes of acknowledged profiles, uncompressed.
    pub(crate) profile_bytes: Counter,
    /// Sample rows acknowledged.
    pub(crate) samples: Counter,
    pub(crate) rejected: Family<Reason, Counter>,
    /// Values that normalisation or relabel rules dropped.
    pub(crate) dropped_values: Family<Reason, Counter>,
    /// Time to write and sync one group of records, in seconds.
    pub(crate) log_sync_seconds: Histogram,
    /// Bytes written to the log.
    pub(crate) log_bytes: Counter,
    /// Failed writes of the log.
    pub(crate) log_failures: Counter,
    /// Time that the threads have waited for the disk.
    pub(crate) waits: DiskWaits,
    /// Bytes of all heads in memory, estimated.
    pub(crate) head_bytes: Gauge,
    /// Flushes that ended with all tables committed.
    pub(crate) flushes: Counter,
    /// Flushes that failed and are tried again.
    pub(crate) flush_failures: Counter,
    pub(crate) flush_seconds: Histogram,
    pub(crate) files: Gauge,
    /// Profiles replayed from the log at the start.
    pub(crate) replayed: Counter,
    /// Records of the log that were put aside.
    pub(crate) records_put_aside: Counter,
    /// Bytes of the log that could not be read at the start (torn tails are not counted here).
    pub(crate) damaged_bytes: Counter,
    /// Parquet files that maintenance left alone because they hold other bytes than were written.
    pub(crate) damaged_files: Counter,
    /// Memory of names that maintenance holds. The server shows it with its other memory.
    pub(crate) maintenance_bytes: Gauge,
    /// Jobs of maintenance that were done.
    pub(crate) job_runs: Family<JobLabel, Counter>,
    pub(crate) job_errors: Family<JobLabel, Counter>,
    /// Bytes of the files that jobs read and replaced, or deleted.
    pub(crate) job_bytes_in: Family<JobLabel, Counter>,
    /// Bytes of the files that jobs wrote.
    pub(crate) job_bytes_out: Family<JobLabel, Counter>,
    pub(crate) job_seconds: Family<JobLabel, Histogram, fn() -> Histogram>,
    /// Requests for deletions that are not carried out yet.
    pub(crate) deletions_waiting: Gauge,
    /// Jobs that are due and not done.
    pub(crate) jobs_waiting: Gauge,
    /// Files removed from their table that wait for the end of their grace period.
    pub(crate) dead_files: Gauge,
    /// Forward jumps of the clock that stopped deletion by age.
    pub(crate) clock_jumps: Counter,
    /// 1 while a jump of the clock prevents deletion by age.
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
            // 0.25 ms to 4 s: from a fast disk's sync to a stall that users notice.
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
            "Profiles that were not stored, by reason.",
            rejected,
        );
        scope.register(
            "alluvium_store_dropped_values",
            "Values that were not stored, by reason.",
            dropped_values,
        );
        scope.register(
            "alluvium_store_log_sync_seconds",
            "Write and sync of one group of log records.",
            log_sync_seconds,
        );
        scope.register(
            "alluvium_store_log_bytes",
            "Bytes written to the write-ahead log.",
            log_bytes,
        );
        scope.register(
            "alluvium_store_log_failures",
            "Failed writes of the write-ahead log.",
            log_failures,
        );
        scope.register(
            "alluvium_store_disk_wait_seconds",
            "Seconds since the work of a thread on the disk came one step further; 0 without work.",
            waits,
        );
        scope.register(
            "alluvium_store_head_bytes",
            "Estimated bytes of profiles in memory.",
            head_bytes,
        );
        scope.register("alluvium_store_flushes", "Flushes with all tables committed.", flushes);
        scope.register(
            "alluvium_store_flush_failures",
            "Flushes that failed and are tried again.",
            flush_failures,
        );
        scope.register("alluvium_store_flush_seconds", "Duration of a flush.", flush_seconds);
        scope.register("alluvium_store_files", "Live Parquet files.", files);
        scope.register(
            "alluvium_store_replayed_profiles",
            "Profiles replayed from the log at the start.",
            replayed,
        );
        scope.register(
            "alluvium_store_records_put_aside",
            "Records of the log that cannot be replayed or flushed, kept in files of their own.",
            records_put_aside,
        );
        scope.register(
            "alluvium_store_damaged_bytes",
            "Bytes of the log that could not be read at the start.",
            damaged_bytes,
        );
        scope.register(
            "alluvium_store_damaged_files",
            "Parquet files that maintenance left alone because they hold other bytes than were written.",
            damaged_files,
        );
        scope.register("alluvium_store_jobs", "Jobs of maintenance that were done.", job_runs);
        scope.register(
            "alluvium_store_job_failures",
            "Jobs of maintenance that failed.",
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
        scope.register("alluvium_store_job_seconds", "Duration of jobs.", job_seconds);
        scope.register(
            "alluvium_store_deletions_waiting",
            "Requests for deletions that are not carried out yet.",
            deletions_waiting,
        );
        scope.register(
            "alluvium_store_jobs_waiting",
            "Jobs that are due and not done.",
            jobs_waiting,
        );
        scope.register(
            "alluvium_store_dead_files",
            "Files that left their table and are not deleted yet.",
            dead_files,
        );
        scope.register(
            "alluvium_store_clock_jumps",
            "Jumps of the clock after which nothing was deleted for its age.",
            clock_jumps,
        );
        scope.register(
            "alluvium_store_clock_doubted",
            "1 while nothing is deleted for its age because the clock has jumped.",
            clock_doubted,
        );
        metrics
    }
}

fn job_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 2.0, 16))
}
