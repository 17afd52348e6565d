//! Parses the arguments of table functions: a selector, a time range, a number.
//!
//! In: expressions that the planner has folded to literals. Out: values, or an error. If a function is called in a
//! wrong form, the error shows its usage.

use datafusion::catalog::Session;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

use crate::query::common::error::QueryError;
use crate::query::common::time;
use crate::query::common::types::{TimeRange, check_time_ms};
use crate::query::decoded::context::Purpose;
use alluvium_profile::selector::{self, Matcher};
use alluvium_profile::time::DAY_US;
use alluvium_profile::{ProfileType, TimeSpan};

/// The usage of a function, for errors and checks.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    /// The call syntax, for errors.
    pub(crate) text: &'static str,
    /// Numbers of arguments that [`Arguments::read`] accepts.
    pub(crate) counts: &'static [usize],
}

/// The arguments `'TYPE{selector}', from, until` and an optional number.
pub(crate) struct Arguments {
    pub(crate) profile_type: ProfileType,
    pub(crate) matchers: Vec<Matcher>,
    /// The requested time span.
    pub(crate) time: TimeSpan,
    /// The optional fourth argument.
    pub(crate) number: Option<usize>,
}

impl Arguments {
    /// Parses the arguments. `usage` determines whether a fourth argument, a number, is allowed. If the number of
    /// arguments is wrong, or the first or the last argument has the wrong type, the error shows the usage.
    pub(crate) fn read(
        usage: Usage,
        args: &[Expr],
        session: &dyn Session,
        purpose: Purpose,
    ) -> Result<Self, QueryError> {
        if purpose == Purpose::Describe && args.iter().any(is_parameter) {
            return Ok(Self::unknown());
        }
        let refuse = |problem: String| QueryError::invalid(format!("{problem}; call it as {}", usage.text));
        if !usage.counts.contains(&args.len()) {
            return Err(refuse(format!("wrong number of arguments: {}", args.len())));
        }
        let Some(query) = literal(&args[0]).and_then(|value| value.try_as_str().flatten()) else {
            return Err(refuse(
                "the first argument must be the text 'TYPE{selector}'".to_owned(),
            ));
        };
        let (profile_type, matchers) =
            selector::parse_query(query).map_err(|error| QueryError::invalid(format!("{error} in `{query}`")))?;
        let now = session
            .execution_props()
            .query_execution_start_time
            .unwrap_or_else(chrono::Utc::now)
            .timestamp_micros();
        let time = TimeSpan::new(moment(&args[1], now)?, moment(&args[2], now)?);
        if time.start > time.end {
            return Err(QueryError::invalid("query start time is after end time"));
        }
        let number = match args.get(3) {
            None => None,
            Some(expr) => match literal(expr) {
                Some(ScalarValue::Int64(Some(number))) if *number >= 0 => usize::try_from(*number).ok(),
                _ => {
                    return Err(refuse("the last argument must be a non-negative integer".to_owned()));
                }
            },
        };
        Ok(Self {
            profile_type,
            matchers,
            time,
            number,
        })
    }

    /// Returns a placeholder for parameters without values. The placeholder is never read, because a plan for
    /// [`Purpose::Describe`] does not run.
    fn unknown() -> Self {
        Self {
            profile_type: ProfileType {
                name: String::new(),
                sample_type: String::new(),
                sample_unit: String::new(),
                period_type: String::new(),
                period_unit: String::new(),
            },
            matchers: Vec::new(),
            time: TimeSpan::new(0, 0),
            number: None,
        }
    }

    /// Returns the range in milliseconds that covers the span in microseconds.
    pub(crate) fn range(&self) -> TimeRange {
        TimeRange::new(self.time.start.div_euclid(1000), -(-self.time.end).div_euclid(1000))
    }
}

fn is_parameter(expr: &Expr) -> bool {
    match expr {
        Expr::Placeholder(_) => true,
        Expr::Alias(alias) => is_parameter(&alias.expr),
        Expr::Cast(cast) => is_parameter(&cast.expr),
        _ => false,
    }
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        Expr::Alias(alias) => literal(&alias.expr),
        _ => None,
    }
}

fn moment(expr: &Expr, now: i64) -> Result<i64, QueryError> {
    let micros = match literal(expr) {
        Some(ScalarValue::TimestampSecond(Some(value), _)) => value.checked_mul(1_000_000),
        Some(ScalarValue::TimestampMillisecond(Some(value), _)) => value.checked_mul(1000),
        Some(ScalarValue::TimestampMicrosecond(Some(value), _)) => Some(*value),
        Some(ScalarValue::TimestampNanosecond(Some(value), _)) => Some(value.div_euclid(1000)),
        Some(ScalarValue::Date32(Some(days))) => i64::from(*days).checked_mul(DAY_US),
        Some(ScalarValue::Int64(Some(number))) => time::number_to_micros(*number),
        Some(value) => match value.try_as_str() {
            Some(Some(text)) => return time::parse(text, now),
            _ => None,
        },
        None => None,
    };
    let micros = micros.ok_or_else(|| {
        QueryError::invalid(format!(
            "`{expr}` is not a time; write, for example, 'now-1h' or a timestamp"
        ))
    })?;
    check_time_ms(&format!("`{expr}`"), micros.div_euclid(1000))?;
    Ok(micros)
}
