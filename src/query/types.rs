//! Questions and answers as plain values, without any type of DataFusion.
//!
//! The server and the command line fill these in; limits come from the configuration.

use std::time::Duration;

use crate::profile::selector::Matcher;
use crate::profile::{Labels, ProfileType, TimeSpan};
use crate::query::QueryError;

/// A span of time, start included, end not, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// First millisecond that is in it.
    pub start_ms: i64,
    /// First millisecond after.
    pub end_ms: i64,
}

/// How profiles that fall into one step are put together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Aggregation {
    /// The sum of the totals of the profiles.
    #[default]
    Sum,
    /// The mean of the totals of the profiles.
    Average,
}

/// A question for time lines.
#[derive(Debug, Clone)]
pub struct SeriesQuery {
    /// The one type that is asked for.
    pub profile_type: ProfileType,
    /// Conditions on the labels, all of which hold.
    pub matchers: Vec<Matcher>,
    /// Only profiles that start in this range.
    pub range: TimeRange,
    /// Length of a step in seconds, at least a millisecond.
    pub step: f64,
    /// Labels by which profiles are kept apart; none gives one series without labels.
    pub group_by: Vec<String>,
    /// How profiles of one step are put together.
    pub aggregation: Aggregation,
    /// Only so many series, those with the largest sum; 0 for all.
    pub limit: usize,
}

/// A question for stacks and their values.
#[derive(Debug, Clone)]
pub struct StackQuery {
    /// The one type that is asked for.
    pub profile_type: ProfileType,
    /// Conditions on the labels, all of which hold.
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
}

/// What tells the functions of a flame graph apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Names alone: two files with one name are one function.
    Names,
    /// Name, file and binary; each has its line.
    Files,
}

/// One time line of the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesPoints {
    /// The labels asked for by `group_by` as far as the series have them.
    pub labels: Labels,
    /// Right edge of the step in milliseconds, and the value. Steps without profiles have no point.
    pub points: Vec<(i64, f64)>,
}

/// Bounds on time, memory and answers of queries.
#[derive(Debug, Clone)]
pub struct QueryLimits {
    /// Time limit of each query.
    pub timeout: Duration,
    /// Memory of all running queries together, in bytes. Nothing is spilled to disk.
    pub memory_bytes: usize,
    /// Memory of one question, in bytes, within that of all.
    pub max_query_memory_bytes: usize,
    /// SQL queries that run at the same time, and as many other questions beside them: those of a page must not wait
    /// for those of a report, nor the other way round. More wait, for as long as a query may take.
    pub max_concurrent_queries: usize,
    /// Most rows of a SQL answer.
    pub max_rows: usize,
    /// Most bytes of a SQL answer, as columns in memory.
    pub max_output_bytes: usize,
    /// Longest range of a Pyroscope question; zero for no limit. Pyroscope's default is 24 h.
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
    /// Tasks of one query that run at the same time; 0 for the number of cores.
    pub parallelism: usize,
}

impl TimeRange {
    /// All of time that microseconds can count.
    pub const ALL: TimeRange = TimeRange {
        start_ms: i64::MIN / 1000,
        end_ms: i64::MAX / 1000,
    };

    /// The range from `start_ms` up to but not including `end_ms`.
    pub const fn new(start_ms: i64, end_ms: i64) -> Self {
        Self { start_ms, end_ms }
    }

    /// The span in microseconds, as the tables keep time.
    pub(crate) fn micros(self) -> TimeSpan {
        TimeSpan::new(self.start_ms.saturating_mul(1000), self.end_ms.saturating_mul(1000))
    }

    /// Fails when the range is absent, turned round, or longer than `max` (zero: any length). Texts are those that
    /// Pyroscope's clients know.
    pub fn check(self, max: Duration) -> Result<(), QueryError> {
        if self.start_ms == 0 && self.end_ms == 0 {
            return Err(QueryError::invalid("missing time range in the query"));
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

impl StackQuery {
    /// A question for all stacks of a type in a range.
    pub fn new(profile_type: ProfileType, matchers: Vec<Matcher>, range: TimeRange) -> Self {
        Self {
            profile_type,
            matchers,
            range,
            call_site: Vec::new(),
            profile_ids: Vec::new(),
            span_ids: Vec::new(),
            trace_ids: Vec::new(),
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
