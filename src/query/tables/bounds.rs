//! Derives a [`ScanFilter`] on time, profile type and series from the conditions of a SQL query. The filter selects the
//! files to read.
//!
//! In: filter expressions of the planner. Out: a narrower filter, and for each expression whether the filter covers it
//! exactly. Unsupported expressions do not narrow the filter, so the filter never excludes a row of the result.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};

use crate::store::common::schema::column::{PROFILE_TYPE, SERIES, TIME};
use crate::store::tables::snapshot::ScanFilter;
use alluvium_profile::{SeriesId, TimeSpan};

/// Whether the filter covers an expression exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absorbed {
    /// All rows that pass the filter satisfy the expression.
    Exactly,
    /// The filter covers only part of the expression, or nothing.
    Loosely,
}

/// Narrows `filter` by one expression of a conjunction.
pub(crate) fn narrow_filter(filter: &mut ScanFilter, expr: &Expr) -> Absorbed {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And,
            right,
        }) => match (narrow_filter(filter, left), narrow_filter(filter, right)) {
            (Absorbed::Exactly, Absorbed::Exactly) => Absorbed::Exactly,
            _ => Absorbed::Loosely,
        },
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            if let (Some(column), Some(value)) = (column(left), literal(right)) {
                compare(filter, column, *op, value)
            } else if let (Some(value), Some(column)) = (literal(left), column(right)) {
                op.swap()
                    .map_or(Absorbed::Loosely, |op| compare(filter, column, op, value))
            } else {
                Absorbed::Loosely
            }
        }
        Expr::Between(Between {
            expr,
            negated: false,
            low,
            high,
        }) => match (column(expr), literal(low), literal(high)) {
            (Some(column), Some(low), Some(high)) => {
                let low = compare(filter, column, Operator::GtEq, low);
                let high = compare(filter, column, Operator::LtEq, high);
                if low == Absorbed::Exactly { high } else { low }
            }
            _ => Absorbed::Loosely,
        },
        Expr::InList(list) if !list.negated => {
            let ids: Option<HashSet<SeriesId>> =
                list.list.iter().map(|item| literal(item).and_then(series_id)).collect();
            match (column(&list.expr), ids) {
                (Some(SERIES), Some(ids)) => series(filter, ids),
                _ => Absorbed::Loosely,
            }
        }
        _ => Absorbed::Loosely,
    }
}

fn compare(filter: &mut ScanFilter, column: &str, op: Operator, value: &ScalarValue) -> Absorbed {
    match (column, op) {
        (TIME, _) => time(filter, op, value),
        (SERIES, Operator::Eq) => match series_id(value) {
            Some(id) => series(filter, HashSet::from([id])),
            None => Absorbed::Loosely,
        },
        (PROFILE_TYPE, Operator::Eq) => match value.try_as_str() {
            Some(Some(text)) => match &filter.profile_type {
                Some(before) if before.as_str() != text => Absorbed::Loosely,
                _ => {
                    filter.profile_type = Some(text.into());
                    Absorbed::Exactly
                }
            },
            _ => Absorbed::Loosely,
        },
        _ => Absorbed::Loosely,
    }
}

fn series(filter: &mut ScanFilter, ids: HashSet<SeriesId>) -> Absorbed {
    let common_ids = match &filter.series {
        Some(before) => before.intersection(&ids).copied().collect(),
        None => ids,
    };
    filter.series = Some(Arc::new(common_ids));
    Absorbed::Exactly
}

fn time(filter: &mut ScanFilter, op: Operator, value: &ScalarValue) -> Absorbed {
    // The value rounded down to microseconds, and true if it was a whole number of microseconds.
    let (micros, is_whole) = match value {
        ScalarValue::TimestampSecond(Some(value), _) => (value.saturating_mul(1_000_000), true),
        ScalarValue::TimestampMillisecond(Some(value), _) => (value.saturating_mul(1000), true),
        ScalarValue::TimestampMicrosecond(Some(value), _) => (*value, true),
        ScalarValue::TimestampNanosecond(Some(value), _) => (value.div_euclid(1000), value.rem_euclid(1000) == 0),
        _ => return Absorbed::Loosely,
    };
    let TimeSpan { start, end } = filter.time.unwrap_or(TimeSpan::ALL);
    let next = micros.saturating_add(1);
    // Times are whole microseconds, so a fraction only decides which microsecond is the first or the last to satisfy
    // the condition.
    let narrowed = match op {
        Operator::Gt => TimeSpan::new(start.max(next), end),
        Operator::GtEq => TimeSpan::new(start.max(if is_whole { micros } else { next }), end),
        Operator::Lt => TimeSpan::new(start, end.min(if is_whole { micros } else { next })),
        Operator::LtEq => TimeSpan::new(start, end.min(next)),
        Operator::Eq if is_whole => TimeSpan::new(start.max(micros), end.min(next)),
        _ => return Absorbed::Loosely,
    };
    filter.time = Some(narrowed);
    Absorbed::Exactly
}

/// Returns the name of a column, also if the expression casts the time to microseconds or nanoseconds.
fn column(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(column) => Some(&column.name),
        Expr::Cast(cast) => match cast.expr.as_ref() {
            // Nanoseconds represent every microsecond exactly; a coarser type does not.
            Expr::Column(column)
                if column.name == TIME
                    && matches!(
                        cast.field.data_type(),
                        arrow::datatypes::DataType::Timestamp(
                            arrow::datatypes::TimeUnit::Nanosecond | arrow::datatypes::TimeUnit::Microsecond,
                            Some(_)
                        )
                    ) =>
            {
                Some(&column.name)
            }
            _ => None,
        },
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

fn series_id(value: &ScalarValue) -> Option<SeriesId> {
    match value {
        ScalarValue::Int64(id) => id.map(SeriesId),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, lit};

    use super::*;

    fn timestamp(micros: i64) -> Expr {
        lit(ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into())))
    }

    #[test]
    fn a_conjunction_narrows_time_type_and_series() {
        let mut filter = ScanFilter::default();
        let expr = col("time")
            .gt_eq(timestamp(10))
            .and(timestamp(20).gt(col("time")))
            .and(col("profile_type").eq(lit("a:b:c::")))
            .and(col("series").in_list(vec![lit(1i64), lit(2i64)], false));
        assert_eq!(narrow_filter(&mut filter, &expr), Absorbed::Exactly);
        assert_eq!(filter.time, Some(TimeSpan::new(10, 20)));
        assert_eq!(filter.profile_type, Some("a:b:c::".into()));
        assert_eq!(filter.series.unwrap().len(), 2);
    }

    #[test]
    fn what_is_not_understood_narrows_nothing() {
        let mut filter = ScanFilter::default();
        let either = col("time").gt(timestamp(10)).or(col("value").gt(lit(1i64)));
        assert_eq!(narrow_filter(&mut filter, &either), Absorbed::Loosely);
        assert_eq!(filter.time, None);
    }

    #[test]
    fn two_types_at_once_stay_with_the_filter_above() {
        let mut filter = ScanFilter::default();
        assert_eq!(
            narrow_filter(&mut filter, &col("profile_type").eq(lit("a"))),
            Absorbed::Exactly
        );
        assert_eq!(
            narrow_filter(&mut filter, &col("profile_type").eq(lit("b"))),
            Absorbed::Loosely
        );
    }
}
