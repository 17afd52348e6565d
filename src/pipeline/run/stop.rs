//! Stops running components in order. A component stops before the components that it refers to, so that receivers run
//! until no component sends to them any more.
//!
//! In: some nodes of a tree. Out: none of them runs. Independent components stop concurrently. A slow component is
//! logged every minute and aborted at the deadline. A component that has to wait for its senders until the deadline
//! gets one second to finish its work.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::run::instance::{Instance, NodeData};
use crate::run::node::Node;

/// Interval at which components that are still running are logged.
const WARN_INTERVAL: Duration = Duration::from_mins(1);
/// Time limit of a component that had to wait for its senders until the deadline.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// A step in the stop order: a node to stop, or a step without work, which stands for a node that keeps running, or for
/// the start or the end of a module.
#[derive(Default)]
struct StopStep {
    node: Option<Arc<Node>>,
    /// Steps that must wait for this one.
    uses: Vec<usize>,
    /// Number of unfinished steps that this one must wait for.
    users: usize,
    is_started: bool,
}

/// The order in which components are stopped.
#[derive(Default)]
struct StopOrder {
    all: Vec<StopStep>,
    /// Ids of the nodes that the tree contains.
    ids: HashSet<Arc<str>>,
    tasks: JoinSet<usize>,
    running: HashMap<usize, Arc<Node>>,
}

/// Stops `nodes`, which are nodes of the tree under `root`. Returns once none of them runs.
pub(crate) async fn stop_all(root: &Instance, nodes: impl IntoIterator<Item = Arc<Node>>, timeout: Duration) {
    let nodes: HashMap<Arc<str>, Arc<Node>> = nodes.into_iter().map(|node| (node.id.clone(), node)).collect();
    let mut order = StopOrder::default();
    order.add(root, &nodes, None);
    // The graph does not contain the sources of imports within imports.
    for node in nodes
        .values()
        .filter(|node| !order.ids.contains(&node.id))
        .cloned()
        .collect::<Vec<_>>()
    {
        order.push(Some(node));
    }
    order.count_users();
    let deadline = Instant::now() + timeout;
    for index in 0..order.all.len() {
        order.take(index, deadline);
    }
    let mut warnings = tokio::time::interval_at(tokio::time::Instant::now() + WARN_INTERVAL, WARN_INTERVAL);
    let mut in_time = true;
    loop {
        tokio::select! {
            ended = order.tasks.join_next() => {
                let Some(ended) = ended else { break };
                let Ok(index) = ended else { continue };
                order.running.remove(&index);
                order.finish_step(index, deadline.max(Instant::now() + GRACE_PERIOD));
            }
            _ = warnings.tick() => {
                let mut names: Vec<&str> = order.running.values().map(|node| &*node.id).collect();
                names.sort_unstable();
                let left = deadline.saturating_duration_since(Instant::now());
                tracing::warn!(components = names.join(", "), ?left,
                "components are slow to stop");
            }
            () = tokio::time::sleep_until(deadline.into()), if in_time => {
                in_time = false;
                for index in 0..order.all.len() {
                    order.all[index].users = 0;
                    order.take(index, deadline + GRACE_PERIOD);
                }
            }
        }
    }
}

impl StopOrder {
    fn push(&mut self, node: Option<Arc<Node>>) -> usize {
        self.all.push(StopStep {
            node,
            ..StopStep::default()
        });
        self.all.len() - 1
    }

    /// Adds the steps of an instance. For a module, `ends` are the step before all steps of the module and the step
    /// after them.
    fn add(&mut self, instance: &Instance, nodes: &HashMap<Arc<str>, Arc<Node>>, ends: Option<(usize, usize)>) {
        let mut first_and_last = Vec::with_capacity(instance.entries.len());
        for index in 0..instance.entries.len() {
            let node = match instance.entry(index).map(|entry| &entry.data) {
                Some(NodeData::Component(node) | NodeData::Import(node)) => nodes.get(&node.id).cloned(),
                _ => None,
            };
            self.ids.extend(node.as_ref().map(|node| node.id.clone()));
            let first = self.push(node);
            let modules = instance.modules(index);
            let last = if modules.is_empty() { first } else { self.push(None) };
            for inner in modules {
                self.add(inner, nodes, Some((first, last)));
            }
            if first != last {
                self.all[first].uses.push(last);
            }
            first_and_last.push((first, last));
        }
        for (index, (first, last)) in first_and_last.iter().enumerate() {
            let references = instance.graph.nodes.get(index).map(|node| node.references.as_slice());
            let used = references.unwrap_or_default().iter();
            let used: Vec<usize> = used.filter_map(|used| Some(first_and_last.get(*used)?.0)).collect();
            self.all[*last].uses.extend(used);
            if let Some((before, after)) = ends {
                self.all[before].uses.push(*first);
                self.all[*last].uses.push(after);
            }
        }
    }

    fn count_users(&mut self) {
        let used: Vec<usize> = self.all.iter().flat_map(|turn| turn.uses.iter().copied()).collect();
        for index in used {
            self.all[index].users += 1;
        }
    }

    /// Stops the node of a step if all steps before it are finished.
    fn take(&mut self, index: usize, deadline: Instant) {
        let Some(turn) = self.all.get_mut(index) else { return };
        if turn.users > 0 || turn.is_started {
            return;
        }
        turn.is_started = true;
        match turn.node.clone() {
            Some(node) => {
                self.running.insert(index, node.clone());
                self.tasks.spawn(async move {
                    node.stop(deadline).await;
                    index
                });
            }
            None => self.finish_step(index, deadline),
        }
    }

    /// Marks a step as finished, so that the steps that wait for it can follow.
    fn finish_step(&mut self, index: usize, deadline: Instant) {
        // This uses a list instead of recursion, because a configuration may contain chains of components of any
        // length.
        let mut ended = vec![index];
        while let Some(index) = ended.pop() {
            let Some(turn) = self.all.get_mut(index) else { continue };
            for used in std::mem::take(&mut turn.uses) {
                let Some(next) = self.all.get_mut(used) else { continue };
                next.users = next.users.saturating_sub(1);
                if next.users > 0 || next.is_started {
                    continue;
                }
                if next.node.is_some() {
                    self.take(used, deadline);
                } else {
                    next.is_started = true;
                    ended.push(used);
                }
            }
        }
    }
}
