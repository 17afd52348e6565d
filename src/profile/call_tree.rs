//! Stacks of an upload as a tree of calls, which becomes a profile later. Equal stacks are merged.
//!
//! In: calls, root first, and values. Out: the columns of a profile, or the size that they would have ([`Size`]).
//! Neither the tree nor the columns exceed the limits: each added call is counted, and the frames of all samples are
//! counted before the columns are built.

use std::convert::Infallible;
use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use crate::decoded::Columns;
use crate::pprof::{Builder, Function, Line, Location, Mapping, Profile};

/// Receives calls and values, to store or to count them.
pub trait Calls {
    /// A call together with its callers.
    type Node: Copy;

    /// Returns the root node, which has no caller and is not a frame.
    fn root(&self) -> Self::Node;

    /// Returns the node of a function called by `caller`.
    fn call(&mut self, caller: Self::Node, function: &str) -> Result<Self::Node, LimitExceeded>;

    /// Adds `value` to the own value of a node. The root is not a stack, so a value for the root is ignored.
    fn add(&mut self, node: Self::Node, value: i64) -> Result<(), LimitExceeded>;
}

/// The profile would exceed a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the profile has more than {limit} {quantity}")]
pub struct LimitExceeded {
    quantity: &'static str,
    limit: usize,
}

/// Numbers that determine the memory that a profile needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of nodes of the tree, without its root.
    pub calls: usize,
    /// Number of bytes of the texts of frames.
    pub text: usize,
    /// Number of nodes with a value. Each becomes a sample.
    pub stacks: usize,
    /// Number of frames of all stacks together.
    pub frames: usize,
}

impl Size {
    /// Limits for every upload. The limits on stacks and frames are the same as for folded text.
    pub const MAX: Self = Self {
        calls: 1 << 19,
        text: 16 << 20,
        stacks: 1 << 18,
        frames: 1 << 22,
    };

    /// Returns the estimated memory in bytes. It covers the nodes with their hash table, two copies of the texts, the
    /// columns and the profile that is written from them. The columns are counted with twice the capacity that their
    /// entries need.
    pub fn bytes(self) -> usize {
        // Each node may have a frame of its own, up to the maximum number of frames.
        let names = self.calls.min(MAX_NAMES);
        let parts = [
            (self.calls, 64),
            (names, 512),
            (self.text, 2),
            (self.stacks, 64),
            (self.frames, 16),
        ];
        let bytes = parts.map(|(count, bytes)| count.saturating_mul(bytes));
        bytes.into_iter().fold(0, usize::saturating_add)
    }
}

/// Maximum number of distinct frames, as in folded text.
const MAX_NAMES: usize = 1 << 16;

/// Maximum number of bytes of texts that are looked up as frames, counting each repetition. An upload may refer to one
/// long text in many places, and each lookup hashes the whole text.
const MAX_LOOKUP_BYTES: usize = 1 << 31;

/// A size that grows up to a limit.
#[derive(Debug, Clone, Copy)]
pub struct SizeLimit {
    used: Size,
    max: Size,
}

impl SizeLimit {
    /// Creates a size of zero with the limit `max`.
    pub fn new(max: Size) -> Self {
        let used = Size::default();
        Self { used, max }
    }

    fn call(&mut self) -> Result<(), LimitExceeded> {
        self.used.calls += 1;
        check(self.used.calls, self.max.calls, "calls")
    }

    fn text(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        self.used.text = self.used.text.saturating_add(bytes);
        check(self.used.text, self.max.text, "bytes of names")
    }

    fn stacks(&mut self, stacks: usize, frames: usize) -> Result<(), LimitExceeded> {
        self.used.stacks = self.used.stacks.saturating_add(stacks);
        check(self.used.stacks, self.max.stacks, "stacks")?;
        self.used.frames = self.used.frames.saturating_add(frames);
        check(self.used.frames, self.max.frames, "frames in its stacks")
    }
}

fn check(count: usize, limit: usize, quantity: &'static str) -> Result<(), LimitExceeded> {
    if count > limit {
        return Err(LimitExceeded { quantity, limit });
    }
    Ok(())
}

/// Computes an upper bound for the size of the tree that the received calls would form. It does not store the calls: a
/// node is only the number of frames of its stack.
pub struct Counter(SizeLimit);

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

impl Counter {
    /// Creates a counter that stops at [`Size::MAX`].
    pub fn new() -> Self {
        Self(SizeLimit::new(Size::MAX))
    }

    /// Returns the counted numbers.
    pub fn size(&self) -> Size {
        self.0.used
    }
}

impl Calls for Counter {
    type Node = usize;

    fn root(&self) -> usize {
        0
    }

    fn call(&mut self, caller: usize, function: &str) -> Result<usize, LimitExceeded> {
        self.0.call()?;
        self.0.text(function.len())?;
        Ok(caller + 1)
    }

    fn add(&mut self, node: usize, _value: i64) -> Result<(), LimitExceeded> {
        self.0.stacks(usize::from(node > 0), node)
    }
}

/// Index of a node of a [`CallTree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeId(u32);

/// Index of a frame of a [`CallTree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameId(u32);

/// Calls with their values.
pub struct CallTree {
    room: SizeLimit,
    /// Number of bytes of texts that were looked up as frames.
    lookup_bytes: usize,
    /// Texts of all frames, one after the other.
    text: String,
    frames: Vec<Frame>,
    known: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The first node is the root. Every other node comes after its caller.
    nodes: Vec<Node>,
    callees: HashMap<(NodeId, FrameId), NodeId>,
}

#[derive(Debug, Clone)]
struct Frame {
    name: Range<u32>,
    file: Range<u32>,
    binary: Range<u32>,
    line: i64,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    caller: NodeId,
    frame: FrameId,
    depth: u32,
    value: i64,
}

const ROOT: NodeId = NodeId(0);

impl CallTree {
    /// Creates a tree without calls. The tree may grow until `room` is used up.
    pub fn new(room: SizeLimit) -> Self {
        let root = Node {
            caller: ROOT,
            frame: FrameId(u32::MAX),
            depth: 0,
            value: 0,
        };
        Self {
            room,
            lookup_bytes: 0,
            text: String::new(),
            frames: Vec::new(),
            known: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            nodes: vec![root],
            callees: HashMap::new(),
        }
    }

    /// Returns the frame of a function. The file may be empty and the line 0.
    pub fn frame(&mut self, name: &str, file: &str, line: i64) -> Result<FrameId, LimitExceeded> {
        self.frame_in(name, file, line, "")
    }

    /// Returns the frame of a function in a binary. Each text may be empty.
    pub fn frame_in(&mut self, name: &str, file: &str, line: i64, binary: &str) -> Result<FrameId, LimitExceeded> {
        let length = name.len() + file.len() + binary.len();
        self.lookup_bytes = self.lookup_bytes.saturating_add(length);
        check(
            self.lookup_bytes,
            MAX_LOOKUP_BYTES,
            "bytes of names, counting each repetition",
        )?;
        let (text, frames, hasher) = (&self.text, &self.frames, &self.hasher);
        let parts = |index: u32| {
            let frame = frames.get(index as usize);
            let texts = |frame: &Frame| [&frame.name, &frame.file, &frame.binary].map(|range| part(text, range));
            frame.map(|frame| (texts(frame), frame.line))
        };
        let key = ([name, file, binary], line);
        let entry = self.known.entry(
            hasher.hash_one(Some(key)),
            |index| parts(*index) == Some(key),
            |index| hasher.hash_one(parts(*index)),
        );
        let vacant = match entry {
            Entry::Occupied(known) => return Ok(FrameId(*known.get())),
            Entry::Vacant(vacant) => vacant,
        };
        self.room.text(length)?;
        check(frames.len() + 1, MAX_NAMES, "names")?;
        let index = frames.len() as u32;
        vacant.insert(index);
        let [name, file, binary] = [name, file, binary].map(|part| {
            let start = self.text.len() as u32;
            self.text.push_str(part);
            start..self.text.len() as u32
        });
        self.frames.push(Frame {
            name,
            file,
            binary,
            line,
        });
        Ok(FrameId(index))
    }

    /// Returns the node of a call of `frame` by `caller`.
    pub fn call_frame(&mut self, caller: NodeId, frame: FrameId) -> Result<NodeId, LimitExceeded> {
        if let Some(known) = self.callees.get(&(caller, frame)) {
            return Ok(*known);
        }
        self.room.call()?;
        let depth = self.nodes.get(caller.0 as usize).map_or(0, |node| node.depth);
        let node = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node {
            caller,
            frame,
            depth: depth + 1,
            value: 0,
        });
        self.callees.insert((caller, frame), node);
        Ok(node)
    }

    /// Returns the samples as columns of a profile, with each value multiplied by `scale`. The other fields of the
    /// profile come from `header`. The columns are `None` if there is no sample. Also returns the remaining room.
    pub fn into_columns(
        mut self,
        header: Profile<'static>,
        scale: i64,
    ) -> Result<(Option<Columns>, SizeLimit), LimitExceeded> {
        let samples = self.nodes.iter().filter(|node| node.value != 0);
        let (stacks, frames) = samples.fold((0, 0usize), |(stacks, frames), node| {
            (stacks + 1, frames.saturating_add(node.depth as usize))
        });
        self.room.stacks(stacks, frames)?;
        let Self {
            room,
            text,
            frames: known,
            nodes,
            ..
        } = self;
        if stacks == 0 {
            return Ok((None, room));
        }
        let Ok(columns) = Columns::read(text.into(), |text| {
            // The buffer was made from a `String`, so it is valid UTF-8.
            let text = std::str::from_utf8(text).unwrap_or_default();
            Ok::<_, Infallible>(profile(text, &known, &nodes, header, scale))
        });
        Ok((Some(columns), room))
    }
}

impl Calls for CallTree {
    type Node = NodeId;

    fn root(&self) -> NodeId {
        ROOT
    }

    fn call(&mut self, caller: NodeId, function: &str) -> Result<NodeId, LimitExceeded> {
        let frame = self.frame(function, "", 0)?;
        self.call_frame(caller, frame)
    }

    fn add(&mut self, node: NodeId, value: i64) -> Result<(), LimitExceeded> {
        if let Some(node) = self.nodes.get_mut(node.0 as usize)
            && node.depth > 0
        {
            node.value = node.value.saturating_add(value);
        }
        Ok(())
    }
}

fn part<'a>(text: &'a str, range: &Range<u32>) -> &'a str {
    text.get(range.start as usize..range.end as usize).unwrap_or_default()
}

/// Converts the nodes with values to samples, leaf first.
fn profile<'a>(text: &'a str, frames: &[Frame], nodes: &[Node], header: Profile<'a>, scale: i64) -> Profile<'a> {
    let mut builder = Builder::new(header);
    let locations: Vec<u32> = frames
        .iter()
        .map(|frame| {
            let name = part(text, &frame.name);
            let function = builder.function(Function {
                name,
                system_name: name,
                file: part(text, &frame.file),
                start_line: 0,
            });
            let line = frame.line;
            let mapping = match part(text, &frame.binary) {
                "" => Location::NO_MAPPING,
                file => builder.mapping(Mapping {
                    file,
                    has: [true, !frame.file.is_empty(), line != 0, false],
                    ..Mapping::default()
                }),
            };
            builder.location(mapping, 0, &[Line { function, line }])
        })
        .collect();
    let mut stack = Vec::new();
    for node in nodes.iter().filter(|node| node.value != 0) {
        stack.clear();
        let mut next = Some(node);
        while let Some(node) = next.filter(|node| node.depth > 0) {
            stack.extend(locations.get(node.frame.0 as usize));
            next = nodes.get(node.caller.0 as usize);
        }
        builder.sample(stack.iter().copied(), [], &[node.value.saturating_mul(scale)]);
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pprof::ValueType;

    fn header() -> Profile<'static> {
        Profile {
            sample_types: vec![ValueType {
                kind: "cpu",
                unit: "nanoseconds",
            }],
            ..Profile::default()
        }
    }

    #[test]
    fn equal_stacks_are_one_sample_and_what_has_no_value_is_none() {
        let mut tree = CallTree::new(SizeLimit::new(Size::MAX));
        let main = tree.call(tree.root(), "main").unwrap();
        for (name, value) in [("work", 2), ("idle", 0), ("work", 3), ("rest", i64::MAX)] {
            let node = tree.call(main, name).unwrap();
            tree.add(node, value).unwrap();
        }
        tree.add(tree.root(), 5).unwrap();
        let frame = tree.frame("work", "a.rs", 7).unwrap();
        let other = tree.call_frame(main, frame).unwrap();
        tree.add(other, 1).unwrap();
        let (columns, room) = tree.into_columns(header(), 10).unwrap();
        let columns = columns.unwrap();
        let profile = columns.get();
        assert_eq!(profile.values, [50, i64::MAX, 10]);
        let names = |sample: usize| {
            let names = profile.stack(sample).iter().map(|location| {
                let line = profile.lines_of(&profile.locations[*location as usize])[0];
                let function = profile.functions[line.function as usize];
                (function.name, function.file, line.line)
            });
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(0), [("work", "", 0), ("main", "", 0)]);
        assert_eq!(names(2), [("work", "a.rs", 7), ("main", "", 0)]);
        let used = Size {
            calls: 5,
            text: "mainworkidlerestworka.rs".len(),
            stacks: 3,
            frames: 6,
        };
        assert_eq!(room.used, used);
    }

    #[test]
    fn each_number_has_a_limit() {
        let one = Size {
            calls: 2,
            text: 6,
            stacks: 1,
            frames: 2,
        };
        let fill = |max: Size, leaf: &str, values: [i64; 2]| {
            let mut tree = CallTree::new(SizeLimit::new(max));
            let main = tree.call(tree.root(), "main")?;
            let leaf = tree.call(main, leaf)?;
            tree.add(main, values[0])?;
            tree.add(leaf, values[1])?;
            tree.into_columns(header(), 1).map(|(columns, _)| columns.is_some())
        };
        assert_eq!(fill(one, "ab", [0, 1]), Ok(true));
        assert_eq!(fill(one, "ab", [0, 0]), Ok(false));
        for (max, leaf, values, quantity) in [
            (Size { calls: 1, ..one }, "ab", [0, 1], "calls"),
            (one, "abc", [0, 1], "bytes of names"),
            (one, "ab", [1, 1], "stacks"),
            (Size { frames: 1, ..one }, "ab", [0, 1], "frames in its stacks"),
        ] {
            assert_eq!(fill(max, leaf, values).unwrap_err().quantity, quantity);
        }
        assert_eq!(
            fill(Size { calls: 1, ..one }, "ab", [0, 1]).unwrap_err().to_string(),
            "the profile has more than 1 calls"
        );
        let mut tree = CallTree::new(SizeLimit::new(Size::MAX));
        for name in 0..MAX_NAMES {
            tree.frame(&format!("{name:x}"), "", 0).unwrap();
        }
        assert_eq!(tree.frame("another", "", 0).unwrap_err().quantity, "names");
        assert!(tree.frame("ff", "", 0).is_ok());
        tree.lookup_bytes = MAX_LOOKUP_BYTES - 3;
        assert!(tree.frame("ff", "", 0).is_ok());
        assert_eq!(
            tree.frame("ff", "", 0).unwrap_err().quantity,
            "bytes of names, counting each repetition"
        );
    }

    #[test]
    fn a_counter_counts_at_least_what_a_tree_has() {
        let mut counter = Counter::new();
        let main = counter.call(counter.root(), "main").unwrap();
        for name in ["work", "work"] {
            let node = counter.call(main, name).unwrap();
            counter.add(node, 1).unwrap();
        }
        counter.add(counter.root(), 1).unwrap();
        let size = Size {
            calls: 3,
            text: 12,
            stacks: 2,
            frames: 4,
        };
        assert_eq!(counter.size(), size);
        assert_eq!(size.bytes(), 3 * (64 + 512) + 2 * 12 + 2 * 64 + 4 * 16);
        let mut counter = Counter::new();
        let node = (0..2000).fold(0, |node, _| counter.call(node, "f").unwrap());
        let error = (0..5000).find_map(|_| counter.add(node, 1).err()).unwrap();
        assert_eq!(
            error.to_string(),
            "the profile has more than 4194304 frames in its stacks"
        );
    }
}
