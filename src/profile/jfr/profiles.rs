//! Converts the sums of a recording to one profile per kind.
//!
//! The memory of all profiles is charged to the budget before the first profile is built.

use bytes::Bytes;

use crate::decoded::Columns;
use crate::jfr::budget::Budget;
use crate::jfr::error::{JfrError, JfrErrorKind};
use crate::jfr::kinds::Kind;
use crate::jfr::samples::{Correlation, Row, Samples};
use crate::jfr::snapshot::Snapshot;
use crate::jfr::texts::{Ends, TextId};
use crate::pprof::{Builder, Function, Line, Location, Mapping, Profile, SampleLabel};

/// A profile made from a recording.
#[derive(Debug)]
pub struct JfrProfile {
    /// Value of the label `__name__`.
    pub name: &'static str,
    /// Stacks, labels and values.
    pub columns: Columns,
}

/// Facts about a recording that are not in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingFacts {
    /// Start of the collection as Unix time in nanoseconds.
    pub time_nanos: i64,
    /// Length of the collection in nanoseconds.
    pub duration_nanos: i64,
    /// Time that one sample of a CPU or wall clock profile stands for, in nanoseconds.
    pub period_nanos: i64,
}

/// The data that profiles are built from.
pub(super) struct Parts {
    texts: Bytes,
    ends: Ends,
    samples: Samples,
    /// Labels of all label sets, one set after the other.
    labels: Vec<(TextId, TextId)>,
    /// For each correlation, the end of its label set in `labels`.
    label_ends: Vec<u32>,
}

/// Memory of a function with a line in a profile, in bytes: location, line, function and their index entries. This and
/// the next constants count the memory twice, because a list that grows doubles its capacity.
const FUNCTION_LINE_BYTES: usize = 2 * (size_of::<Location>() + size_of::<Line>() + size_of::<Function<'_>>() + 16);
/// Memory of a sample without its stack: starts of stack and labels, and two values.
const SAMPLE_BYTES: usize = 2 * (8 + 16);
/// Memory of a label or of a frame of a sample.
const LABEL_BYTES: usize = 2 * size_of::<SampleLabel<'_>>();
const FRAME_BYTES: usize = 2 * size_of::<u32>();

impl Parts {
    /// Resolves the names of labels, and sorts rows by kind.
    pub(super) fn new(
        mut samples: Samples,
        snapshot: &Snapshot<'_>,
        mut budget: Budget,
        end: usize,
    ) -> Result<Self, JfrError> {
        samples.forget_indices();
        let error = |kind| JfrError { offset: end, kind };
        let mut labels = Vec::new();
        let mut label_ends = Vec::new();
        for correlation in std::mem::take(&mut samples.correlations) {
            correlation_labels(correlation, snapshot, &mut samples, &mut budget, &mut labels).map_err(error)?;
            label_ends.push(labels.len() as u32);
        }
        samples.rows.sort_by_key(|row| row.kind);
        let (texts, ends) = std::mem::take(&mut samples.texts).finish();
        let parts = Self {
            texts: texts.into(),
            ends,
            samples,
            labels,
            label_ends,
        };
        parts.charge(&mut budget).map_err(error)?;
        Ok(parts)
    }

    /// Charges the memory of all profiles.
    fn charge(&self, budget: &mut Budget) -> Result<(), JfrErrorKind> {
        let mut last_kind = vec![None; self.samples.function_lines.len()];
        for row in &self.samples.rows {
            let stack = self.stack(row);
            let labels = self.labels_of(row.correlation);
            budget.charge(SAMPLE_BYTES + stack.len() * FRAME_BYTES + labels.len() * LABEL_BYTES)?;
            for index in stack {
                let last = &mut last_kind[*index as usize];
                if *last != Some(row.kind) {
                    budget.charge(FUNCTION_LINE_BYTES)?;
                    *last = Some(row.kind);
                }
            }
        }
        Ok(())
    }

    /// Returns the stack of a row, leaf first, as indices in [`Samples::function_lines`].
    fn stack(&self, row: &Row) -> &[u32] {
        let stack = self.samples.stacks.get(row.stack as usize).cloned().unwrap_or_default();
        let stack = stack.start as usize..stack.end as usize;
        self.samples.frames.get(stack).unwrap_or_default()
    }

    fn labels_of(&self, correlation: u32) -> &[(TextId, TextId)] {
        let end = |index: Option<usize>| index.and_then(|index| self.label_ends.get(index)).copied().unwrap_or(0);
        let index = correlation as usize;
        let range = end(index.checked_sub(1)) as usize..end(Some(index)) as usize;
        self.labels.get(range).unwrap_or_default()
    }

    /// Builds one profile for each kind that has samples.
    pub(super) fn profiles(&self, facts: &RecordingFacts) -> Vec<JfrProfile> {
        let of_kind = |kind| {
            let rows = &self.samples.rows;
            let start = rows.partition_point(|row| row.kind < kind);
            let end = rows.partition_point(|row| row.kind <= kind);
            let rows = rows.get(start..end).filter(|rows| !rows.is_empty())?;
            let columns = Columns::read(self.texts.clone(), |texts| {
                let texts = std::str::from_utf8(texts)?;
                Ok::<_, std::str::Utf8Error>(self.profile(kind, rows, facts, texts))
            });
            let name = kind.form().name;
            // The buffer was a string, so this cannot fail.
            columns.ok().map(|columns| JfrProfile { name, columns })
        };
        Kind::ALL.into_iter().filter_map(of_kind).collect()
    }

    fn profile<'a>(&self, kind: Kind, rows: &[Row], facts: &RecordingFacts, texts: &'a str) -> Profile<'a> {
        let form = kind.form();
        let period = if kind.is_time() { facts.period_nanos } else { 0 };
        let mut builder = Builder::new(Profile {
            sample_types: form.sample_types.to_vec(),
            period_type: form.period_type,
            period,
            time_nanos: facts.time_nanos,
            duration_nanos: facts.duration_nanos,
            ..Profile::default()
        });
        let mapping = builder.mapping(Mapping {
            has: [true, false, true, false],
            ..Mapping::default()
        });
        let text = |id| self.ends.text(texts, id);
        let mut locations = vec![None; self.samples.function_lines.len()];
        let mut stack = Vec::new();
        for row in rows {
            stack.clear();
            for index in self.stack(row) {
                let location = &mut locations[*index as usize];
                let location_index = *location.get_or_insert_with(|| {
                    let function_line = self.samples.function_lines[*index as usize];
                    let function = builder.function(Function {
                        name: text(function_line.function),
                        ..Function::default()
                    });
                    let line = i64::from(function_line.line);
                    builder.location(mapping, 0, &[Line { function, line }])
                });
                stack.push(location_index);
            }
            let labels = self.labels_of(row.correlation).iter();
            let labels = labels.map(|(name, value)| SampleLabel::Text(text(*name), text(*value)));
            let scale = if kind.is_time() { facts.period_nanos } else { 1 };
            let values = row.values.map(|value| value.saturating_mul(scale));
            builder.sample(stack.iter().copied(), labels, &values[..form.sample_types.len()]);
        }
        builder.finish()
    }
}

/// Adds the labels of a correlation: the labels of its context, its span and its trace.
fn correlation_labels(
    correlation: Correlation,
    snapshot: &Snapshot<'_>,
    samples: &mut Samples,
    budget: &mut Budget,
    labels: &mut Vec<(TextId, TextId)>,
) -> Result<(), JfrErrorKind> {
    let mut add = |name: &str, value: &str| {
        budget.charge(2 * size_of::<(TextId, TextId)>())?;
        let name = samples.texts.add(&[name], budget)?;
        labels.push((name, samples.texts.add(&[value], budget)?));
        Ok(())
    };
    for (name, value) in snapshot.labels(correlation.context) {
        add(name, value)?;
    }
    if correlation.span != 0 {
        add("profile_id", &format!("{:016x}", correlation.span))?;
    }
    if let Some(name) = snapshot.string(correlation.span_name) {
        add("span_name", name)?;
    }
    if correlation.trace != [0, 0] {
        let [high, low] = correlation.trace;
        add("trace_id", &format!("{high:016x}{low:016x}"))?;
    }
    Ok(())
}
