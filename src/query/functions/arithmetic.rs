//! `+`, `-` and `*` of integers, which fail if the result does not fit in the integer type. DataFusion's own operators
//! wrap around and return a wrong number.
//!
//! In: integers. Out: the sum, difference or product, or an error. For other operands, DataFusion's operators are used.

use arrow::compute::kernels::numeric;
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum;
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Replaces operators between integers with functions that check for overflow.
#[derive(Debug)]
pub(crate) struct ArithmeticPlanner;

/// An operator of a chain, such as `a + b - c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Add,
    Subtract,
    Multiply,
}

impl Step {
    fn of(operator: &BinaryOperator) -> Option<Self> {
        match operator {
            BinaryOperator::Plus => Some(Self::Add),
            BinaryOperator::Minus => Some(Self::Subtract),
            BinaryOperator::Multiply => Some(Self::Multiply),
            _ => None,
        }
    }

    fn operator(self) -> Operator {
        match self {
            Self::Add => Operator::Plus,
            Self::Subtract => Operator::Minus,
            Self::Multiply => Operator::Multiply,
        }
    }

    /// Returns true if the operators may follow each other in a chain, which is computed from left to right.
    fn chains_with(self, other: Self) -> bool {
        (self == Self::Multiply) == (other == Self::Multiply)
    }
}

impl ExprPlanner for ArithmeticPlanner {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let Some(step) = Step::of(&expr.op) else {
            return Ok(PlannerResult::Original(expr));
        };
        let Some(kind) = common_type(&expr, step, schema) else {
            return Ok(PlannerResult::Original(expr));
        };
        // A chain becomes one call, because the time to find the type of nested calls grows with the cube of their
        // number.
        let chained = match &expr.left {
            Expr::ScalarFunction(call) => checked(call)
                .filter(|inner| inner.kind == kind && inner.steps.iter().all(|last| last.chains_with(step)))
                .map(|inner| inner.steps.clone()),
            _ => None,
        };
        let (mut args, mut steps) = match (expr.left, chained) {
            (Expr::ScalarFunction(call), Some(steps)) => (call.args, steps),
            (left, _) => (vec![left], Vec::new()),
        };
        args.push(expr.right);
        steps.push(step);
        let function = ScalarUDF::new_from_impl(Checked {
            steps,
            kind,
            signature: Signature::user_defined(Volatility::Immutable),
        });
        let call = ScalarFunction::new_udf(function.into(), args);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
    }
}

/// Returns the integer type in which both sides are computed; `None` if a side is not an integer.
fn common_type(expr: &RawBinaryExpr, step: Step, schema: &DFSchema) -> Option<DataType> {
    let [left, right] = [&expr.left, &expr.right].map(|side| {
        let checked_type = match side {
            Expr::ScalarFunction(call) => checked(call).map(|call| call.kind.clone()),
            _ => None,
        };
        checked_type
            .or_else(|| side.get_type(schema).ok())
            .filter(DataType::is_integer)
    });
    let (left, right, operator) = (left?, right?, step.operator());
    let (left, right) = BinaryTypeCoercer::new(&left, &operator, &right)
        .get_input_types()
        .ok()?;
    (left == right && left.is_integer()).then_some(left)
}

fn checked(call: &ScalarFunction) -> Option<&Checked> {
    let inner: &dyn std::any::Any = call.func.inner().as_ref();
    inner.downcast_ref()
}

/// A chain of operators between integers of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    /// The operators between the arguments. There is one operator fewer than there are arguments.
    steps: Vec<Step>,
    kind: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        "checked_arithmetic"
    }

    /// Returns the column name that DataFusion's own operators would have.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let mut names = args.iter().map(|arg| arg.schema_name().to_string());
        let mut name = names.next().unwrap_or_default();
        for (step, next) in self.steps.iter().zip(names) {
            name = format!("{name} {} {next}", step.operator());
        }
        Ok(name)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(vec![self.kind.clone(); types.len()])
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.kind.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut args = args.args.into_iter();
        let Some(mut result) = args.next() else {
            return datafusion::common::internal_err!("an operator needs operands");
        };
        for (step, next) in self.steps.iter().zip(args) {
            let kernel = match step {
                Step::Add => numeric::add,
                Step::Subtract => numeric::sub,
                Step::Multiply => numeric::mul,
            };
            result = datum::apply(&result, &next, kernel)?;
        }
        Ok(result)
    }
}
