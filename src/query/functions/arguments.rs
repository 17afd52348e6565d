//! Arguments of the table functions: a selector, a range of time, a number.
//!
//! In: expressions that the planner has folded to literals. Out: values, or an error that names the function and shows how to call it.

use datafusion::catalog::Session;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

use crate::profile::ProfileType;
use crate::profile::selector::{self, Matcher};
use crate::query::context::Purpose;
use crate::query::{QueryError, TimeRange, time};

/// `'TYPE{selector}', from, until` and what comes after.
pub(crate) struct Arguments {
    pub(crate) profile_type: ProfileType,
    pub(crate) matchers: Vec<Matcher>,
    /// Start and end in microseconds.
    pub(crate) time: (i64, i64),
    /// The optional fourth argument.
    pub(crate) number: Option<usize>,
}

impl Arguments {
    /// Reads them; `usage` is shown when they are of the wrong number or kind.
    pub(crate) fn read(
        usage: &str,
        args: &[Expr],
        session: &dyn Session,
        takes_number: bool,
        purpose: Purpose,
    ) -> Result<Self, QueryError> {
        if purpose == Purpose::Describe && args.iter().any(is_parameter) {
            return Ok(Self::unknown());
        }
        let wrong = |what: String| QueryError::invalid(format!("{what}; call it as {usage}"));
        let most = if takes_number { 4 } else { 3 };
        if args.len() < 3 || args.len() > most {
            return Err(wrong(format!("wrong number of arguments: {}", args.len())));
        }
        let query = match literal(&args[0]).and_then(|value| value.try_as_str().flatten()) {
            Some(query) => query,
            None => return Err(wrong("the first argument must be the text 'TYPE{selector}'".to_owned())),
        };
        let (profile_type, matchers) =
            selector::parse_query(query).map_err(|error| QueryError::invalid(format!("{error} in `{query}`")))?;
        let now = session
            .execution_props()
            .query_execution_start_time
            .unwrap_or_else(chrono::Utc::now)
            .timestamp_micros();
        let time = (moment(&args[1], now)?, moment(&args[2], now)?);
        if time.0 > time.1 {
            return Err(QueryError::invalid("query start time is after end time"));
        }
        let number = match args.get(3) {
            None => None,
            Some(expr) => match literal(expr) {
                Some(ScalarValue::Int64(Some(number))) if *number >= 0 => usize::try_from(*number).ok(),
                _ => {
                    return Err(wrong(
                        "the last argument must be a whole number that is not negative".to_owned(),
                    ));
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

    /// What stands for arguments that are not there yet. Never read from: the plan is only looked at.
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
            time: (0, 0),
            number: None,
        }
    }

    /// The range in milliseconds that holds the one in microseconds.
    pub(crate) fn range(&self) -> TimeRange {
        TimeRange::new(self.time.0.div_euclid(1000), -(-self.time.1).div_euclid(1000))
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
        Some(ScalarValue::Date32(Some(days))) => i64::from(*days).checked_mul(86_400_000_000),
        Some(ScalarValue::Int64(Some(number))) => time::number_to_micros(*number),
        Some(value) => match value.try_as_str() {
            Some(Some(text)) => return time::parse(text, now),
            _ => None,
        },
        None => None,
    };
    micros.ok_or_else(|| {
        QueryError::invalid(format!(
            "`{expr}` is not a time; write for example 'now-1h' or a timestamp"
        ))
    })
}
