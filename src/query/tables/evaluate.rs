//! Evaluates those conditions of a query that concern labels and frames. The caller passes one row for each distinct
//! series or stack, so that the conditions are not evaluated again for each sample.
//!
//! In: expressions and a batch with the columns that they use. Out: a mask of the rows that satisfy the conditions.

use arrow::array::{Array, BooleanArray};
use arrow::compute::and_kleene;
use arrow::record_batch::RecordBatch;
use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::create_physical_expr;

use crate::query::common::error::QueryError;

/// Returns a mask of the rows that satisfy all conditions. Null is treated as false.
pub(crate) fn conjunction(batch: &RecordBatch, conditions: Vec<Expr>) -> Result<BooleanArray, QueryError> {
    let schema = DFSchema::try_from(batch.schema())?;
    let (props, planning) = (ExecutionProps::new(), PhysicalPlanningContext::default());
    let mut mask = BooleanArray::from(vec![true; batch.num_rows()]);
    for condition in conditions {
        let expr = create_physical_expr(&condition, &schema, &props, &planning)?;
        let values = expr.evaluate(batch)?.into_array(batch.num_rows())?;
        let Some(values) = values.as_any().downcast_ref::<BooleanArray>() else {
            return Err(QueryError::invalid(format!("`{condition}` is not a condition")));
        };
        mask = and_kleene(&mask, values)?;
    }
    Ok(mask)
}
