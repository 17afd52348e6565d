//! Queries over the store: Pyroscope's fixed queries and read-only SQL, answered by DataFusion over a snapshot.
//!
//! In: a [`SnapshotSource`](crate::store::snapshot::SnapshotSource). Out: label sets, time series, flame graph trees,
//! pprof bytes and record batches. No other layer runs DataFusion. Every query has tenants, a time limit and a memory
//! limit, and stops when its future is dropped. This layer does not depend on HTTP and writes nothing to disk.

mod allowance;
mod answer;
mod block_cache;
mod blocking;
mod blocks;
mod bounds;
mod cache;
mod call_site;
mod catalog;
pub(crate) mod cells;
mod checked;
mod columns;
mod context;
mod engine;
mod error;
mod evaluate;
mod exemplars;
mod explain;
mod export;
mod file_mappings;
mod flame;
mod flat;
pub mod format;
mod frame_columns;
mod functions;
mod guard;
mod heads;
mod heatmap;
mod hint;
mod holdings;
mod impact;
mod kept;
mod labels;
mod lookup;
mod memory;
mod moments;
mod names;
mod pgo;
mod pprof_nodes;
mod provider;
mod row_bytes;
mod runtime;
mod scan;
mod series;
mod session;
mod slices;
mod spans;
mod sql;
mod stack_table;
mod stacks;
mod steps;
mod stream;
mod sums;
mod text_values;
mod threads;
mod time;
mod timeline;
mod totals;
mod types;
mod verified;
mod watch;
mod widths;

pub use answer::until;
pub(crate) use answer::{Deadline, SqlResult};
pub use engine::QueryEngine;
pub use error::QueryError;
pub(crate) use holdings::Holding;
pub(crate) use impact::{Impact, Reading};
pub use series::Charged;
pub(crate) use session::{Prepared, SqlSession, SqlValue};
pub use types::{
    Aggregation, Detail, ExemplarKind, GoPgo, HeatmapOf, HeatmapQuery, QueryLimits, SeriesQuery, StackQuery, TimeRange,
};
pub(crate) use types::{
    Exemplar, HeatmapCell, HeatmapLine, HeatmapSlot, KeptProfile, ProfilesQuery, SeriesPoints, TypeNames, check_time_ms,
};
