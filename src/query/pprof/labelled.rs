//! Reads the samples of one profile with their labels, so that an export of the profile gives the labels back.
//!
//! In: a query for one profile id. Out: values by stack and set of labels. The labels of a sample are those labels of
//! its series that not all series of the profile have, and the ids of its span and trace. If all samples have a label,
//! it cannot be told from a label of the profile.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, StringArray};
use arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::HashMap;

use crate::query::common::blocking;
use crate::query::common::error::QueryError;
use crate::query::common::types::StackQuery;
use crate::query::common::{checked, stream};
use crate::query::decoded::context::Context;
use crate::query::decoded::labels::SeriesLabels;
use crate::query::decoded::stacks::Loaded;
use crate::query::scan::read;
use crate::query::series::{moments, stored_profiles};
use crate::query::stacks::flame;
use crate::query::stacks::selector::StackSelector;
use crate::store::common::schema;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::{SERIES, SPAN_ID, STACK, TIME, TRACE_ID, VALUE};
use alluvium_base::BoxFuture;
use alluvium_profile::pprof::SampleLabel;
use alluvium_profile::{Labels, SeriesId, StackId};

/// Memory in bytes of a sum with its key, and of a label in a set.
const SUM_BYTES: usize = 128;
const LABEL_BYTES: usize = 48;

/// A label that an exported sample has. Numbers have no unit.
enum Label {
    Text(Arc<str>, Arc<str>),
    Number(Arc<str>, i64),
}

impl Label {
    fn borrowed(&self) -> SampleLabel<'_> {
        match self {
            Self::Text(name, value) => SampleLabel::Text(name, value),
            Self::Number(name, number) => SampleLabel::Number(name, *number, ""),
        }
    }
}

/// Sums of values by stack and set of labels. Their memory is charged to the query until this value is dropped.
pub(super) struct LabelledSums {
    /// Stack, index of the set of labels, and value, in ascending order of stack.
    pub(super) sums: Vec<(StackId, u32, i64)>,
    pub(super) stacks: Loaded,
    sets: Vec<Vec<Label>>,
    _memory: MemoryReservation,
}

impl LabelledSums {
    /// Returns the labels of each set.
    pub(super) fn sets(&self) -> Vec<Vec<SampleLabel<'_>>> {
        let sets = self.sets.iter();
        sets.map(|set| set.iter().map(Label::borrowed).collect()).collect()
    }
}

/// The series of a sample, its span and its trace.
type Origin = (SeriesId, Option<Arc<str>>, Option<Arc<str>>);

/// Sums in progress. Their memory is charged to the query.
struct Sums {
    values: HashMap<(StackId, Origin), i64>,
    memory: MemoryReservation,
}

/// Returns true if the export of a query gives labels back: those of one profile, if the query changes no stacks and
/// selects no spans.
pub(super) fn is_wanted(query: &StackQuery) -> bool {
    let selects_samples = !query.span_ids.is_empty() || !query.trace_ids.is_empty();
    query.profile_ids.len() == 1 && !selects_samples && query.go_pgo.is_none() && query.pprof_nodes == 0
}

/// Reads the samples of the profile that a query selects.
pub(super) fn load(context: Arc<Context>, query: StackQuery) -> BoxFuture<'static, Result<LabelledSums, QueryError>> {
    Box::pin(async move {
        let time = query.range.micros();
        let mut filter = flame::filter(&context, &query).await?;
        let selected = Arc::new(moments::by_ids(&context, &filter, &query.profile_ids).await?);
        let series: HashSet<SeriesId> = selected.iter().map(|(series, _)| *series).collect();
        filter.series = Some(Arc::new(series));
        let columns = [SERIES, TIME, STACK, VALUE, SPAN_ID, TRACE_ID];
        let streams = read::open(&context.runtime, &context.snapshot, Table::Samples, &filter, &columns)?;
        let make = || Sums {
            values: HashMap::new(),
            memory: context.runtime.reservation("labelled samples"),
        };
        let parts = stream::fold(streams, make, move |sums: &mut Sums, batch| {
            let (series, times) = (schema::integers(batch, SERIES)?, schema::times(batch, TIME)?);
            sums.add(batch, |row| selected.contains(&(SeriesId(series[row]), times[row])))
        });
        let mut parts = parts.await?.into_iter();
        let mut all = parts.next().unwrap_or_else(make);
        for part in parts {
            for (key, value) in part.values {
                checked::add(all.values.entry(key).or_default(), value)?;
            }
            all.charge()?;
        }
        checked::check_total(all.values.values().copied())?;
        let labels = context.labels(time).await?;
        let stacks = all.values.keys().map(|(stack, _)| *stack).collect::<HashSet<StackId>>();
        let stacks = context.frames(time, stacks.into_iter().collect()).await?;
        let memory = context.runtime.reservation("frames of a filter");
        let finished = blocking::run(move |cancellation| {
            if !query.call_site.is_empty() || !query.frames.is_empty() {
                let table = stacks.table.read();
                let mut selector = StackSelector::new(&table, &query.call_site, &query.frames, memory);
                let mut selected = HashSet::new();
                for (stack, _) in all.values.keys() {
                    cancellation.check()?;
                    if selector.selects(*stack)? {
                        selected.insert(*stack);
                    }
                }
                all.values.retain(|(stack, _), _| selected.contains(stack));
            }
            all.finish(stacks, &labels, &query.numeric_labels)
        });
        finished.await
    })
}

impl Sums {
    /// Adds the rows of a batch for which `keep` is true.
    fn add(&mut self, batch: &RecordBatch, keep: impl Fn(usize) -> bool) -> Result<(), QueryError> {
        let (series, stacks) = (schema::integers(batch, SERIES)?, schema::integers(batch, STACK)?);
        let values = schema::integers(batch, VALUE)?;
        let (spans, traces) = (schema::texts(batch, SPAN_ID)?, schema::texts(batch, TRACE_ID)?);
        for row in (0..batch.num_rows()).filter(|row| keep(*row)) {
            let origin = (SeriesId(series[row]), text(spans, row), text(traces, row));
            let sum = self.values.entry((StackId(stacks[row]), origin)).or_default();
            checked::add(sum, values[row])?;
        }
        self.charge()
    }

    fn charge(&self) -> Result<(), QueryError> {
        Ok(self.memory.try_resize(self.values.capacity() * SUM_BYTES)?)
    }

    fn finish(
        self,
        stacks: Loaded,
        labels: &SeriesLabels,
        numeric_labels: &[String],
    ) -> Result<LabelledSums, QueryError> {
        let Self { values, memory } = self;
        let mut values: Vec<((StackId, Origin), i64)> = values.into_iter().collect();
        values.sort_unstable();
        let series: HashSet<SeriesId> = values.iter().map(|((_, (series, ..)), _)| *series).collect();
        let shared = stored_profiles::common(series.iter().filter_map(|series| labels.get(series)));
        let of_series: HashMap<SeriesId, Labels> = series
            .into_iter()
            .filter_map(|series| Some((series, labels.get(&series)?.filtered(|name| shared.get(name).is_none()))))
            .collect();
        let mut index: HashMap<Origin, u32> = HashMap::new();
        let mut sets: Vec<Vec<Label>> = Vec::new();
        let mut sums = Vec::with_capacity(values.len());
        for ((stack, origin), value) in values {
            let set = if let Some(set) = index.get(&origin) {
                *set
            } else {
                let (series, span, trace) = &origin;
                let ids = [("span_id", span.as_ref()), ("trace_id", trace.as_ref())];
                let set = set_of(of_series.get(series), ids, numeric_labels);
                memory.try_grow(set.len() * LABEL_BYTES)?;
                let number = sets.len() as u32;
                sets.push(set);
                index.insert(origin, number);
                number
            };
            sums.push((stack, set, value));
        }
        Ok(LabelledSums {
            sums,
            stacks,
            sets,
            _memory: memory,
        })
    }
}

/// Returns the labels of a sample. A label in `numeric_labels` is a number again.
fn set_of(labels: Option<&Labels>, ids: [(&str, Option<&Arc<str>>); 2], numeric_labels: &[String]) -> Vec<Label> {
    let labels = labels.into_iter().flat_map(Labels::iter).map(|(name, value)| {
        let number = value
            .parse()
            .ok()
            .filter(|_| numeric_labels.iter().any(|numeric| numeric == name));
        match number {
            Some(number) => Label::Number(name.into(), number),
            None => Label::Text(name.into(), value.into()),
        }
    });
    let ids = ids
        .into_iter()
        .filter_map(|(name, id)| Some(Label::Text(name.into(), id?.clone())));
    labels.chain(ids).collect()
}

fn text(texts: &StringArray, row: usize) -> Option<Arc<str>> {
    texts.is_valid(row).then(|| texts.value(row).into())
}
