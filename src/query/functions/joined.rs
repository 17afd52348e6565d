//! The operator `||` between texts, as a function with a limit on its result; between lists it stays DataFusion's.
//!
//! In: two texts. Out: one after the other, null when one is null. The operator alone would double a text with each step and nobody would count.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::compute::kernels::concat_elements::concat_elements_utf8;
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::query::functions::bounded::{check_call, check_result};

/// Puts the function in the place of the operator.
#[derive(Debug)]
pub(crate) struct JoinPlanner(Arc<ScalarUDF>);

impl JoinPlanner {
    pub(crate) fn new() -> Self {
        Self(Arc::new(ScalarUDF::new_from_impl(Joined(Signature::user_defined(
            Volatility::Immutable,
        )))))
    }
}

impl ExprPlanner for JoinPlanner {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_plain = |side: &Expr| side.get_type(schema).is_ok_and(|kind| !kind.is_nested());
        if expr.op == BinaryOperator::StringConcat && is_plain(&expr.left) && is_plain(&expr.right) {
            let call = ScalarFunction::new_udf(self.0.clone(), vec![expr.left, expr.right]);
            return Ok(PlannerResult::Planned(Expr::ScalarFunction(call)));
        }
        Ok(PlannerResult::Original(expr))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Joined(Signature);

impl ScalarUDFImpl for Joined {
    fn name(&self) -> &str {
        "text_join"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let names: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(names.join(" || "))
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(vec![DataType::Utf8; types.len()])
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let all_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let bytes: usize = columns
            .iter()
            .map(|column| column.as_string::<i32>().values().len())
            .sum();
        check_call("||", bytes)?;
        let [left, right] = columns.as_slice() else {
            return datafusion::common::plan_err!("|| joins two texts");
        };
        let joined = concat_elements_utf8(left.as_string::<i32>(), right.as_string::<i32>())?;
        let value = match all_scalar {
            true => ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&joined, 0)?),
            false => ColumnarValue::Array(Arc::new(joined)),
        };
        check_result("||", &value)?;
        Ok(value)
    }
}
