//! The calls and values of one profile of speedscope.
//!
//! In: a profile, and the frames that all profiles of its file share. Out: calls in a tree, or an error with its path
//! in the JSON. In a `sampled` profile, the value of a stack is the weight of its sample. In an `evented` profile, it
//! is the time from the event that leads to the stack until the next event.

use hashbrown::HashMap;

use crate::ingest::speedscope::file::{Amount, Event, EventKind, Frame, OneProfile};
use alluvium_profile::call_tree::{CallTree, Calls, FrameId, LimitExceeded, NodeId, SizeLimit};

/// An error in a profile, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum StackError {
    /// The profile would be too large.
    #[error(transparent)]
    TooMany(#[from] LimitExceeded),
    /// The profile contradicts itself.
    #[error("{path}: {problem}")]
    Invalid {
        /// Path from the profile, such as `events[3].frame`.
        path: String,
        problem: String,
    },
}

/// Calls of profiles that are merged into one. A frame is looked up by name only once, however many stacks contain it.
pub(super) struct Stacks<'f> {
    pub tree: CallTree,
    frames: &'f [Frame<'f>],
    frame_ids: HashMap<u32, FrameId>,
}

impl<'f> Stacks<'f> {
    /// Creates an empty tree of calls for these frames.
    pub(super) fn new(room: SizeLimit, frames: &'f [Frame<'f>]) -> Self {
        Self {
            tree: CallTree::new(room),
            frames,
            frame_ids: HashMap::new(),
        }
    }

    /// Adds the stacks of a profile, with values times `scale`.
    pub(super) fn add(&mut self, profile: &OneProfile<'_>, scale: i64) -> Result<(), StackError> {
        match profile.kind.as_ref() {
            "evented" => self.add_events(profile, scale),
            "sampled" => self.add_samples(profile, scale),
            kind => Err(invalid(
                "type".to_owned(),
                format!("`{}` is neither `evented` nor `sampled`", shown(kind)),
            )),
        }
    }

    fn add_samples(&mut self, profile: &OneProfile<'_>, scale: i64) -> Result<(), StackError> {
        let (samples, weights) = (profile.samples.len(), profile.weights.len());
        if samples != weights {
            let problem = format!("there are {weights} weights for {samples} samples");
            return Err(invalid("weights".to_owned(), problem));
        }
        for (index, (stack, weight)) in profile.samples.stacks().zip(&profile.weights).enumerate() {
            let value = weight
                .scaled_difference(Amount::default(), scale)
                .filter(|value| *value >= 0);
            let value = value.ok_or_else(|| {
                let problem = "is negative, or does not fit in 64 bits".to_owned();
                invalid(format!("weights[{index}]"), problem)
            })?;
            let mut node = self.tree.root();
            for frame in stack {
                node = self
                    .call(node, *frame)?
                    .ok_or_else(|| invalid(format!("samples[{index}]"), self.no_frame(*frame)))?;
            }
            self.tree.add(node, value)?;
        }
        Ok(())
    }

    fn add_events(&mut self, profile: &OneProfile<'_>, scale: i64) -> Result<(), StackError> {
        // Open frames with their nodes.
        let mut open: Vec<(u32, NodeId)> = Vec::new();
        let mut last = i64::MIN;
        for (index, event) in profile.events.iter().enumerate() {
            let event_error = |part: &str, problem: String| invalid(format!("events[{index}]{part}"), problem);
            let Event { kind, frame, .. } = *event;
            let time = event.at.scaled_difference(profile.start_value, scale);
            let time = time.ok_or_else(|| {
                event_error(
                    ".at",
                    "is too far from the start: the distance does not fit in 64 bits".to_owned(),
                )
            })?;
            if time < last {
                return Err(event_error(".at", "is before the preceding event".to_owned()));
            }
            if let Some((_, node)) = open.last() {
                self.tree.add(*node, time.saturating_sub(last))?;
            }
            last = time;
            match (kind, open.last()) {
                (EventKind::Open, caller) => {
                    let caller = caller.map_or_else(|| self.tree.root(), |(_, node)| *node);
                    let node = self.call(caller, frame)?;
                    open.push((frame, node.ok_or_else(|| event_error(".frame", self.no_frame(frame)))?));
                }
                (EventKind::Close, Some((opened, _))) if *opened == frame => {
                    open.pop();
                }
                (EventKind::Close, Some((opened, _))) => {
                    let problem = format!("closes frame {frame} while frame {opened} is open");
                    return Err(event_error("", problem));
                }
                (EventKind::Close, None) => {
                    return Err(event_error("", format!("closes frame {frame} while none is open")));
                }
            }
        }
        // A call that is open after the last event lasts until the end of the profile.
        if let (Some((_, node)), Some(end)) = (open.last(), profile.end_value) {
            let end = end.scaled_difference(profile.start_value, scale).unwrap_or(last);
            self.tree.add(*node, end.saturating_sub(last).max(0))?;
        }
        Ok(())
    }

    /// Returns the node of a call, or `None` when there is no such frame.
    fn call(&mut self, caller: NodeId, index: u32) -> Result<Option<NodeId>, LimitExceeded> {
        let frame = match (self.frame_ids.get(&index).copied(), self.frames.get(index as usize)) {
            (Some(frame_id), _) => frame_id,
            (None, None) => return Ok(None),
            (None, Some(frame)) => {
                let line = frame.line.map_or(0, Amount::line);
                let file = frame.file.as_deref().unwrap_or_default();
                let new = self.tree.frame(&frame.name, file, line)?;
                self.frame_ids.insert(index, new);
                new
            }
        };
        self.tree.call_frame(caller, frame).map(Some)
    }

    fn no_frame(&self, index: u32) -> String {
        format!("there is no frame {index}, `shared.frames` has {}", self.frames.len())
    }
}

/// Returns the beginning of a text, for an error.
pub(super) fn shown(text: &str) -> &str {
    text.get(..text.floor_char_boundary(100)).unwrap_or_default()
}

fn invalid(path: String, problem: String) -> StackError {
    StackError::Invalid { path, problem }
}
