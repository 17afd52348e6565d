//! Checks regular expressions of SQL before DataFusion compiles them: the compiled size of each expression, and the
//! number of expressions in one call.
//!
//! In: the argument with the pattern. Out: success, or an error that names the limit. The argument may be a column with
//! a different pattern in each row, and DataFusion keeps every compiled pattern until the end of the function call.
//! Without a limit, the call for one batch of rows could use gigabytes of memory.

use std::collections::HashSet;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;
use regex::{Regex, RegexBuilder};

use crate::query::common::error::QueryError;

/// Maximum size in bytes of a compiled expression, and of the automaton built from it at run time.
const COMPILED_BYTES: usize = 1 << 20;
/// Maximum number of different patterns in one call.
const MAX_PATTERNS: usize = 16;

/// Compiles a pattern within the size limit.
pub(crate) fn compile(pattern: &str) -> Result<Regex, QueryError> {
    let built = RegexBuilder::new(pattern)
        .size_limit(COMPILED_BYTES)
        .dfa_size_limit(COMPILED_BYTES)
        .build();
    built.map_err(|error| {
        let shown: String = pattern.chars().take(100).collect();
        QueryError::invalid(format!("invalid regular expression `{shown}`: {error}"))
    })
}

/// Refuses patterns that do not compile within the size limit, and calls with too many patterns.
pub(crate) fn check(name: &str, pattern: &ColumnarValue) -> Result<()> {
    let patterns = match pattern {
        ColumnarValue::Scalar(value) => value.to_array()?,
        ColumnarValue::Array(array) => array.clone(),
    };
    let patterns = cast(&patterns, &DataType::Utf8)?;
    let mut distinct = HashSet::new();
    for pattern in patterns.as_string::<i32>().iter().flatten() {
        if !distinct.insert(pattern) {
            continue;
        }
        if distinct.len() > MAX_PATTERNS {
            return Err(QueryError::Limit(format!(
                "{name} uses more than {MAX_PATTERNS} regular expressions in one call: write them as constants"
            ))
            .into());
        }
        compile(pattern)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::StringArray;
    use datafusion::common::ScalarValue;

    use super::*;

    #[test]
    fn patterns_are_bounded_in_size_and_number() {
        let check_one = |text: &str| {
            check(
                "f",
                &ColumnarValue::Scalar(ScalarValue::Utf8View(Some(text.to_owned()))),
            )
        };
        assert!(check_one("^runtime\\.gc").is_ok());
        assert!(
            check_one("(\\w{100}){100}")
                .unwrap_err()
                .to_string()
                .contains("size limit of 1048576")
        );
        assert!(check("f", &ColumnarValue::Scalar(ScalarValue::Null)).is_ok());
        let check_many = |count: usize| {
            let patterns = (0..1000).map(|row| format!("a{}", row % count));
            check(
                "f",
                &ColumnarValue::Array(Arc::new(StringArray::from_iter_values(patterns))),
            )
        };
        assert!(check_many(MAX_PATTERNS).is_ok());
        assert!(
            check_many(MAX_PATTERNS + 1)
                .unwrap_err()
                .to_string()
                .contains("more than 16")
        );
    }
}
