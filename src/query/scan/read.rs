//! Reads the rows of a snapshot that pass a filter. Selects files by their statistics in the snapshot, reads them with
//! a plain Parquet scan, and adds the rows of heads.
//!
//! In: [`Snapshot`], [`ScanFilter`], column names. Out: streams of batches with exactly the requested rows, or a
//! physical plan for SQL. Queries other than SQL aggregate these streams themselves, which avoids planning. This module
//! merges no rows.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::catalog::memory::DataSourceExec;
use datafusion::common::ScalarValue;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileGroupPartitioner, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;
use futures::StreamExt;

use crate::query::common::columns::indices_of;
use crate::query::common::error::QueryError;
use crate::query::common::stream::BatchStream;
use crate::query::resources::runtime::Runtime;
use crate::query::resources::verified::Seal;
use crate::query::scan::heads::{head_plan, head_stream};
use crate::query::scan::provider::IdSet;
use crate::store::common::schema::column::{PROFILE_TYPE, SERIES, STACK, TIME};
use crate::store::common::schema::{PARTITION_COLUMNS, Table};
use crate::store::tables::snapshot::{FileEntry, ScanFilter, Snapshot};
use crate::store::tables::stats::{Bounds, extend};
use alluvium_profile::SeriesId;

/// Total size of files in bytes below which one task reads all of the files.
const MIN_SPLIT_BYTES: usize = 1 << 20;
/// If a query requests at most this number of series, each of their ids is compared with the bounds of a file.
const FEW_SERIES: usize = 64;
/// Number of rows of a batch of stacks. Batches of stacks have fewer rows than batches of other tables, because each
/// stack has dozens of frames with their texts.
const STACK_ROWS: usize = 256;

/// Returns the files of a table that may contain rows that pass the filter.
pub(crate) fn live_files<'a>(snapshot: &'a Snapshot, table: Table, filter: &ScanFilter) -> Vec<&'a FileEntry> {
    let series_filter = filter.series.as_ref().map(|series| {
        let mut bounds = None;
        extend(&mut bounds, series.iter().copied());
        SeriesFilter { series, bounds }
    });
    snapshot
        .files
        .iter()
        .filter(|file| file.table == table && may_match(file, filter, series_filter.as_ref()))
        .collect()
}

/// Returns the columns of a table in SQL. Texts of samples and profiles repeat often, so they are read as views of the
/// files' dictionaries, without a copy for each row.
pub(crate) fn sql_schema(table: Table) -> SchemaRef {
    let schema = table.schema();
    if !matches!(table, Table::Samples | Table::Profiles) {
        return schema;
    }
    let fields = schema.fields().iter().enumerate().map(|(index, field)| {
        if *field.data_type() == DataType::Utf8 && index >= PARTITION_COLUMNS {
            Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View))
        } else {
            field.clone()
        }
    });
    Arc::new(Schema::new(fields.collect::<Vec<FieldRef>>()))
}

/// Returns the scan of `files` with the columns at `projection`. The indices refer to `schema`, which is
/// [`Table::schema`] or [`sql_schema`].
fn parquet_plan(
    runtime: &Runtime,
    snapshot: &Snapshot,
    (table, schema): (Table, &SchemaRef),
    files: &[&FileEntry],
    projection: &[usize],
    predicate: Option<Arc<dyn PhysicalExpr>>,
) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
    let scan_schema = scan_schema(schema, projection);
    let file_columns = scan_schema.file_schema().fields().len();
    let mut source = ParquetSource::new(scan_schema)
        .with_parquet_file_reader_factory(runtime.readers.clone())
        .with_pushdown_filters(true)
        .with_reorder_filters(true)
        .with_enable_page_index(true);
    if let Some(predicate) = predicate {
        source = source.with_predicate(predicate);
    }
    let indices = projection
        .iter()
        .map(|index| match index.checked_sub(PARTITION_COLUMNS) {
            Some(in_file) => in_file,
            None => file_columns + index,
        })
        .collect();
    let mut group = Vec::with_capacity(files.len());
    for file in files {
        group.push(partitioned(snapshot, file)?);
    }
    let groups = vec![FileGroup::new(group)];
    let groups = FileGroupPartitioner::new()
        .with_target_partitions(runtime.parallelism)
        .with_repartition_file_min_size(MIN_SPLIT_BYTES)
        .repartition_file_groups(&groups)
        .unwrap_or(groups);
    let config = FileScanConfigBuilder::new(runtime.url.clone(), Arc::new(source))
        .with_file_groups(groups)
        .with_projection_indices(Some(indices))?
        .with_batch_size((table == Table::Stacks).then_some(STACK_ROWS))
        .build();
    Ok(DataSourceExec::from_data_source(config))
}

/// Returns files and heads as one plan for SQL. The plan filters the tenants exactly. The other conditions of the
/// filter only prune files and heads. The filter node above this plan checks these conditions, and the optimizer moves
/// that node into the Parquet scan.
pub(crate) fn union_plan(
    runtime: &Arc<Runtime>,
    snapshot: &Snapshot,
    table: Table,
    filter: &ScanFilter,
    projection: Option<&Vec<usize>>,
) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
    let schema = sql_schema(table);
    let all: Vec<usize> = (0..schema.fields().len()).collect();
    let projection = projection.unwrap_or(&all);
    let files = choose(runtime, snapshot, table, filter);
    let mut inputs = Vec::new();
    if !files.is_empty() {
        inputs.push(parquet_plan(
            runtime,
            snapshot,
            (table, &schema),
            &files,
            projection,
            None,
        )?);
    }
    let tenants_only = ScanFilter {
        tenants: filter.tenants.clone(),
        ..ScanFilter::default()
    };
    let output_schema = Arc::new(schema.project(projection)?);
    if !snapshot.heads.is_empty() || inputs.is_empty() {
        inputs.push(head_plan(
            runtime,
            snapshot,
            table,
            (filter, &tenants_only),
            output_schema,
        ));
    }
    match inputs.len() {
        1 => Ok(inputs.swap_remove(0)),
        _ => Ok(UnionExec::try_new(inputs)?),
    }
}

/// Returns files and heads as one plan with exactly the rows that pass the filter, and `columns` in the given order.
pub(crate) fn exact_plan(
    runtime: &Arc<Runtime>,
    snapshot: &Snapshot,
    table: Table,
    filter: &ScanFilter,
    columns: &[&str],
) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
    let schema = table.schema();
    let projection = indices_of(&schema, columns)?;
    let files = choose(runtime, snapshot, table, filter);
    let mut inputs = Vec::new();
    if !files.is_empty() {
        let predicate = predicate(table, &files, filter, &projection)?;
        inputs.push(parquet_plan(
            runtime,
            snapshot,
            (table, &schema),
            &files,
            &projection,
            predicate,
        )?);
    }
    if !snapshot.heads.is_empty() || inputs.is_empty() {
        let schema = Arc::new(schema.project(&projection)?);
        inputs.push(head_plan(runtime, snapshot, table, (filter, filter), schema));
    }
    match inputs.len() {
        1 => Ok(inputs.swap_remove(0)),
        _ => Ok(UnionExec::try_new(inputs)?),
    }
}

/// Returns streams that together have exactly the rows that pass the filter, with `columns` in the given order.
pub(crate) fn open(
    runtime: &Arc<Runtime>,
    snapshot: &Arc<Snapshot>,
    table: Table,
    filter: &ScanFilter,
    columns: &[&str],
) -> Result<Vec<BatchStream>, QueryError> {
    let files = choose(runtime, snapshot, table, filter);
    open_files(runtime, snapshot, table, &files, filter, columns).and_then(|mut streams| {
        if !snapshot.heads.is_empty() {
            streams.push(head_stream(runtime, snapshot, table, filter, columns)?);
        }
        Ok(streams)
    })
}

/// Like [`open`], but reads only `files` and no heads.
pub(crate) fn open_files(
    runtime: &Arc<Runtime>,
    snapshot: &Snapshot,
    table: Table,
    files: &[&FileEntry],
    filter: &ScanFilter,
    columns: &[&str],
) -> Result<Vec<BatchStream>, QueryError> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let schema = table.schema();
    let projection = indices_of(&schema, columns)?;
    let predicate = predicate(table, files, filter, &projection)?;
    let plan = parquet_plan(runtime, snapshot, (table, &schema), files, &projection, predicate)?;
    let partitions = plan.properties().partitioning.partition_count();
    let mut streams: Vec<BatchStream> = Vec::with_capacity(partitions + 1);
    for partition in 0..partitions {
        let stream = plan.execute(partition, runtime.task.clone())?;
        streams.push(stream.map(|batch| batch.map_err(QueryError::from)).boxed());
    }
    Ok(streams)
}

/// Selects the files of a table to read and counts them.
pub(crate) fn choose<'a>(
    runtime: &Runtime,
    snapshot: &'a Snapshot,
    table: Table,
    filter: &ScanFilter,
) -> Vec<&'a FileEntry> {
    let files = live_files(snapshot, table, filter);
    let all = snapshot.files.iter().filter(|file| file.table == table).count();
    runtime.count_files(all - files.len(), files.len());
    files
}

/// The requested series and their bounds. The bounds are `None` for an empty set.
struct SeriesFilter<'a> {
    series: &'a HashSet<SeriesId>,
    bounds: Option<Bounds<SeriesId>>,
}

impl SeriesFilter<'_> {
    /// Returns true if a file with series in these bounds may contain one of the requested series.
    fn may_be_in(&self, file: Bounds<SeriesId>) -> bool {
        let overlap = |bounds: Bounds<SeriesId>| bounds.min <= file.max && file.min <= bounds.max;
        // Ids are hashes, so a large set has ids in almost every range. Only the ids of a small set are compared.
        self.bounds.is_some_and(overlap)
            && (self.series.len() > FEW_SERIES || self.series.iter().any(|id| file.contains(id)))
    }
}

fn may_match(file: &FileEntry, filter: &ScanFilter, series_filter: Option<&SeriesFilter<'_>>) -> bool {
    if filter
        .tenants
        .as_ref()
        .is_some_and(|tenants| !tenants.has(&file.tenant))
    {
        return false;
    }
    if let Some(span) = filter.time {
        if span.is_empty() || !span.days().contains(&file.day) {
            return false;
        }
        if file.time.is_some_and(|time| !span.touches(time.min, time.max)) {
            return false;
        }
    }
    if let (Some(profile_type), Some(bounds)) = (&filter.profile_type, &file.profile_type)
        && !bounds.contains(profile_type)
    {
        return false;
    }
    series_filter.is_none_or(|series_filter| match file.series {
        Some(series) => series_filter.may_be_in(series),
        None => series_filter.bounds.is_some(),
    })
}

/// Returns the filter as an expression over the scan's columns. Omits conditions that all rows of the files satisfy.
fn predicate(
    table: Table,
    files: &[&FileEntry],
    filter: &ScanFilter,
    projection: &[usize],
) -> Result<Option<Arc<dyn PhysicalExpr>>, QueryError> {
    let schema = table.schema();
    let column = |name: &str| -> Result<Arc<dyn PhysicalExpr>, QueryError> {
        let index = indices_of(&schema, &[name])?[0];
        Ok(Arc::new(Column::new(name, index - PARTITION_COLUMNS)))
    };
    let has = |name: &str| schema.index_of(name).is_ok();
    let mut terms: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
    if let Some(profile_type) = &filter.profile_type
        && has(PROFILE_TYPE)
        && !files.iter().all(|file| {
            let bounds = file.profile_type.as_ref();
            bounds.and_then(Bounds::single) == Some(profile_type)
        })
    {
        // The value has the column's type in `scan_schema`.
        let text = Some(profile_type.to_string());
        let value = if projection.contains(&schema.index_of(PROFILE_TYPE)?) {
            ScalarValue::Utf8(text)
        } else {
            ScalarValue::Utf8View(text)
        };
        terms.push(Arc::new(BinaryExpr::new(
            column(PROFILE_TYPE)?,
            Operator::Eq,
            lit(value),
        )));
    }
    if let Some(span) = filter.time
        && has(TIME)
    {
        let bound = |micros| lit(ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into())));
        let covered = |holds: &dyn Fn(Bounds<i64>) -> bool| files.iter().all(|file| file.time.is_some_and(holds));
        if !covered(&|time| time.min >= span.start) {
            terms.push(Arc::new(BinaryExpr::new(
                column(TIME)?,
                Operator::GtEq,
                bound(span.start),
            )));
        }
        if !covered(&|time| time.max < span.end) {
            terms.push(Arc::new(BinaryExpr::new(column(TIME)?, Operator::Lt, bound(span.end))));
        }
    }
    if let Some(series) = filter.series.as_ref().filter(|_| has(SERIES)) {
        terms.push(IdSet::expression(column(SERIES)?, series.clone(), &schema)?);
    }
    if let Some(stacks) = filter.stacks.as_ref().filter(|_| has(STACK)) {
        terms.push(IdSet::expression(column(STACK)?, stacks.clone(), &schema)?);
    }
    Ok(terms
        .into_iter()
        .reduce(|left, right| Arc::new(BinaryExpr::new(left, Operator::And, right))))
}

fn partitioned(snapshot: &Snapshot, file: &FileEntry) -> Result<PartitionedFile, QueryError> {
    let location = snapshot.root.location(&file.path);
    let location = location.map_err(|error| QueryError::internal(error.to_string()))?;
    let mut partitioned = PartitionedFile::new("", file.size);
    partitioned.object_meta.location = location;
    if let Some(tail) = file.checksum.and_then(|checksum| checksum.tail) {
        partitioned = partitioned.with_extension(Seal {
            tail,
            name: snapshot.root.name(&file.path),
        });
    }
    Ok(partitioned.with_partition_values(vec![
        ScalarValue::Utf8(Some(file.tenant.to_string())),
        ScalarValue::Date32(Some(file.day)),
    ]))
}

/// Returns the columns of the files, followed by the partition columns. A text column that is only compared is read as
/// views of its dictionary, without a copy for each row.
fn scan_schema(schema: &SchemaRef, projection: &[usize]) -> TableSchema {
    let (partition, in_file) = schema.fields().split_at(PARTITION_COLUMNS);
    let fields: Vec<FieldRef> = in_file
        .iter()
        .enumerate()
        .map(|(index, field)| {
            if *field.data_type() == DataType::Utf8 && !projection.contains(&(index + PARTITION_COLUMNS)) {
                Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View))
            } else {
                field.clone()
            }
        })
        .collect();
    TableSchema::builder(Arc::new(Schema::new(fields)))
        .with_table_partition_cols(partition.to_vec())
        .build()
}
