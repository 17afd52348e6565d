//! Queries and answers as plain values, without DataFusion types.
//!
//! The server and the command line create queries; limits come from the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::profile::selector::Matcher;
use crate::profile::{Labels, ProfileType, ProfileTypeId, TimeSpan};
use crate::query::common::error::QueryError;

/// A time range in milliseconds since 1970, start included, end excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// First millisecond of the range.
    pub start_ms: i64,
    /// First millisecond after the range.
    pub end_ms: i64,
}

/// How profiles in one step are combined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Aggregation {
    /// The sum of the totals of the profiles.
    #[default]
    Sum,
    /// The mean of the totals of the profiles.
    Average,
}

/// What stands for a point of a time line or a cell of a heatmap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExemplarKind {
    /// Nothing: points have no exemplars.
    #[default]
    None,
    /// The profile with the largest value.
    Profile,
    /// The span with the largest value.
    Span,
}

/// A profile or span that stands for a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exemplar {
    /// Start of the profile in milliseconds.
    pub time_ms: i64,
    /// The value of the profile, or of the span in it.
    pub value: i64,
    /// Id of the profile, by which it can be asked for.
    pub profile_id: Arc<str>,
    /// 16 hexadecimal digits; empty when the profile as a whole stands for the point.
    pub span_id: String,
    /// 32 hexadecimal digits; empty when it is not known.
    pub trace_id: String,
    /// All labels of the series.
    pub labels: Labels,
}

/// A query for time lines.
#[derive(Debug, Clone)]
pub struct SeriesQuery {
    /// The profile type of the query.
    pub profile_type: ProfileType,
    /// Matchers on labels; all must match.
    pub matchers: Vec<Matcher>,
    /// Only profiles that start in this range.
    pub range: TimeRange,
    /// Only values of stacks that begin with these functions, root first; empty for all.
    pub call_site: Vec<String>,
    /// Length of a step in seconds, at least a millisecond.
    pub step: f64,
    /// Labels by which profiles are grouped; an empty list gives one series without labels.
    pub group_by: Vec<String>,
    /// How profiles in one step are combined.
    pub aggregation: Aggregation,
    /// Maximum number of series, those with the largest sum; 0 for all.
    pub limit: usize,
    /// What stands for each point.
    pub exemplars: ExemplarKind,
}

/// What a heatmap counts, by value and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeatmapOf {
    /// Profiles, by their totals.
    Profiles,
    /// Spans, by what each took in one profile.
    Spans,
}

/// A query for a heatmap of profiles or spans.
#[derive(Debug, Clone)]
pub struct HeatmapQuery {
    /// The profile type of the query.
    pub profile_type: ProfileType,
    /// Matchers on labels; all must match.
    pub matchers: Vec<Matcher>,
    /// Only profiles that start in this range.
    pub range: TimeRange,
    /// Length of a step in seconds, at least a millisecond.
    pub step: f64,
    /// Labels by which profiles are grouped; an empty list gives one series without labels.
    pub group_by: Vec<String>,
    /// What is counted by its value.
    pub of: HeatmapOf,
    /// What stands for each cell.
    pub exemplars: ExemplarKind,
    /// Maximum number of series, those with the largest sum; 0 for all.
    pub limit: usize,
}

/// One series of a heatmap.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatmapLine {
    /// The labels of `group_by` that the series have.
    pub labels: Labels,
    /// Ascending by time; steps without values have none.
    pub slots: Vec<HeatmapSlot>,
}

/// One step of a series of a heatmap.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatmapSlot {
    /// Right edge of the step in milliseconds.
    pub end_ms: i64,
    /// Ascending by value; ranges without values have none.
    pub cells: Vec<HeatmapCell>,
}

/// A range of values in a step.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatmapCell {
    /// Smallest value of the range.
    pub least: i64,
    /// Number of profiles or spans with a value in the range.
    pub count: u64,
    /// What stands for the cell.
    pub exemplar: Option<Exemplar>,
}

/// A query for stacks and their values.
#[derive(Debug, Clone)]
pub struct StackQuery {
    /// The profile type of the query.
    pub profile_type: ProfileType,
    /// Matchers on labels; all must match.
    pub matchers: Vec<Matcher>,
    /// Only profiles that start in this range.
    pub range: TimeRange,
    /// Only stacks that begin with these functions, root first; empty for all.
    pub call_site: Vec<String>,
    /// Only profiles with one of these ids; empty for all.
    pub profile_ids: Vec<String>,
    /// Only samples of one of these spans (16 hexadecimal digits); empty for all.
    pub span_ids: Vec<String>,
    /// Only samples of one of these traces (32 hexadecimal digits); empty for all.
    pub trace_ids: Vec<String>,
    /// What is kept of the stacks; `None` for all of them.
    pub go_pgo: Option<GoPgo>,
    /// Approximate number of nodes in the tree of a pprof answer; 0 for all.
    pub pprof_nodes: usize,
}

/// What Go's compiler wants of stacks for profile-guided optimization.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GoPgo {
    /// Number of locations that are kept, counted from the leaf; 0 for all.
    pub keep_locations: usize,
    /// True: samples of one function are the same at the leaf, whatever their lines.
    pub aggregate_callees: bool,
}

/// A query for stored profiles one by one.
#[derive(Debug, Clone)]
pub(crate) struct ProfilesQuery {
    /// Matchers on labels of series, without synthetic ones; all must match.
    pub(crate) matchers: Vec<Matcher>,
    /// Only profiles that start in this range.
    pub(crate) range: TimeRange,
    /// The names of their types.
    pub(crate) names: TypeNames,
    /// Only profiles with one of these ids; empty for all that have one.
    pub(crate) ids: Vec<String>,
    /// Maximum number of profiles, the newest; 0 for all.
    pub(crate) limit: usize,
}

/// Profile types by their names, which are the first parts of their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeNames {
    AnyOf(&'static [&'static str]),
    NoneOf(&'static [&'static str]),
}

/// A stored profile without its samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptProfile {
    /// Id that the sender gave.
    pub(crate) id: Arc<str>,
    /// Start in microseconds since 1970.
    pub(crate) time_us: i64,
    /// Length in nanoseconds; 0 when unknown.
    pub(crate) duration_ns: i64,
    /// Its profile types, sorted.
    pub(crate) types: Vec<ProfileTypeId>,
    /// The labels that all of its series have.
    pub(crate) labels: Labels,
}

/// How functions of a flame graph are identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// By name alone: functions with one name in two files are the same.
    Names,
    /// By name, file and binary; each node has its line.
    Files,
}

/// One time line of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesPoints {
    /// The labels of `group_by` that the series have.
    pub labels: Labels,
    /// Right edge of the step in milliseconds, and the value. Steps without profiles have no point.
    pub points: Vec<(i64, f64)>,
    /// What stands for points, by the right edge of their step.
    pub exemplars: BTreeMap<i64, Exemplar>,
}

/// Limits on time, memory and answers of queries.
#[derive(Debug, Clone)]
pub struct QueryLimits {
    /// Time limit of each query.
    pub timeout: Duration,
    /// Memory of all running queries together, in bytes. Nothing is spilled to disk.
    pub memory_bytes: usize,
    /// Memory of one query in bytes, within that of all queries.
    pub max_query_memory_bytes: usize,
    /// Maximum number of concurrent SQL queries, and also of concurrent other queries, so that the requests of a page
    /// do not wait for those of a report, nor the other way round. Further queries wait for at most the time limit of a
    /// query.
    pub max_concurrent_queries: usize,
    /// Maximum number of rows of a SQL answer.
    pub max_rows: usize,
    /// Maximum size of a SQL answer in bytes, as columns in memory.
    pub max_output_bytes: usize,
    /// Maximum time range of a Pyroscope query; zero for no limit. Pyroscope's default is 24 h.
    pub max_query_length: Duration,
    /// Bytes of decoded stack frames kept between queries.
    pub stack_cache_bytes: usize,
    /// Bytes of labels of series kept between queries.
    pub series_cache_bytes: usize,
    /// Bytes of decoded sample rows kept between queries.
    pub block_cache_bytes: usize,
    /// Bytes of times and totals of profiles kept between queries.
    pub totals_cache_bytes: usize,
    /// Bytes of Parquet footers kept between queries.
    pub footer_cache_bytes: usize,
    /// Number of concurrent tasks of one query; 0 for the number of cores.
    pub parallelism: usize,
    /// Stack size in bytes of the threads that plan and run SQL. It must be enough for the largest plan that is
    /// accepted, in a debug build. Untouched pages take no memory.
    pub stack_bytes: usize,
}

impl TimeRange {
    /// The times that queries may name: from the year 1 to the year 9999, as in RFC 3339.
    pub const ALL: TimeRange = TimeRange {
        start_ms: -62_135_596_800_000,
        end_ms: 253_402_300_800_000,
    };

    /// The range from `start_ms` (included) to `end_ms` (excluded).
    pub const fn new(start_ms: i64, end_ms: i64) -> Self {
        Self { start_ms, end_ms }
    }

    /// The span in microseconds, as the tables keep time.
    pub(crate) fn micros(self) -> TimeSpan {
        TimeSpan::new(self.start_ms.saturating_mul(1000), self.end_ms.saturating_mul(1000))
    }

    /// Fails when the range is absent, reversed, outside of [`TimeRange::ALL`], or longer than `max` (zero: any
    /// length). The error texts are those that Pyroscope's clients know.
    pub fn check(self, max: Duration) -> Result<(), QueryError> {
        self.check_of("", max)
    }

    /// As [`TimeRange::check`], for a range whose fields are named with a prefix in the request.
    pub(crate) fn check_of(self, prefix: &str, max: Duration) -> Result<(), QueryError> {
        if self.start_ms == 0 && self.end_ms == 0 {
            return Err(QueryError::invalid("missing time range in the query"));
        }
        for (name, time) in [("start", self.start_ms), ("end", self.end_ms)] {
            check_time_ms(&format!("{prefix}{name}"), time)?;
        }
        if self.start_ms > self.end_ms {
            return Err(QueryError::invalid("query start time is after end time"));
        }
        let length = Duration::from_millis(self.end_ms.saturating_sub(self.start_ms).unsigned_abs());
        if !max.is_zero() && length > max {
            return Err(QueryError::Limit(format!(
                "the query time range exceeds the limit (max_query_length, actual: {}, limit: {})",
                crate::base::duration::format(length),
                crate::base::duration::format(max)
            )));
        }
        Ok(())
    }
}

/// Refuses a time in Unix milliseconds outside of [`TimeRange::ALL`], with which sums of times and steps could
/// overflow. `field` is its name in the error.
pub(crate) fn check_time_ms(field: &str, time: i64) -> Result<(), QueryError> {
    let TimeRange { start_ms, end_ms } = TimeRange::ALL;
    if (start_ms..=end_ms).contains(&time) {
        return Ok(());
    }
    Err(QueryError::invalid(format!(
        "{field} must be a time in Unix milliseconds from the year 1 to the year 9999, not {time}"
    )))
}

impl TypeNames {
    /// All profile types, whatever they are called.
    pub(crate) const ALL: Self = Self::NoneOf(&[]);

    /// True when a profile type, given as its id, has a name that is wanted.
    pub(crate) fn contain(self, type_id: &str) -> bool {
        let name = type_id.split(':').next().unwrap_or_default();
        match self {
            Self::AnyOf(names) => names.contains(&name),
            Self::NoneOf(names) => !names.contains(&name),
        }
    }
}

impl StackQuery {
    /// A query for all stacks of a type in a range.
    pub fn new(profile_type: ProfileType, matchers: Vec<Matcher>, range: TimeRange) -> Self {
        Self {
            profile_type,
            matchers,
            range,
            call_site: Vec::new(),
            profile_ids: Vec::new(),
            span_ids: Vec::new(),
            trace_ids: Vec::new(),
            go_pgo: None,
            pprof_nodes: 0,
        }
    }
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_mins(1),
            memory_bytes: 1 << 30,
            max_query_memory_bytes: 512 << 20,
            max_concurrent_queries: 16,
            max_rows: 1_000_000,
            max_output_bytes: 512 << 20,
            max_query_length: Duration::ZERO,
            stack_cache_bytes: 256 << 20,
            series_cache_bytes: 128 << 20,
            block_cache_bytes: 64 << 20,
            totals_cache_bytes: 32 << 20,
            footer_cache_bytes: 32 << 20,
            parallelism: 0,
            stack_bytes: 64 << 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_checked_with_the_texts_that_clients_know() {
        let day = Duration::from_hours(24);
        assert_eq!(
            TimeRange::new(0, 0).check(day).unwrap_err().to_string(),
            "missing time range in the query"
        );
        assert_eq!(
            TimeRange::new(2, 1).check(day).unwrap_err().to_string(),
            "query start time is after end time"
        );
        assert_eq!(
            TimeRange::new(0, 86_400_001).check(day).unwrap_err().to_string(),
            "the query time range exceeds the limit (max_query_length, actual: 24h0m0.001s, limit: 24h0m0s)"
        );
        assert!(TimeRange::ALL.check(Duration::ZERO).is_ok());
    }
}
