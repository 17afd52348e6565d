//! `function_matches(frames, 'regex')`: true if the regular expression matches a part of the name of a function in the
//! stack.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::query::functions::patterns;
use crate::query::functions::stack_contains::{any_function, frames_and_text, two_arguments};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct FunctionMatches(Signature);

impl FunctionMatches {
    pub(crate) fn new() -> Self {
        Self(Signature::user_defined(Volatility::Immutable))
    }
}

impl ScalarUDFImpl for FunctionMatches {
    fn name(&self) -> &str {
        "function_matches"
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
        let (frames, pattern) = two_arguments(args, self.name())?;
        let Some(pattern) = pattern else {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(None)));
        };
        let regex = patterns::compile(&pattern)?;
        let mask = any_function(&frames, |function| regex.is_match(function))?;
        Ok(ColumnarValue::Array(Arc::new(mask)))
    }
}
