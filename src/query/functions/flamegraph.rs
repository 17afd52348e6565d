//! `flamegraph('TYPE{selector}', from, until [, max_nodes])`: the boxes of a flame graph, one in each row.
//!
//! Level 0 has a single box with the name `total`. The columns `x` and `total` are the start and the width of a box
//! in the unit of the values. If there are more than `max_nodes` boxes, the smallest are merged into `other` boxes.
//! `max_nodes` defaults to 8192; 0 keeps all boxes.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;

use crate::query::common::error::QueryError;
use crate::query::common::types::{Detail, StackQuery};
use crate::query::decoded::context::Context;
use crate::query::functions::arguments::{Arguments, Usage};
use crate::query::functions::call_limits::check_call;
use crate::query::functions::computed::Computed;
use crate::query::resources::allowance;
use crate::query::scan::provider::TableFunction;
use crate::query::stacks::flame;
use alluvium_base::BoxFuture;

const USAGE: Usage = Usage {
    text: "flamegraph('TYPE{selector}', from, until [, max_nodes])",
    counts: &[3, 4],
};
/// Pyroscope's default of `max_nodes`.
const DEFAULT_NODES: usize = 8192;

/// Returns the table function over the data of a query.
pub(crate) fn function(context: Arc<Context>) -> TableFunction {
    let schema = Arc::new(Schema::new(vec![
        Field::new("level", DataType::Int64, false),
        Field::new("x", DataType::Int64, false),
        Field::new("total", DataType::Int64, false),
        Field::new("self", DataType::Int64, false),
        Field::new("function", DataType::Utf8, false),
        Field::new("file", DataType::Utf8, false),
        Field::new("line", DataType::Int64, false),
    ]));
    TableFunction {
        name: "flamegraph",
        make: Box::new(move |args, session| {
            let args = Arguments::read(USAGE, args, session, context.purpose)?;
            let nodes = match args.number {
                None => DEFAULT_NODES,
                Some(0) => usize::MAX,
                Some(count) => count,
            };
            let query = StackQuery::new(args.profile_type.clone(), args.matchers.clone(), args.range());
            let (context, schema) = (context.clone(), schema.clone());
            let fields = schema.clone();
            Ok(Arc::new(Computed {
                name: "flamegraph",
                schema,
                compute: Arc::new(move || -> BoxFuture<'static, Result<RecordBatch, QueryError>> {
                    let merged = flame::merge(context.clone(), query.clone());
                    let (fields, max) = (fields.clone(), allowance::table_bytes(&context.runtime));
                    Box::pin(async move {
                        let graph = flame::graph(merged.await?, nodes, Detail::Files).await?;
                        let boxes: Vec<_> = (0..graph.levels.len())
                            .flat_map(|level| graph.blocks(level).map(move |block| (level as i64, block)))
                            .collect();
                        let texts = boxes.iter().map(|(_, block)| block.name.len() + block.file.len());
                        check_call("flamegraph", texts.sum(), max)?;
                        let number = |value: fn(&(i64, alluvium_profile::flamegraph::Block<'_>)) -> i64| -> ArrayRef {
                            Arc::new(Int64Array::from_iter_values(boxes.iter().map(value)))
                        };
                        let columns: Vec<ArrayRef> = vec![
                            number(|(level, _)| *level),
                            number(|(_, block)| block.x),
                            number(|(_, block)| block.total),
                            number(|(_, block)| block.own),
                            Arc::new(StringArray::from_iter_values(boxes.iter().map(|(_, block)| block.name))),
                            Arc::new(StringArray::from_iter_values(boxes.iter().map(|(_, block)| block.file))),
                            number(|(_, block)| block.line),
                        ];
                        Ok(RecordBatch::try_new(fields, columns)?)
                    })
                }),
            }))
        }),
    }
}
