//! Durable profiles: write-ahead log, head in memory, Parquet in Delta tables. The only user of parquet and delta_kernel.

pub mod schema;
pub mod snapshot;
