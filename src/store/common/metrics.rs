//! Metric handles of the store, registered once. Every name starts with `alluvium_store_`.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use crate::store::common::disk_wait::DiskWaits;
use alluvium_telemetry::metrics::Scope;

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

/// Declares the metric handles. A row names a field and its type. `= handle` follows if the handle is not the default
/// of the type. `=> name, help` registers the metric, and the help text is also the documentation of the field. A row
/// without `=>` is not registered.
macro_rules! metrics {
    (@handle $type:ty) => {
        <$type>::default()
    };
    (@handle $type:ty = $handle:expr) => {
        $handle
    };
    (
        $(#[$about:meta])*
        $vis:vis struct $metrics:ident {
            $(
                $(#[doc = $doc:literal])*
                $field:ident: $type:ty $(= $handle:expr)? $(=> $name:literal, $help:literal)?;
            )*
        }
    ) => {
        $(#[$about])*
        $vis struct $metrics {
            $( $(#[doc = $doc])* $(#[doc = $help])? $vis $field: $type, )*
        }

        impl $metrics {
            /// Registers the metrics in `scope`.
            $vis fn new(scope: &Scope) -> Self {
                let metrics = Self {
                    $( $field: metrics!(@handle $type $(= $handle)?), )*
                };
                $( $( scope.register($name, $help, metrics.$field.clone()); )? )*
                metrics
            }
        }
    };
}

metrics! {
    /// The metric handles. Clones share the values.
    #[derive(Clone)]
    pub(crate) struct Metrics {
        profiles: Counter => "alluvium_store_appended_profiles", "Profiles acknowledged.";
        profile_bytes: Counter => "alluvium_store_appended_bytes", "Bytes of acknowledged profiles, uncompressed.";
        samples: Counter => "alluvium_store_appended_samples", "Sample rows acknowledged.";
        rejected: Family<Reason, Counter> => "alluvium_store_rejected_profiles",
            "Profiles that the store refused, by reason.";
        // Normalisation or relabel rules drop values.
        dropped_values: Family<Reason, Counter> => "alluvium_store_dropped_values",
            "Values that the store dropped, by reason.";
        // 0.25 ms to 4 s: from the sync of a fast disk to a stall that users notice.
        log_sync_seconds: Histogram = Histogram::new(exponential_buckets(0.000_25, 2.0, 15))
            => "alluvium_store_log_sync_seconds", "Time to write and sync one group of log records, in seconds.";
        log_bytes: Counter => "alluvium_store_log_bytes", "Bytes written to the write-ahead log.";
        log_failures: Counter => "alluvium_store_log_failures", "Failed writes to the write-ahead log.";
        waits: DiskWaits => "alluvium_store_disk_wait_seconds",
            "Seconds since the last step of a thread's work on the disk; 0 while the thread is idle.";
        head_bytes: Gauge => "alluvium_store_head_bytes", "Estimated bytes of profiles in memory.";
        flushes: Counter => "alluvium_store_flushes", "Flushes that have committed all tables.";
        flush_failures: Counter => "alluvium_store_flush_failures", "Flushes that failed. The store retries them.";
        flush_seconds: Histogram = Histogram::new(exponential_buckets(0.01, 2.0, 14))
            => "alluvium_store_flush_seconds", "Duration of a flush in seconds.";
        files: Gauge => "alluvium_store_files", "Parquet files that belong to a table.";
        replayed: Counter => "alluvium_store_replayed_profiles", "Profiles that the start replayed from the log.";
        records_put_aside: Counter => "alluvium_store_records_put_aside",
            "Damaged records of the log that cannot be replayed or flushed. Each is kept in a file.";
        // The metric does not count unfinished writes at the end of the log.
        damaged_bytes: Counter => "alluvium_store_damaged_bytes", "Bytes of the log that the start could not read.";
        damaged_files: Counter => "alluvium_store_damaged_files",
            "Parquet files that maintenance skips because their contents do not match their checksums.";
        /// Memory in bytes of the stacks or series that a merge holds. The server reports it with its other memory.
        maintenance_bytes: Gauge;
        job_runs: Family<JobLabel, Counter> => "alluvium_store_jobs", "Maintenance jobs that succeeded.";
        job_errors: Family<JobLabel, Counter> => "alluvium_store_job_failures", "Maintenance jobs that failed.";
        job_bytes_in: Family<JobLabel, Counter> => "alluvium_store_job_read_bytes",
            "Bytes of the files that jobs replaced or deleted.";
        job_bytes_out: Family<JobLabel, Counter> => "alluvium_store_job_written_bytes",
            "Bytes of the files that jobs wrote.";
        job_seconds: Family<JobLabel, Histogram, fn() -> Histogram>
            = Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.01, 2.0, 16)))
            => "alluvium_store_job_seconds", "Duration of maintenance jobs in seconds.";
        deletions_waiting: Gauge => "alluvium_store_deletions_waiting",
            "Requests for deletions that are not finished yet.";
        jobs_waiting: Gauge => "alluvium_store_jobs_waiting", "Maintenance jobs that are due but not done.";
        // The files are kept until their grace period ends.
        dead_files: Gauge => "alluvium_store_dead_files",
            "Files that no longer belong to a table but are not deleted yet.";
        // Only jumps forward stop the deletion.
        clock_jumps: Counter => "alluvium_store_clock_jumps", "Jumps of the clock that stopped deletion by age.";
        clock_doubted: Gauge => "alluvium_store_clock_doubted",
            "1 while deletion by age is stopped because the clock has jumped.";
    }
}
