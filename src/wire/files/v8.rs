//! V8 CPU profiles: nodes with their parents, the node of each sample, and the times between samples.
//!
//! In: nodes and samples from a `.cpuprofile` or a trace. Out: stacks with wall time, or with numbers of samples if the
//! times are missing. A sample lasts until the next one.

use std::borrow::Cow;

use hashbrown::HashMap;
use serde::Deserialize;

use crate::files::imported::{ImportedProfile, Meaning};
use alluvium_profile::call_tree::{CallTree, Calls, LimitExceeded, NodeId, Size, SizeLimit};

/// Name and position of a function, as V8 writes them.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallFrame<'a> {
    #[serde(borrow, default)]
    pub function_name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub url: Cow<'a, str>,
    /// Line at which the function begins, counted from 0.
    #[serde(default)]
    pub line_number: Option<i64>,
}

/// A call: its frame, and its caller if it has one.
pub(super) struct Node<'a> {
    pub id: u64,
    pub parent: Option<u64>,
    pub frame: CallFrame<'a>,
    /// Number of samples that were taken in this node.
    pub hits: i64,
}

/// An error in a V8 profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum V8Error {
    #[error(transparent)]
    TooMany(#[from] LimitExceeded),
    #[error("node {0} is called by itself")]
    Circle(u64),
    #[error("node {0} occurs twice")]
    Duplicate(u64),
    #[error("there is no node {0}")]
    NoNode(u64),
}

/// A profile of one thread. Times are in microseconds.
#[derive(Default)]
pub(super) struct V8Profile<'a> {
    pub nodes: Vec<Node<'a>>,
    /// Id of the node in which each sample was taken.
    pub samples: Vec<u64>,
    /// Time between each sample and the preceding one.
    pub deltas: Vec<f64>,
    pub start: f64,
    pub end: f64,
}

impl V8Profile<'_> {
    /// Returns the stacks as a profile, or `None` if no stack has a value other than 0.
    pub(super) fn finish(&self) -> Result<Option<ImportedProfile>, V8Error> {
        let mut calls = Tree::new(&self.nodes)?;
        let is_timed = !self.samples.is_empty() && self.samples.len() == self.deltas.len();
        if is_timed {
            for (sample, nanos) in self.samples.iter().zip(self.lengths()) {
                calls.add(*sample, nanos)?;
            }
        } else if self.samples.is_empty() {
            for node in self.nodes.iter().filter(|node| node.hits > 0) {
                calls.add(node.id, node.hits)?;
            }
        } else {
            for sample in &self.samples {
                calls.add(*sample, 1)?;
            }
        }
        let (name, kind, unit) = if is_timed {
            ("wall", "wall", "nanoseconds")
        } else {
            ("process_cpu", "samples", "count")
        };
        let meaning = Meaning {
            name,
            kind,
            unit,
            duration_nanos: nanos(self.end - self.start).max(0),
            ..Meaning::default()
        };
        Ok(ImportedProfile::of_tree(calls.tree, meaning)?)
    }

    /// Returns the time from each sample to the next, and from the last sample to the end, in nanoseconds. If a sample
    /// has an earlier time than a preceding one, the latest time so far is used instead.
    fn lengths(&self) -> Vec<i64> {
        let mut time = self.start;
        let mut last = f64::MIN;
        let mut times: Vec<f64> = Vec::with_capacity(self.deltas.len() + 1);
        for delta in &self.deltas {
            time += delta;
            last = last.max(time);
            times.push(last);
        }
        times.push(self.end.max(last));
        times.windows(2).map(|pair| nanos(pair[1] - pair[0])).collect()
    }
}

fn nanos(micros: f64) -> i64 {
    (micros * 1e3).round() as i64
}

/// Tree of the calls of a profile.
struct Tree<'a> {
    nodes: &'a [Node<'a>],
    /// Index of each node by its id.
    indices: HashMap<u64, usize>,
    /// The call of each node in the tree; `None` until the node is resolved.
    calls: Vec<Option<NodeId>>,
    tree: CallTree,
}

impl<'a> Tree<'a> {
    fn new(nodes: &'a [Node<'a>]) -> Result<Self, V8Error> {
        let mut indices = HashMap::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            if indices.insert(node.id, index).is_some() {
                return Err(V8Error::Duplicate(node.id));
            }
        }
        Ok(Self {
            nodes,
            indices,
            calls: vec![None; nodes.len()],
            tree: CallTree::new(SizeLimit::new(Size::MAX)),
        })
    }

    fn add(&mut self, id: u64, value: i64) -> Result<(), V8Error> {
        let node = self.call(id)?;
        Ok(self.tree.add(node, value)?)
    }

    fn call(&mut self, id: u64) -> Result<NodeId, V8Error> {
        // The node `id` and its callers, up to the first one whose call is known.
        let mut path = Vec::new();
        let mut next = Some(id);
        let mut node = self.tree.root();
        while let Some(id) = next {
            let index = *self.indices.get(&id).ok_or(V8Error::NoNode(id))?;
            if let Some(call) = self.calls[index] {
                node = call;
                break;
            }
            if path.len() >= self.nodes.len() {
                return Err(V8Error::Circle(id));
            }
            path.push(index);
            next = self.nodes[index].parent;
        }
        for index in path.into_iter().rev() {
            let frame = &self.nodes[index].frame;
            // The root is not a function.
            if frame.function_name != "(root)" {
                let name = match frame.function_name.as_ref() {
                    "" => "(anonymous)",
                    name => name,
                };
                let file = frame.url.strip_prefix("file://").unwrap_or(frame.url.as_ref());
                let line = frame.line_number.map_or(0, |line| line.saturating_add(1).max(0));
                let frame = self.tree.frame(name, file, line)?;
                node = self.tree.call_frame(node, frame)?;
            }
            self.calls[index] = Some(node);
        }
        Ok(node)
    }
}
