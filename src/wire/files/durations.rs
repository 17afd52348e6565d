//! Traces in which calls begin and end (events `B` and `E`), as py-spy writes them. The time between two events of a
//! thread belongs to the innermost open call.

use std::borrow::Cow;

use serde::Deserialize;
use std::collections::BTreeMap;

use crate::files::imported::{ImportedProfile, Meaning};
use alluvium_profile::call_tree::{CallTree, Calls, FrameId, LimitExceeded, NodeId, Size, SizeLimit};

const MICROSECOND_NANOS: f64 = 1e3;

/// The calls of all threads.
pub(super) struct Durations<'a> {
    tree: CallTree,
    threads: BTreeMap<(&'a str, &'a str), Vec<Event>>,
    /// The first limit that was exceeded, if any. `finish` returns it as an error.
    problem: Option<LimitExceeded>,
}

/// An event: a call begins, or the innermost call ends.
struct Event {
    /// Time in microseconds. Events in a file may come in any order.
    time: f64,
    frame: Option<FrameId>,
}

/// Position of a call in the source, from `args`.
#[derive(Deserialize, Default)]
struct SourceLocation<'a> {
    #[serde(borrow, default)]
    filename: Cow<'a, str>,
    #[serde(default)]
    line: Option<i64>,
}

impl Default for Durations<'_> {
    fn default() -> Self {
        Self {
            tree: CallTree::new(SizeLimit::new(Size::MAX)),
            threads: BTreeMap::new(),
            problem: None,
        }
    }
}

impl<'a> Durations<'a> {
    /// Begins a call in a thread, which is identified by process and thread id. `time` and `args` are JSON as in the
    /// file.
    pub(super) fn begin(&mut self, thread: (&'a str, &'a str), time: &str, name: &str, args: &str) {
        let Ok(time) = time.parse::<f64>() else { return };
        if self.problem.is_some() {
            return;
        }
        let location = serde_json::from_str::<SourceLocation<'_>>(args).unwrap_or_default();
        match self
            .tree
            .frame(name, &location.filename, location.line.unwrap_or(0).max(0))
        {
            Ok(frame) => self.threads.entry(thread).or_default().push(Event {
                time,
                frame: Some(frame),
            }),
            Err(problem) => self.problem = Some(problem),
        }
    }

    /// Ends the innermost call of a thread.
    pub(super) fn end(&mut self, thread: (&'a str, &'a str), time: &str) {
        if let Ok(time) = time.parse::<f64>() {
            self.threads
                .entry(thread)
                .or_default()
                .push(Event { time, frame: None });
        }
    }

    /// Returns the calls as a profile, or `None` when there are none.
    pub(super) fn finish(mut self) -> Result<Option<ImportedProfile>, LimitExceeded> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        for mut events in std::mem::take(&mut self.threads).into_values() {
            // Events with the same time stay in the order of the file.
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

/// Adds the time between two events of a thread to the innermost open call.
fn add(tree: &mut CallTree, events: &[Event]) -> Result<(), LimitExceeded> {
    let mut calls: Vec<NodeId> = Vec::new();
    let mut last_time = 0.0;
    for event in events {
        let nanos = ((event.time - last_time) * MICROSECOND_NANOS).round().max(0.0) as i64;
        if let Some(call) = calls.last() {
            tree.add(*call, nanos)?;
        }
        last_time = event.time;
        if let Some(frame) = event.frame {
            let caller = calls.last().copied().unwrap_or(tree.root());
            calls.push(tree.call_frame(caller, frame)?);
        } else {
            calls.pop();
        }
    }
    Ok(())
}
