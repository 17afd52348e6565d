//! Estimates the size of the rows of a plan before the plan runs. The columns of a step repeat constants and results of
//! functions in every row, so the estimate counts these values in each step.
//!
//! In: an optimized plan. The optimizer has replaced calls that read no columns with constants. Out: the bytes of a row
//! over all steps, and the number of calls that can return large values. A plan stores a constant once, but a column
//! repeats the constant in every row: a text of 60 KB takes 491 MB in a batch of 8192 rows. Short values are not
//! counted.

use std::collections::HashMap;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::query::functions;

/// Size in bytes below which constants are not counted.
const MIN_COUNTED_BYTES: usize = 1 << 10;

/// The estimated size of the rows of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RowBytes {
    /// Bytes of one row over all steps of the plan.
    pub(crate) bytes: u64,
    /// Number of calls whose results can be larger than their arguments.
    pub(crate) calls: u64,
}

impl RowBytes {
    /// Estimates the size of the rows of a plan.
    pub(crate) fn of(plan: &LogicalPlan) -> Self {
        let mut rows = Self::default();
        rows.add(plan);
        rows
    }

    /// Adds the rows of a plan to the estimate, and returns the wide columns of the plan.
    fn add(&mut self, plan: &LogicalPlan) -> WideColumns {
        let inputs: Vec<WideColumns> = plan.inputs().into_iter().map(|input| self.add(input)).collect();
        let mut known = WideColumns::new();
        for input in &inputs {
            known.extend(input.iter().map(|(column, bytes)| (column.clone(), *bytes)));
        }
        let mut costs = Vec::new();
        // The closure never fails.
        let _ = plan.apply_expressions(|expr| {
            costs.push(self.cost(expr, &known));
            Ok(TreeNodeRecursion::Continue)
        });
        let schema = plan.schema();
        let width = schema.fields().len();
        let computed: u64 = costs.iter().sum();
        let wide = match plan {
            LogicalPlan::Projection(_) => columns(schema, costs),
            LogicalPlan::Aggregate(_) if costs.len() == width => columns(schema, costs),
            LogicalPlan::Window(window) => {
                let mut all = inherited_columns(schema, &known);
                let before = width.saturating_sub(window.window_expr.len());
                all.extend(columns(schema, vec![0; before].into_iter().chain(costs)));
                all
            }
            // With grouping sets, any column may have any of the values.
            LogicalPlan::Aggregate(_) => columns(schema, vec![computed; width]),
            LogicalPlan::Values(values) => {
                let column = |index: usize| {
                    let literals = values.values.iter().filter_map(|row| row.get(index));
                    literals
                        .map(|value| Self::default().cost(value, &known))
                        .max()
                        .unwrap_or(0)
                };
                columns(schema, (0..width).map(column))
            }
            LogicalPlan::Unnest(unnest) => {
                let before = unnest.input.schema().columns();
                let source = |index: &usize| before.get(*index).and_then(|column| known.get(column)).copied();
                let costs = unnest.dependency_indices.iter().map(|index| source(index).unwrap_or(0));
                columns(schema, costs)
            }
            LogicalPlan::SubqueryAlias(_) | LogicalPlan::Union(_) => {
                let mut max = vec![0; width];
                for (input, wide) in plan.inputs().into_iter().zip(&inputs) {
                    for (max, column) in max.iter_mut().zip(input.schema().columns()) {
                        *max = wide.get(&column).copied().unwrap_or(0).max(*max);
                    }
                }
                columns(schema, max)
            }
            _ => inherited_columns(schema, &known),
        };
        let batch_bytes = match plan {
            // All rows of `VALUES` form one batch, and `computed` already contains their values.
            LogicalPlan::Projection(_) | LogicalPlan::Values(_) => computed,
            _ => computed.saturating_add(wide.values().sum()),
        };
        self.bytes = self.bytes.saturating_add(batch_bytes);
        wide
    }

    /// Returns the maximum number of bytes that computing an expression takes for one row.
    fn cost(&mut self, expr: &Expr, known: &WideColumns) -> u64 {
        match expr {
            Expr::Literal(value, _) => match value.size() {
                size if size < MIN_COUNTED_BYTES => 0,
                wide => wide as u64,
            },
            Expr::Column(column) => known.get(column).copied().unwrap_or(0),
            // A comparison uses a constant without repeating it.
            Expr::BinaryExpr(binary) if binary.op.supports_propagation() => {
                self.comparison_bytes([binary.left.as_ref(), binary.right.as_ref()], known)
            }
            Expr::Like(like) | Expr::SimilarTo(like) => {
                self.comparison_bytes([like.expr.as_ref(), like.pattern.as_ref()], known)
            }
            Expr::InList(list) => self.comparison_bytes(std::iter::once(list.expr.as_ref()).chain(&list.list), known),
            Expr::ScalarSubquery(subquery) => self.add(&subquery.subquery).values().sum(),
            Expr::Exists(exists) => {
                self.add(&exists.subquery.subquery);
                0
            }
            Expr::InSubquery(in_subquery) => {
                self.add(&in_subquery.subquery.subquery);
                self.cost(&in_subquery.expr, known)
            }
            Expr::SetComparison(compared) => {
                self.add(&compared.subquery.subquery);
                self.cost(&compared.expr, known)
            }
            Expr::ScalarFunction(call) => {
                let call_bytes = functions::extra_bytes(call.name(), &call.args);
                self.calls += u64::from(call_bytes.is_some());
                let of_args: u64 = call.args.iter().map(|arg| self.cost(arg, known)).sum();
                of_args.saturating_add(call_bytes.unwrap_or(0))
            }
            _ => {
                let mut sum: u64 = 0;
                // The closure never fails.
                let _ = expr.apply_children(|child| {
                    sum = sum.saturating_add(self.cost(child, known));
                    Ok(TreeNodeRecursion::Continue)
                });
                sum
            }
        }
    }

    fn comparison_bytes<'a>(&mut self, sides: impl IntoIterator<Item = &'a Expr>, known: &WideColumns) -> u64 {
        let sides = sides.into_iter().filter(|side| !matches!(side, Expr::Literal(..)));
        sides.map(|side| self.cost(side, known)).sum()
    }
}

/// The wide columns of a step, that is, the columns whose values are counted, each with the bytes of one value.
type WideColumns = HashMap<Column, u64>;

/// Returns the columns of a schema that have wide values, given the bytes of each column.
fn columns(schema: &DFSchema, bytes: impl IntoIterator<Item = u64>) -> WideColumns {
    let fields = schema.iter().zip(bytes);
    let wide = fields.filter(|((_, field), bytes)| *bytes > 0 && is_variable(field.data_type()));
    wide.map(|((qualifier, field), bytes)| (Column::new(qualifier.cloned(), field.name()), bytes))
        .collect()
}

/// Returns the wide columns that a step passes on under the same names.
fn inherited_columns(schema: &DFSchema, known: &WideColumns) -> WideColumns {
    if known.is_empty() {
        return WideColumns::new();
    }
    let columns = schema.columns().into_iter();
    let wide = columns.filter_map(|column| known.get(&column).map(|bytes| (column.clone(), *bytes)));
    wide.collect()
}

fn is_variable(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Binary | DataType::LargeBinary
    ) || matches!(kind, DataType::BinaryView | DataType::Dictionary(..))
        || kind.is_nested()
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::LogicalPlanBuilder;
    use datafusion::prelude::{col, lit};

    use super::*;

    fn text(length: usize) -> Expr {
        lit("x".repeat(length))
    }

    fn bytes(plan: LogicalPlanBuilder) -> u64 {
        RowBytes::of(&plan.build().unwrap()).bytes / 1000
    }

    fn projected(exprs: Vec<Expr>) -> LogicalPlanBuilder {
        LogicalPlanBuilder::empty(true).project(exprs).unwrap()
    }

    #[test]
    fn constants_count_in_every_step_that_hands_them_on() {
        assert_eq!(bytes(projected(vec![lit(1).alias("n"), text(100).alias("x")])), 0);
        let two = || {
            projected(vec![
                text(60_000).alias("x"),
                text(50_000).alias("y"),
                lit(1).alias("n"),
            ])
        };
        assert_eq!(bytes(two()), 110);
        assert_eq!(bytes(two().limit(0, Some(1)).unwrap()), 220);
        assert_eq!(bytes(two().filter(col("n").gt(lit(0))).unwrap()), 220);
        assert_eq!(bytes(two().alias("t").unwrap()), 220);
        assert_eq!(bytes(two().project(vec![col("y"), col("n")]).unwrap()), 160);
        let joined = two()
            .alias("a")
            .unwrap()
            .cross_join(two().alias("b").unwrap().build().unwrap());
        assert_eq!(bytes(joined.unwrap()), 220 + 220 + 220);
        let united = two().union(
            projected(vec![text(0).alias("x"), text(0).alias("y"), lit(1).alias("n")])
                .build()
                .unwrap(),
        );
        assert_eq!(bytes(united.unwrap()), 220);
    }

    #[test]
    fn a_constant_that_is_compared_is_no_column() {
        let compared = || col("n").eq(text(60_000)).or(col("n").like(text(60_000)));
        let numbers = || projected(vec![text(1).alias("n")]);
        assert_eq!(bytes(numbers().filter(compared()).unwrap()), 0);
        assert_eq!(
            bytes(numbers().filter(col("n").in_list(vec![text(60_000)], false)).unwrap()),
            0
        );
    }
}
