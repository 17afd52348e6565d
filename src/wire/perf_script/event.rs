//! Groups samples by event. Different events count different quantities, so each event becomes a separate profile.

use crate::perf_script::Sample;
use crate::perf_script::stacks::Stacks;
use crate::perf_script::walk::{PerfError, Problem, walk};
use alluvium_profile::call_tree::{CallTree, LimitExceeded, Size, SizeLimit};
use alluvium_profile::decoded::Columns;
use alluvium_profile::pprof::{Profile, ValueType};

/// Maximum number of events in a file. Each becomes a profile.
const MAX_EVENTS: usize = 16;

/// Samples of one event. The values are the periods of the samples: nanoseconds for clocks, counts for all other
/// events. A sample without a period counts once.
pub(crate) struct Event {
    /// Value of the label `__name__`.
    pub(crate) name: String,
    kind: String,
    unit: &'static str,
    columns: Columns,
}

/// Reads a profile for each event. Together, the profiles are no larger than `max_size`.
pub(crate) fn read_events(text: &str, max_size: Size) -> Result<Vec<Event>, PerfError> {
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    walk(text, |sample, _| {
        if kinds.iter().all(|kind| kind.event != sample.event) {
            if kinds.len() >= MAX_EVENTS {
                return Err(Problem::TooManyEvents { limit: MAX_EVENTS });
            }
            kinds.push(Kind::of(sample));
        }
        Ok(())
    })?;
    let mut room = SizeLimit::new(max_size);
    let mut events = Vec::new();
    for kind in kinds {
        let mut stacks = Stacks::new(room);
        walk(text, |sample, below| {
            if sample.event != kind.event {
                return Ok(());
            }
            stacks.add(sample, below, sample.period.unwrap_or(1))
        })?;
        let (event, left) = kind.finish(stacks.into_tree()).map_err(|error| PerfError {
            line: text.lines().count(),
            problem: error.into(),
        })?;
        events.extend(event);
        room = left;
    }
    Ok(events)
}

impl Event {
    /// Returns the profile with these times in nanoseconds; 0 means unknown.
    pub(crate) fn columns(&self, time_nanos: i64, duration_nanos: i64) -> Columns {
        let kind = ValueType {
            kind: &self.kind,
            unit: self.unit,
        };
        // Commands accept short names such as `cpu` for profile types. A short name stands for a type with a period
        // type, so it would not select a profile without a period type.
        let period_type = match kind.kind {
            "samples" => ValueType {
                kind: "cpu",
                unit: "nanoseconds",
            },
            _ => kind,
        };
        Columns::copied(Profile {
            sample_types: vec![kind],
            period_type,
            time_nanos,
            duration_nanos,
            ..self.columns.get().clone()
        })
    }
}

/// Kind of the values of an event.
struct Kind<'a> {
    event: &'a str,
    has_periods: bool,
}

impl<'a> Kind<'a> {
    fn of(sample: &Sample<'a>) -> Self {
        Self {
            event: sample.event,
            has_periods: sample.period.is_some(),
        }
    }

    fn finish(self, tree: CallTree) -> Result<(Option<Event>, SizeLimit), LimitExceeded> {
        let (columns, left) = tree.into_columns(Profile::default(), 1)?;
        let Some(columns) = columns else {
            return Ok((None, left));
        };
        let name: String = self.event.chars().map(plain).collect();
        let is_cpu = ["cycles", "cpu_cycles", "instructions"]
            .iter()
            .any(|event| name.contains(event));
        let (name, kind, unit) = match self.event {
            _ if !self.has_periods => ("process_cpu", "samples", "count"),
            "cpu-clock" | "task-clock" => ("process_cpu", "cpu", "nanoseconds"),
            event if is_cpu => ("process_cpu", event, "count"),
            event => (name.as_str(), event, "count"),
        };
        let event = Event {
            name: name.to_owned(),
            kind: kind.to_owned(),
            unit,
            columns,
        };
        Ok((Some(event), left))
    }
}

/// Replaces a character that the name of a profile must not contain.
fn plain(letter: char) -> char {
    if letter.is_ascii_alphanumeric() { letter } else { '_' }
}
