//! A relation whose rows are computed when it is read: the results of `top`, `flamegraph` and similar functions.
//!
//! In: a function that returns one batch. Out: a plan that calls the function when the plan runs, not while the query
//! is planned.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use futures::StreamExt;
use futures::stream;

use crate::query::common::error::QueryError;
use crate::query::common::stream::BatchStream;
use crate::query::scan::provider::{Mapped, Relation, RowMap};
use alluvium_base::BoxFuture;

pub(crate) type Compute = dyn Fn() -> BoxFuture<'static, Result<RecordBatch, QueryError>> + Send + Sync;

pub(crate) struct Computed {
    pub(crate) name: &'static str,
    pub(crate) schema: SchemaRef,
    pub(crate) compute: Arc<Compute>,
}

impl std::fmt::Debug for Computed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name)
    }
}

impl Relation for Computed {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn pushdown(&self, filters: &[&Expr]) -> Vec<TableProviderFilterPushDown> {
        vec![TableProviderFilterPushDown::Unsupported; filters.len()]
    }

    fn plan(
        &self,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
    ) -> BoxFuture<'static, Result<Arc<dyn ExecutionPlan>, QueryError>> {
        let plan = plan(self, projection);
        Box::pin(std::future::ready(plan))
    }
}

fn plan(computed: &Computed, projection: Option<&Vec<usize>>) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
    let all: Vec<usize> = (0..computed.schema.fields().len()).collect();
    let columns = projection.cloned().unwrap_or(all);
    let output = Arc::new(computed.schema.project(&columns)?);
    let input = Arc::new(PlaceholderRowExec::new(Arc::new(Schema::empty())));
    let rows = Rows {
        name: computed.name,
        columns,
        compute: computed.compute.clone(),
    };
    Ok(Arc::new(Mapped::new(input, output, Arc::new(rows))))
}

struct Rows {
    name: &'static str,
    columns: Vec<usize>,
    compute: Arc<Compute>,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name)
    }
}

impl RowMap for Rows {
    fn name(&self) -> &'static str {
        self.name
    }

    fn needs_all_rows(&self) -> bool {
        true
    }

    fn apply(&self, _input: BatchStream) -> BatchStream {
        let (compute, columns) = (self.compute.clone(), self.columns.clone());
        stream::once(async move { Ok(compute().await?.project(&columns)?) }).boxed()
    }
}
