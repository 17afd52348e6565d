//! `diff('TYPE{selector}', from, until, 'TYPE{selector}', from, until [, n])`: compares the values of functions in two
//! selections of profiles, named `before` and `after`. The own value of a function (`self`) counts only stacks in which
//! the function is the leaf. Rows are sorted by the absolute change of the own value, largest first.
//!
//! The first three arguments select the profiles of `before`, and the next three arguments those of `after`. Values are
//! not normalized: to compare shares, divide each value by the sum of all samples of its selection.

use std::collections::BTreeMap;
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

const USAGE: &str = "diff('TYPE{selector}', from, until, 'TYPE{selector}', from, until [, n])";
/// Usage of the three arguments that select the profiles of `before`. The number `n` may follow only [`AFTER`].
const BEFORE: Usage = Usage {
    text: USAGE,
    counts: &[3],
};
const AFTER: Usage = Usage {
    text: USAGE,
    counts: &[3, 4],
};
/// Columns of numbers: own value before, own value after and their difference, then the same three columns for the
/// total.
const NUMBERS: [&str; 6] = [
    "self_before",
    "self_after",
    "self_change",
    "total_before",
    "total_after",
    "total_change",
];

/// Returns the table function over the data of a query.
pub(crate) fn function(context: Arc<Context>) -> TableFunction {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let mut fields = vec![text("function"), text("file")];
    fields.extend(NUMBERS.map(|name| Field::new(name, DataType::Int64, false)));
    let schema = Arc::new(Schema::new(fields));
    TableFunction {
        name: "diff",
        make: Box::new(move |args, session| {
            let refuse =
                || QueryError::invalid(format!("wrong number of arguments: {}; call it as {USAGE}", args.len()));
            let (before, after) = args.split_at_checked(3).ok_or_else(refuse)?;
            let before = Arguments::read(BEFORE, before, session, context.purpose)?;
            let after = Arguments::read(AFTER, after, session, context.purpose)?;
            if before.profile_type != after.profile_type {
                return Err(QueryError::invalid(
                    "both sides of a diff must have the same profile type",
                ));
            }
            let count = after.number.unwrap_or(usize::MAX);
            let query =
                |side: &Arguments| StackQuery::new(side.profile_type.clone(), side.matchers.clone(), side.range());
            let queries = [query(&before), query(&after)];
            let (context, schema) = (context.clone(), schema.clone());
            let fields = schema.clone();
            Ok(Arc::new(Computed {
                name: "diff",
                schema,
                compute: Arc::new(move || -> BoxFuture<'static, Result<RecordBatch, QueryError>> {
                    let [before, after] = queries.clone().map(|query| flame::merge(context.clone(), query));
                    let (fields, max) = (fields.clone(), allowance::table_bytes(&context.runtime));
                    Box::pin(async move {
                        let held_trees = [flame::tree(before.await?).await?, flame::tree(after.await?).await?];
                        batch(
                            &fields,
                            held_trees.map(|held_tree| TopTable::from_tree(&held_tree.tree)),
                            count,
                            max,
                        )
                    })
                }),
            }))
        }),
    }
}

fn batch(schema: &Arc<Schema>, tops: [TopTable; 2], count: usize, max: usize) -> Result<RecordBatch, QueryError> {
    // For each function and file: own value before and after, total before and after.
    let mut rows: BTreeMap<(String, String), [i64; 4]> = BTreeMap::new();
    for (side, top) in tops.into_iter().enumerate() {
        for row in top.rows {
            let values = rows.entry((row.name.clone(), row.file.clone())).or_default();
            values[side] += row.flat;
            values[2 + side] += row.cum;
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, [before, after, ..])| std::cmp::Reverse(after.abs_diff(*before)));
    rows.truncate(count);
    let texts = rows.iter().map(|((name, file), _)| name.len() + file.len());
    check_call("diff", texts.sum(), max)?;
    let number = |select: fn(&[i64; 4]) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(
            rows.iter().map(|(_, values)| select(values)),
        ))
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(rows.iter().map(|(key, _)| &key.0))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|(key, _)| &key.1))),
        number(|values| values[0]),
        number(|values| values[1]),
        number(|values| values[1].saturating_sub(values[0])),
        number(|values| values[2]),
        number(|values| values[3]),
        number(|values| values[3].saturating_sub(values[2])),
    ];
    Ok(RecordBatch::try_new(schema.clone(), columns)?)
}
