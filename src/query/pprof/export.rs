//! Builds one pprof profile from merged stacks, with the functions, files, lines, binaries and addresses in the store.
//!
//! In: sums by stack with their frames. Out: the result of the caller's writer. Frames of inlined functions become
//! lines of one location. The export of a single profile has the labels of its samples.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::query::common::blocking;
use crate::query::common::error::QueryError;
use crate::query::common::types::{GoPgo, StackQuery};
use crate::query::decoded::context::Context;
use crate::query::decoded::stack_table::{Frame, StackTable};
use crate::query::pprof::file_mappings::FileMappings;
use crate::query::pprof::labelled::LabelledSums;
use crate::query::pprof::{labelled, nodes};
use crate::query::stacks::flame;
use crate::query::stacks::flame::MergedStacks;
use alluvium_base::BoxFuture;
use alluvium_profile::pprof::{Builder, Function, Line, Location, Mapping, Profile, SampleLabel, ValueType};
use alluvium_profile::{ProfileType, StackId};

/// Merges the profiles of a query and returns the result of `write`.
pub(crate) fn merge_profile<T: Send + 'static>(
    context: Arc<Context>,
    query: StackQuery,
    write: fn(&Profile<'_>) -> T,
) -> BoxFuture<'static, Result<T, QueryError>> {
    Box::pin(async move {
        let period = period(&context, &query).await?;
        if labelled::is_wanted(&query) {
            let sums = labelled::load(context, query.clone()).await?;
            let written = blocking::run(move |cancellation| {
                cancellation.check()?;
                Ok(write_labelled(&sums, &query, period, write))
            });
            return written.await;
        }
        let merged = flame::merge(context, query.clone()).await?;
        blocking::run(move |cancellation| {
            cancellation.check()?;
            Ok(write_merged(&merged, &query, period, write))
        })
        .await
    })
}

/// Returns the longest period of the profiles of a query.
fn period(context: &Arc<Context>, query: &StackQuery) -> BoxFuture<'static, Result<i64, QueryError>> {
    let filter = flame::filter(context, query);
    let context = context.clone();
    Box::pin(async move {
        let filter = filter.await?;
        let chosen = context.totals(filter).await?;
        let periods = chosen.runs().filter_map(|run| run.longest_period(chosen.time()));
        Ok(periods.max().unwrap_or(0).max(0))
    })
}

fn write_merged<T>(merged: &MergedStacks, query: &StackQuery, period: i64, write: fn(&Profile<'_>) -> T) -> T {
    let table = merged.stacks.table.read();
    let metadata = ProfileMetadata {
        pgo: merged.pgo,
        max_nodes: query.pprof_nodes,
        ..metadata(query, period)
    };
    write(&profile_of(&table, merged.sums.values.iter().copied(), &metadata))
}

fn write_labelled<T>(sums: &LabelledSums, query: &StackQuery, period: i64, write: fn(&Profile<'_>) -> T) -> T {
    let table = sums.stacks.table.read();
    let sets = sums.sets();
    let labelled = sums.sums.iter();
    let labelled = labelled.map(|(stack, set, value)| (*stack, sets[*set as usize].as_slice(), *value));
    write(&labelled_profile_of(&table, labelled, &metadata(query, period)))
}

/// Returns the fields of the result of a query that changes no stacks.
fn metadata(query: &StackQuery, period: i64) -> ProfileMetadata<'_> {
    let length = query.range.end_ms.saturating_sub(query.range.start_ms);
    ProfileMetadata {
        kind: &query.profile_type,
        period,
        time_nanos: query.range.start_ms.saturating_mul(1_000_000),
        duration_nanos: length.saturating_mul(1_000_000),
        pgo: None,
        max_nodes: 0,
    }
}

/// The fields of a profile other than its samples, and the settings that shorten its stacks.
pub(crate) struct ProfileMetadata<'a> {
    pub(crate) kind: &'a ProfileType,
    pub(crate) period: i64,
    pub(crate) time_nanos: i64,
    pub(crate) duration_nanos: i64,
    /// How stacks are reduced for Go's compiler. `None` leaves the stacks unchanged.
    pub(crate) pgo: Option<GoPgo>,
    /// Approximate number of nodes of the call tree; 0 keeps all nodes.
    pub(crate) max_nodes: usize,
}

/// Builds a profile from sums by stack.
pub(crate) fn profile_of<'a>(
    table: &'a StackTable,
    sums: impl Iterator<Item = (StackId, i64)>,
    metadata: &ProfileMetadata<'a>,
) -> Profile<'a> {
    let without_labels: &[SampleLabel<'a>] = &[];
    labelled_profile_of(
        table,
        sums.map(|(stack, value)| (stack, without_labels, value)),
        metadata,
    )
}

/// Builds a profile from sums by stack and labels. If stacks are shortened for Go's compiler, their labels are omitted.
fn labelled_profile_of<'a, 'l>(
    table: &'a StackTable,
    sums: impl Iterator<Item = (StackId, &'l [SampleLabel<'a>], i64)>,
    metadata: &ProfileMetadata<'a>,
) -> Profile<'a>
where
    'a: 'l,
{
    let kind = metadata.kind;
    let mut export = Export {
        table,
        builder: Builder::new(Profile {
            sample_types: vec![ValueType {
                kind: &kind.sample_type,
                unit: &kind.sample_unit,
            }],
            period_type: ValueType {
                kind: &kind.period_type,
                unit: &kind.period_unit,
            },
            period: metadata.period,
            time_nanos: metadata.time_nanos,
            duration_nanos: metadata.duration_nanos,
            default_sample_type: &kind.sample_type,
            ..Profile::default()
        }),
        locations: HashMap::new(),
        stack: Vec::new(),
        files: FileMappings::default(),
        pgo: metadata.pgo,
        merged: BTreeMap::new(),
    };
    for (stack, labels, value) in sums.filter(|(_, _, value)| *value != 0) {
        export.sample(stack, labels, value);
    }
    for (stack, value) in std::mem::take(&mut export.merged) {
        export.builder.sample(stack, [], &[value]);
    }
    let mut profile = export.builder.finish();
    export.files.assign_ranges(&mut profile);
    if metadata.max_nodes > 0 {
        nodes::limit(&mut profile, metadata.max_nodes);
    }
    profile
}

struct Export<'a> {
    table: &'a StackTable,
    builder: Builder<'a>,
    /// Maps the consecutive frames at one address, innermost first, to the index of their location.
    locations: HashMap<&'a [u32], u32>,
    /// Locations of the current sample.
    stack: Vec<u32>,
    /// The mappings of frames whose address is an offset in a file.
    files: FileMappings,
    pgo: Option<GoPgo>,
    /// Sums of values by the locations of a sample. Several stacks may be equal after they were shortened for Go's
    /// compiler.
    merged: BTreeMap<Vec<u32>, i64>,
}

impl<'a> Export<'a> {
    fn sample(&mut self, stack: StackId, labels: &[SampleLabel<'a>], value: i64) {
        let frames = self.table.stack(stack).unwrap_or_default();
        let frames = self.pgo.map_or(frames, |pgo| pgo.trim(self.table, frames));
        let has_leaf_lines = self.pgo.is_none_or(|pgo| !pgo.aggregate_callees);
        let mut start = 0;
        self.stack.clear();
        for index in 0..frames.len() {
            if self.table.ends_location(frames, index) {
                let location_frames = &frames[start..=index];
                let location = if start > 0 || has_leaf_lines {
                    self.location(location_frames)
                } else {
                    // The innermost frame loses its line, but Go's compiler needs the lines at which the functions
                    // around it call. A location without address is not in `locations`. The builder merges equal
                    // locations.
                    self.build(location_frames, |depth, frame| {
                        (0, if depth == 0 { 0 } else { frame.line })
                    })
                };
                self.stack.push(location);
                start = index + 1;
            }
        }
        if self.pgo.is_none() {
            self.builder
                .sample(self.stack.iter().copied(), labels.iter().copied(), &[value]);
            return;
        }
        let sum = self.merged.entry(self.stack.clone()).or_default();
        *sum = sum.saturating_add(value);
    }

    fn location(&mut self, frames: &'a [u32]) -> u32 {
        if let Some(index) = self.locations.get(frames) {
            return *index;
        }
        let index = self.build(frames, |_, frame| (frame.address as u64, frame.line));
        self.locations.insert(frames, index);
        index
    }

    /// Adds the location of frames, innermost first. `locate` returns the address and the line of a frame; its first
    /// argument is the number of frames that are inlined into the frame.
    fn build(&mut self, frames: &'a [u32], locate: fn(usize, Frame<'_>) -> (u64, i64)) -> u32 {
        let mut lines = Vec::with_capacity(frames.len());
        let mut address = 0;
        let mut mapping = Location::NO_MAPPING;
        for (depth, index) in frames.iter().enumerate() {
            let frame = self.table.frame(*index);
            let line;
            (address, line) = locate(depth, frame);
            mapping = match frame.mapped.filter(|_| address != 0) {
                Some(offset) => self.files.mapping(
                    &mut self.builder,
                    Mapping {
                        file: frame.mapping,
                        build_id: frame.build_id,
                        offset,
                        ..Mapping::default()
                    },
                ),
                None => self.mapping(frame),
            };
            if !frame.function.is_empty() {
                let function = self.builder.function(Function {
                    name: frame.function,
                    system_name: frame.function,
                    file: frame.file,
                    start_line: i64::from(frame.start_line),
                });
                lines.push(Line { function, line });
            }
        }
        self.builder.location(mapping, address, &lines)
    }

    fn mapping(&mut self, frame: Frame<'a>) -> u32 {
        if frame.mapping.is_empty() && frame.build_id.is_empty() {
            return Location::NO_MAPPING;
        }
        self.builder.mapping(Mapping {
            file: frame.mapping,
            build_id: frame.build_id,
            has: [
                !frame.function.is_empty(),
                !frame.file.is_empty(),
                frame.line != 0,
                frame.inlined,
            ],
            ..Mapping::default()
        })
    }
}
