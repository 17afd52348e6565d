//! Adds size limits to those functions of DataFusion that can return more bytes than they receive: `repeat`, `lpad`,
//! `range`, `concat` and similar ones.
//!
//! In: DataFusion's function. Out: a wrapper of that function. The wrapper computes an upper bound of the size of the
//! result. If the bound is too large, the wrapper refuses the call before any memory is allocated. Memory pools do not
//! see the allocations of scalar functions. Without this limit, a single `repeat('x', 1000000000)` could exhaust the
//! memory of the machine.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::compute::kernels::length::length;
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::query::common::error::QueryError;
use crate::query::functions::patterns;
use crate::query::resources::allowance::{Allowance, CallLimits};

/// Name of the function that replaces the operator `||`.
pub(crate) const JOIN: &str = "text_join";
/// Estimated number of bytes by which a result is larger than the arguments, for functions that return about as much as
/// they receive.
const MODEST_BYTES: u64 = 1 << 10;

/// Functions that are not available in SQL. Some of them return types that double in size with each nested call, so
/// that the size has no bound. `levenshtein` of long texts blocks a thread for hours.
const EXCLUDED_FUNCTIONS: [&str; 9] = [
    "struct",
    "row",
    "named_struct",
    "map",
    "make_map",
    "arrays_zip",
    "list_zip",
    "levenshtein",
    "arrow_metadata",
];

/// How the size of a result depends on the arguments, which are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Growth {
    /// Repetitions of the text in argument 0; argument 1 is their number.
    Repeat,
    /// A text; argument 1 is the number of its characters.
    Pad,
    /// Every character of argument 0 may be replaced with argument 2.
    Replace,
    /// Like `Replace`; argument 2 may refer to the matched text.
    RegexReplace,
    /// Copies of argument 0; argument 1 is the number of copies.
    Copies,
    /// A list; argument 1 is the number of its elements.
    Resize,
    /// A series of numbers from start, end and step.
    Series,
    /// Each character of the pattern in argument 1 may produce a text.
    Pattern,
    /// At most a few times the size of the arguments. Only the actual result is checked.
    Modest,
}

/// Functions whose argument 1 is a regular expression.
const WITH_REGEX: [&str; 5] = [
    "regexp_count",
    "regexp_instr",
    "regexp_like",
    "regexp_match",
    "regexp_replace",
];

const GROWING_FUNCTIONS: [(&str, Growth); 27] = [
    ("repeat", Growth::Repeat),
    ("lpad", Growth::Pad),
    ("rpad", Growth::Pad),
    ("replace", Growth::Replace),
    ("regexp_replace", Growth::RegexReplace),
    ("array_repeat", Growth::Copies),
    ("array_resize", Growth::Resize),
    ("range", Growth::Series),
    ("generate_series", Growth::Series),
    ("to_char", Growth::Pattern),
    ("concat", Growth::Modest),
    ("concat_ws", Growth::Modest),
    ("overlay", Growth::Modest),
    ("string_to_array", Growth::Modest),
    ("array_to_string", Growth::Modest),
    ("array_concat", Growth::Modest),
    ("array_append", Growth::Modest),
    ("array_prepend", Growth::Modest),
    ("make_array", Growth::Modest),
    ("array_union", Growth::Modest),
    ("array_replace_all", Growth::Modest),
    ("flatten", Growth::Modest),
    ("regexp_count", Growth::Modest),
    ("regexp_instr", Growth::Modest),
    ("regexp_like", Growth::Modest),
    ("regexp_match", Growth::Modest),
    ("array_transform", Growth::Modest),
];

/// Returns DataFusion's functions without those that are not available in SQL. Functions with a result that can grow
/// get a limit.
pub(crate) fn with_limits(functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    functions
        .into_iter()
        .filter(|function| !EXCLUDED_FUNCTIONS.iter().any(|name| named(function, name)))
        .map(with_limit)
        .collect()
}

/// Returns the function, with a limit if its result can grow.
pub(crate) fn with_limit(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    match GROWING_FUNCTIONS.iter().find(|(name, _)| named(&function, name)) {
        Some((_, growth)) => Arc::new(ScalarUDF::new_from_impl(Bounded {
            inner: function,
            growth: *growth,
        })),
        None => function,
    }
}

fn named(function: &ScalarUDF, name: &str) -> bool {
    function.name() == name || function.aliases().iter().any(|alias| alias == name)
}

/// Estimates by how many bytes the result of a call is larger than its arguments. Returns `None` for a function with a
/// result that cannot grow.
pub(crate) fn extra_bytes(name: &str, args: &[Expr]) -> Option<u64> {
    if name == JOIN {
        return Some(MODEST_BYTES);
    }
    let (_, growth) = GROWING_FUNCTIONS.iter().find(|(growing, _)| *growing == name)?;
    let literal = |index: usize| match args.get(index) {
        Some(Expr::Literal(value, _)) => Some(value),
        _ => None,
    };
    let count = || match literal(1)? {
        ScalarValue::Int64(Some(count)) => u64::try_from(*count).ok(),
        _ => None,
    };
    let is_short = |index: usize| literal(index).is_some_and(|value| value.size() <= size_of::<ScalarValue>() + 16);
    let max = CallLimits::MAX.value as u64;
    match growth {
        Growth::Modest if name.starts_with("regexp_") && name != "regexp_match" => None,
        Growth::Modest => Some(MODEST_BYTES),
        Growth::Pad => Some(count().map_or(max, |count| count.saturating_mul(4).min(max))),
        Growth::Replace | Growth::RegexReplace if is_short(2) => Some(MODEST_BYTES),
        Growth::Pattern if literal(1).is_some() => Some(MODEST_BYTES),
        _ => Some(max),
    }
}

/// Refuses a result that is larger than the limit of a call. Charges the query for results that are computed while the
/// query is planned.
pub(crate) fn check_result(name: &str, value: &ColumnarValue, options: &ConfigOptions) -> Result<()> {
    let bytes = match value {
        ColumnarValue::Array(array) => array.get_array_memory_size(),
        ColumnarValue::Scalar(scalar) => scalar.size(),
    };
    check_call(name, bytes, Allowance::limits(options).result)?;
    Ok(Allowance::charge(options, bytes)?)
}

/// Refuses a call if the size of its result, `bytes`, exceeds the limit `max`. Both are in bytes.
pub(crate) fn check_call(name: &str, bytes: usize, max: usize) -> Result<()> {
    if bytes > max {
        return Err(QueryError::Limit(format!(
            "{name} would produce {} KiB in one call, more than {} KiB: use shorter texts and lists, or raise \
                sql.max_query_memory in the server's configuration",
            bytes >> 10,
            max >> 10
        ))
        .into());
    }
    Ok(())
}

fn check_bytes(name: &str, bytes: i64, max: usize) -> Result<()> {
    check_call(name, usize::try_from(bytes).unwrap_or_default(), max)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    growth: Growth,
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    // `simplify` is not forwarded: it could replace this function with the unbounded one.

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let name = self.inner.name().to_owned();
        if WITH_REGEX.contains(&name.as_str())
            && let Some(pattern) = args.args.get(1)
        {
            patterns::check(&name, pattern)?;
        }
        let options = args.config_options.clone();
        let limits = Allowance::limits(&options);
        let bytes = self.growth.bytes(&name, &args.args, limits.value)?;
        check_bytes(&name, bytes, limits.result)?;
        let value = self.inner.invoke_with_args(args)?;
        check_result(&name, &value, &options)?;
        Ok(value)
    }
}

impl Growth {
    /// Returns an upper bound of the size of a result in bytes. Fails if one text would be longer than `longest` bytes.
    fn bytes(self, name: &str, args: &[ColumnarValue], longest: usize) -> Result<i64> {
        let one_value = |bytes: i64| -> Result<i64> {
            if bytes > longest as i64 {
                Err(QueryError::Limit(format!(
                    "{name} would produce a text of {bytes} bytes, more than {longest}"
                ))
                .into())
            } else {
                Ok(bytes)
            }
        };
        let mut total: i64 = 0;
        match self {
            Growth::Modest => {}
            Growth::Repeat => {
                let (texts, counts) = (lengths(args, 0)?, numbers(args, 1)?);
                for (text, count) in rows(&texts, &counts) {
                    total = total.saturating_add(one_value(text.saturating_mul(count.max(0)))?);
                }
            }
            Growth::Pad => {
                for count in numbers(args, 1)? {
                    total = total.saturating_add(one_value(count.max(0).saturating_mul(4))?);
                }
            }
            Growth::Replace | Growth::RegexReplace => {
                let (texts, replacements) = (lengths(args, 0)?, lengths(args, 2)?);
                let factor = if self == Growth::Replace { 1 } else { 2 };
                for (text, replacement) in rows(&texts, &replacements) {
                    let insertion = replacement.saturating_mul(factor).saturating_add(1);
                    total = total.saturating_add(text.saturating_add(1).saturating_mul(insertion));
                }
            }
            Growth::Copies | Growth::Resize => {
                let counts = numbers(args, 1)?;
                if self == Growth::Resize && counts.iter().any(|count| *count < 0) {
                    return Err(QueryError::invalid("the length of a list must not be negative (array_resize)").into());
                }
                let max = counts.into_iter().max().unwrap_or(0).max(0);
                let source = if self == Growth::Copies { 0 } else { 2 };
                let item_bytes = args.get(source).map_or(16, |arg| match arg {
                    ColumnarValue::Array(array) => array.get_array_memory_size(),
                    ColumnarValue::Scalar(scalar) => scalar.size(),
                });
                total = max.saturating_mul(i64::try_from(item_bytes.max(16)).unwrap_or(i64::MAX));
            }
            Growth::Series => {
                let starts = match args.len() {
                    1 => vec![0],
                    _ => numbers(args, 0)?,
                };
                let ends = numbers(args, usize::from(args.len() != 1))?;
                let steps = match args.len() {
                    3 => numbers(args, 2)?,
                    _ => vec![1],
                };
                for (row, (start, end)) in rows(&starts, &ends).enumerate() {
                    let step = steps.get(row).or(steps.first()).copied().unwrap_or(1);
                    let span = i128::from(end).abs_diff(i128::from(start));
                    let count = span / u128::from(step.unsigned_abs().max(1)) + 1;
                    total = total.saturating_add(i64::try_from(count.saturating_mul(8)).unwrap_or(i64::MAX));
                }
            }
            Growth::Pattern => {
                let (times, patterns) = (rows_of(args, 0), lengths(args, 1)?);
                let longest = patterns.iter().copied().max().unwrap_or(0);
                total = longest.saturating_mul(16).saturating_mul(times);
            }
        }
        Ok(total)
    }
}

/// Pairs two columns row by row. If a column is shorter, its single value is used for all rows.
fn rows<'a>(left: &'a [i64], right: &'a [i64]) -> impl Iterator<Item = (i64, i64)> + 'a {
    let value = |column: &[i64], row: usize| column.get(row).or(column.first()).copied().unwrap_or(0);
    (0..left.len().max(right.len())).map(move |row| (value(left, row), value(right, row)))
}

fn rows_of(args: &[ColumnarValue], index: usize) -> i64 {
    match args.get(index) {
        Some(ColumnarValue::Array(array)) => array.len() as i64,
        _ => 1,
    }
}

fn column(args: &[ColumnarValue], index: usize) -> Result<Option<ArrayRef>> {
    Ok(match args.get(index) {
        None => None,
        Some(ColumnarValue::Array(array)) => Some(array.clone()),
        Some(ColumnarValue::Scalar(scalar)) => Some(scalar.to_array()?),
    })
}

/// Returns the numbers of an argument, with 0 for null. Fails for other types, such as dates, because the size of the
/// result then has no known bound.
fn numbers(args: &[ColumnarValue], index: usize) -> Result<Vec<i64>> {
    let Some(array) = column(args, index)? else {
        return Ok(Vec::new());
    };
    if !array.data_type().is_integer() && !matches!(array.data_type(), DataType::Null) {
        return Err(QueryError::invalid(format!(
            "series and lists can only be made of integers, not of {}; for times, use time_bucket",
            array.data_type()
        ))
        .into());
    }
    let array = cast(&array, &DataType::Int64)?;
    let array = array.as_primitive::<Int64Type>();
    Ok(array.iter().map(Option::unwrap_or_default).collect())
}

/// Returns the lengths of the texts of an argument in bytes.
fn lengths(args: &[ColumnarValue], index: usize) -> Result<Vec<i64>> {
    let Some(array) = column(args, index)? else {
        return Ok(Vec::new());
    };
    if matches!(array.data_type(), DataType::Null) {
        return Ok(vec![0; array.len()]);
    }
    let array = cast(&length(&array)?, &DataType::Int64)?;
    let array = array.as_primitive::<Int64Type>();
    Ok(array.iter().map(Option::unwrap_or_default).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(length: usize) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::Utf8View(Some("x".repeat(length))))
    }

    fn number(value: i64) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::Int64(Some(value)))
    }

    #[test]
    fn what_a_call_may_give_is_known_before_it_runs() {
        let bytes = |growth: Growth, args: &[ColumnarValue]| growth.bytes("f", args, CallLimits::MAX.value).ok();
        assert_eq!(bytes(Growth::Repeat, &[text(10), number(100)]), Some(1000));
        assert_eq!(bytes(Growth::Repeat, &[text(1), number(1_000_000_000)]), None);
        assert_eq!(bytes(Growth::Repeat, &[text(1), number(-5)]), Some(0));
        assert_eq!(bytes(Growth::Pad, &[text(1), number(i64::MAX)]), None);
        assert_eq!(bytes(Growth::Series, &[number(10)]), Some(88));
        assert_eq!(
            bytes(Growth::Series, &[number(i64::MIN), number(i64::MAX), number(1)]),
            Some(i64::MAX)
        );
        assert_eq!(bytes(Growth::Series, &[number(0), number(100), number(-10)]), Some(88));
        assert_eq!(bytes(Growth::Series, &[text(1), number(1)]), None);
        assert_eq!(bytes(Growth::Replace, &[text(9), text(1), text(4)]), Some(50));
        assert!(bytes(Growth::Copies, &[number(1), number(1 << 60)]).unwrap() > 1 << 60);
    }
}
