//! Every implementation of a DataFusion trait but the SQL functions: object store registry, id-set expression, table providers and the one
//! execution node.
//!
//! They stand together, and their bodies are plain functions elsewhere, because each async method over plan types costs the compiler
//! seconds. Nothing is decided here.

use std::any::Any;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Int64Type, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::{Result, ScalarValue, plan_datafusion_err};
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::InListExpr;
use object_store::ObjectStore;
use url::Url;

/// The registry that knows our store and nothing else, so that no plan can reach a file or an address of a user's choice.
#[derive(Debug)]
pub(crate) struct OnlyStore(pub(crate) Arc<dyn ObjectStore>);

impl ObjectStoreRegistry for OnlyStore {
    fn register_store(&self, _url: &Url, _store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if url.scheme() == "alluvium" {
            return Ok(self.0.clone());
        }
        Err(plan_datafusion_err!("there is no store at `{url}`; only the tables of alluvium can be read"))
    }
}

/// `column IN (set)` over 64-bit ids, for sets of any size: one hash probe a row, and one node for the planner however large the set.
#[derive(Debug, Clone)]
pub(crate) struct IdSet {
    column: Arc<dyn PhysicalExpr>,
    ids: Arc<HashSet<i64>>,
}

/// Largest set that is written as a list, which Parquet statistics and bloom filters can be tested against.
const LIST_IDS: usize = 16;

impl IdSet {
    /// The expression for `ids`: a list when it is short, a set otherwise.
    pub(crate) fn expression(
        column: Arc<dyn PhysicalExpr>,
        ids: Arc<HashSet<i64>>,
        schema: &Schema,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        if ids.len() > LIST_IDS || ids.is_empty() {
            return Ok(Arc::new(Self { column, ids }));
        }
        let mut sorted: Vec<i64> = ids.iter().copied().collect();
        sorted.sort_unstable();
        // The schema of the scan has the partition columns last; only the type matters here.
        let fields: Vec<_> = schema.fields().iter().skip(2).cloned().collect();
        let array: ArrayRef = Arc::new(Int64Array::from(sorted));
        let list = InListExpr::try_new_from_array(column, array, false, &Schema::new(fields))?;
        Ok(Arc::new(list))
    }
}

impl PartialEq for IdSet {
    fn eq(&self, other: &Self) -> bool {
        self.column.eq(&other.column) && self.ids == other.ids
    }
}

impl Eq for IdSet {}

impl Hash for IdSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.column.hash(state);
        self.ids.len().hash(state);
    }
}

impl fmt::Display for IdSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} IN (set of {} ids)", self.column, self.ids.len())
    }
}

impl PhysicalExpr for IdSet {
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
                let found = id.is_some_and(|id| self.ids.contains(&id));
                return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(found))));
            }
            ColumnarValue::Scalar(other) => other.to_array_of_size(batch.num_rows())?,
        };
        let ids = array.as_primitive::<Int64Type>();
        let mask = BooleanBuffer::collect_bool(ids.len(), |row| ids.is_valid(row) && self.ids.contains(&ids.value(row)));
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
