//! Merges stacks: sums `samples` by stack id, then loads the frames of only those stacks, then builds one tree.
//!
//! In: [`StackQuery`]. Out: sums by stack ([`MergedStacks`]) and a [`Tree`]. Rows are processed as integers. Only the
//! final frames have strings.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::Array;
use datafusion::execution::memory_pool::MemoryReservation;

use crate::query::common::blocking;
use crate::query::common::blocking::Cancellation;
use crate::query::common::checked;
use crate::query::common::error::QueryError;
use crate::query::common::frame_filter::FrameFilter;
use crate::query::common::types::{Detail, GoPgo, StackQuery};
use crate::query::decoded::context::Context;
use crate::query::decoded::stacks;
use crate::query::decoded::stacks::Loaded;
use crate::query::resources::runtime::Runtime;
use crate::query::scan::read;
use crate::query::series::moments::Moment;
use crate::query::series::{moments, selection};
use crate::query::stacks::selector::StackSelector;
use crate::query::stacks::sums;
use crate::query::stacks::sums::{SortedSums, Sums};
use crate::store::common::schema;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{SERIES, SPAN_ID, STACK, TIME, TRACE_ID, VALUE};
use crate::store::tables::snapshot::ScanFilter;
use alluvium_base::BoxFuture;
use alluvium_profile::flamegraph::{self, CallGraph, DiffGraph, FlameGraph, FrameId, FrameRef, Tree};
use alluvium_profile::{SeriesId, StackId};

/// Sums by stack, and the table with the frames. The memory of both is charged to the query until this value is
/// dropped.
pub(crate) struct MergedStacks {
    pub(crate) sums: SortedSums,
    pub(crate) stacks: Loaded,
    /// How stacks are reduced for Go's compiler.
    pub(crate) pgo: Option<GoPgo>,
    runtime: Arc<Runtime>,
}

/// A tree. Its memory is charged to the query until this value is dropped.
pub(crate) struct HeldTree {
    pub(crate) tree: Tree,
    memory: MemoryReservation,
}

/// Memory in bytes that a flame graph needs for each node: the position of the node, its own value and its total on
/// both sides of a diff, and its group in a level.
const SHOWN_BYTES: usize = 96;
/// Name of the frame that replaces a missing stack.
const LOST_FRAME: &str = "[stack not found]";

/// Computes the sums of a query and loads the frames of their stacks.
pub(crate) fn merge(context: Arc<Context>, query: StackQuery) -> BoxFuture<'static, Result<MergedStacks, QueryError>> {
    Box::pin(async move {
        let time = query.range.micros();
        let filter = filter(&context, &query).await?;
        let mut filter = filter;
        let moments = if query.profile_ids.is_empty() {
            None
        } else {
            Some(Arc::new(moments::by_ids(&context, &filter, &query.profile_ids).await?))
        };
        if let Some(moments) = &moments {
            let selected_series: HashSet<SeriesId> = moments.iter().map(|(series, _)| *series).collect();
            filter.series = Some(Arc::new(selected_series));
        }
        let spans = id_set(&query.span_ids, 16, "span")?;
        let traces = id_set(&query.trace_ids, 32, "trace")?;
        let sums = sum_stacks(&context, &filter, moments, spans, traces).await?;
        let ids = sums.values.iter().map(|(stack, _)| *stack).collect();
        let stacks = match query.go_pgo {
            Some(_) => context.frames_with_start_lines(time, ids).await?,
            None => context.frames(time, ids).await?,
        };
        let merged = MergedStacks {
            sums,
            stacks,
            pgo: query.go_pgo,
            runtime: context.runtime.clone(),
        };
        if query.call_site.is_empty() && query.frames.is_empty() {
            return Ok(merged);
        }
        select_stacks(merged, query.call_site, query.frames).await
    })
}

/// Removes the stacks that do not begin with the functions of `call_site` or do not pass `frames`.
fn select_stacks(
    mut merged: MergedStacks,
    call_site: Vec<String>,
    frames: FrameFilter,
) -> BoxFuture<'static, Result<MergedStacks, QueryError>> {
    blocking::run(move |cancellation| {
        let memory = merged.runtime.reservation("frames of a filter");
        let table = merged.stacks.table.read();
        let mut selector = StackSelector::new(&table, &call_site, &frames, memory);
        let mut kept = 0;
        for index in 0..merged.sums.values.len() {
            cancellation.check()?;
            let (stack, value) = merged.sums.values[index];
            if selector.selects(stack)? {
                merged.sums.values[kept] = (stack, value);
                kept += 1;
            }
        }
        merged.sums.values.truncate(kept);
        drop(selector);
        drop(table);
        Ok(merged)
    })
}

/// Returns the filter on `samples` and `profiles` for a query.
pub(crate) fn filter(context: &Arc<Context>, query: &StackQuery) -> BoxFuture<'static, Result<ScanFilter, QueryError>> {
    let (context, matchers) = (context.clone(), query.matchers.clone());
    let (profile_type, time) = (query.profile_type.clone(), query.range.micros());
    Box::pin(async move {
        let chosen = if matchers.is_empty() {
            None
        } else {
            let labels = context.labels(time).await?;
            selection::select(Arc::new(labels), profile_type.clone(), matchers).await?
        };
        Ok(ScanFilter {
            tenants: Some(context.tenants.clone()),
            time: Some(time),
            profile_type: Some((&profile_type).into()),
            series: chosen,
            ..ScanFilter::default()
        })
    })
}

/// Returns the flame graph of merged stacks.
pub(crate) fn graph(
    merged: MergedStacks,
    max_nodes: usize,
    detail: Detail,
) -> BoxFuture<'static, Result<FlameGraph, QueryError>> {
    blocking::run(move |cancellation| match detail {
        Detail::Names if merged.pgo.is_none() => {
            let leaves = leaves(&merged, cancellation)?;
            let table = merged.stacks.table.read();
            Ok(table.paths().flamegraph(&leaves.values, max_nodes))
        }
        Detail::Names | Detail::Files => Ok(tree_by(&merged, detail, cancellation)?.tree.to_flamegraph(max_nodes)),
    })
}

/// Returns the difference between two results of [`merge`], with functions identified by name.
pub(crate) fn diff(
    left: MergedStacks,
    right: MergedStacks,
    max_nodes: usize,
) -> BoxFuture<'static, Result<DiffGraph, QueryError>> {
    blocking::run(move |cancellation| {
        // The total of the result is the sum of both sides.
        let values = [&left, &right].into_iter().flat_map(|side| &side.sums.values);
        checked::check_total(values.map(|(_, value)| *value))?;
        // The paths of a table contain whole stacks, and the cache may have replaced the table between the two queries.
        // If stacks are reduced or the tables differ, each side gets its own tree.
        let are_whole = left.pgo.is_none() && right.pgo.is_none();
        if !are_whole || !Arc::ptr_eq(&left.stacks.table, &right.stacks.table) {
            let [left, right] = [&left, &right].map(|side| tree_by(side, Detail::Names, cancellation));
            return Ok(flamegraph::diff(&left?.tree, &right?.tree, max_nodes));
        }
        let (of_left, of_right) = (leaves(&left, cancellation)?, leaves(&right, cancellation)?);
        let table = left.stacks.table.read();
        Ok(table.paths().diff(&of_left.values, &of_right.values, max_nodes))
    })
}

/// Returns the call graph of merged stacks, with functions identified by name. The graph has at most `max_functions`
/// functions, or all functions if `max_functions` is 0.
pub(crate) fn call_graph(
    merged: MergedStacks,
    max_functions: usize,
) -> BoxFuture<'static, Result<CallGraph, QueryError>> {
    blocking::run(move |cancellation| {
        let held_tree = tree_by(&merged, Detail::Names, cancellation)?;
        // The graph has at most one function for each frame of the tree and one call for each node, so it is charged as
        // much memory as the tree.
        held_tree.memory.try_grow(held_tree.tree.bytes())?;
        cancellation.check()?;
        Ok(held_tree.tree.call_graph(max_functions))
    })
}

/// Returns the tree of merged stacks.
pub(crate) fn tree(merged: MergedStacks) -> BoxFuture<'static, Result<HeldTree, QueryError>> {
    blocking::run(move |cancellation| tree_by(&merged, Detail::Files, cancellation))
}

/// The last node of the path of each stack, with the value of the stack.
struct Leaves {
    values: Vec<(u32, i64)>,
    _memory: MemoryReservation,
}

fn leaves(merged: &MergedStacks, cancellation: &Cancellation) -> Result<Leaves, QueryError> {
    let memory = merged.runtime.reservation("paths of stacks");
    let table = &merged.stacks.table;
    let mut lost = 0i64;
    let mut values = stacks::leaves(table, &merged.sums.values, &mut lost, &memory)?;
    if lost != 0 {
        tracing::warn!(value = lost, "stacks of samples are not in the stacks table");
        values.push((table.write().single(LOST_FRAME), lost));
    }
    cancellation.check()?;
    let stack_table = table.read();
    let frames = |(stack, _): &(StackId, i64)| stack_table.stack(*stack).map_or(1, <[u32]>::len);
    let nodes: usize = merged.sums.values.iter().map(frames).sum();
    memory.try_grow(nodes.min(stack_table.paths().count()) * SHOWN_BYTES)?;
    Ok(Leaves {
        values,
        _memory: memory,
    })
}

fn tree_by(merged: &MergedStacks, detail: Detail, cancellation: &Cancellation) -> Result<HeldTree, QueryError> {
    let memory = merged.runtime.reservation("tree of stacks");
    let table = merged.stacks.table.read();
    let mut tree = match detail {
        Detail::Names => Tree::by_name(),
        Detail::Files => Tree::by_file(),
    };
    // The tree looks up each frame once, not once for each stack.
    let mut known: Vec<Option<FrameId>> = vec![None; table.frame_count()];
    let mut path = Vec::new();
    let mut lost = 0i64;
    for (stack, value) in &merged.sums.values {
        let Some(frames) = table.stack(*stack) else {
            lost = lost.saturating_add(*value);
            continue;
        };
        let frames = merged.pgo.map_or(frames, |pgo| pgo.trim(&table, frames));
        path.clear();
        for index in frames {
            let frame = table.frame(*index);
            let slot = &mut known[*index as usize];
            let id = match slot {
                Some(id) => *id,
                None => *slot.insert(tree.intern(FrameRef {
                    function: table.name(*index),
                    file: frame.file,
                    line: frame.line,
                    mapping: frame.mapping,
                })),
            };
            path.push((id, frame.line));
        }
        if merged.pgo.is_some_and(|pgo| pgo.aggregate_callees)
            && let Some((_, line)) = path.first_mut()
        {
            *line = 0;
        }
        tree.insert_ids(&path, *value);
        cancellation.check()?;
        memory.try_resize(tree.bytes())?;
    }
    if lost != 0 {
        tracing::warn!(value = lost, "stacks of samples are not in the stacks table");
        tree.insert(
            [FrameRef {
                function: LOST_FRAME,
                ..FrameRef::default()
            }],
            lost,
        );
    }
    Ok(HeldTree { tree, memory })
}

/// Returns the sums of values by stack over all rows of `samples` that pass the filter, in ascending order of stack.
fn sum_stacks(
    context: &Arc<Context>,
    filter: &ScanFilter,
    moments: Option<Arc<HashSet<Moment>>>,
    spans: Option<HashSet<String>>,
    traces: Option<HashSet<String>>,
) -> BoxFuture<'static, Result<SortedSums, QueryError>> {
    if moments.is_none() && spans.is_none() && traces.is_none() {
        return sums::sorted_by_stack(context, filter);
    }
    let mut columns = vec![STACK, VALUE];
    if moments.is_some() {
        columns.extend([SERIES, TIME]);
    }
    let ids = match (spans, traces) {
        (Some(spans), _) => Some((SPAN_ID, spans)),
        (None, Some(traces)) => Some((TRACE_ID, traces)),
        (None, None) => None,
    };
    columns.extend(ids.iter().map(|(name, _)| *name));
    let (context, filter) = (context.clone(), filter.clone());
    let streams = read::open(&context.runtime, &context.snapshot, Table::Samples, &filter, &columns);
    Box::pin(async move {
        let sums = sums::fold(&context, streams?, move |sums: &mut Sums, batch| {
            let moments = match &moments {
                Some(moments) => Some((moments, schema::integers(batch, SERIES)?, schema::times(batch, TIME)?)),
                None => None,
            };
            let ids = match &ids {
                Some((name, requested)) => Some((requested, schema::texts(batch, name)?)),
                None => None,
            };
            sums.add_where(batch, |row| {
                moments.is_none_or(|(moments, series, times)| moments.contains(&(SeriesId(series[row]), times[row])))
                    && ids.is_none_or(|(requested, texts)| texts.is_valid(row) && requested.contains(texts.value(row)))
            })
        });
        sums.await?.sorted()
    })
}

fn id_set(ids: &[String], digits: usize, noun: &str) -> Result<Option<HashSet<String>>, QueryError> {
    if ids.is_empty() {
        return Ok(None);
    }
    let checked: Result<HashSet<String>, QueryError> = ids
        .iter()
        .map(|id| {
            if id.len() != digits {
                return Err(QueryError::invalid(format!(
                    "invalid {noun} id length: `{id}` must have {digits} digits"
                )));
            }
            if !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(QueryError::invalid(format!(
                    "invalid {noun} id: `{id}` is not hexadecimal"
                )));
            }
            Ok(id.to_ascii_lowercase())
        })
        .collect();
    checked.map(Some)
}
