//! Calls of a trace that begin and end (events `B` and `E`), as py-spy writes them: the time of each call is that until
//! the next event of its thread.

use std::borrow::Cow;

use hashbrown::HashMap;
use serde::Deserialize;

use crate::profile::call_tree::{CallTree, Calls, NodeId, Room, Size, TooMany};
use crate::wire::files::imported::{ImportedProfile, Meaning};

const MICROSECOND_NANOS: f64 = 1e3;

/// The calls of all threads.
pub(super) struct Durations<'a> {
    tree: CallTree,
    threads: HashMap<(&'a str, &'a str), Thread>,
    /// The first limit that was met: nothing is added behind it.
    problem: Option<TooMany>,
}

/// A thread with calls that have not ended.
#[derive(Default)]
struct Thread {
    calls: Vec<NodeId>,
    /// Microseconds at the last event.
    since: f64,
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
            threads: HashMap::new(),
            problem: None,
        }
    }
}

impl<'a> Durations<'a> {
    /// A thread, which is its process and its id, begins a call. Time and place are JSON as it stands in the file.
    pub(super) fn begin(&mut self, thread: (&'a str, &'a str), time: &str, name: &str, place: &str) {
        let place = serde_json::from_str::<Place<'_>>(place).unwrap_or_default();
        self.add(thread, time, |tree, thread| {
            let caller = thread.calls.last().copied().unwrap_or(tree.root());
            let frame = tree.frame(name, &place.filename, place.line.unwrap_or(0).max(0))?;
            thread.calls.push(tree.call_frame(caller, frame)?);
            Ok(())
        });
    }

    /// The call that a thread began last ends.
    pub(super) fn end(&mut self, thread: (&'a str, &'a str), time: &str) {
        self.add(thread, time, |_, thread| {
            thread.calls.pop();
            Ok(())
        });
    }

    /// Adds the time until now to the innermost call of a thread, then changes its calls.
    fn add(
        &mut self,
        thread: (&'a str, &'a str),
        time: &str,
        change: impl FnOnce(&mut CallTree, &mut Thread) -> Result<(), TooMany>,
    ) {
        let Ok(time) = time.parse::<f64>() else { return };
        if self.problem.is_some() {
            return;
        }
        let thread = self.threads.entry(thread).or_default();
        let nanos = ((time - thread.since) * MICROSECOND_NANOS).round().max(0.0) as i64;
        let added = match thread.calls.last() {
            Some(call) => self.tree.add(*call, nanos),
            None => Ok(()),
        };
        thread.since = time;
        self.problem = added.and_then(|()| change(&mut self.tree, thread)).err();
    }

    /// The calls as a profile; `None` when there is none.
    pub(super) fn finish(self) -> Result<Option<ImportedProfile>, TooMany> {
        if let Some(problem) = self.problem {
            return Err(problem);
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
