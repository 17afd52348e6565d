//! Merged stacks as one pprof profile, with the functions, files, lines, binaries and addresses in the store.
//!
//! In: sums by stack with their frames. Out: the result of the caller's writer. Frames of inlined functions become
//! lines of one location.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::base::BoxFuture;
use crate::profile::pprof::{Builder, Function, Line, Location, Mapping, Profile, ValueType};
use crate::profile::{ProfileType, StackId};
use crate::query::blocking;
use crate::query::context::Context;
use crate::query::flame::{self, Merged};
use crate::query::stacks::{Frame, StackTable};
use crate::query::{QueryError, StackQuery};

/// Answers a query with the result of `write`.
pub(crate) fn merge_profile<T: Send + 'static>(
    context: Arc<Context>,
    query: StackQuery,
    write: fn(&Profile<'_>) -> T,
) -> BoxFuture<'static, Result<T, QueryError>> {
    Box::pin(async move {
        let period = period(&context, &query).await?;
        let merged = flame::merge(context, query.clone()).await?;
        blocking::run(move |cancellation| {
            cancellation.check()?;
            Ok(written(&merged, &query, period, write))
        })
        .await
    })
}

/// The longest period among the profiles of a query.
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

fn written<T>(merged: &Merged, query: &StackQuery, period: i64, write: fn(&Profile<'_>) -> T) -> T {
    let table = merged.stacks.table.read();
    let start = query.range.start_ms.saturating_mul(1_000_000);
    let length = query.range.end_ms.saturating_sub(query.range.start_ms);
    let about = About {
        kind: &query.profile_type,
        period,
        time_nanos: start,
        duration_nanos: length.saturating_mul(1_000_000),
    };
    write(&profile_of(&table, merged.sums.values.iter().copied(), &about))
}

/// Metadata of a profile besides its samples.
pub(crate) struct About<'a> {
    pub(crate) kind: &'a ProfileType,
    pub(crate) period: i64,
    pub(crate) time_nanos: i64,
    pub(crate) duration_nanos: i64,
}

/// Builds a profile from sums by stack.
pub(crate) fn profile_of<'a>(
    table: &'a StackTable,
    sums: impl Iterator<Item = (StackId, i64)>,
    about: &About<'a>,
) -> Profile<'a> {
    let kind = about.kind;
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
            period: about.period,
            time_nanos: about.time_nanos,
            duration_nanos: about.duration_nanos,
            ..Profile::default()
        }),
        locations: HashMap::new(),
        stack: Vec::new(),
    };
    for (stack, value) in sums.filter(|(_, value)| *value != 0) {
        export.sample(stack, value);
    }
    export.builder.finish()
}

struct Export<'a> {
    table: &'a StackTable,
    builder: Builder<'a>,
    /// Locations by their frames: the run of frames at one address, innermost first.
    locations: HashMap<&'a [u32], u32>,
    /// Locations of the current sample.
    stack: Vec<u32>,
}

impl<'a> Export<'a> {
    fn sample(&mut self, stack: StackId, value: i64) {
        let frames = self.table.stack(stack).unwrap_or_default();
        let mut start = 0;
        self.stack.clear();
        for (at, index) in frames.iter().enumerate() {
            let frame = self.table.frame(*index);
            // An inlined function belongs to the location of the function that it was inlined into, which comes next.
            let ends = !frame.inlined
                || frames
                    .get(at + 1)
                    .is_none_or(|next| self.table.frame(*next).address != frame.address);
            if ends {
                let location = self.location(&frames[start..=at]);
                self.stack.push(location);
                start = at + 1;
            }
        }
        self.builder.sample(self.stack.iter().copied(), [], &[value]);
    }

    fn location(&mut self, frames: &'a [u32]) -> u32 {
        if let Some(known) = self.locations.get(frames) {
            return *known;
        }
        let mut lines = Vec::with_capacity(frames.len());
        let mut address = 0;
        let mut mapping = Location::NO_MAPPING;
        for index in frames {
            let frame = self.table.frame(*index);
            address = frame.address as u64;
            mapping = self.mapping(frame);
            if !frame.function.is_empty() {
                let function = self.builder.function(Function {
                    name: &frame.function,
                    system_name: &frame.function,
                    file: &frame.file,
                    start_line: 0,
                });
                let line = frame.line;
                lines.push(Line { function, line });
            }
        }
        let index = self.builder.location(mapping, address, &lines);
        self.locations.insert(frames, index);
        index
    }

    fn mapping(&mut self, frame: &'a Frame) -> u32 {
        if frame.mapping.is_empty() && frame.build_id.is_empty() {
            return Location::NO_MAPPING;
        }
        self.builder.mapping(Mapping {
            file: &frame.mapping,
            build_id: &frame.build_id,
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
