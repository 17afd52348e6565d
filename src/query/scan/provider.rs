//! Implements DataFusion's traits over plans: an expression for id sets, table providers, and the only execution node
//! of this program.
//!
//! The implementations are in one file and call plain functions of other modules, because each async method over plan
//! types costs seconds of compile time. There is no logic here.

use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Int64Type, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue, plan_datafusion_err};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{ColumnarValue, Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::expressions::InListExpr;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements,
    PlanProperties,
};
use futures::{StreamExt, TryStreamExt};

use crate::query::common::error::QueryError;
use crate::query::common::stream::BatchStream;
use crate::store::common::schema::PARTITION_COLUMNS;
use alluvium_base::BoxFuture;
use alluvium_profile::ids::Id;

/// The expression `column IN (set)` over 64-bit ids. For sets of any size, it costs one hash lookup for each row and is
/// a single node in the plan.
#[derive(Debug, Clone)]
pub(crate) struct IdSet<T> {
    column: Arc<dyn PhysicalExpr>,
    ids: Arc<HashSet<T>>,
}

/// A set with at most this number of ids becomes a list, because DataFusion can compare a list with Parquet statistics
/// and bloom filters.
const LIST_IDS: usize = 16;

impl<T: Id> IdSet<T> {
    /// Returns the expression for `ids`: a list if the set is small, an [`IdSet`] otherwise.
    pub(crate) fn expression(
        column: Arc<dyn PhysicalExpr>,
        ids: Arc<HashSet<T>>,
        schema: &Schema,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        if ids.len() > LIST_IDS || ids.is_empty() {
            return Ok(Arc::new(Self { column, ids }));
        }
        let mut sorted: Vec<i64> = ids.iter().map(|id| id.bits()).collect();
        sorted.sort_unstable();
        // `schema` begins with the partition columns. The schema of the scan ends with them, so the index of `column`
        // does not count them. The list reads only the type of the field at this index.
        let fields: Vec<_> = schema.fields().iter().skip(PARTITION_COLUMNS).cloned().collect();
        let array: ArrayRef = Arc::new(Int64Array::from(sorted));
        let list = InListExpr::try_new_from_array(column, array, false, &Schema::new(fields))?;
        Ok(Arc::new(list))
    }
}

impl<T: Id> PartialEq for IdSet<T> {
    fn eq(&self, other: &Self) -> bool {
        self.column.eq(&other.column) && self.ids == other.ids
    }
}

impl<T: Id> Eq for IdSet<T> {}

impl<T: Id> Hash for IdSet<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.column.hash(state);
        self.ids.len().hash(state);
    }
}

impl<T: Id> fmt::Display for IdSet<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} IN (set of {} ids)", self.column, self.ids.len())
    }
}

impl<T: Id> PhysicalExpr for IdSet<T> {
    fn data_type(&self, _schema: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _schema: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let array = match self.column.evaluate(batch)? {
            ColumnarValue::Array(array) => array,
            ColumnarValue::Scalar(ScalarValue::Int64(id)) => {
                let is_member = id.is_some_and(|id| self.ids.contains(&T::from_bits(id)));
                return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(is_member))));
            }
            ColumnarValue::Scalar(other) => other.to_array_of_size(batch.num_rows())?,
        };
        let ids = array.as_primitive::<Int64Type>();
        let mask = BooleanBuffer::collect_bool(ids.len(), |row| {
            ids.is_valid(row) && self.ids.contains(&T::from_bits(ids.value(row)))
        });
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(mask, None))))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.column]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let [column] = <[_; 1]>::try_from(children)
            .map_err(|children| plan_datafusion_err!("an id set has one input, not {}", children.len()))?;
        Ok(Arc::new(Self {
            column,
            ids: self.ids.clone(),
        }))
    }

    fn fmt_sql(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}

/// A table of a SQL session, without DataFusion's traits.
pub(crate) trait Relation: fmt::Debug + Send + Sync + 'static {
    fn schema(&self) -> SchemaRef;

    /// Returns for each filter whether the scan itself applies it exactly, inexactly or not at all.
    fn pushdown(&self, filters: &[&Expr]) -> Vec<TableProviderFilterPushDown>;

    fn plan(
        &self,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
    ) -> BoxFuture<'static, Result<Arc<dyn ExecutionPlan>, QueryError>>;
}

/// Implements DataFusion's table provider for a [`Relation`].
#[derive(Debug)]
pub(crate) struct RelationProvider(pub(crate) Arc<dyn Relation>);

impl TableProvider for RelationProvider {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    // `async_trait` would generate the same signature. The body must not be an async block over plan types.
    fn scan<'life0, 'life1, 'life2, 'life3, 'async_trait>(
        &'life0 self,
        _state: &'life1 dyn Session,
        projection: Option<&'life2 Vec<usize>>,
        filters: &'life3 [Expr],
        _limit: Option<usize>,
    ) -> Pin<Box<dyn Future<Output = Result<Arc<dyn ExecutionPlan>>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        'life3: 'async_trait,
        Self: 'async_trait,
    {
        let plan = self.0.plan(projection, filters);
        Box::pin(async move { plan.await.map_err(DataFusionError::from) })
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(self.0.pushdown(filters))
    }
}

/// Creates a relation from the arguments of a table function.
pub(crate) type MakeRelation = dyn Fn(&[Expr], &dyn Session) -> Result<Arc<dyn Relation>, QueryError> + Send + Sync;

pub(crate) struct TableFunction {
    pub(crate) name: &'static str,
    pub(crate) make: Box<MakeRelation>,
}

impl fmt::Debug for TableFunction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

impl TableFunctionImpl for TableFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let relation = (self.make)(args.exprs(), args.session())?;
        Ok(Arc::new(RelationProvider(relation)))
    }
}

/// A function that [`Mapped`] applies to the rows of its input.
pub(crate) trait RowMap: fmt::Debug + Send + Sync + 'static {
    /// Returns the name of the node in `EXPLAIN`.
    fn name(&self) -> &'static str;

    /// Returns true if a single stream must see all rows. The planner then merges the partitions of the input.
    fn needs_all_rows(&self) -> bool {
        false
    }

    /// Returns true if the rows of each partition and their order stay the same. The node then has the properties of
    /// its input.
    fn keeps_rows(&self) -> bool {
        false
    }

    /// Maps input rows to output rows, with the columns of the node.
    fn apply(&self, input: BatchStream) -> BatchStream;
}

/// The only execution node of this program. It applies a [`RowMap`] to each partition of its input.
#[derive(Debug)]
pub(crate) struct Mapped {
    input: Arc<dyn ExecutionPlan>,
    map: Arc<dyn RowMap>,
    properties: Arc<PlanProperties>,
}

impl Mapped {
    /// Creates a node that applies `map` to the rows of `input`. The rows of the node have the columns of `schema`.
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, schema: SchemaRef, map: Arc<dyn RowMap>) -> Self {
        let properties = if map.keeps_rows() {
            input.properties().clone()
        } else {
            let partitions = input.output_partitioning().partition_count();
            Arc::new(PlanProperties::new(
                EquivalenceProperties::new(schema),
                datafusion::physical_plan::Partitioning::UnknownPartitioning(partitions),
                EmissionType::Incremental,
                Boundedness::Bounded,
            ))
        };
        Self { input, map, properties }
    }
}

impl DisplayAs for Mapped {
    fn fmt_as(&self, _format: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.map.name())
    }
}

impl ExecutionPlan for Mapped {
    fn name(&self) -> &str {
        self.map.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![if self.map.needs_all_rows() {
            Distribution::SinglePartition
        } else {
            Distribution::UnspecifiedDistribution
        }])
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.map.keeps_rows()]
    }

    // More partitions would not reduce the work, and would duplicate computed rows.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(children)
            .map_err(|children| plan_datafusion_err!("{} has one input, not {}", self.map.name(), children.len()))?;
        Ok(Arc::new(Self::new(input, self.schema(), self.map.clone())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let rows = self.map.apply(input.map_err(QueryError::from).boxed());
        let rows = rows.map_err(DataFusionError::from);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
