//! Queries over the store: Pyroscope's fixed queries and read-only SQL, which DataFusion runs over a snapshot.
//!
//! In: a [`SnapshotSource`](crate::store::tables::snapshot::SnapshotSource). Out: label sets, time series, flame graph
//! trees, pprof bytes and record batches. No other layer runs DataFusion. Every query has tenants, a time limit and a
//! memory limit, and stops when its future is dropped. This layer does not depend on HTTP and writes nothing to disk.

mod common;
mod decoded;
mod engine;
mod functions;
mod holdings;
pub mod output;
mod pprof;
mod resources;
mod scan;
mod series;
mod sql;
mod stacks;
mod tables;
mod timeline;

pub use common::error::QueryError;
pub use common::frame_filter::{FrameConditions, FrameFilter};
pub use common::sql_result::run_until;
pub(crate) use common::sql_result::{Deadline, SqlResult};
pub use common::types::{
    Aggregation, Detail, ExemplarKind, GoPgo, HeatmapQuery, HeatmapSource, QueryLimits, SeriesQuery, StackQuery,
    TimeRange,
};
pub(crate) use common::types::{
    Exemplar, HeatmapLine, HeatmapSlot, KeptProfile, ProfilesQuery, SeriesPoints, TypeNames,
};
pub use engine::QueryEngine;
pub(crate) use holdings::impact::{Impact, ReadEstimate};
pub(crate) use holdings::stored::Holding;
pub use series::selection::Charged;
pub(crate) use sql::session::{Prepared, SqlSession, SqlValue};
