//! Calls of a trace that begin and end (events `B` and `E`), as py-spy writes them: the time of each call is that until
//! the next event of its thread.

use std::borrow::Cow;

use serde::Deserialize;
use std::collections::BTreeMap;

use crate::profile::call_tree::{CallTree, Calls, FrameId, NodeId, Room, Size, TooMany};
use crate::wire::files::imported::{ImportedProfile, Meaning};

const MICROSECOND_NANOS: f64 = 1e3;

/// The calls of all threads.
pub(super) struct Durations<'a> {
    tree: CallTree,
    threads: BTreeMap<(&'a str, &'a str), Vec<Event>>,
    /// The first limit that was met: nothing is added behind it.
    problem: Option<TooMany>,
}

/// A call begins, or the innermost one ends.
struct Event {
    /// Microseconds. Events may be in any order in a file.
    time: f64,
    begun: Option<FrameId>,
}

/// Place of a call in the source, as `args` say it.
#[derive(Deserialize, Default)]
struct Place<'a> {
    #[serde(borrow, default)]
    filename: Cow<'a, str>,
    #[serde(default)]
    line: Option<i64>,
}

impl Default for Durations<'_> {
    fn default() -> Self {
        Self {
            tree: CallTree::new(Room::new(Size::MOST)),
            threads: BTreeMap::new(),
            problem: None,
        }
    }
}

impl<'a> Durations<'a> {
    /// A thread, which is its process and its id, begins a call. Time and place are JSON as it stands in the file.
    pub(super) fn begin(&mut self, thread: (&'a str, &'a str), time: &str, name: &str, place: &str) {
        let Ok(time) = time.parse::<f64>() else { return };
        if self.problem.is_some() {
            return;
        }
        let place = serde_json::from_str::<Place<'_>>(place).unwrap_or_default();
        match self.tree.frame(name, &place.filename, place.line.unwrap_or(0).max(0)) {
            Ok(frame) => self.threads.entry(thread).or_default().push(Event {
                time,
                begun: Some(frame),
            }),
            Err(problem) => self.problem = Some(problem),
        }
    }

    /// The call that a thread began last ends.
    pub(super) fn end(&mut self, thread: (&'a str, &'a str), time: &str) {
        if let Ok(time) = time.parse::<f64>() {
            self.threads
                .entry(thread)
                .or_default()
                .push(Event { time, begun: None });
        }
    }

    /// The calls as a profile; `None` when there is none.
    pub(super) fn finish(mut self) -> Result<Option<ImportedProfile>, TooMany> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        for mut events in std::mem::take(&mut self.threads).into_values() {
            // Events of one time stay in the order of the file.
            events.sort_by(|one, other| one.time.total_cmp(&other.time));
            add(&mut self.tree, &events)?;
        }
        let meaning = Meaning {
            name: "wall",
            kind: "wall",
            unit: "nanoseconds",
            ..Meaning::default()
        };
        ImportedProfile::of_tree(self.tree, meaning)
    }
}

/// Adds the time between the events of a thread to the innermost call.
fn add(tree: &mut CallTree, events: &[Event]) -> Result<(), TooMany> {
    let mut calls: Vec<NodeId> = Vec::new();
    let mut since = 0.0;
    for event in events {
        let nanos = ((event.time - since) * MICROSECOND_NANOS).round().max(0.0) as i64;
        if let Some(call) = calls.last() {
            tree.add(*call, nanos)?;
        }
        since = event.time;
        if let Some(frame) = event.begun {
            let caller = calls.last().copied().unwrap_or(tree.root());
            calls.push(tree.call_frame(caller, frame)?);
        } else {
            calls.pop();
        }
    }
    Ok(())
}
