//! `EXPLAIN` and `EXPLAIN ANALYZE`: the plan of a query, and the files and row groups that it skipped.
//!
//! In: the plans of a query. Out: rows of `plan_type` and `plan`. `ANALYZE` runs the query under the usual limits and
//! discards its rows. Paths of files are shown relative to the data folder, whose location is not disclosed.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::StringArray;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::catalog::memory::DataSourceExec;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::execution::TaskContext;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::{StreamExt, stream};

use crate::query::common::error::QueryError;
use crate::query::common::stream::BatchStream;
use crate::query::decoded::context::Context;
use crate::store::common::schema::Table;
use crate::store::tables::root::Root;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Explain {
    /// If true, the query runs, and the plan shows its metrics.
    pub(crate) analyze: bool,
    /// If true, the plan is as detailed as with DataFusion's `VERBOSE`.
    pub(crate) verbose: bool,
}

/// Returns the rows that explain a plan.
pub(crate) fn explain(
    state: SessionState,
    context: Arc<Context>,
    logical: &LogicalPlan,
    physical: Arc<dyn ExecutionPlan>,
    explain: Explain,
) -> (SchemaRef, BatchStream) {
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("plan_type", DataType::Utf8, false),
        Field::new("plan", DataType::Utf8, false),
    ]));
    let columns = schema.clone();
    let logical = logical.display_indent().to_string();
    let rows = stream::once(async move {
        let root = context.snapshot.root.clone();
        let rows = if explain.analyze {
            analyzed(&state, &context, physical, explain).await?
        } else {
            let physical_text = DisplayableExecutionPlan::new(physical.as_ref())
                .indent(explain.verbose)
                .to_string();
            vec![
                ("logical_plan", logical),
                ("physical_plan", physical_text),
                ("scan", scanned(&context, &physical)),
            ]
        };
        let kinds = StringArray::from_iter_values(rows.iter().map(|row| row.0));
        let texts = StringArray::from_iter_values(rows.iter().map(|row| without_root(&row.1, &root)));
        Ok(RecordBatch::try_new(columns, vec![Arc::new(kinds), Arc::new(texts)])?)
    });
    (schema, rows.boxed())
}

async fn analyzed(
    state: &SessionState,
    context: &Context,
    physical: Arc<dyn ExecutionPlan>,
    explain: Explain,
) -> Result<Vec<(&'static str, String)>, QueryError> {
    let began = Instant::now();
    let mut batches = execute_stream(physical.clone(), Arc::new(TaskContext::from(state)))?;
    let (mut rows, mut first) = (0, None);
    while let Some(batch) = batches.next().await {
        rows += batch?.num_rows();
        first.get_or_insert_with(|| began.elapsed());
    }
    let took = began.elapsed();
    drop(batches);
    let text = DisplayableExecutionPlan::with_metrics(physical.as_ref())
        .indent(explain.verbose)
        .to_string();
    let milliseconds = |length: std::time::Duration| length.as_secs_f64() * 1000.0;
    let total = format!(
        "rows: {rows}\ntime: {:.3} ms, first rows after {:.3} ms",
        milliseconds(took),
        milliseconds(first.unwrap_or(took))
    );
    Ok(vec![
        ("plan_with_metrics", text),
        ("scan", scanned(context, &physical)),
        ("total", total),
    ])
}

/// Returns the number of files of each table that the plan reads and skips. If the plan has run, the numbers of row
/// groups and pages follow.
fn scanned(context: &Context, physical: &Arc<dyn ExecutionPlan>) -> String {
    let mut metrics = ScanMetrics::default();
    metrics.visit(physical);
    let mut lines = Vec::new();
    for table in Table::ALL {
        let is_own = |file: &&crate::store::tables::snapshot::FileEntry| {
            file.table == table && context.tenants.has(&file.tenant)
        };
        let all = context.snapshot.files.iter().filter(is_own).count();
        let folder = format!("/{}/", table.name());
        let scans: Vec<usize> = metrics
            .scans
            .iter()
            .map(|paths| paths.iter().filter(|path| path.contains(&folder)).count())
            .filter(|count| *count > 0)
            .collect();
        for read in &scans {
            lines.push(format!(
                "{}: {read} files read, {} pruned",
                table.name(),
                all.saturating_sub(*read)
            ));
        }
    }
    if lines.is_empty() {
        lines.push("no files read: everything was pruned, is in memory, or is read by a function".to_owned());
    }
    for (name, [pruned, kept]) in metrics.counts() {
        lines.push(format!("{name}: {kept} read, {pruned} pruned"));
    }
    lines.join("\n")
}

/// Metrics collected from the scans of a plan.
#[derive(Default)]
struct ScanMetrics {
    /// Paths of the files of each scan, without duplicates, because several tasks may share a file.
    scans: Vec<std::collections::BTreeSet<String>>,
    row_groups: [usize; 2],
    by_bloom_filter: [usize; 2],
    pages: [usize; 2],
    has_run: bool,
}

impl ScanMetrics {
    fn visit(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        if let Some(source) = plan.downcast_ref::<DataSourceExec>() {
            if let Some(config) = source.data_source().downcast_ref::<FileScanConfig>() {
                let files = config
                    .file_groups
                    .iter()
                    .flat_map(datafusion::datasource::physical_plan::FileGroup::iter);
                self.scans
                    .push(files.map(|file| format!("/{}", file.object_meta.location)).collect());
            }
            let metrics = plan.metrics();
            let metrics = metrics
                .as_ref()
                .map(datafusion::physical_plan::metrics::MetricsSet::iter);
            for metric in metrics.into_iter().flatten() {
                let MetricValue::PruningMetrics { name, pruning_metrics } = metric.value() else {
                    continue;
                };
                let counter = match name.as_ref() {
                    "row_groups_pruned_statistics" => &mut self.row_groups,
                    "row_groups_pruned_bloom_filter" => &mut self.by_bloom_filter,
                    "page_index_pages_pruned" => &mut self.pages,
                    _ => continue,
                };
                self.has_run = true;
                counter[0] += pruning_metrics.pruned();
                counter[1] += pruning_metrics.matched();
            }
        }
        for child in plan.children() {
            self.visit(child);
        }
    }

    fn counts(&self) -> Vec<(&'static str, [usize; 2])> {
        if !self.has_run {
            return Vec::new();
        }
        vec![
            ("row groups by statistics", self.row_groups),
            ("row groups by bloom filter", self.by_bloom_filter),
            ("pages by statistics", self.pages),
        ]
    }
}

/// Removes the data folder from paths in the text. Plans contain the folder with and without the leading slash.
fn without_root(text: &str, root: &Root) -> String {
    let mut text = text.to_owned();
    let root = match root {
        Root::Folder(folder) => folder,
        Root::Bucket(_) => {
            return match root.location("") {
                Ok(prefix) if !prefix.as_ref().is_empty() => text.replace(&format!("{prefix}/"), ""),
                _ => text,
            };
        }
    };
    let absolute = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    if let Ok(path) = object_store::path::Path::from_absolute_path(&absolute) {
        text = text.replace(&format!("{path}/"), "");
    }
    let plain = absolute.to_string_lossy();
    text.replace(&format!("{}/", plain.trim_matches('/')), "")
}
