//! The output of `perf script`: a line for each sample, then its frames, the leaf first.
//!
//! Samples of different events are different profiles. Values are the periods of the samples, nanoseconds of clocks and
//! counts of all other events; a sample without a period counts once. The command is the outermost frame.

use hashbrown::HashMap;

use crate::profile::call_tree::{CallTree, Calls, FrameId, Room, Size, TooMany};
use crate::wire::files::error::FileError;
use crate::wire::files::imported::{FileFormat, ImportedProfile, Meaning};
use crate::wire::perf_script::{Frame, Sample};

/// Events of a file, each of which becomes a profile.
const MAX_EVENTS: usize = 16;
/// Frames of a stack; `perf record` takes 127 unless it is told otherwise.
const MAX_DEPTH: usize = 4096;
/// Frames that are remembered as they stand in the file: many may be one in the profile.
const MAX_KNOWN: usize = 1 << 17;
/// Lines that are looked at to recognise a file.
const LOOKED_AT: usize = 100;

/// True when the first line that is no comment is that of a sample.
pub(super) fn is_like(text: &str) -> bool {
    let mut lines = text.lines().take(LOOKED_AT);
    let first = lines.find(|line| !is_comment(line));
    first.and_then(Sample::of).is_some()
}

/// A profile for each event.
pub(super) fn read(text: &str) -> Result<Vec<ImportedProfile>, FileError> {
    let mut events: Vec<Event<'_>> = Vec::new();
    let mut open: Option<Open<'_>> = None;
    // The frames of the open sample, leaf first.
    let mut frames: Vec<Frame<'_>> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |problem: &dyn std::fmt::Display| {
            FileFormat::PerfScript.wrong(&format_args!("line {}: {problem}", index + 1))
        };
        if line.trim().is_empty() {
            close(&mut events, open.take(), &mut frames).map_err(|error| wrong(&error))?;
        } else if is_comment(line) {
            // Between samples there may be comments.
        } else if open.is_some() && line.starts_with([' ', '\t']) && Sample::of(line).is_none() {
            if frames.len() >= MAX_DEPTH {
                return Err(wrong(&format_args!("a stack has more than {MAX_DEPTH} frames")));
            }
            match (Frame::of(line), frames.last_mut()) {
                (Some(frame), _) => frames.push(frame),
                (None, Some(frame)) => frame.set_place(line.trim()),
                (None, None) => {}
            }
        } else {
            close(&mut events, open.take(), &mut frames).map_err(|error| wrong(&error))?;
            let sample = Sample::of(line).ok_or_else(|| wrong(&"it is not the first line of a sample"))?;
            let known = events.iter().position(|event| event.name == sample.event);
            let event = known.unwrap_or(events.len());
            if known.is_none() {
                if events.len() >= MAX_EVENTS {
                    return Err(wrong(&format_args!("there are more than {MAX_EVENTS} events")));
                }
                events.push(Event::new(&sample));
            }
            open = Some(Open {
                event,
                command: if sample.command.is_empty() {
                    "[unknown]"
                } else {
                    sample.command
                },
                value: sample.period.unwrap_or(1),
            });
            frames.extend(sample.frame);
        }
    }
    close(&mut events, open, &mut frames).map_err(|error| FileFormat::PerfScript.wrong(&error))?;
    let mut profiles = Vec::new();
    for event in events {
        let profile = event.finish().map_err(|error| FileFormat::PerfScript.wrong(&error))?;
        profiles.extend(profile);
    }
    Ok(profiles)
}

fn is_comment(line: &str) -> bool {
    line.starts_with('#') || line.trim().is_empty()
}

/// A sample whose frames are being read.
struct Open<'a> {
    event: usize,
    command: &'a str,
    value: i64,
}

/// Adds a sample to its event and leaves no frames for the next.
fn close<'a>(events: &mut [Event<'a>], open: Option<Open<'a>>, frames: &mut Vec<Frame<'a>>) -> Result<(), TooMany> {
    let Some(open) = open else { return Ok(()) };
    let Some(event) = events.get_mut(open.event) else {
        return Ok(());
    };
    let tree = &mut event.tree;
    let mut node = tree.call(tree.root(), open.command)?;
    for frame in frames.drain(..).rev() {
        let frame = if let Some(known) = event.known.get(&frame) {
            *known
        } else {
            let new = self::frame(&frame, tree)?;
            if event.known.len() < MAX_KNOWN {
                event.known.insert(frame, new);
            }
            new
        };
        node = tree.call_frame(node, frame)?;
    }
    tree.add(node, open.value)
}

/// The samples of one event.
struct Event<'a> {
    name: &'a str,
    has_periods: bool,
    tree: CallTree,
    /// Frames as they stand in the file: their names are made once.
    known: HashMap<Frame<'a>, FrameId>,
}

impl<'a> Event<'a> {
    fn new(sample: &Sample<'a>) -> Self {
        Self {
            name: sample.event,
            has_periods: sample.period.is_some(),
            tree: CallTree::new(Room::new(Size::MOST)),
            known: HashMap::new(),
        }
    }

    fn finish(self) -> Result<Option<ImportedProfile>, TooMany> {
        let name: String = self.name.chars().map(plain).collect();
        let is_cpu = ["cycles", "cpu_cycles", "instructions"]
            .iter()
            .any(|event| name.contains(event));
        let (name, kind, unit) = match self.name {
            _ if !self.has_periods => ("process_cpu", "samples", "count"),
            "cpu-clock" | "task-clock" => ("process_cpu", "cpu", "nanoseconds"),
            event if is_cpu => ("process_cpu", event, "count"),
            event => (name.as_str(), event, "count"),
        };
        let meaning = Meaning {
            name,
            kind,
            unit,
            ..Meaning::default()
        };
        ImportedProfile::of_tree(self.tree, meaning)
    }
}

/// A character that may stand in the name of a profile.
fn plain(letter: char) -> char {
    if letter.is_ascii_alphanumeric() { letter } else { '_' }
}

/// The frame of the tree, which is named by its binary where the function is not known.
fn frame(frame: &Frame<'_>, tree: &mut CallTree) -> Result<FrameId, TooMany> {
    let binary = frame.real_binary();
    if frame.has_function() {
        return tree.frame_in(frame.function, frame.file, frame.line, binary);
    }
    let name = frame.binary_name().trim_matches(['[', ']']);
    let name = format!("[{}]", if name.is_empty() { "unknown" } else { name });
    tree.frame_in(&name, "", 0, binary)
}
