//! The output of `perf script`: a line for each sample, then its frames, the leaf first.
//!
//! Samples of different events are different profiles. Values are the periods of the samples, nanoseconds of clocks and
//! counts of all other events; a sample without a period counts once. The command is the outermost frame.

use crate::profile::call_tree::{CallTree, Calls, NodeId, Room, Size, TooMany};
use crate::wire::files::error::FileError;
use crate::wire::files::imported::{FileFormat, ImportedProfile, Meaning};

/// Events of a file, each of which becomes a profile.
const MAX_EVENTS: usize = 16;
/// Frames of a stack; `perf record` takes 127 unless it is told otherwise.
const MAX_DEPTH: usize = 4096;
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
    for (index, line) in text.lines().enumerate() {
        let wrong = |problem: &dyn std::fmt::Display| {
            FileFormat::PerfScript.wrong(&format_args!("line {}: {problem}", index + 1))
        };
        if line.trim().is_empty() {
            close(&mut events, open.take()).map_err(|error| wrong(&error))?;
        } else if is_comment(line) {
            // Between samples there may be comments.
        } else if let Some(open) = &mut open
            && line.starts_with([' ', '\t'])
            && Sample::of(line).is_none()
        {
            if open.frames.len() >= MAX_DEPTH {
                return Err(wrong(&format_args!("a stack has more than {MAX_DEPTH} frames")));
            }
            match (Frame::of(line), open.frames.last_mut()) {
                (Some(frame), _) => open.frames.push(frame),
                (None, Some(frame)) => frame.set_place(line.trim()),
                (None, None) => {}
            }
        } else {
            close(&mut events, open.take()).map_err(|error| wrong(&error))?;
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
                frames: sample.frame.into_iter().collect(),
                command: sample.command,
                value: sample.period.unwrap_or(1),
            });
        }
    }
    close(&mut events, open).map_err(|error| FileFormat::PerfScript.wrong(&error))?;
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
    /// The frames of the stack, leaf first.
    frames: Vec<Frame<'a>>,
}

/// Adds a sample to its event.
fn close(events: &mut [Event<'_>], open: Option<Open<'_>>) -> Result<(), TooMany> {
    let Some(open) = open else { return Ok(()) };
    let Some(event) = events.get_mut(open.event) else {
        return Ok(());
    };
    let tree = &mut event.tree;
    let mut node = tree.call(tree.root(), open.command)?;
    for frame in open.frames.iter().rev() {
        node = frame.call(tree, node)?;
    }
    tree.add(node, open.value)
}

/// The samples of one event.
struct Event<'a> {
    name: &'a str,
    has_periods: bool,
    tree: CallTree,
}

impl<'a> Event<'a> {
    fn new(sample: &Sample<'a>) -> Self {
        Self {
            name: sample.event,
            has_periods: sample.period.is_some(),
            tree: CallTree::new(Room::new(Size::MOST)),
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

/// The first line of a sample: `command pid/tid [cpu] time: period event: frame`.
struct Sample<'a> {
    command: &'a str,
    period: Option<i64>,
    event: &'a str,
    /// The only frame, where stacks were not recorded.
    frame: Option<Frame<'a>>,
}

impl<'a> Sample<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let words = || words(line);
        let is_time = |word: &str| {
            let number = word.strip_suffix(':').and_then(|word| word.split_once('.'));
            number.is_some_and(|(whole, part)| is_number(whole) && is_number(part))
        };
        let (time_at, time) = words().find(|(_, word)| is_time(word))?;
        let mut before = words().take_while(|(at, _)| *at < time_at).collect::<Vec<_>>();
        before.pop_if(|(_, word)| word.starts_with('[') && word.ends_with(']'));
        let (process_at, process) = before.pop()?;
        if !process
            .split('/')
            .all(|number| is_number(number.trim_start_matches('-')))
        {
            return None;
        }
        let command = line.get(..process_at)?.trim();
        let mut after = words().skip_while(|(at, _)| *at < time_at + time.len());
        let (mut event_at, mut event) = after.next()?;
        let period = event.parse().ok().filter(|period| *period >= 0);
        if period.is_some() {
            (event_at, event) = after.next()?;
        }
        let rest = line.get(event_at + event.len()..)?;
        Some(Self {
            command: if command.is_empty() { "[unknown]" } else { command },
            period,
            event: without_modifiers(event.strip_suffix(':')?)?,
            frame: Frame::of(rest),
        })
    }
}

/// The name of an event without what is behind it, as in `cycles:ppp` and `cpu-clock:u:`; a tracepoint keeps its name.
fn without_modifiers(event: &str) -> Option<&str> {
    let event = event.trim_end_matches(':');
    let is_modifier = |text: &str| text.chars().all(|letter| "ukhHGIpPSDWe".contains(letter));
    let name = match event.rsplit_once(':') {
        Some((name, modifiers)) if is_modifier(modifiers) => name,
        _ => event,
    };
    (!name.is_empty()).then_some(name)
}

/// Words of a line and where they begin.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = line.as_ptr() as usize;
    line.split_ascii_whitespace()
        .map(move |word| (word.as_ptr() as usize - start, word))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A frame: `address function+offset (binary)`, and a place in the source when it is on the next line.
struct Frame<'a> {
    function: &'a str,
    /// Named in the place of a function that is not known.
    binary: &'a str,
    file: &'a str,
    line: i64,
}

impl<'a> Frame<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let (address, rest) = line.trim().split_once(' ')?;
        let is_hexadecimal = address.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hexadecimal || address.is_empty() {
            return None;
        }
        let rest = rest.trim();
        let (function, binary) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
            Some((function, binary)) => (function, binary),
            None => (rest, ""),
        };
        let function = match function.rsplit_once("+0x") {
            Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
            _ => function,
        };
        Some(Self {
            function: function.trim(),
            binary,
            file: "",
            line: 0,
        })
    }

    /// Reads `file:line`; what is none is left out.
    fn set_place(&mut self, text: &'a str) {
        if let Some((file, line)) = text.rsplit_once(':')
            && let Some(line) = line.parse().ok().filter(|line| *line > 0)
            && !file.is_empty()
        {
            (self.file, self.line) = (file, line);
        }
    }

    /// The binary, if it is one: `perf` says of inlined frames that they are.
    fn binary(&self) -> &str {
        match self.binary {
            "inlined" | "[unknown]" => "",
            binary => binary,
        }
    }

    fn call(&self, tree: &mut CallTree, caller: NodeId) -> Result<NodeId, TooMany> {
        let frame = if matches!(self.function, "" | "[unknown]") {
            let name = self.binary.rsplit('/').next().unwrap_or_default();
            let name = name.trim_matches(['[', ']']);
            let name = format!("[{}]", if name.is_empty() { "unknown" } else { name });
            tree.frame_in(&name, "", 0, self.binary())?
        } else {
            tree.frame_in(self.function, self.file, self.line, self.binary())?
        };
        tree.call_frame(caller, frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_sample_is_read_in_its_forms() {
        for (line, expected) in [
            (
                "node 11/12 [001] 5.123456:     250000 cpu-clock:uhppH: ",
                ("node", Some(250_000), "cpu-clock"),
            ),
            ("my app  7 5.1: cycles: ", ("my app", None, "cycles")),
            (
                ":-1 -1 [000] 5.1:  1 sched:sched_switch: prev=x",
                (":-1", Some(1), "sched:sched_switch"),
            ),
            ("a 1 5.1: 9 cpu_core/cycles/P:", ("a", Some(9), "cpu_core/cycles/P")),
        ] {
            let sample = Sample::of(line).unwrap();
            assert_eq!((sample.command, sample.period, sample.event), expected, "{line}");
        }
        for line in [
            "",
            "main;work 5",
            "a b 5.1: 9 cycles:",
            "a 1 5: 9 cycles:",
            "a 1 5.1: 9",
        ] {
            assert!(Sample::of(line).is_none(), "{line}");
        }
    }

    #[test]
    fn a_frame_is_a_function_in_a_binary() {
        let read = |line: &'static str| Frame::of(line).map(|frame| (frame.function, frame.binary));
        for (line, expected) in [
            ("\t    7f12 main+0x1f (/usr/bin/a b)", Some(("main", "/usr/bin/a b"))),
            (
                "ffff8 operator()(int) const (/x)",
                Some(("operator()(int) const", "/x")),
            ),
            ("  10 [unknown] ([vdso])", Some(("[unknown]", "[vdso]"))),
            ("  10 inner (inlined)", Some(("inner", "inlined"))),
            ("  main.c:12", None),
            ("  main.c: 12", None),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }
}
