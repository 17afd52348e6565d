//! `top('TYPE{selector}', from, until [, n])`: the functions of the selected profiles, each with `self`, the value of
//! the stacks in which the function is the leaf, and `total`, the value of all stacks that contain the function.
//!
//! Rows are sorted by `self`, largest first. `total` counts a stack once, even if the function occurs several times in
//! it.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;

use crate::query::common::error::QueryError;
use crate::query::common::types::StackQuery;
use crate::query::decoded::context::Context;
use crate::query::functions::arguments::{Arguments, Usage};
use crate::query::functions::call_limits::check_call;
use crate::query::functions::computed::Computed;
use crate::query::resources::allowance;
use crate::query::scan::provider::TableFunction;
use crate::query::stacks::flame;
use alluvium_base::BoxFuture;
use alluvium_profile::top::TopTable;

const USAGE: Usage = Usage {
    text: "top('TYPE{selector}', from, until [, n])",
    counts: &[3, 4],
};

/// Returns the table function over the data of a query.
pub(crate) fn function(context: Arc<Context>) -> TableFunction {
    let schema = Arc::new(Schema::new(vec![
        Field::new("function", DataType::Utf8, false),
        Field::new("self", DataType::Int64, false),
        Field::new("total", DataType::Int64, false),
        Field::new("file", DataType::Utf8, false),
    ]));
    TableFunction {
        name: "top",
        make: Box::new(move |args, session| {
            let args = Arguments::read(USAGE, args, session, context.purpose)?;
            let count = args.number.unwrap_or(usize::MAX);
            let query = StackQuery::new(args.profile_type.clone(), args.matchers.clone(), args.range());
            let (context, schema) = (context.clone(), schema.clone());
            let fields = schema.clone();
            Ok(Arc::new(Computed {
                name: "top",
                schema,
                compute: Arc::new(move || -> BoxFuture<'static, Result<RecordBatch, QueryError>> {
                    let merged = flame::merge(context.clone(), query.clone());
                    let (fields, max) = (fields.clone(), allowance::table_bytes(&context.runtime));
                    Box::pin(async move {
                        let held_tree = flame::tree(merged.await?).await?;
                        let mut rows = TopTable::from_tree(&held_tree.tree).rows;
                        rows.truncate(count);
                        let texts = rows.iter().map(|row| row.name.len() + row.file.len());
                        check_call("top", texts.sum(), max)?;
                        let columns: Vec<ArrayRef> = vec![
                            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.name))),
                            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.flat))),
                            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.cum))),
                            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.file))),
                        ];
                        Ok(RecordBatch::try_new(fields, columns)?)
                    })
                }),
            }))
        }),
    }
}
