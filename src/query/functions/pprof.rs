//! `pprof('TYPE{selector}', from, until)`: the selected samples as one pprof profile, in one row with one column of
//! bytes.
//!
//! The profile is the same as the result of `SelectMergeProfile`. The aggregate function of the same name accepts any
//! selection of rows.

use std::sync::Arc;

use arrow::array::BinaryArray;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;

use crate::query::common::error::QueryError;
use crate::query::common::types::StackQuery;
use crate::query::decoded::context::Context;
use crate::query::functions::arguments::{Arguments, Usage};
use crate::query::functions::computed::Computed;
use crate::query::pprof::export;
use crate::query::scan::provider::TableFunction;
use alluvium_base::BoxFuture;
use alluvium_profile::pprof::encode;

const USAGE: Usage = Usage {
    text: "pprof('TYPE{selector}', from, until)",
    counts: &[3],
};

/// Returns the table function over the data of a query.
pub(crate) fn function(context: Arc<Context>) -> TableFunction {
    let schema = Arc::new(Schema::new(vec![Field::new("pprof", DataType::Binary, false)]));
    TableFunction {
        name: "pprof",
        make: Box::new(move |args, session| {
            let args = Arguments::read(USAGE, args, session, context.purpose)?;
            let query = StackQuery::new(args.profile_type.clone(), args.matchers.clone(), args.range());
            let (context, schema) = (context.clone(), schema.clone());
            let fields = schema.clone();
            Ok(Arc::new(Computed {
                name: "pprof",
                schema,
                compute: Arc::new(move || -> BoxFuture<'static, Result<RecordBatch, QueryError>> {
                    let merged = export::merge_profile(context.clone(), query.clone(), encode);
                    let fields = fields.clone();
                    Box::pin(async move {
                        let bytes = merged.await?;
                        let column = BinaryArray::from_iter_values([bytes]);
                        Ok(RecordBatch::try_new(fields, vec![Arc::new(column)])?)
                    })
                }),
            }))
        }),
    }
}
