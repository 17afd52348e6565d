//! Questions to the store: Pyroscope's fixed questions and read-only SQL, answered by DataFusion over a snapshot.
//!
//! In: a [`SnapshotSource`](crate::store::snapshot::SnapshotSource). Out: label sets, time series, flame graph trees, pprof bytes and
//! record batches. The only user of DataFusion. Every question has a tenant, a time limit and a memory limit, and stops when its future
//! is dropped. It knows nothing of HTTP and writes nothing to disk.

mod blocks;
mod bounds;
mod catalog;
mod engine;
mod error;
mod evaluate;
mod export;
mod flame;
mod flat;
pub mod format;
mod functions;
mod lookup;
mod provider;
mod runtime;
mod scan;
mod series;
mod sql;
mod stacks;
mod sums;
mod time;
mod timeline;
mod totals;
mod types;

pub use engine::{QueryEngine, ScanStats};
pub use error::QueryError;
pub use sql::SqlResult;
pub use types::{Aggregation, QueryLimits, SeriesPoints, SeriesQuery, StackQuery, TimeRange};
