//! The tables of a SQL session: the four tables of the store for the tenants of the query, and `flat`.
//!
//! In: the context of a query. Out: a catalog for this query only. The catalog does not outlive the query and gives no
//! access to other tenants. `stacks` and `series` have one row for each id here, although the store may contain a row
//! of the same id for each day and flush.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Int64Type, SchemaRef};
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList, MemorySchemaProvider,
    SchemaProvider, TableProvider,
};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;

use crate::query::common::error::QueryError;
use crate::query::common::stream::BatchStream;
use crate::query::decoded::context::Context;
use crate::query::resources::runtime::Runtime;
use crate::query::scan::provider::{Mapped, Relation, RelationProvider, RowMap};
use crate::query::scan::read;
use crate::query::tables::bounds;
use crate::query::tables::flat::Flat;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{SERIES, STACK};
use crate::store::tables::snapshot::ScanFilter;
use alluvium_base::BoxFuture;

/// Creates the catalog of one query.
pub(crate) fn catalog(context: &Arc<Context>) -> Result<Arc<dyn CatalogProviderList>, QueryError> {
    let schema = MemorySchemaProvider::new();
    for (name, table) in tables(context) {
        schema.register_table(name, table)?;
    }
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema("public", Arc::new(schema))?;
    let list = MemoryCatalogProviderList::new();
    list.register_catalog("alluvium".to_owned(), Arc::new(catalog));
    Ok(Arc::new(list))
}

pub(crate) fn tables(context: &Arc<Context>) -> Vec<(String, Arc<dyn TableProvider>)> {
    let stored = Table::ALL.into_iter().map(|table| {
        let relation = Stored {
            context: context.clone(),
            table,
        };
        let provided: Arc<dyn TableProvider> = Arc::new(RelationProvider(Arc::new(relation)));
        (table.name().to_owned(), provided)
    });
    let flat: Arc<dyn TableProvider> = Arc::new(RelationProvider(Arc::new(Flat::all(context.clone()))));
    stored.chain([("flat".to_owned(), flat)]).collect()
}

/// One of the store's tables, restricted to the tenants of the query.
struct Stored {
    context: Arc<Context>,
    table: Table,
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.table.name())
    }
}

impl Relation for Stored {
    fn schema(&self) -> SchemaRef {
        read::sql_schema(self.table)
    }

    fn pushdown(&self, filters: &[&Expr]) -> Vec<TableProviderFilterPushDown> {
        // The filter stays in the plan, where the optimizer moves it into the Parquet scan. In this module, the filter
        // only selects files.
        vec![TableProviderFilterPushDown::Inexact; filters.len()]
    }

    fn plan(
        &self,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
    ) -> BoxFuture<'static, Result<Arc<dyn ExecutionPlan>, QueryError>> {
        let plan = plan(self, projection, filters);
        Box::pin(std::future::ready(plan))
    }
}

fn plan(
    stored: &Stored,
    projection: Option<&Vec<usize>>,
    filters: &[Expr],
) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
    let context = &stored.context;
    let mut filter = ScanFilter {
        tenants: Some(context.tenants.clone()),
        ..ScanFilter::default()
    };
    for expr in filters {
        bounds::narrow_filter(&mut filter, expr);
    }
    let id = match stored.table {
        Table::Profiles | Table::Samples => {
            return read::union_plan(&context.runtime, &context.snapshot, stored.table, &filter, projection);
        }
        Table::Stacks => STACK,
        Table::Series => SERIES,
    };
    let schema = stored.table.schema();
    let mut columns = projection
        .cloned()
        .unwrap_or_else(|| (0..schema.fields().len()).collect());
    let column_count = columns.len();
    let id_index = schema.index_of(id)?;
    let id_column = columns
        .iter()
        .position(|column| *column == id_index)
        .unwrap_or_else(|| {
            columns.push(id_index);
            column_count
        });
    let input = read::union_plan(
        &context.runtime,
        &context.snapshot,
        stored.table,
        &filter,
        Some(&columns),
    )?;
    let output = Arc::new(schema.project(&columns[..column_count])?);
    let first = FirstRowPerId {
        id_column,
        column_count,
        runtime: context.runtime.clone(),
    };
    Ok(Arc::new(Mapped::new(input, output, Arc::new(first))))
}

/// Keeps the first row of each id and the first `column_count` columns.
struct FirstRowPerId {
    id_column: usize,
    column_count: usize,
    /// The ids are charged to the memory pool of this runtime.
    runtime: Arc<Runtime>,
}

impl std::fmt::Debug for FirstRowPerId {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

/// Returns the memory in bytes of a set of `count` ids while it grows. The set keeps an eighth of its slots free and
/// has one more byte for each slot. While it grows, the old set of half the size exists until all of its ids have
/// moved.
fn set_bytes(count: usize) -> usize {
    let slots = (count.saturating_mul(8) / 7).saturating_add(1).next_power_of_two();
    slots.saturating_mul(size_of::<i64>() + 1).saturating_mul(3) / 2
}

impl RowMap for FirstRowPerId {
    fn name(&self) -> &'static str {
        "FirstOfId"
    }

    fn needs_all_rows(&self) -> bool {
        true
    }

    fn apply(&self, input: BatchStream) -> BatchStream {
        let (id_column, column_count) = (self.id_column, self.column_count);
        let memory = self.runtime.reservation("ids");
        let mut known_ids = HashSet::new();
        let rows = input.map(move |batch| {
            let batch = batch?;
            memory.try_resize(set_bytes(known_ids.len() + batch.num_rows()))?;
            let ids = batch.column(id_column).as_primitive::<Int64Type>().values();
            let mask: BooleanArray = ids.iter().map(|id| Some(known_ids.insert(*id))).collect();
            let narrow = batch.project(&(0..column_count).collect::<Vec<_>>())?;
            Ok(filter_record_batch(&narrow, &mask)?)
        });
        rows.boxed()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};

    use super::*;
    use crate::query::common::types::QueryLimits;

    /// Returns the number of rows that `FirstRowPerId` keeps if each of `ids` ids occurs twice.
    async fn kept(ids: i64, memory: usize) -> Result<usize, QueryError> {
        let runtime = Runtime::new(&QueryLimits::default(), None)?.for_one_query(memory);
        let batch = |first: i64| {
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + 1000));
            Ok(RecordBatch::try_from_iter([("series", column)])?)
        };
        let once: Vec<_> = (0..ids / 1000).map(|part| part * 1000).collect();
        let twice = once.clone().into_iter().chain(once).map(batch);
        let first = FirstRowPerId {
            id_column: 0,
            column_count: 1,
            runtime,
        };
        let mut rows = first.apply(futures::stream::iter(twice.collect::<Vec<_>>()).boxed());
        let mut count = 0;
        while let Some(batch) = rows.next().await {
            count += batch?.num_rows();
        }
        Ok(count)
    }

    #[tokio::test]
    async fn ids_that_a_statement_has_seen_are_charged_to_it() {
        assert_eq!(kept(50_000, 1 << 20).await.unwrap(), 50_000);
        let error = kept(200_000, 1 << 20).await.unwrap_err().to_string();
        assert!(error.contains("sql.max_query_memory"), "{error}");
        assert_eq!(kept(200_000, 8 << 20).await.unwrap(), 200_000);
    }
}
