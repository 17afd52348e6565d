//! A flame graph in which each frame refers to its caller and its callees.
//!
//! In: the levels of a [`FlameGraph`]. Out: [`Graph`], whose frames are numbered level by level from left to right, and
//! whose texts are safe for a terminal.

use std::ops::Range;

use hashbrown::HashMap;

use crate::cli::common::plain;
use alluvium_profile::flamegraph::{Block, FlameGraph, TOTAL};
use alluvium_profile::package;

/// The root frame, which contains all other frames.
pub(super) const ROOT: usize = 0;

/// The name and file of frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub text: String,
    pub file: String,
    /// The hue of the package; `None` if the package is unknown.
    pub hue: Option<Hue>,
}

/// A colour that stands for a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hue {
    pub degrees: u32,
    /// True for runtimes and the kernel, which are drawn pale.
    pub is_pale: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    /// Index in [`Graph::names`].
    pub name: usize,
    /// Index of the calling frame; the root is its own parent.
    pub parent: usize,
    pub level: usize,
    /// Distance from the left, in the unit of the values.
    pub x: i64,
    /// Value of the frame and its callees.
    pub total: i64,
    /// Value of the frame alone.
    pub own: i64,
    /// Line with the largest value; 0 if unknown.
    pub line: i64,
    children: Range<usize>,
}

/// A flame graph with at least its root.
#[derive(Debug, Clone)]
pub(super) struct Graph {
    pub names: Vec<Name>,
    frames: Vec<Frame>,
    levels: Vec<Range<usize>>,
    /// For each name, the index of the first name with the same text, perhaps in another file.
    functions: Vec<usize>,
}

/// Names and files from the root's child down to a frame. They identify the frame in another graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Path(Vec<(String, String)>);

impl Graph {
    pub(super) fn of(flames: &FlameGraph) -> Self {
        let mut graph = Self {
            names: names(flames),
            frames: Vec::new(),
            levels: Vec::new(),
            functions: Vec::new(),
        };
        let root = flames.blocks(0).next();
        graph.frames.push(Frame {
            name: root.map_or(0, |root| root.name_index),
            parent: ROOT,
            level: 0,
            x: 0,
            total: root.map_or(0, |root| root.total).max(0),
            own: root.map_or(0, |root| root.own),
            line: 0,
            children: 0..0,
        });
        graph.levels.push(0..1);
        for level in 1..flames.levels.len() {
            graph.add_level(level, flames.blocks(level));
        }
        graph.functions = functions(&graph.names);
        graph
    }

    /// Adds the frames that lie within frames of the level above. Other frames come from negative values, which cannot
    /// be drawn.
    fn add_level<'a>(&mut self, level: usize, blocks: impl Iterator<Item = Block<'a>>) {
        let start = self.frames.len();
        let Some(above) = self.levels.last().cloned() else {
            return;
        };
        let mut parent = above.start;
        for block in blocks.filter(|block| block.total > 0) {
            let end = block.x.saturating_add(block.total);
            while parent < above.end && self.frames[parent].end() <= block.x {
                parent += 1;
            }
            if parent == above.end {
                break;
            }
            if block.x < self.frames[parent].x || end > self.frames[parent].end() {
                continue;
            }
            let index = self.frames.len();
            let children = &mut self.frames[parent].children;
            if children.start == children.end {
                children.start = index;
            }
            children.end = index + 1;
            self.frames.push(Frame {
                name: block.name_index,
                parent,
                level,
                x: block.x,
                total: block.total,
                own: block.own,
                line: block.line,
                children: 0..0,
            });
        }
        if self.frames.len() > start {
            self.levels.push(start..self.frames.len());
        }
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn frame(&self, index: usize) -> &Frame {
        &self.frames[index]
    }

    pub(super) fn name(&self, index: usize) -> &Name {
        &self.names[self.frames[index].name]
    }

    /// Returns the index of the first name with the same text as `name`, in any file. It identifies the function.
    pub(super) fn function(&self, name: usize) -> usize {
        self.functions[name]
    }

    /// Returns the callees of a frame, from left to right.
    pub(super) fn children(&self, index: usize) -> Range<usize> {
        self.frames[index].children.clone()
    }

    /// Returns all frames of a level, from left to right.
    pub(super) fn level(&self, level: usize) -> Range<usize> {
        self.levels.get(level).cloned().unwrap_or_default()
    }

    /// Returns a frame and its callers, up to the root.
    pub(super) fn ancestors(&self, index: usize) -> impl Iterator<Item = usize> {
        let mut next = Some(index);
        std::iter::from_fn(move || {
            let index = next?;
            next = (index != ROOT).then(|| self.frames[index].parent);
            Some(index)
        })
    }

    /// Returns true if `frame` is `root` or lies within it.
    pub(super) fn is_within(&self, root: usize, frame: usize) -> bool {
        let (root, frame) = (&self.frames[root], &self.frames[frame]);
        frame.level >= root.level && frame.x >= root.x && frame.end() <= root.end()
    }

    /// Returns the path of names to a frame.
    pub(super) fn path(&self, index: usize) -> Path {
        let frames = self.ancestors(index).filter(|frame| *frame != ROOT);
        let names = frames.map(|frame| self.name(frame));
        let mut path: Vec<_> = names.map(|name| (name.text.clone(), name.file.clone())).collect();
        path.reverse();
        Path(path)
    }

    /// Returns the frame at a path, or the deepest existing frame on the path.
    pub(super) fn find(&self, path: &Path) -> usize {
        let mut frame = ROOT;
        for (text, file) in &path.0 {
            let is_next = |child: &usize| {
                let name = self.name(*child);
                name.text == *text && name.file == *file
            };
            match self.children(frame).find(is_next) {
                Some(child) => frame = child,
                None => break,
            }
        }
        frame
    }
}

impl Frame {
    fn end(&self) -> i64 {
        self.x.saturating_add(self.total)
    }
}

/// For each name, returns the index of the first name with the same text. Name 0 belongs to the root, which is not a
/// function. A function with the text of the root's name therefore does not get index 0.
fn functions(names: &[Name]) -> Vec<usize> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    let first = |(index, name)| {
        let name: &Name = name;
        if index == 0 {
            0
        } else {
            *known.entry(name.text.as_str()).or_insert(index)
        }
    };
    names.iter().enumerate().map(first).collect()
}

fn names(flames: &FlameGraph) -> Vec<Name> {
    let hue = |name: &str, file: &str, mapping: &str| match package::package(name, file, mapping) {
        "" => None,
        package => Some(Hue {
            degrees: package::hue(package),
            is_pale: package::is_runtime(package),
        }),
    };
    let plain_name = |(index, name): (usize, &String)| {
        let file = flames.files.get(index).map_or("", String::as_str);
        let mapping = flames.mappings.get(index).map_or("", String::as_str);
        Name {
            text: plain::line(name),
            file: plain::line(file),
            hue: if index == 0 { None } else { hue(name, file, mapping) },
        }
    };
    let mut names: Vec<Name> = flames.names.iter().enumerate().map(plain_name).collect();
    if names.is_empty() {
        names.push(Name {
            text: TOTAL.to_owned(),
            file: String::new(),
            hue: None,
        });
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::readers::tui::testing::graph;

    fn names(graph: &Graph, frames: impl IntoIterator<Item = usize>) -> Vec<&str> {
        frames
            .into_iter()
            .map(|frame| graph.name(frame).text.as_str())
            .collect()
    }

    #[test]
    fn frames_know_who_called_them_and_whom_they_call() {
        let graph = graph(&[("main;work;leaf", 30), ("main;rest", 60), ("main", 10), ("gc", 5)]);
        assert_eq!(names(&graph, graph.children(ROOT)), ["gc", "main"]);
        let main = graph.find(&Path(vec![("main".to_owned(), String::new())]));
        assert_eq!(names(&graph, graph.children(main)), ["rest", "work"]);
        let leaf = graph.len() - 1;
        assert_eq!(names(&graph, graph.ancestors(leaf)), ["leaf", "work", "main", "total"]);
        let frame = graph.frame(leaf);
        assert_eq!((frame.level, frame.x, frame.total, frame.own), (3, 75, 30, 30));
        assert!(graph.is_within(main, leaf) && !graph.is_within(leaf, main) && graph.is_within(leaf, leaf));
        assert!(!graph.is_within(graph.level(1).start, leaf));
        assert_eq!(graph.level(9), 0..0);
    }

    #[test]
    fn a_frame_is_found_again_in_another_graph_or_else_its_caller() {
        let before = graph(&[("main;work;leaf", 30), ("main;rest", 60)]);
        let after = graph(&[("a", 1), ("main;other", 5), ("main;work", 30)]);
        let path = before.path(before.len() - 1);
        assert_eq!(after.name(after.find(&path)).text, "work");
        assert_eq!(before.name(before.find(&path)).text, "leaf");
        assert_eq!(after.find(&Path::default()), ROOT);
    }

    #[test]
    fn a_graph_of_nothing_has_a_root() {
        for empty in [Graph::of(&FlameGraph::default()), graph(&[])] {
            assert_eq!((empty.len(), empty.frame(ROOT).total), (1, 0));
            assert_eq!(empty.name(ROOT).text, "total");
        }
    }

    #[test]
    fn frames_with_negative_values_are_left_out() {
        let graph = graph(&[("a;b", -5), ("a;c", 20), ("d", 10)]);
        assert!((0..graph.len()).all(|frame| graph.frame(frame).total > 0));
    }

    #[test]
    fn a_function_in_two_files_is_one_function() {
        let graph = graph(&[("main", 1)]);
        assert_eq!(graph.function(1), 1);
        let name = |file: &str| Name {
            text: "init".to_owned(),
            file: file.to_owned(),
            hue: None,
        };
        assert_ne!(name("a.go"), name("b.go"));
    }
}
