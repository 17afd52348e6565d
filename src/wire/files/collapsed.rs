//! Folded stacks, one per line, such as `main;work (app.py:12) 3`. stackcollapse scripts, py-spy, rbspy and
//! async-profiler write such lines.
//!
//! py-spy and rbspy write the file and the line after the name of a function, in two notations. The parser reads both
//! notations.

use hashbrown::HashMap;
use memchr::memchr_iter;

use crate::files::error::FileError;
use crate::files::imported::{FileFormat, ImportedProfile, Meaning};
use crate::folded::parts;
use alluvium_profile::call_tree::{CallTree, Calls, FrameId, LimitExceeded, NodeId, Size, SizeLimit};

/// Maximum number of frame texts to remember. Several texts may stand for one frame of the profile.
const MAX_KNOWN: usize = 1 << 17;
/// Reads the single profile of a text. The text does not state the unit of its counts, so the counts become samples.
pub(super) fn read(text: &str) -> Result<Vec<ImportedProfile>, FileError> {
    let format = FileFormat::Collapsed;
    let mut stacks = Stacks::new();
    for (index, line) in text.lines().enumerate() {
        let line_error = |problem: &str| format.invalid(&format_args!("line {}: {problem}", index + 1));
        if line.trim().is_empty() {
            continue;
        }
        let (stack, count) = parts(line).ok_or_else(|| line_error("it is not a stack and a count"))?;
        stacks
            .add(stack, count)
            .map_err(|error| line_error(&error.to_string()))?;
    }
    let meaning = Meaning {
        name: "process_cpu",
        kind: "samples",
        unit: "count",
        ..Meaning::default()
    };
    let profile = ImportedProfile::of_tree(stacks.tree, meaning).map_err(|error| format.invalid(&error))?;
    Ok(profile.into_iter().collect())
}

/// The stacks that have been read so far.
struct Stacks<'a> {
    tree: CallTree,
    /// Frames by the text between two semicolons, so that each text is parsed only once.
    frames: HashMap<&'a str, FrameId>,
    /// The preceding stack. For each of its frames, `calls` contains the end of the frame's text and the call.
    /// Neighbouring stacks often begin with the same frames. The calls of these frames are then reused.
    last: &'a str,
    calls: Vec<(usize, NodeId)>,
}

impl<'a> Stacks<'a> {
    fn new() -> Self {
        Self {
            tree: CallTree::new(SizeLimit::new(Size::MAX)),
            frames: HashMap::new(),
            last: "",
            calls: Vec::new(),
        }
    }

    fn add(&mut self, stack: &'a str, count: i64) -> Result<(), LimitExceeded> {
        let pairs = stack.bytes().zip(self.last.bytes());
        let common_bytes = pairs.take_while(|(new, old)| new == old).count();
        // The stacks share a frame only if they are also equal in the semicolon after the frame's text.
        let common_calls = self.calls.partition_point(|(end, _)| *end < common_bytes);
        self.calls.truncate(common_calls);
        self.last = stack;
        let (mut start, mut node) = match self.calls.last() {
            Some((end, node)) => (end + 1, *node),
            None => (0, self.tree.root()),
        };
        let rest = stack.get(start..).unwrap_or_default();
        let rest_start = start;
        for end in memchr_iter(b';', rest.as_bytes())
            .map(|offset| rest_start + offset)
            .chain([stack.len()])
        {
            let name = stack.get(start..end).unwrap_or_default();
            start = end + 1;
            if let Some(frame) = self.frame(name.trim())? {
                node = self.tree.call_frame(node, frame)?;
            }
            self.calls.push((end, node));
        }
        // py-spy writes no frames for a thread that begins or ends.
        if node == self.tree.root() {
            node = self.tree.call(node, "[unknown]")?;
        }
        self.tree.add(node, count)
    }

    fn frame(&mut self, text: &'a str) -> Result<Option<FrameId>, LimitExceeded> {
        if let Some(frame) = self.frames.get(text) {
            return Ok(Some(*frame));
        }
        if text.is_empty() {
            return Ok(None);
        }
        let (name, file, line) = split_frame(text);
        let frame = self.tree.frame(name, file, line)?;
        if self.frames.len() < MAX_KNOWN {
            self.frames.insert(text, frame);
        }
        Ok(Some(frame))
    }
}

/// Splits a frame into name, file and line. py-spy writes `work (app.py:12)`, rbspy `work - app.rb:12`. rbspy writes
/// `(unknown)` for the files of C functions and of some Ruby functions.
fn split_frame(frame: &str) -> (&str, &str, i64) {
    if let Some(name) = frame.strip_suffix(" - (unknown)") {
        return (name, "", 0);
    }
    let in_brackets = frame.strip_suffix(')').and_then(|frame| frame.rsplit_once(" ("));
    let split = in_brackets.or_else(|| frame.rsplit_once(" - "));
    let frame_parts = split.and_then(|(name, location)| {
        let (file, line) = location.rsplit_once(':')?;
        let line = line.parse().ok().filter(|line| *line >= 0)?;
        let is_file = file == "unknown" || file.contains(['.', '/', '<']);
        is_file.then_some((name, file, line))
    });
    frame_parts.unwrap_or((frame, "", 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_that_begin_like_the_one_before_are_their_own() {
        let text = "a;b;c 1\na;b;cd 2\na;b 4\na;b;c;d 8\nab;b;c 16\na; b;;c 32\na;b;c 64\n;a 128\n 256\n";
        let profiles = read(text).unwrap();
        let profile = profiles[0].columns.get();
        let mut stacks: Vec<(String, i64)> = (0..profile.sample_count())
            .map(|sample| {
                let names = profile.stack(sample).iter().rev().map(|location| {
                    let line = profile.lines_of(&profile.locations[*location as usize])[0];
                    profile.functions[line.function as usize].name
                });
                (names.collect::<Vec<_>>().join(";"), profile.values[sample])
            })
            .collect();
        stacks.sort();
        let expected = [
            ("[unknown]", 256),
            ("a", 128),
            ("a;b", 4),
            ("a;b;c", 1 + 32 + 64),
            ("a;b;c;d", 8),
            ("a;b;cd", 2),
            ("ab;b;c", 16),
        ];
        assert_eq!(stacks, expected.map(|(stack, value)| (stack.to_owned(), value)));
    }

    #[test]
    fn file_and_line_are_read_behind_a_name() {
        for (frame, expected) in [
            ("work (app.py:12)", ("work", "app.py", 12)),
            ("<module> (lib/app.py:3)", ("<module>", "lib/app.py", 3)),
            ("work - /srv/app.rb:7", ("work", "/srv/app.rb", 7)),
            ("sleep [c function] - (unknown)", ("sleep [c function]", "", 0)),
            ("require - unknown:170", ("require", "unknown", 170)),
            ("Foo::bar(int, int)", ("Foo::bar(int, int)", "", 0)),
            ("thread (1:2)", ("thread (1:2)", "", 0)),
            ("work - 7", ("work - 7", "", 0)),
        ] {
            assert_eq!(split_frame(frame), expected, "{frame}");
        }
    }
}
