//! Replaces operators with bounded functions: `||` between texts, and `~` and its variants. For `||` between lists,
//! DataFusion's operator is used.
//!
//! In: texts. Out: for `||`, the concatenation of the texts, or null if one of them is null. For `~`, the result is
//! true if the second text, a regular expression, matches the first text. DataFusion's own operators have no limit:
//! each `||` in a query could double a text, and `~` compiles patterns of any size.

use std::sync::Arc;

use arrow::array::{Array, AsArray, StringArray, StringBuilder};
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

use crate::query::functions::call_limits::{JOIN, check_call, check_result};
use crate::query::resources::allowance::Allowance;

/// Replaces operators with calls of functions.
#[derive(Debug)]
pub(crate) struct OperatorPlanner {
    join: Arc<ScalarUDF>,
    matches: Arc<ScalarUDF>,
}

impl OperatorPlanner {
    /// Creates the planner. `matches` is the function `regexp_like`, which replaces `~` and its variants.
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
        if expr.op == BinaryOperator::StringConcat {
            // A chain becomes one call, because the time to find the type of nested calls grows with the cube of their
            // number.
            let (mut args, is_joined) = match expr.left {
                Expr::ScalarFunction(call) if call.func == self.join => (call.args, true),
                left => (vec![left], false),
            };
            if (is_joined || is_plain(&args[0])) && is_plain(&expr.right) {
                args.push(expr.right);
                let call = ScalarFunction::new_udf(self.join.clone(), args);
                return Ok(PlannerResult::Planned(Expr::ScalarFunction(call)));
            }
            let left = match args.len() {
                1 => args.remove(0),
                _ => Expr::ScalarFunction(ScalarFunction::new_udf(self.join.clone(), args)),
            };
            let (op, right) = (expr.op, expr.right);
            return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }));
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
        JOIN
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
        let options = &args.config_options;
        let max = Allowance::limits(options).result;
        if !all_scalar {
            // Each scalar is copied into every row of a column before it is joined.
            let scalar_bytes = |arg: &ColumnarValue| match arg {
                ColumnarValue::Scalar(scalar) => scalar.size().saturating_mul(args.number_rows),
                ColumnarValue::Array(_) => 0,
            };
            check_call(
                "||",
                args.args.iter().map(scalar_bytes).fold(0, usize::saturating_add),
                max,
            )?;
        }
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let bytes: usize = columns
            .iter()
            .map(|column| column.as_string::<i32>().values().len())
            .sum();
        check_call("||", bytes, max)?;
        let columns: Vec<&StringArray> = columns.iter().map(AsArray::as_string::<i32>).collect();
        let joined = match columns.as_slice() {
            [left, right] => concat_elements_utf8(left, right)?,
            _ => joined(&columns, bytes),
        };
        let value = if all_scalar {
            ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&joined, 0)?)
        } else {
            ColumnarValue::Array(Arc::new(joined))
        };
        check_result("||", &value, options)?;
        Ok(value)
    }
}

fn joined(columns: &[&StringArray], bytes: usize) -> StringArray {
    let rows = columns.first().map_or(0, Array::len);
    let mut all = StringBuilder::with_capacity(rows, bytes);
    let mut text = String::new();
    for row in 0..rows {
        if columns.iter().any(|column| column.is_null(row)) {
            all.append_null();
            continue;
        }
        text.clear();
        columns.iter().for_each(|column| text.push_str(column.value(row)));
        all.append_value(&text);
    }
    all.finish()
}
