//! Operators that are replaced with bounded functions: `||` between texts (between lists it stays DataFusion's), and
//! `~` and its variants.
//!
//! In: two texts. Out: their concatenation, null when one is null; or whether the second, a regular expression, matches
//! the first. DataFusion's own operators could double a text with each step without a limit, and compile patterns of
//! any size.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::compute::kernels::concat_elements::concat_elements_utf8;
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, not,
};
use datafusion::prelude::lit;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::query::functions::bounded::{check_call, check_result};

/// Replaces operators with functions.
#[derive(Debug)]
pub(crate) struct OperatorPlanner {
    join: Arc<ScalarUDF>,
    matches: Arc<ScalarUDF>,
}

impl OperatorPlanner {
    /// `matches` is `regexp_like`.
    pub(crate) fn new(matches: Arc<ScalarUDF>) -> Self {
        let join = ScalarUDF::new_from_impl(Joined(Signature::user_defined(Volatility::Immutable)));
        Self {
            join: Arc::new(join),
            matches,
        }
    }

    fn matches(&self, expr: RawBinaryExpr, flags: Option<&str>) -> Expr {
        let mut args = vec![expr.left, expr.right];
        args.extend(flags.map(lit));
        Expr::ScalarFunction(ScalarFunction::new_udf(self.matches.clone(), args))
    }
}

impl ExprPlanner for OperatorPlanner {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_plain = |side: &Expr| side.get_type(schema).is_ok_and(|kind| !kind.is_nested());
        if expr.op == BinaryOperator::StringConcat && is_plain(&expr.left) && is_plain(&expr.right) {
            let call = ScalarFunction::new_udf(self.join.clone(), vec![expr.left, expr.right]);
            return Ok(PlannerResult::Planned(Expr::ScalarFunction(call)));
        }
        Ok(match expr.op {
            BinaryOperator::PGRegexMatch => PlannerResult::Planned(self.matches(expr, None)),
            BinaryOperator::PGRegexIMatch => PlannerResult::Planned(self.matches(expr, Some("i"))),
            BinaryOperator::PGRegexNotMatch => PlannerResult::Planned(not(self.matches(expr, None))),
            BinaryOperator::PGRegexNotIMatch => PlannerResult::Planned(not(self.matches(expr, Some("i")))),
            _ => PlannerResult::Original(expr),
        })
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
        let value = if all_scalar {
            ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&joined, 0)?)
        } else {
            ColumnarValue::Array(Arc::new(joined))
        };
        check_result("||", &value)?;
        Ok(value)
    }
}
