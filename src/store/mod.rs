//! Durable profiles: write-ahead log, head in memory, Parquet in Delta tables. The only user of parquet and delta_kernel.

pub mod error;
pub mod fault;
pub mod metrics;
pub mod record;
pub mod schema;
pub mod snapshot;
pub mod wal;

pub use error::StoreError;
