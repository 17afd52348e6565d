//! Merged stacks: `samples` summed by stack id, then the frames of only those stacks, then one tree.
//!
//! In: [`StackQuery`]. Out: sums by stack ([`Merged`]) and a [`Tree`]. Integers until the very end: no string is touched for a row.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
use arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use parking_lot::RwLock;

use crate::base::BoxFuture;
use crate::profile::flamegraph::{self, DiffGraph, FlameGraph, FrameId, FrameRef, Tree};
use crate::query::engine::Context;
use crate::query::stacks::{self, StackTable};
use crate::query::sums::{self, StackSums};
use crate::query::{QueryError, StackQuery, scan, series};
use crate::store::schema::Table;
use crate::store::snapshot::ScanFilter;

/// Sums by stack, and the table that has the frames.
pub(crate) struct Merged {
    pub(crate) sums: Vec<(i64, i64)>,
    pub(crate) table: Arc<RwLock<StackTable>>,
}

/// A map entry with its share of the empty places.
const SUM_BYTES: usize = 24;
/// Name of a frame in place of a stack that no table has.
const LOST: &str = "[stack not found]";

/// Answers the question up to the sums.
pub(crate) fn merge(context: Arc<Context>, query: StackQuery) -> BoxFuture<'static, Result<Merged, QueryError>> {
    Box::pin(async move {
        let time = query.range.micros();
        let filter = filter(&context, &query).await?;
        let mut filter = filter;
        let moments = if query.profile_ids.is_empty() {
            None
        } else {
            Some(Arc::new(moments(&context, &filter, &query.profile_ids).await?))
        };
        if let Some(moments) = &moments {
            let wanted: HashSet<i64> = moments.iter().map(|(series, _)| *series).collect();
            filter.series = Some(Arc::new(wanted));
        }
        let spans = id_set(&query.span_ids, 16, "span")?;
        let traces = id_set(&query.trace_ids, 32, "trace")?;
        let sums = sum_stacks(&context, &filter, moments, spans, traces).await?;
        let ids = sums.iter().map(|(stack, _)| *stack).collect();
        let table = stacks::load(
            context.runtime.clone(),
            context.stacks.clone(),
            context.snapshot.clone(),
            context.tenant.clone(),
            time,
            ids,
        )
        .await?;
        let sums = match query.call_site.is_empty() {
            true => sums,
            false => below(&table.read(), sums, &query.call_site),
        };
        Ok(Merged { sums, table })
    })
}

/// Which rows of `samples` and `profiles` a question is about.
pub(crate) fn filter(context: &Arc<Context>, query: &StackQuery) -> BoxFuture<'static, Result<ScanFilter, QueryError>> {
    let (context, matchers) = (context.clone(), query.matchers.clone());
    let (profile_type, time) = (query.profile_type.clone(), query.range.micros());
    Box::pin(async move {
        let chosen = if matchers.is_empty() {
            None
        } else {
            let labels = series::load(
                context.runtime.clone(),
                context.series.clone(),
                context.snapshot.clone(),
                context.tenant.clone(),
                time,
            )
            .await?;
            series::select(&labels, &profile_type, &matchers)
        };
        Ok(ScanFilter {
            tenant: Some(context.tenant.clone()),
            time: Some(time),
            profile_type: Some(profile_type.to_string().into()),
            series: chosen,
            ..ScanFilter::default()
        })
    })
}

/// The flame graph of merged stacks by name. CPU work of a millisecond: run it where it may block.
pub(crate) fn graph(merged: &Merged, max_nodes: usize) -> FlameGraph {
    let leaves = leaves(merged);
    merged.table.read().paths().flamegraph(&leaves, max_nodes)
}

/// The difference of merged stacks by name. CPU work of a millisecond: run it where it may block.
pub(crate) fn diff(left: &Merged, right: &Merged, max_nodes: usize) -> DiffGraph {
    if !Arc::ptr_eq(&left.table, &right.table) {
        // The table was renewed between the two.
        return flamegraph::diff(&tree_by(left, false), &tree_by(right, false), max_nodes);
    }
    let (of_left, of_right) = (leaves(left), leaves(right));
    left.table.read().paths().diff(&of_left, &of_right, max_nodes)
}

/// Values at the ends of the paths that the stacks are.
fn leaves(merged: &Merged) -> Vec<(u32, i64)> {
    let mut lost = 0i64;
    let mut leaves = stacks::leaves(&merged.table, &merged.sums, &mut lost);
    if lost != 0 {
        tracing::warn!(value = lost, "stacks of samples are not in the stacks table");
        leaves.push((merged.table.write().single(LOST), lost));
    }
    leaves
}

/// The tree of merged stacks. CPU work of milliseconds: run it where it may block.
pub(crate) fn tree(merged: &Merged) -> Tree {
    tree_by(merged, true)
}

fn tree_by(merged: &Merged, by_file: bool) -> Tree {
    let table = merged.table.read();
    let mut tree = Tree::new(by_file);
    // Frames are looked up in the tree once each, not once a stack.
    let mut known: Vec<Option<FrameId>> = vec![None; table.frame_count()];
    let mut path = Vec::new();
    let mut lost = 0i64;
    for (stack, value) in &merged.sums {
        let Some(frames) = table.stack(*stack) else {
            lost = lost.saturating_add(*value);
            continue;
        };
        path.clear();
        for index in frames {
            let frame = table.frame(*index);
            let slot = &mut known[*index as usize];
            let id = match slot {
                Some(id) => *id,
                None => *slot.insert(tree.intern(FrameRef {
                    function: table.name(*index),
                    file: &frame.file,
                    line: frame.line,
                    mapping: &frame.mapping,
                })),
            };
            path.push((id, frame.line));
        }
        tree.insert_ids(&path, *value);
    }
    if lost != 0 {
        tracing::warn!(value = lost, "stacks of samples are not in the stacks table");
        tree.insert(
            [FrameRef {
                function: LOST,
                ..FrameRef::default()
            }],
            lost,
        );
    }
    tree
}

/// The sum of values by stack over all rows of `samples` that the filter lets through, ascending by stack.
pub(crate) fn sum_stacks(
    context: &Arc<Context>,
    filter: &ScanFilter,
    moments: Option<Arc<HashSet<(i64, i64)>>>,
    spans: Option<HashSet<String>>,
    traces: Option<HashSet<String>>,
) -> BoxFuture<'static, Result<Vec<(i64, i64)>, QueryError>> {
    if moments.is_none() && spans.is_none() && traces.is_none() {
        let sums = sums::by_stack(context, filter);
        return Box::pin(async move { Ok(sorted(sums.await?)) });
    }
    let mut columns = vec!["stack", "value"];
    if moments.is_some() {
        columns.extend(["series", "time"]);
    }
    let ids = match (spans, traces) {
        (Some(spans), _) => Some(("span_id", spans)),
        (None, Some(traces)) => Some(("trace_id", traces)),
        (None, None) => None,
    };
    let id_column = columns.len();
    columns.extend(ids.iter().map(|(name, _)| *name));
    let (context, filter) = (context.clone(), filter.clone());
    let streams = scan::open(&context.runtime, &context.snapshot, Table::Samples, &filter, &columns);
    let pool = context.runtime.environment.memory_pool.clone();
    Box::pin(async move {
        let make = || Sums {
            values: StackSums::new(),
            memory: MemoryConsumer::new("sums by stack").register(&pool),
        };
        let states = scan::fold(streams?, make, move |sums: &mut Sums, batch| {
            sums.add_where(batch, |row| {
                let moment = moments.as_ref().is_none_or(|moments| {
                    let series = batch.column(2).as_primitive::<Int64Type>().value(row);
                    let time = batch.column(3).as_primitive::<TimestampMicrosecondType>().value(row);
                    moments.contains(&(series, time))
                });
                moment
                    && ids.as_ref().is_none_or(|(_, wanted)| {
                        let column = batch.column(id_column).as_string::<i32>();
                        column.is_valid(row) && wanted.contains(column.value(row))
                    })
            })
        })
        .await?;
        let mut all = StackSums::new();
        for (stack, value) in states.into_iter().flat_map(|state| state.values) {
            let sum = all.entry(stack).or_default();
            *sum = sum.saturating_add(value);
        }
        Ok(sorted(all))
    })
}

/// One order for one question, so that trees and pprof bytes come out the same each time.
fn sorted(sums: StackSums) -> Vec<(i64, i64)> {
    let mut sums: Vec<(i64, i64)> = sums.into_iter().collect();
    sums.sort_unstable();
    sums
}

struct Sums {
    values: StackSums,
    memory: MemoryReservation,
}

impl Sums {
    fn add_where(&mut self, batch: &RecordBatch, keep: impl Fn(usize) -> bool) -> Result<(), QueryError> {
        let stacks = batch.column(0).as_primitive::<Int64Type>().values();
        let values = batch.column(1).as_primitive::<Int64Type>().values();
        for row in (0..batch.num_rows()).filter(|row| keep(*row)) {
            let sum = self.values.entry(stacks[row]).or_default();
            *sum = sum.saturating_add(values[row]);
        }
        Ok(self.memory.try_resize(self.values.capacity() * SUM_BYTES)?)
    }
}

/// Series and time of the profiles with these ids: samples do not carry the id.
fn moments(
    context: &Arc<Context>,
    filter: &ScanFilter,
    ids: &[String],
) -> BoxFuture<'static, Result<HashSet<(i64, i64)>, QueryError>> {
    let ids: HashSet<String> = ids.iter().cloned().collect();
    let columns = ["series", "time", "profile_id"];
    let streams = scan::open(&context.runtime, &context.snapshot, Table::Profiles, filter, &columns);
    Box::pin(async move {
        let found = scan::fold(streams?, HashSet::new, move |found: &mut HashSet<(i64, i64)>, batch| {
            let series = batch.column(0).as_primitive::<Int64Type>().values();
            let times = batch.column(1).as_primitive::<TimestampMicrosecondType>().values();
            let names = batch.column(2).as_string::<i32>();
            found.extend(
                (0..batch.num_rows())
                    .filter(|row| ids.contains(names.value(*row)))
                    .map(|row| (series[row], times[row])),
            );
            Ok(())
        })
        .await?;
        Ok(found.into_iter().flatten().collect())
    })
}

/// Only the stacks that begin, at the root, with these functions.
fn below(table: &StackTable, mut sums: Vec<(i64, i64)>, call_site: &[String]) -> Vec<(i64, i64)> {
    sums.retain(|(stack, _)| {
        let Some(frames) = table.stack(*stack) else {
            return false;
        };
        frames.len() >= call_site.len()
            && frames
                .iter()
                .rev()
                .zip(call_site)
                .all(|(index, wanted)| table.name(*index).as_ref() == wanted)
    });
    sums
}

fn id_set(ids: &[String], digits: usize, what: &str) -> Result<Option<HashSet<String>>, QueryError> {
    if ids.is_empty() {
        return Ok(None);
    }
    let checked: Result<HashSet<String>, QueryError> = ids
        .iter()
        .map(|id| {
            if id.len() != digits {
                return Err(QueryError::invalid(format!(
                    "invalid {what} id length: `{id}` has not {digits} digits"
                )));
            }
            if !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(QueryError::invalid(format!(
                    "invalid {what} id: `{id}` is not hexadecimal"
                )));
            }
            Ok(id.to_ascii_lowercase())
        })
        .collect();
    checked.map(Some)
}
