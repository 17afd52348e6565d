//! Reads the events of a chunk: adds samples to the sums over all chunks, and stores the settings that are used.

use hashbrown::HashMap;

use crate::jfr::budget::Budget;
use crate::jfr::chunk::{Chunk, HEADER_BYTES};
use crate::jfr::constants::Constants;
use crate::jfr::error::{JfrError, JfrErrorKind};
use crate::jfr::kinds::Kind;
use crate::jfr::lookup::{Lookup, State};
use crate::jfr::reader::Reader;
use crate::jfr::samples::{Correlation, Samples};
use crate::jfr::settings::{SettingEvent, Settings};
use crate::jfr::types::{FieldSelection, Types};

/// Meaning of an event type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// One sample of the stack of a thread.
    Execution,
    /// One or several consecutive samples of a thread with the same stack.
    WallClock,
    /// One sample of the kind. Its first value is 1. Its second value is its amount, or 0 for [`Amount::None`].
    One(Kind, Amount),
    Setting,
}

/// Unit in which an event states the amount of its sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Amount {
    None,
    Bytes,
    Ticks,
}

/// For each event type: its name, its meaning, and the field that contains the amount (empty if there is none).
const EVENTS: [(&str, Event, &str); 10] = [
    (EXECUTION, Event::Execution, ""),
    ("profiler.WallClockSample", Event::WallClock, "samples"),
    (
        "jdk.ObjectAllocationInNewTLAB",
        Event::One(Kind::AllocInNewTlab, Amount::Bytes),
        "tlabSize",
    ),
    (
        "jdk.ObjectAllocationOutsideTLAB",
        Event::One(Kind::AllocOutsideTlab, Amount::Bytes),
        "allocationSize",
    ),
    (
        "jdk.ObjectAllocationSample",
        Event::One(Kind::AllocSample, Amount::Bytes),
        "weight",
    ),
    (
        "jdk.JavaMonitorEnter",
        Event::One(Kind::MonitorEnter, Amount::Ticks),
        "duration",
    ),
    (
        "jdk.ThreadPark",
        Event::One(Kind::ThreadPark, Amount::Ticks),
        "duration",
    ),
    ("profiler.LiveObject", Event::One(Kind::LiveObject, Amount::None), ""),
    ("profiler.Malloc", Event::One(Kind::Malloc, Amount::Bytes), "size"),
    ("jdk.ActiveSetting", Event::Setting, ""),
];

/// Name of the event type whose setting `period` is the sampling interval.
const EXECUTION: &str = "jdk.ExecutionSample";

/// Fields of an event that are read as numbers. The field with the amount replaces the last field.
const FIELDS: [&str; 8] = [
    "stackTrace",
    "state",
    "contextId",
    "spanId",
    "spanName",
    "traceIdHi",
    "traceIdLo",
    "",
];

/// Fields of a setting: the number of the event type that it applies to, and two texts.
const SETTING: [&str; 3] = ["id", "name", "value"];

/// Results accumulated over all chunks.
pub(super) struct Sums {
    pub samples: Samples,
    pub settings: Settings,
    /// Budget for data that stays after a chunk.
    pub budget: Budget,
}

/// Adds the samples of a chunk to `sums`. `chunk_budget` is the budget for data that is freed after the chunk.
pub(super) fn read(
    file: &[u8],
    chunk: &Chunk,
    types: &Types,
    constants: &Constants,
    sums: &mut Sums,
    chunk_budget: &mut Budget,
) -> Result<(), JfrError> {
    let Sums {
        samples,
        settings,
        budget: recording_budget,
    } = sums;
    let mut known: HashMap<u64, (Event, FieldSelection)> = HashMap::new();
    let mut execution = None;
    for (id, class) in types.iter() {
        let Some((_, event, amount)) = EVENTS.iter().find(|(name, ..)| **name == *class.name) else {
            continue;
        };
        if &*class.name == EXECUTION {
            execution = Some(id);
        }
        let mut fields = FIELDS;
        fields[FIELDS.len() - 1] = amount;
        let fields: &[&str] = if *event == Event::Setting { &SETTING } else { &fields };
        if let Some(selection) = types.select(id, fields) {
            known.insert(id, (*event, selection));
        }
    }
    let mut lookup = Lookup::new(file, chunk, types, constants);
    let mut reader = chunk.reader(file, chunk.start + HEADER_BYTES);
    while reader.remaining() > 0 {
        let origin = reader;
        let size = reader.number()?;
        if size < 2 {
            return Err(origin.error(JfrErrorKind::EventSize(size)));
        }
        let mut next = origin;
        let mut event = next.part(size)?.with_position(reader.position());
        reader = next;
        let id = event.number()?;
        let Some((kind, selection)) = known.get(&id) else {
            continue;
        };
        let mut numbers = [0; FIELDS.len()];
        types.read(&mut event, selection, chunk_budget, &mut numbers)?;
        if *kind == Event::Setting {
            setting(&origin, numbers, execution, &lookup, settings, chunk_budget)?;
            continue;
        }
        let [stack, thread_state, context, span, span_name, high, low, amount] = numbers;
        let correlation = Correlation {
            context,
            span,
            span_name,
            trace: [high, low],
        };
        let Some(stack) = lookup.stack(stack, samples, recording_budget, chunk_budget)? else {
            settings.lost += 1;
            continue;
        };
        let mut add = |kind, values| {
            samples
                .add(kind, stack, correlation, values, recording_budget)
                .map_err(|kind| origin.error(kind))
        };
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        match *kind {
            Event::Execution => {
                if !matches!(
                    lookup.thread_state(thread_state, chunk_budget)?,
                    State::Sleeping | State::Unknown
                ) {
                    add(Kind::Cpu, [1, 0])?;
                }
                if settings.is_wall() {
                    add(Kind::Wall, [1, 0])?;
                }
            }
            Event::WallClock => {
                if settings.is_wall() && lookup.thread_state(thread_state, chunk_budget)? == State::Runnable {
                    add(Kind::Cpu, [number(amount), 0])?;
                }
                add(Kind::Wall, [number(amount), 0])?;
            }
            Event::One(kind, Amount::None) => add(kind, [1, 0])?,
            Event::One(kind, Amount::Bytes) => add(kind, [1, number(amount)])?,
            Event::One(kind, Amount::Ticks) => add(kind, [1, chunk.nanos(amount)])?,
            Event::Setting => {}
        }
    }
    Ok(())
}

/// Stores a setting if it is used.
fn setting(
    origin: &Reader<'_>,
    numbers: [u64; FIELDS.len()],
    execution: Option<u64>,
    lookup: &Lookup<'_>,
    settings: &mut Settings,
    chunk_budget: &mut Budget,
) -> Result<(), JfrError> {
    let [id, name, value, ..] = numbers;
    let mut text = |position: u64| match position {
        0 => Ok(String::new()),
        position => lookup.short_text(origin.with_position(position as usize).text()?, chunk_budget),
    };
    let event = if execution == Some(id) {
        SettingEvent::Execution
    } else {
        SettingEvent::Other
    };
    settings.set(event, &text(name)?, &text(value)?);
    Ok(())
}
