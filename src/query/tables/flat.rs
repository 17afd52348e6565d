//! The view `flat`: one row for each sample, with the labels of its series and the leaf frame of its stack.
//!
//! The view needs no join. Before a query reads `samples`, its conditions on labels become a set of series, and its
//! conditions on frames become a set of stacks. Labels and frames are looked up by id, and only for the columns that
//! the query reads. A query that reads only values decodes no frames.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use hashbrown::HashMap;

use crate::query::common::error::QueryError;
use crate::query::decoded::context::Context;
use crate::query::scan::provider::{Mapped, Relation};
use crate::query::scan::{frame_columns, read};
use crate::query::series::selection;
use crate::query::stacks::sums;
use crate::query::tables::bounds;
use crate::query::tables::bounds::Absorbed;
use crate::query::tables::{evaluate, lookup};
use crate::store::common::schema;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{
    FRAMES, LABELS, PROFILE_TYPE, SERIES, SERVICE_NAME, SPAN_ID, STACK, TIME, TRACE_ID, VALUE,
};
use crate::store::tables::snapshot::ScanFilter;
use alluvium_base::BoxFuture;
use alluvium_profile::selector::Matcher;
use alluvium_profile::{Labels, ProfileType, SeriesId, StackId, TimeSpan};

/// Columns that come from the series.
const SERIES_COLUMNS: [&str; 2] = [SERVICE_NAME, LABELS];
/// Columns that come from the stack.
const STACK_COLUMNS: [&str; 5] = ["function", "file", "line", "mapping", FRAMES];

/// The relation `flat`, optionally restricted by a selector.
pub(crate) struct Flat {
    context: Arc<Context>,
    schema: SchemaRef,
    selected: Option<(ProfileType, Vec<Matcher>)>,
    time: Option<TimeSpan>,
}

/// The table that a column comes from.
enum Origin {
    Sample,
    Series,
    Stack,
}

impl Flat {
    /// Creates the relation of all samples of the tenants.
    pub(crate) fn all(context: Arc<Context>) -> Self {
        Self {
            context,
            schema: flat_schema(),
            selected: None,
            time: None,
        }
    }

    /// Creates the relation of the samples of one profile type in a time span. Only series that match all matchers are
    /// included.
    pub(crate) fn selected(
        context: Arc<Context>,
        profile_type: ProfileType,
        matchers: Vec<Matcher>,
        time: TimeSpan,
    ) -> Self {
        Self {
            context,
            schema: flat_schema(),
            selected: Some((profile_type, matchers)),
            time: Some(time),
        }
    }

    fn filter(&self) -> ScanFilter {
        ScanFilter {
            tenants: Some(self.context.tenants.clone()),
            time: self.time,
            profile_type: self.selected.as_ref().map(|(profile_type, _)| profile_type.into()),
            ..ScanFilter::default()
        }
    }
}

impl std::fmt::Debug for Flat {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("flat")
    }
}

impl Relation for Flat {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn pushdown(&self, filters: &[&Expr]) -> Vec<TableProviderFilterPushDown> {
        let mut filter = self.filter();
        filters
            .iter()
            .map(|expr| match bounds::narrow_filter(&mut filter, expr) {
                Absorbed::Exactly => TableProviderFilterPushDown::Exact,
                Absorbed::Loosely => match reads_only(expr) {
                    Some(Origin::Series | Origin::Stack) => TableProviderFilterPushDown::Exact,
                    _ => TableProviderFilterPushDown::Inexact,
                },
            })
            .collect()
    }

    fn plan(
        &self,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
    ) -> BoxFuture<'static, Result<Arc<dyn ExecutionPlan>, QueryError>> {
        let mut filter = self.filter();
        let (mut on_series, mut on_stack) = (Vec::new(), Vec::new());
        for expr in filters {
            if bounds::narrow_filter(&mut filter, expr) == Absorbed::Loosely {
                match reads_only(expr) {
                    Some(Origin::Series) => on_series.push(expr.clone()),
                    Some(Origin::Stack) => on_stack.push(expr.clone()),
                    _ => {}
                }
            }
        }
        let columns = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        Box::pin(plan(Request {
            context: self.context.clone(),
            schema: self.schema.clone(),
            selected: self.selected.clone(),
            columns,
            filter,
            on_series,
            on_stack,
        }))
    }
}

struct Request {
    context: Arc<Context>,
    schema: SchemaRef,
    selected: Option<(ProfileType, Vec<Matcher>)>,
    columns: Vec<usize>,
    filter: ScanFilter,
    on_series: Vec<Expr>,
    on_stack: Vec<Expr>,
}

async fn plan(request: Request) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
    let Request {
        context,
        schema,
        selected,
        columns,
        mut filter,
        on_series,
        on_stack,
    } = request;
    let output = Arc::new(schema.project(&columns)?);
    let names: Vec<String> = output.fields().iter().map(|field| field.name().clone()).collect();
    let uses = |group: &[&str]| names.iter().any(|name| group.contains(&name.as_str()));
    let matchers = selected.as_ref().map_or(&[][..], |(_, matchers)| matchers);
    let time = filter.time.unwrap_or(TimeSpan::ALL);

    let mut of_series = None;
    if uses(&SERIES_COLUMNS) || !on_series.is_empty() || !matchers.is_empty() {
        let labels = context.labels(time).await?;
        let labels = Arc::new(labels);
        if let Some((profile_type, matchers)) = &selected {
            let selected = selection::select(labels.clone(), profile_type.clone(), matchers.clone()).await?;
            intersect(&mut filter.series, selected);
        }
        let columns = lookup::SeriesColumns::new(&labels);
        if !on_series.is_empty() {
            intersect(&mut filter.series, Some(matching_series(&labels, &columns, on_series)?));
        }
        of_series = Some(columns);
    }
    if !on_stack.is_empty() {
        let stack_sums = sums::sorted_by_stack(&context, &filter).await?;
        let ids: Vec<StackId> = stack_sums.values.iter().map(|(stack, _)| *stack).collect();
        filter.stacks = Some(matching_stacks(&context, time, ids, on_stack).await?);
    }
    let mut inputs: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !SERIES_COLUMNS.contains(name) && !STACK_COLUMNS.contains(name))
        .collect();
    if uses(&SERIES_COLUMNS) && !inputs.contains(&SERIES) {
        inputs.push(SERIES);
    }
    if uses(&STACK_COLUMNS) && !inputs.contains(&STACK) {
        inputs.push(STACK);
    }
    let input = read::exact_plan(&context.runtime, &context.snapshot, Table::Samples, &filter, &inputs)?;
    if !uses(&SERIES_COLUMNS) && !uses(&STACK_COLUMNS) {
        return Ok(input);
    }
    let frames = if uses(&[FRAMES]) {
        Some(lookup::Frames::All)
    } else {
        uses(&STACK_COLUMNS).then_some(lookup::Frames::Leaf)
    };
    let map = lookup::AddedColumns::new(context, filter, time, of_series, output.clone(), frames);
    Ok(Arc::new(Mapped::new(input, output, Arc::new(map))))
}

/// Returns the ids of the series that satisfy all conditions.
fn matching_series(
    labels: &HashMap<SeriesId, Labels>,
    columns: &lookup::SeriesColumns,
    conditions: Vec<Expr>,
) -> Result<Arc<HashSet<SeriesId>>, QueryError> {
    let fields = vec![
        Field::new(SERVICE_NAME, DataType::Utf8View, true),
        Field::new(LABELS, schema::labels(), true),
    ];
    let batch = RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        vec![columns.service_name.clone(), columns.labels.clone()],
    )?;
    let mask = evaluate::conjunction(&batch, conditions)?;
    debug_assert_eq!(labels.len(), mask.len());
    let ids = columns.ids.iter().zip(mask.iter());
    Ok(Arc::new(
        ids.filter(|(_, keep)| *keep == Some(true)).map(|(id, _)| *id).collect(),
    ))
}

/// Returns those stacks of `ids` that satisfy all conditions.
fn matching_stacks(
    context: &Arc<Context>,
    time: TimeSpan,
    ids: Vec<StackId>,
    conditions: Vec<Expr>,
) -> BoxFuture<'static, Result<Arc<HashSet<StackId>>, QueryError>> {
    let runtime = context.runtime.clone();
    let loaded = context.frames(time, ids.clone());
    Box::pin(async move {
        let loaded = loaded.await?;
        let mut stacks = HashSet::new();
        // The stacks are processed in parts, because all frames of a part are in memory at the same time.
        let pieces = lookup::pieces(&loaded.table.read(), &ids);
        for piece in pieces {
            let columns = lookup::StackColumns::new(&runtime, &loaded.table.read(), piece, lookup::Frames::All)?;
            let mask = evaluate::conjunction(&columns.batch()?, conditions.clone())?;
            stacks.extend(
                piece
                    .iter()
                    .zip(mask.iter())
                    .filter(|(_, keep)| *keep == Some(true))
                    .map(|(id, _)| *id),
            );
        }
        Ok(Arc::new(stacks))
    })
}

fn intersect(set: &mut Option<Arc<HashSet<SeriesId>>>, other: Option<Arc<HashSet<SeriesId>>>) {
    let Some(other) = other else { return };
    *set = Some(match set.take() {
        Some(before) => Arc::new(before.intersection(&other).copied().collect()),
        None => other,
    });
}

/// Returns the origin of an expression's columns: `Sample` if they have several origins or come from `samples`, `None`
/// if the expression is volatile or has no columns.
fn reads_only(expr: &Expr) -> Option<Origin> {
    let columns = expr.column_refs();
    if columns.is_empty() || expr.is_volatile() {
        return None;
    }
    let all = |group: &[&str]| columns.iter().all(|column| group.contains(&column.name.as_str()));
    if all(&SERIES_COLUMNS) {
        Some(Origin::Series)
    } else if all(&STACK_COLUMNS) {
        Some(Origin::Stack)
    } else {
        Some(Origin::Sample)
    }
}

/// Returns the columns of `flat`, in order.
pub(crate) fn flat_schema() -> SchemaRef {
    let samples = Table::Samples.schema();
    let sample_field = |name: &str| {
        let field = samples.field_with_name(name).ok().cloned();
        field.unwrap_or_else(|| Field::new(name, DataType::Null, true))
    };
    Arc::new(Schema::new(vec![
        sample_field(TIME),
        Field::new(SERVICE_NAME, DataType::Utf8View, true),
        Field::new(LABELS, schema::labels(), true),
        sample_field(PROFILE_TYPE),
        Field::new("function", DataType::Utf8View, true),
        Field::new("file", DataType::Utf8View, true),
        Field::new("line", DataType::Int64, true),
        sample_field(STACK),
        sample_field(VALUE),
        sample_field(SERIES),
        Field::new("mapping", DataType::Utf8View, true),
        sample_field(SPAN_ID),
        sample_field(TRACE_ID),
        Field::new(FRAMES, frame_columns::flat_frames(), true),
    ]))
}
