//! Questions to the store: Pyroscope's fixed questions and read-only SQL, answered by DataFusion over a snapshot.
//!
//! In: a [`SnapshotSource`](crate::store::snapshot::SnapshotSource). Out: label sets, time series, flame graph trees, pprof bytes and
//! record batches. The only user of DataFusion. Every question has a tenant, a time limit and a memory limit, and stops when its future
//! is dropped. It knows nothing of HTTP and writes nothing to disk.

mod answer;
mod aside;
mod blocks;
mod bounds;
mod catalog;
pub mod cells;
mod engine;
mod error;
mod evaluate;
mod explain;
mod export;
mod flame;
mod flat;
pub mod format;
mod functions;
mod guard;
mod heads;
mod lookup;
mod memory;
mod provider;
mod runtime;
mod scan;
mod series;
mod session;
mod sql;
mod stacks;
mod sums;
mod time;
mod timeline;
mod totals;
mod types;
mod unused;

pub use answer::{Deadline, until};
pub use engine::{QueryEngine, ScanStats};
pub use error::QueryError;
pub use session::{Prepared, SqlSession, SqlValue};
pub use sql::SqlResult;
pub use types::{Aggregation, QueryLimits, SeriesPoints, SeriesQuery, StackQuery, TimeRange};
