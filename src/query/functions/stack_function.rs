//! The SQL functions `NAME(frames, 'text')`: true for a stack that contains a function whose name matches the text.
//!
//! In: a predicate, which decides whether a name matches the text. Out: the SQL function of that predicate. The
//! function returns null for a null stack or text.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::query::common::error::QueryError;

/// The name of an SQL function, and the test that it applies to the function names of a stack.
pub(super) trait StackPredicate: Debug + Eq + Hash + Send + Sync + 'static {
    fn name(&self) -> &'static str;

    /// Returns a closure that returns true for the function names that match `text`.
    fn compile(&self, text: String) -> Result<impl Fn(&str) -> bool, QueryError>;
}

/// The SQL function of a predicate.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct StackFunction<P> {
    predicate: P,
    signature: Signature,
}

impl<P: StackPredicate> StackFunction<P> {
    pub(super) fn new(predicate: P) -> Self {
        Self {
            predicate,
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl<P: StackPredicate> ScalarUDFImpl for StackFunction<P> {
    fn name(&self) -> &str {
        self.predicate.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        frames_and_text(self.name(), types)
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (frames, text) = two_arguments(args, self.name())?;
        let Some(text) = text else {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(None)));
        };
        let mask = any_function(&frames, self.predicate.compile(text)?)?;
        Ok(ColumnarValue::Array(Arc::new(mask)))
    }
}

/// Checks and returns the argument types of a function on frames: a list of frames and a text.
fn frames_and_text(function: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    if let [
        frames @ DataType::List(_),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null,
    ] = types
    {
        Ok(vec![frames.clone(), DataType::Utf8])
    } else {
        plan_err!("{function} requires the column `frames` and a text, as in {function}(frames, 'main.main')")
    }
}

/// Returns the frames as an array, and the text, which must be constant.
fn two_arguments(args: ScalarFunctionArgs, function: &str) -> Result<(ArrayRef, Option<String>)> {
    let rows = args.number_rows;
    let [frames, text] = <[ColumnarValue; 2]>::try_from(args.args)
        .map_err(|args| QueryError::invalid(format!("{function} requires 2 arguments, not {}", args.len())))?;
    let text = match text {
        ColumnarValue::Scalar(value) => value.try_as_str().flatten().map(str::to_owned),
        ColumnarValue::Array(_) => return plan_err!("the second argument of {function} must be a constant text"),
    };
    Ok((frames.into_array(rows)?, text))
}

/// Returns for each stack whether `accept` returns true for one of its functions; null for a null stack.
fn any_function(frames: &ArrayRef, accept: impl Fn(&str) -> bool) -> Result<BooleanArray> {
    let refuse = || QueryError::invalid("the first argument must be a list of frames");
    let lists = frames.as_list_opt::<i32>().ok_or_else(refuse)?;
    let elements = lists.values().as_struct_opt().ok_or_else(refuse)?;
    let names = elements
        .column_by_name("function")
        .and_then(|column| column.as_string_opt::<i32>());
    let names = names.ok_or_else(refuse)?;
    let offsets = lists.value_offsets();
    let mask = (0..lists.len()).map(|row| {
        let span = offsets[row] as usize..offsets[row + 1] as usize;
        lists
            .is_valid(row)
            .then(|| span.into_iter().any(|index| accept(names.value(index))))
    });
    Ok(mask.collect())
}
