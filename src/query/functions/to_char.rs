//! `to_char` with PostgreSQL's patterns of dates and times, such as `YYYY-MM-DD HH24:MI`, and also with patterns of
//! strftime, which DataFusion's function accepts.
//!
//! In: a time and a pattern. Out: the text. A pattern that contains a `%` is a pattern of strftime. If strftime cannot
//! express a pattern of PostgreSQL, the call fails with an error that names the pattern.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::query::common::error::QueryError;

/// A wrapper of DataFusion's function `to_char`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct ToChar(Arc<ScalarUDF>);

impl ToChar {
    /// Creates a wrapper that translates the patterns of PostgreSQL for the function `inner`.
    pub(crate) fn new(inner: Arc<ScalarUDF>) -> Self {
        Self(inner)
    }
}

impl ScalarUDFImpl for ToChar {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.0.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.0.return_field_from_args(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some(pattern) = args.args.get_mut(1) {
            *pattern = translated(pattern)?;
        }
        self.0.invoke_with_args(args)
    }
}

fn translated(pattern: &ColumnarValue) -> Result<ColumnarValue> {
    Ok(match pattern {
        ColumnarValue::Scalar(value) => match value.try_as_str() {
            Some(Some(text)) => {
                let text = to_strftime(text)?.into_owned();
                ColumnarValue::Scalar(ScalarValue::Utf8(Some(text)))
            }
            _ => pattern.clone(),
        },
        ColumnarValue::Array(array) => {
            let texts = cast(array, &DataType::Utf8)?;
            let texts = texts.as_string::<i32>().iter();
            let texts = texts.map(|text| text.map(to_strftime).transpose());
            let texts: StringArray = texts.collect::<Result<_, QueryError>>()?;
            debug_assert_eq!(texts.len(), array.len());
            ColumnarValue::Array(Arc::new(texts))
        }
    })
}

/// PostgreSQL's patterns, each with the equivalent pattern of strftime. If a pattern begins with a shorter pattern, the
/// longer pattern is listed first. Unlike PostgreSQL, strftime does not pad names of months and days with blanks.
const PATTERNS: [(&str, &str); 23] = [
    ("HH24", "%H"),
    ("HH12", "%I"),
    ("IYYY", "%G"),
    ("YYYY", "%Y"),
    ("Month", "%B"),
    ("DDD", "%j"),
    ("Mon", "%b"),
    ("Day", "%A"),
    ("HH", "%I"),
    ("YY", "%y"),
    ("MM", "%m"),
    ("MI", "%M"),
    ("MS", "%3f"),
    ("DD", "%d"),
    ("Dy", "%a"),
    ("SS", "%S"),
    ("US", "%6f"),
    ("IW", "%V"),
    ("ID", "%u"),
    ("AM", "%p"),
    ("PM", "%p"),
    ("am", "%P"),
    ("pm", "%P"),
];

/// Patterns of PostgreSQL that have no counterpart in strftime.
const UNSUPPORTED_PATTERNS: [&str; 26] = [
    "SSSSS", "SSSS", "Y,YYY", "MONTH", "month", "A.M.", "P.M.", "a.m.", "p.m.", "TZH", "TZM", "IDDD", "IYY", "YYY",
    "MON", "mon", "DAY", "day", "B.C.", "TH", "th", "RM", "CC", "WW", "TZ", "OF",
];

/// Translates a pattern to a pattern of strftime.
fn to_strftime(pattern: &str) -> Result<Cow<'_, str>, QueryError> {
    if pattern.contains('%') {
        return Ok(Cow::Borrowed(pattern));
    }
    let mut out = String::with_capacity(pattern.len() * 2);
    let mut rest = pattern;
    let mut is_unpadded = false;
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (text, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            out.push_str(text);
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("FM") {
            (is_unpadded, rest) = (true, after);
            continue;
        }
        let supported = PATTERNS
            .iter()
            .find_map(|(name, to)| Some((*to, rest.strip_prefix(name)?)));
        // If a pattern with a counterpart and a pattern without a counterpart both match, the longer pattern is used.
        let unsupported = UNSUPPORTED_PATTERNS.iter().find(|name| rest.starts_with(**name));
        let is_longer = |name: &&&str| supported.is_none_or(|(_, after)| rest.len() - after.len() < name.len());
        if let Some(name) = unsupported.filter(is_longer) {
            return Err(QueryError::invalid(format!(
                "to_char does not support the pattern `{name}`: write text in double quotes, or use a pattern of \
                    strftime such as `%Y-%m-%d`"
            )));
        }
        if let Some((to, after)) = supported {
            let specifier = to.strip_prefix('%').unwrap_or(to);
            out.push_str(if is_unpadded { "%-" } else { "%" });
            out.push_str(specifier);
            rest = after;
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
        is_unpadded = false;
    }
    Ok(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_postgresql_become_those_of_strftime() {
        for (pattern, expected) in [
            ("YYYY-MM-DD", "%Y-%m-%d"),
            ("YYYY-MM-DD\"T\"HH24:MI:SS.US", "%Y-%m-%dT%H:%M:%S.%6f"),
            ("FMDD Mon YY, HH12:MI am", "%-d %b %y, %I:%M %P"),
            ("Dy, DD Month", "%a, %d %B"),
            ("IYYY-IW-ID DDD", "%G-%V-%u %j"),
            ("\"YYYY\" MS", "YYYY %3f"),
            ("%Y and MM", "%Y and MM"),
            ("- / _", "- / _"),
            ("", ""),
        ] {
            assert_eq!(to_strftime(pattern).unwrap(), expected, "{pattern}");
        }
        for (pattern, name) in [
            ("DDTH", "TH"),
            ("MONTH", "MONTH"),
            ("mon", "mon"),
            ("SSSS", "SSSS"),
            ("HH24 TZ", "TZ"),
            ("YYY", "YYY"),
        ] {
            let error = to_strftime(pattern).unwrap_err().to_string();
            assert!(error.contains(&format!("`{name}`")), "{pattern}: {error}");
        }
    }
}
