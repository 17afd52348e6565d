//! Durable profiles: write-ahead log, head in memory, Parquet in Delta tables. The only user of parquet and delta_kernel.

pub mod error;
pub mod fault;
mod head;
mod ingest;
pub mod limits;
pub mod metrics;
pub mod record;
pub mod schema;
pub mod snapshot;
mod split;
pub mod wal;

pub use error::StoreError;
