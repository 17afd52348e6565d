//! Collects the stacks of samples in a tree of calls.

use hashbrown::HashMap;

use crate::perf_script::walk::{PerfError, Problem, walk};
use crate::perf_script::{Frame, Sample};
use alluvium_profile::call_tree::{CallTree, Calls, FrameId, LimitExceeded, Size, SizeLimit};

/// Maximum number of frames in a stack. By default, `perf record` records up to 127.
const MAX_DEPTH: usize = 4096;
/// Maximum number of distinct frames of the file to remember. Several of these frames may become one frame of the
/// profile.
const MAX_KNOWN: usize = 1 << 17;
/// Memory of each remembered frame in bytes.
const KNOWN_BYTES: usize = 160;

/// The stacks of the samples that have been read so far.
pub(super) struct Stacks<'a> {
    tree: CallTree,
    /// Frames of the profile by frame of the file, so that each name is built only once.
    frame_ids: HashMap<Frame<'a>, FrameId>,
    frames: Vec<Frame<'a>>,
}

impl<'a> Stacks<'a> {
    pub(super) fn new(room: SizeLimit) -> Self {
        Self {
            tree: CallTree::new(room),
            frame_ids: HashMap::new(),
            frames: Vec::new(),
        }
    }

    /// Adds a sample with the lines of its frames.
    pub(super) fn add(&mut self, sample: &Sample<'a>, below: &[&'a str], value: i64) -> Result<(), Problem> {
        self.frames.clear();
        self.frames.extend(sample.frame);
        for line in below {
            match (Frame::of(line), self.frames.last_mut()) {
                (Some(frame), _) => self.frames.push(frame),
                (None, Some(frame)) => frame.set_location(line.trim()),
                (None, None) => {}
            }
        }
        if self.frames.len() > MAX_DEPTH {
            return Err(Problem::TooDeep { limit: MAX_DEPTH });
        }
        let command = match sample.command {
            "" => "[unknown]",
            command => command,
        };
        let tree = &mut self.tree;
        let mut node = tree.call(tree.root(), command)?;
        for frame in self.frames.iter().rev() {
            let frame = if let Some(frame_id) = self.frame_ids.get(frame) {
                *frame_id
            } else {
                let new = self::frame(frame, tree)?;
                if self.frame_ids.len() < MAX_KNOWN {
                    self.frame_ids.insert(*frame, new);
                }
                new
            };
            node = tree.call_frame(node, frame)?;
        }
        Ok(tree.add(node, value)?)
    }

    pub(super) fn into_tree(self) -> CallTree {
        self.tree
    }
}

/// Reads all samples of a text and counts each once. The tree is no larger than `max_size`.
pub(crate) fn count_samples(text: &str, max_size: Size) -> Result<CallTree, PerfError> {
    let mut stacks = Stacks::new(SizeLimit::new(max_size));
    walk(text, |sample, below| stacks.add(sample, below, 1))?;
    Ok(stacks.into_tree())
}

/// Returns an upper bound for the size of a text's tree, and for its memory in bytes.
pub(crate) fn size(text: &[u8]) -> (Size, usize) {
    let lines = 1 + memchr::memchr_iter(b'\n', text).count();
    let max_size = Size::MAX;
    let size = Size {
        // The first line of a sample yields up to two calls: the command, and the frame in this line.
        calls: max_size.calls.min(lines.saturating_mul(2)),
        text: max_size.text.min(text.len().saturating_mul(2)),
        stacks: max_size.stacks.min(lines),
        frames: max_size.frames.min(lines.saturating_mul(2)),
    };
    let bytes = size.bytes().saturating_add(lines.min(MAX_KNOWN) * KNOWN_BYTES);
    (size, bytes)
}

/// Returns the id of a frame in the tree. If the function is unknown, the frame has the name of its binary.
fn frame(frame: &Frame<'_>, tree: &mut CallTree) -> Result<FrameId, LimitExceeded> {
    let binary = frame.real_binary();
    if frame.has_function() {
        return tree.frame_in(frame.function, frame.file, frame.line, binary);
    }
    let name = frame.binary_name().trim_matches(['[', ']']);
    let name = format!("[{}]", if name.is_empty() { "unknown" } else { name });
    tree.frame_in(&name, "", 0, binary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_profile::pprof::Profile;

    const TEXT: &str = "\
# captured on : Sun Jan  4 10:00:00 2026
my program  1234/1240 [001] 12345.678901:     250000 cpu-clock:pppH: \n\
\tffffffff81234567 native_safe_halt+0x7 ([kernel.kallsyms])
\t          401136 work(int; char)+0x16 (/opt/a b/server)
\t          401200 main+0x10 (/opt/a b/server)
\t    7f2000001000 [unknown] (/usr/lib/libc.so.6 (deleted))

java  77 12345.688901: cycles: \n\
\t          402000 Lcom/shop/Cart;::total+0x4 (/tmp/perf-77.map)

";

    #[test]
    fn samples_are_stacks_with_the_command_outermost() {
        let (max_size, _) = size(TEXT.as_bytes());
        let tree = count_samples(TEXT, max_size).unwrap();
        let (columns, _) = tree.into_columns(Profile::default(), 3).unwrap();
        let columns = columns.unwrap();
        let profile = columns.get();
        let name = |location: &u32| {
            let line = profile.lines_of(&profile.locations[*location as usize])[0];
            profile.functions[line.function as usize].name
        };
        let mut stacks: Vec<(Vec<&str>, i64)> = (0..profile.sample_count())
            .map(|sample| (profile.stack(sample).iter().map(name).collect(), profile.values[sample]))
            .collect();
        stacks.sort();
        let first = ["Lcom/shop/Cart;::total", "java"];
        let second = [
            "native_safe_halt",
            "work(int; char)",
            "main",
            "[libc.so.6 (deleted)]",
            "my program",
        ];
        assert_eq!(stacks, [(first.to_vec(), 3), (second.to_vec(), 3)]);
    }

    #[test]
    fn a_text_needs_no_more_than_its_size_says() {
        let sample = |number: usize| format!("a 1 {number}.5: cycles:\n\t{number:x} f{number}+0x1 (/b{number})\n\n");
        let text: String = (0..2000).map(sample).collect();
        let (max_size, bytes) = size(text.as_bytes());
        assert!(count_samples(&text, max_size).is_ok());
        assert!(max_size.calls <= 2 * 6001 && bytes > text.len());
    }
}
