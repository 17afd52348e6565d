//! Stops running components in order: those that refer to others first, so that whoever receives is there until nobody sends any more.
//!
//! In: some nodes of a graph. Out: none of them runs. What does not depend on each other stops at the same time; who takes long is named every minute, and cut off at the
//! deadline. One that could not even be asked before the deadline, because its senders did not end, gets a second to finish what it holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::pipeline::graph::Graph;
use crate::pipeline::node::Node;

/// How often those that still run are named.
const WARN_EVERY: Duration = Duration::from_secs(60);
/// What is left for a component whose turn comes only at the deadline.
const GRACE: Duration = Duration::from_secs(1);

/// A node that does not run any more or is being asked not to.
struct Stopping {
    node: Arc<Node>,
    /// How many that refer to it still run.
    users: usize,
    asked: bool,
}

/// Stops `nodes`, which are nodes of `graph`; returns when none of them runs.
pub async fn stop_all(graph: &Graph, nodes: impl IntoIterator<Item = Arc<Node>>, patience: Duration) {
    let mut all: BTreeMap<usize, Stopping> = nodes
        .into_iter()
        .filter_map(|node| {
            let stopping = |node| Stopping {
                node,
                users: 0,
                asked: false,
            };
            Some((graph.find(&node.id)?, stopping(node)))
        })
        .collect();
    let indices: Vec<usize> = all.keys().copied().collect();
    for index in &indices {
        let users = graph.nodes[*index].referenced_by.iter();
        let users = users.filter(|user| all.contains_key(user)).count();
        if let Some(stopping) = all.get_mut(index) {
            stopping.users = users;
        }
    }
    let deadline = Instant::now() + patience;
    let mut tasks = JoinSet::new();
    for index in &indices {
        ask(&mut all, *index, deadline, &mut tasks);
    }
    let mut warnings = tokio::time::interval_at(tokio::time::Instant::now() + WARN_EVERY, WARN_EVERY);
    let mut in_time = true;
    loop {
        tokio::select! {
            ended = tasks.join_next() => {
                let Some(ended) = ended else { break };
                let Ok(index) = ended else { continue };
                all.remove(&index);
                for used in &graph.nodes[index].references {
                    if let Some(stopping) = all.get_mut(used) {
                        stopping.users = stopping.users.saturating_sub(1);
                    }
                    ask(&mut all, *used, deadline.max(Instant::now() + GRACE), &mut tasks);
                }
            }
            _ = warnings.tick() => {
                let names: Vec<&str> = all.values().filter(|one| one.asked).map(|one| &*one.node.id).collect();
                tracing::warn!(components = names.join(", "), left = ?deadline.saturating_duration_since(Instant::now()), "components take long to stop");
            }
            () = tokio::time::sleep_until(deadline.into()), if in_time => {
                in_time = false;
                for stopping in all.values_mut() {
                    stopping.users = 0;
                }
                for index in &indices {
                    ask(&mut all, *index, deadline + GRACE, &mut tasks);
                }
            }
        }
    }
}

/// Asks a node to stop when its turn has come.
fn ask(all: &mut BTreeMap<usize, Stopping>, index: usize, deadline: Instant, tasks: &mut JoinSet<usize>) {
    let Some(stopping) = all.get_mut(&index) else { return };
    if stopping.users > 0 || stopping.asked {
        return;
    }
    stopping.asked = true;
    let node = stopping.node.clone();
    tasks.spawn(async move {
        node.stop(deadline).await;
        index
    });
}
