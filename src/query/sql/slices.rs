//! Makes the batches of a plan smaller if their rows are wide.
//!
//! In: a physical plan, and the session's setting for the number of rows of a batch. Out: the same plan, in which no
//! step returns batches with more rows than the setting. Most steps follow the setting, but without this rule, tables,
//! functions and filters may return larger batches. Unnesting a list repeats the other columns of its row. If the
//! repeated columns take too much memory, the query fails.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result as PlanResult;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};
use futures::{StreamExt, TryStreamExt, stream};

use crate::query::common::error::QueryError;
use crate::query::common::sql_result::bytes_of;
use crate::query::common::stream::BatchStream;
use crate::query::resources::allowance::Allowance;
use crate::query::resources::runtime::BATCH_ROWS;
use crate::query::scan::provider::{Mapped, RowMap};

/// The rule that limits the batches of a plan.
#[derive(Debug)]
pub(crate) struct SmallBatches;

impl PhysicalOptimizerRule for SmallBatches {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let rows = usize::from(config.execution.batch_size);
        let max = Allowance::limits(config).unrolled;
        plan.transform_up(|node| limited(node, rows, max)).data()
    }

    fn name(&self) -> &'static str {
        "small_batches"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn limited(node: Arc<dyn ExecutionPlan>, rows: usize, max: usize) -> PlanResult<Transformed<Arc<dyn ExecutionPlan>>> {
    if let Some(unnest) = node.downcast_ref::<UnnestExec>() {
        let lists = unnest.list_column_indices().iter();
        let lists = lists.map(|list| list.index_in_input_schema).collect();
        let checked = map_rows(unnest.input(), Arc::new(UnnestLimit { lists, max_bytes: max }));
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        return Ok(Transformed::yes(node.replace_children(vec![checked], options)?));
    }
    if rows >= BATCH_ROWS {
        return Ok(Transformed::no(node));
    }
    if let Some(filter) = node.downcast_ref::<FilterExec>() {
        let filter: Arc<dyn ExecutionPlan> = Arc::new(filter.with_batch_size(rows)?);
        return Ok(Transformed::yes(filter));
    }
    if node.children().is_empty() || node.downcast_ref::<Mapped>().is_some() {
        return Ok(Transformed::yes(map_rows(&node, Arc::new(Slices { rows }))));
    }
    Ok(Transformed::no(node))
}

fn map_rows(input: &Arc<dyn ExecutionPlan>, map: Arc<dyn RowMap>) -> Arc<dyn ExecutionPlan> {
    Arc::new(Mapped::new(input.clone(), input.schema(), map))
}

/// Splits each batch into parts of at most `rows` rows.
#[derive(Debug)]
struct Slices {
    rows: usize,
}

impl RowMap for Slices {
    fn name(&self) -> &'static str {
        "Slices"
    }

    fn keeps_rows(&self) -> bool {
        true
    }

    fn apply(&self, input: BatchStream) -> BatchStream {
        let rows = self.rows;
        input
            .map_ok(move |batch| stream::iter(slices(batch, rows)))
            .try_flatten()
            .boxed()
    }
}

/// Splits a batch into parts of at most `rows` rows. Each part has its own memory, so that an operator that keeps one
/// part is only charged for this part.
fn slices(batch: RecordBatch, rows: usize) -> impl Iterator<Item = Result<RecordBatch, QueryError>> {
    let (all, is_small) = (batch.num_rows(), batch.num_rows() <= rows);
    let starts = (0..all.max(1)).step_by(rows.max(1));
    starts.map(move |start| {
        let length = rows.min(all - start);
        if is_small || batch.num_columns() == 0 {
            return Ok(batch.slice(start, length));
        }
        let chosen = UInt32Array::from_iter_values((start..start + length).map(|row| row as u32));
        Ok(take_record_batch(&batch, &chosen)?)
    })
}

/// Refuses a row if unnesting its lists would repeat too many bytes of its other columns.
#[derive(Debug)]
struct UnnestLimit {
    lists: Vec<usize>,
    max_bytes: usize,
}

impl RowMap for UnnestLimit {
    fn name(&self) -> &'static str {
        "Unrolled"
    }

    fn keeps_rows(&self) -> bool {
        true
    }

    fn apply(&self, input: BatchStream) -> BatchStream {
        let (lists, max) = (self.lists.clone(), self.max_bytes);
        input
            .and_then(move |batch| std::future::ready(check(&batch, &lists, max).map(|()| batch)))
            .boxed()
    }
}

fn check(batch: &RecordBatch, lists: &[usize], max: usize) -> Result<(), QueryError> {
    let others: Vec<usize> = (0..batch.num_columns())
        .filter(|column| !lists.contains(column))
        .collect();
    let others = batch.project(&others)?;
    let longest = |start: usize, length: usize| {
        let lists = lists.iter().filter_map(|index| batch.columns().get(*index));
        lists
            .map(|list| elements(&list.slice(start, length)))
            .max()
            .unwrap_or(0)
    };
    // Usually the elements of the lists, times the bytes of the other columns, are within the limit for a whole batch.
    // Then each row is within the limit too, and the rows are not checked one by one.
    if longest(0, batch.num_rows()).saturating_mul(bytes_of(&others)) <= max {
        return Ok(());
    }
    for row in 0..batch.num_rows() {
        let bytes = longest(row, 1).saturating_mul(bytes_of(&others.slice(row, 1)));
        if bytes > max {
            return Err(QueryError::Limit(format!(
                "unnesting a list would repeat the other columns of its row {} times, which takes {} MiB, more than \
                    {} MiB: unnest the list in a separate subquery, or raise sql.max_query_memory in the server's \
                    configuration",
                longest(row, 1),
                bytes >> 20,
                max >> 20
            )));
        }
    }
    Ok(())
}

/// Returns the number of elements of a column of lists. If lists are nested, counts the level with the most elements.
fn elements(array: &ArrayRef) -> usize {
    match array.data_type() {
        DataType::List(_) => elements_of(array.as_list::<i32>()),
        DataType::LargeList(_) => elements_of(array.as_list::<i64>()),
        DataType::FixedSizeList(_, length) => {
            let list = array.as_fixed_size_list();
            elements(list.values()).max(array.len() * usize::try_from(*length).unwrap_or(0))
        }
        _ => array.len(),
    }
}

fn elements_of<Offset: OffsetSizeTrait>(list: &GenericListArray<Offset>) -> usize {
    let offsets = list.value_offsets();
    let to_index = |offset: Option<&Offset>| offset.map_or(0, |offset| offset.as_usize());
    let (start, end) = (to_index(offsets.first()), to_index(offsets.last()));
    elements(&list.values().slice(start, end - start)).max(end - start)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, ListArray, StringArray};
    use arrow::datatypes::{Field, Int64Type, Schema};

    use super::*;

    fn batch(lists: Vec<usize>, text: usize) -> RecordBatch {
        let rows = lists.len();
        let lists = lists.into_iter().map(|length| Some(vec![Some(1); length]));
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
        let texts = StringArray::from_iter_values(vec!["x".repeat(text); rows]);
        let fields = [("list", lists.data_type().clone()), ("text", DataType::Utf8)];
        let fields: Vec<Field> = fields.map(|(name, kind)| Field::new(name, kind, true)).into();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![Arc::new(lists), Arc::new(texts)]).unwrap()
    }

    #[test]
    fn a_list_may_repeat_its_row_as_far_as_the_memory_goes() {
        assert_eq!(check(&batch(vec![1, 100, 0], 1000), &[0], 200_000), Ok(()));
        let error = check(&batch(vec![1, 0, 300], 1000), &[0], 200_000).unwrap_err();
        assert!(error.to_string().contains("300 times"), "{error}");
        assert_eq!(check(&batch(vec![1; 3000], 1000), &[0], 200_000), Ok(()));
        assert_eq!(check(&batch(vec![100_000], 0), &[0], 2_000_000), Ok(()));
    }

    #[test]
    fn parts_of_a_batch_have_all_of_its_rows_in_order() {
        let numbers = Arc::new(Int64Array::from_iter_values(0..10));
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let batch = RecordBatch::try_new(schema, vec![numbers]).unwrap();
        let parts: Vec<RecordBatch> = slices(batch.clone(), 4).collect::<Result<_, _>>().unwrap();
        assert_eq!(parts.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [4, 4, 2]);
        assert_eq!(arrow::compute::concat_batches(&batch.schema(), &parts).unwrap(), batch);
        let empty = slices(batch.slice(0, 0), 4);
        assert_eq!(empty.map(|part| part.unwrap().num_rows()).collect::<Vec<_>>(), [0]);
        let no_columns = batch.project(&[]).unwrap();
        assert_eq!(
            slices(no_columns, 4)
                .map(|part| part.unwrap().num_rows())
                .sum::<usize>(),
            10
        );
    }
}
