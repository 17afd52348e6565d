//! Queries and their results as plain values, without DataFusion types.
//!
//! The server and the command line create queries; limits come from the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::query::common::error::QueryError;
use crate::query::common::frame_filter::FrameFilter;
use alluvium_profile::selector::Matcher;
use alluvium_profile::{Labels, ProfileType, ProfileTypeId, TimeSpan};

/// A time range in milliseconds since 1970. It includes the start and excludes the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// First millisecond of the range.
    pub start_ms: i64,
    /// First millisecond after the range.
    pub end_ms: i64,
}

/// How the profiles of one time step of a series are combined into one value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Aggregation {
    /// The sum of the totals of the profiles.
    #[default]
    Sum,
    /// The mean of the totals of the profiles.
    Average,
}

/// The kind of exemplar that represents a point of a time series or a cell of a heatmap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExemplarKind {
    /// Points and cells have no exemplars.
    #[default]
    None,
    /// The profile with the largest value.
    Profile,
    /// The span with the largest value.
    Span,
}

/// A profile or span that represents a point or cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exemplar {
    /// Start of the profile in milliseconds since 1970.
    pub time_ms: i64,
    /// The value of the profile, or of the span in it.
    pub value: i64,
    /// Id of the profile. A query can select the profile by this id.
    pub profile_id: Arc<str>,
    /// Id of the span: 16 hexadecimal digits. Empty if the exemplar is a whole profile.
    pub span_id: String,
    /// Id of the trace: 32 hexadecimal digits. Empty if unknown.
    pub trace_id: String,
    /// All labels of the series.
    pub labels: Labels,
}

/// A query for series of points over time.
#[derive(Debug, Clone)]
pub struct SeriesQuery {
    /// The profile type of the query.
    pub profile_type: ProfileType,
    /// Matchers on labels; all must match.
    pub matchers: Vec<Matcher>,
    /// Selects only profiles that start in this range.
    pub range: TimeRange,
    /// Selects only values of stacks that begin with these functions, root first. Empty for all stacks.
    pub call_site: Vec<String>,
    /// Selects only values of stacks whose functions pass this filter.
    pub frames: FrameFilter,
    /// Length of a step in seconds, at least a millisecond.
    pub step: f64,
    /// Labels by which profiles are grouped. An empty list results in one series without labels.
    pub group_by: Vec<String>,
    /// How the profiles of one step are combined.
    pub aggregation: Aggregation,
    /// Maximum number of series. The series with the largest sums are returned. 0 for all.
    pub limit: usize,
    /// The kind of exemplar of each point.
    pub exemplars: ExemplarKind,
}

/// The items that a heatmap counts by value and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeatmapSource {
    /// Profiles, by their totals.
    Profiles,
    /// Spans. The value of a span is its sum in one profile.
    Spans,
}

/// A query for a heatmap of profiles or spans.
#[derive(Debug, Clone)]
pub struct HeatmapQuery {
    /// The profile type of the query.
    pub profile_type: ProfileType,
    /// Matchers on labels; all must match.
    pub matchers: Vec<Matcher>,
    /// Selects only profiles that start in this range.
    pub range: TimeRange,
    /// Length of a step in seconds, at least a millisecond.
    pub step: f64,
    /// Labels by which profiles are grouped. An empty list results in one series without labels.
    pub group_by: Vec<String>,
    /// The items that the heatmap counts.
    pub source: HeatmapSource,
    /// The kind of exemplar of each cell.
    pub exemplars: ExemplarKind,
    /// Maximum number of series. The series with the largest sums are returned. 0 for all.
    pub limit: usize,
}

/// One series of a heatmap.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatmapLine {
    /// Those labels of `group_by` that the series has.
    pub labels: Labels,
    /// Smallest value of each range of the scale, which all lines of a heatmap share.
    pub starts: Arc<[i64]>,
    /// The steps, in ascending order of time. Steps without values are omitted.
    pub slots: Vec<HeatmapSlot>,
}

/// One step of a series of a heatmap.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatmapSlot {
    /// Right edge of the step in milliseconds since 1970.
    pub end_ms: i64,
    /// The ranges, in ascending order of value. Ranges without values are omitted.
    pub cells: Vec<HeatmapCell>,
}

/// A range of values in a step.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatmapCell {
    /// Index of the range in [`HeatmapLine::starts`].
    pub row: usize,
    /// Number of profiles or spans with a value in the range.
    pub count: u64,
    /// The exemplar of the cell, if requested.
    pub exemplar: Option<Exemplar>,
}

/// A query for stacks and their values.
#[derive(Debug, Clone)]
pub struct StackQuery {
    /// The profile type of the query.
    pub profile_type: ProfileType,
    /// Matchers on labels; all must match.
    pub matchers: Vec<Matcher>,
    /// Selects only profiles that start in this range.
    pub range: TimeRange,
    /// Selects only stacks that begin with these functions, root first. Empty for all stacks.
    pub call_site: Vec<String>,
    /// Selects only stacks whose functions pass this filter.
    pub frames: FrameFilter,
    /// Selects only profiles with one of these ids. Empty for all profiles.
    pub profile_ids: Vec<String>,
    /// Selects only samples of one of these spans (16 hexadecimal digits). Empty for all samples.
    pub span_ids: Vec<String>,
    /// Selects only samples of one of these traces (32 hexadecimal digits). Empty for all samples.
    pub trace_ids: Vec<String>,
    /// How stacks are reduced for Go's compiler. `None` leaves the stacks unchanged.
    pub go_pgo: Option<GoPgo>,
    /// Approximate number of nodes in the tree of a pprof result; 0 for all.
    pub pprof_nodes: usize,
    /// Names of the labels of samples that a pprof result contains as numbers.
    pub numeric_labels: Vec<String>,
}

/// How stacks are reduced for the profile-guided optimization of Go's compiler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GoPgo {
    /// Number of locations to keep, counted from the leaf; 0 for all.
    pub keep_locations: usize,
    /// If true, samples that differ only in the line of the leaf are merged.
    pub aggregate_callees: bool,
}

/// A query for individual stored profiles.
#[derive(Debug, Clone)]
pub(crate) struct ProfilesQuery {
    /// Matchers on the stored labels of series, not on Pyroscope's synthetic labels (`__profile_type__`, ...); all
    /// must match.
    pub(crate) matchers: Vec<Matcher>,
    /// Selects only profiles that start in this range.
    pub(crate) range: TimeRange,
    /// Names of the profile types to select.
    pub(crate) names: TypeNames,
    /// Selects only profiles with one of these ids. Empty for all profiles that have an id.
    pub(crate) ids: Vec<String>,
    /// Maximum number of profiles. The newest profiles are returned. 0 for all.
    pub(crate) limit: usize,
}

/// A set of profile types, by their names. A name is the first part of the id of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeNames {
    AnyOf(&'static [&'static str]),
    NoneOf(&'static [&'static str]),
}

/// A stored profile without its samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptProfile {
    /// Id that the sender chose.
    pub(crate) id: Arc<str>,
    /// Start in microseconds since 1970.
    pub(crate) time_us: i64,
    /// Duration of the collection in nanoseconds; 0 if unknown.
    pub(crate) duration_ns: i64,
    /// Types of the profile, sorted.
    pub(crate) types: Vec<ProfileTypeId>,
    /// The labels that are the same in all series of the profile.
    pub(crate) labels: Labels,
}

/// How functions of a flame graph are identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// By name alone: functions with the same name in different files are treated as one function.
    Names,
    /// By name, file and binary; each node has its line.
    Files,
}

/// One series of points over time in a result.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesPoints {
    /// Those labels of `group_by` that the series has.
    pub labels: Labels,
    /// The right edge of each step in milliseconds since 1970, and the value of the step. Steps without profiles have
    /// no point.
    pub points: Vec<(i64, f64)>,
    /// Exemplars of points, by the right edge of their step in milliseconds since 1970.
    pub exemplars: BTreeMap<i64, Exemplar>,
}

/// Limits on the time, memory and results of queries.
#[derive(Debug, Clone)]
pub struct QueryLimits {
    /// Time limit of each query.
    pub timeout: Duration,
    /// Memory limit of all running queries together in bytes. Queries spill nothing to disk.
    pub memory_bytes: usize,
    /// Memory limit of one query in bytes. The limit of all queries applies as well.
    pub max_query_memory_bytes: usize,
    /// Maximum number of concurrent SQL queries, and also of concurrent other queries. The two kinds are counted
    /// separately, so that the requests of a web page and the SQL queries of a report do not wait for each other.
    /// Further queries wait for at most the time limit of a query.
    pub max_concurrent_queries: usize,
    /// Maximum number of rows of a SQL result.
    pub max_rows: usize,
    /// Maximum size of a SQL result in bytes, as columns in memory.
    pub max_output_bytes: usize,
    /// Maximum time range of a Pyroscope query; zero for no limit. Pyroscope's default is 24 h.
    pub max_query_length: Duration,
    /// Maximum bytes of decoded stack frames kept between queries.
    pub stack_cache_bytes: usize,
    /// Maximum bytes of labels of series kept between queries.
    pub series_cache_bytes: usize,
    /// Maximum bytes of decoded sample rows kept between queries.
    pub block_cache_bytes: usize,
    /// Maximum bytes of the decoded `profiles` table (times and totals) kept between queries.
    pub totals_cache_bytes: usize,
    /// Maximum bytes of Parquet footers kept between queries.
    pub footer_cache_bytes: usize,
    /// Number of concurrent tasks of one query; 0 for the number of cores.
    pub parallelism: usize,
    /// Stack size in bytes of the threads that plan and run SQL. It must be enough for the largest accepted plan in a
    /// debug build. Memory pages that a thread never touches use no memory.
    pub stack_bytes: usize,
}

impl TimeRange {
    /// The times that queries may use: from the year 1 to the year 9999, as in RFC 3339.
    pub const ALL: TimeRange = TimeRange {
        start_ms: -62_135_596_800_000,
        end_ms: 253_402_300_800_000,
    };

    /// Creates the range from `start_ms` (included) to `end_ms` (excluded).
    pub const fn new(start_ms: i64, end_ms: i64) -> Self {
        Self { start_ms, end_ms }
    }

    /// Returns the span in microseconds, the unit of the tables.
    pub(crate) fn micros(self) -> TimeSpan {
        TimeSpan::new(self.start_ms.saturating_mul(1000), self.end_ms.saturating_mul(1000))
    }

    /// Fails if the range is absent, reversed, outside of [`TimeRange::ALL`], or longer than `max` (zero for no limit).
    /// Pyroscope's clients recognize these error texts.
    pub fn check(self, max: Duration) -> Result<(), QueryError> {
        self.check_of("", max)
    }

    /// Like [`TimeRange::check`]. `prefix` is the beginning of the range's field names in the request.
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
                alluvium_base::duration::format(length),
                alluvium_base::duration::format(max)
            )));
        }
        Ok(())
    }
}

/// Refuses a time in Unix milliseconds outside of [`TimeRange::ALL`], because sums of such times and steps could
/// overflow. `field` is the name of the time in the error.
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
    /// All profile types, whatever their names.
    pub(crate) const ALL: Self = Self::NoneOf(&[]);

    /// Returns true if the profile type with this id is in the set.
    pub(crate) fn contain(self, type_id: &str) -> bool {
        let name = type_id.split(':').next().unwrap_or_default();
        match self {
            Self::AnyOf(names) => names.contains(&name),
            Self::NoneOf(names) => !names.contains(&name),
        }
    }
}

impl StackQuery {
    /// Creates a query for all stacks of a profile type in a range.
    pub fn new(profile_type: ProfileType, matchers: Vec<Matcher>, range: TimeRange) -> Self {
        Self {
            profile_type,
            matchers,
            range,
            call_site: Vec::new(),
            frames: FrameFilter::default(),
            profile_ids: Vec::new(),
            span_ids: Vec::new(),
            trace_ids: Vec::new(),
            go_pgo: None,
            pprof_nodes: 0,
            numeric_labels: Vec::new(),
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
