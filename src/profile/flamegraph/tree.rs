//! The tree of stacks, root first: an arena of nodes with parent, child and sibling indices.
//!
//! Stacks of frames with a value are inserted leaf first, as in profiles. A child is found by the id of its interned
//! frame. Each insert updates the totals. Sums saturate at the limits of 64 bits.

use hashbrown::HashMap;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The fields that identify a frame to a reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct FrameRef<'a> {
    /// Readable name of the function.
    pub function: &'a str,
    /// Source file; empty if unknown.
    pub file: &'a str,
    /// Line in the file; 0 if unknown.
    pub line: i64,
    /// Binary; empty if unknown.
    pub mapping: &'a str,
}

/// Id of an interned frame, valid only for the tree that returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameId(u32);

/// The fields that distinguish functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Identity {
    Name,
    /// The name and the file, or the binary if there is no file.
    File,
}

/// Merged stacks: a tree of frames with sums of values.
#[derive(Debug, Clone)]
pub struct Tree {
    identity: Identity,
    frames: Vec<Frame>,
    /// Number of bytes of the texts of the frames.
    text_bytes: usize,
    /// Frames by the hash of their identity. Frames with equal hashes are compared.
    frame_ids: HashMap<u64, u32>,
    pub(super) nodes: Vec<Node>,
    children: HashMap<(u32, u32), u32>,
    /// Values of a node for each line except `first_line`, by node and line.
    other_lines: HashMap<(u32, i64), i64>,
    scratch: Vec<(FrameId, i64)>,
}

/// A frame without its line.
#[derive(Debug, Clone, Default)]
pub(super) struct Frame {
    pub(super) function: Box<str>,
    pub(super) file: Box<str>,
    pub(super) mapping: Box<str>,
}

/// A node. Node 0 is the root, and its frame is frame 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) frame: u32,
    pub(super) parent: u32,
    /// The child that was added last, which starts the list of siblings.
    pub(super) last_child: u32,
    pub(super) sibling: u32,
    pub(super) total: i64,
    pub(super) own: i64,
    first_line: i64,
    first_line_value: i64,
}

/// Memory of a node, its entry among the children, and its part of a flame graph, in bytes.
const NODE_BYTES: usize = 112;
/// Memory of a frame, its entry among the ids, and its three texts in a flame graph, in bytes. The content of the texts
/// is not included.
const FRAME_BYTES: usize = 160;

/// Index that is used if there is no node.
pub(super) const NONE: u32 = u32::MAX;

impl Tree {
    /// Creates an empty tree that distinguishes functions by name alone, as in Pyroscope. Each frame has the file and
    /// the binary with which its function first occurred.
    pub fn by_name() -> Self {
        Self::new(Identity::Name)
    }

    /// Creates an empty tree that also distinguishes functions of the same name by file, or by binary if there is no
    /// file.
    pub fn by_file() -> Self {
        Self::new(Identity::File)
    }

    fn new(identity: Identity) -> Self {
        Self {
            identity,
            // Frame 0 belongs to the root. Lookups never return it.
            frames: vec![Frame {
                function: crate::flamegraph::TOTAL.into(),
                ..Frame::default()
            }],
            text_bytes: 0,
            frame_ids: HashMap::new(),
            nodes: vec![Node::new(0, NONE, 0)],
            children: HashMap::new(),
            other_lines: HashMap::new(),
            scratch: Vec::new(),
        }
    }

    /// Returns the id of a frame, for [`Tree::insert_ids`]. The id does not depend on the line.
    pub fn intern(&mut self, frame: FrameRef<'_>) -> FrameId {
        let mut hash = self.identity.hash(frame);
        loop {
            match self.frame_ids.get(&hash) {
                Some(&id) if self.is_frame(id, frame) => return FrameId(id),
                // Two frames have the same hash: probe the next keys, always in the same order.
                Some(_) => hash = hash.wrapping_add(1),
                None => break,
            }
        }
        let id = self.frames.len() as u32;
        self.text_bytes += frame.function.len() + frame.file.len() + frame.mapping.len();
        self.frames.push(Frame {
            function: frame.function.into(),
            file: frame.file.into(),
            mapping: frame.mapping.into(),
        });
        self.frame_ids.insert(hash, id);
        FrameId(id)
    }

    /// Adds `value` to a stack, whose frames are given leaf first. A value of 0 changes nothing.
    pub fn insert<'a>(&mut self, leaf_first: impl IntoIterator<Item = FrameRef<'a>>, value: i64) {
        let mut stack = std::mem::take(&mut self.scratch);
        stack.clear();
        for frame in leaf_first {
            stack.push((self.intern(frame), frame.line));
        }
        self.insert_ids(&stack, value);
        self.scratch = stack;
    }

    /// Adds `value` to a stack of interned frames with their lines, leaf first. A value of 0 changes nothing.
    pub fn insert_ids(&mut self, leaf_first: &[(FrameId, i64)], value: i64) {
        if value == 0 {
            return;
        }
        let mut node = 0;
        self.nodes[0].total = self.nodes[0].total.saturating_add(value);
        for &(frame, line) in leaf_first.iter().rev() {
            node = self.child(node, frame.0, line);
            let entry = &mut self.nodes[node as usize];
            entry.total = entry.total.saturating_add(value);
            if entry.first_line == line {
                entry.first_line_value = entry.first_line_value.saturating_add(value);
            } else {
                let other = self.other_lines.entry((node, line)).or_default();
                *other = other.saturating_add(value);
            }
        }
        let leaf = &mut self.nodes[node as usize];
        leaf.own = leaf.own.saturating_add(value);
    }

    /// Returns the estimated memory of the tree and of a flame graph of all its nodes, in bytes.
    pub fn bytes(&self) -> usize {
        (self.nodes.len() + self.other_lines.len()) * NODE_BYTES + self.frames.len() * FRAME_BYTES + 2 * self.text_bytes
    }

    /// Returns true if functions of the same name are distinguished by file and binary.
    pub(crate) fn is_by_file(&self) -> bool {
        self.identity == Identity::File
    }

    /// Returns the sum of the values of all stacks.
    pub fn total(&self) -> i64 {
        self.nodes[0].total
    }

    /// Returns the number of nodes without the root.
    pub fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Returns true if only empty stacks were inserted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `visit` for every stack with a self value. The arguments are the frames, root first, and the self value.
    /// Each frame has the line with the largest value in its node.
    pub fn for_each_stack(&self, mut visit: impl FnMut(&[FrameRef<'_>], i64)) {
        let lines = self.lines();
        let mut stack = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if node.own == 0 {
                continue;
            }
            stack.clear();
            let mut node_index = index;
            while self.nodes[node_index].parent != NONE {
                let frame = &self.frames[self.nodes[node_index].frame as usize];
                stack.push(FrameRef {
                    function: &frame.function,
                    file: &frame.file,
                    line: lines[node_index],
                    mapping: &frame.mapping,
                });
                node_index = self.nodes[node_index].parent as usize;
            }
            stack.reverse();
            visit(&stack, node.own);
        }
    }

    /// Iterates over frame, parent, total and own value of every node. The root is first, and parents come before
    /// their children.
    pub(crate) fn raw_nodes(&self) -> impl Iterator<Item = (u32, Option<u32>, i64, i64)> {
        self.nodes.iter().map(|node| {
            let parent = (node.parent != NONE).then_some(node.parent);
            (node.frame, parent, node.total, node.own)
        })
    }

    /// Iterates over function and file of every frame, in the order of their indices. The first frame belongs to the
    /// root.
    pub(crate) fn raw_frames(&self) -> impl Iterator<Item = (&str, &str)> {
        self.frames
            .iter()
            .map(|frame| (frame.function.as_ref(), frame.file.as_ref()))
    }

    /// Returns for each node the line with the largest value in it. If several lines have the same value, the smallest
    /// line is returned.
    pub(super) fn lines(&self) -> Vec<i64> {
        let mut best: Vec<(i64, i64)> = self
            .nodes
            .iter()
            .map(|node| (node.first_line_value, node.first_line))
            .collect();
        for (&(node, line), &value) in &self.other_lines {
            let entry = &mut best[node as usize];
            if (value, std::cmp::Reverse(line)) > (entry.0, std::cmp::Reverse(entry.1)) {
                *entry = (value, line);
            }
        }
        best.into_iter().map(|(_, line)| line).collect()
    }

    pub(super) fn frame(&self, frame: u32) -> &Frame {
        &self.frames[frame as usize]
    }

    pub(super) fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Iterates over the indices of the children of `node`, in no particular order.
    pub(super) fn children(&self, node: u32) -> impl Iterator<Item = u32> {
        let mut next = self.nodes[node as usize].last_child;
        std::iter::from_fn(move || {
            let child = (next != NONE).then_some(next)?;
            next = self.nodes[child as usize].sibling;
            Some(child)
        })
    }

    #[inline]
    fn child(&mut self, parent: u32, frame: u32, line: i64) -> u32 {
        // Stacks are usually inserted in sorted order, so the child is often the child that was added last.
        let last = self.nodes[parent as usize].last_child;
        if last != NONE && self.nodes[last as usize].frame == frame {
            return last;
        }
        let next = self.nodes.len() as u32;
        let child = *self.children.entry((parent, frame)).or_insert(next);
        if child == next {
            let mut node = Node::new(frame, parent, line);
            node.sibling = last;
            self.nodes.push(node);
            self.nodes[parent as usize].last_child = next;
        }
        child
    }

    fn is_frame(&self, id: u32, frame: FrameRef<'_>) -> bool {
        let known = &self.frames[id as usize];
        *known.function == *frame.function
            && (self.identity == Identity::Name
                || (*known.file == *frame.file && (!frame.file.is_empty() || *known.mapping == *frame.mapping)))
    }
}

impl Node {
    fn new(frame: u32, parent: u32, line: i64) -> Self {
        Self {
            frame,
            parent,
            last_child: NONE,
            sibling: NONE,
            total: 0,
            own: 0,
            first_line: line,
            first_line_value: 0,
        }
    }
}

impl Identity {
    fn hash(self, frame: FrameRef<'_>) -> u64 {
        let function = xxh3_64(frame.function.as_bytes());
        if self == Self::Name {
            return function;
        }
        let file = xxh3_64_with_seed(frame.file.as_bytes(), function);
        // A program at another path (such as a new release) has the same functions, so the binary is compared only if
        // there is no file.
        if !frame.file.is_empty() {
            return file;
        }
        xxh3_64_with_seed(frame.mapping.as_bytes(), file)
    }
}
