//! `stack_contains(frames, 'name')`: true if a function of exactly this name is in the stack.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::query::common::error::QueryError;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct StackContains(Signature);

impl StackContains {
    pub(crate) fn new() -> Self {
        Self(Signature::user_defined(Volatility::Immutable))
    }
}

impl ScalarUDFImpl for StackContains {
    fn name(&self) -> &str {
        "stack_contains"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        frames_and_text(self.name(), types)
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (frames, name) = two_arguments(args, self.name())?;
        let Some(name) = name else {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(None)));
        };
        let mask = any_function(&frames, |function| function == name)?;
        Ok(ColumnarValue::Array(Arc::new(mask)))
    }
}

/// Checks and returns the argument types of both functions on frames: a list of frames and a text.
pub(crate) fn frames_and_text(function: &str, types: &[DataType]) -> Result<Vec<DataType>> {
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
pub(crate) fn two_arguments(args: ScalarFunctionArgs, function: &str) -> Result<(ArrayRef, Option<String>)> {
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
pub(crate) fn any_function(frames: &ArrayRef, accept: impl Fn(&str) -> bool) -> Result<BooleanArray> {
    let wrong = || QueryError::invalid("the first argument must be a list of frames");
    let lists = frames.as_list_opt::<i32>().ok_or_else(wrong)?;
    let elements = lists.values().as_struct_opt().ok_or_else(wrong)?;
    let names = elements
        .column_by_name("function")
        .and_then(|column| column.as_string_opt::<i32>());
    let names = names.ok_or_else(wrong)?;
    let offsets = lists.value_offsets();
    let mask = (0..lists.len()).map(|row| {
        let span = offsets[row] as usize..offsets[row + 1] as usize;
        lists
            .is_valid(row)
            .then(|| span.into_iter().any(|at| accept(names.value(at))))
    });
    Ok(mask.collect())
}
