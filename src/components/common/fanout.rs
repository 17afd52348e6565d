//! The producers' end of `forward_to`: one batch to several receivers.
//!
//! In: profiles. Out: the same profiles to every receiver; errors come back together. A single receiver is waited for, so its pace is the sender's. Of several, each has a
//! `lane`, a bounded queue of its own: a slow one holds up no other, and what it cannot take is dropped and counted. Receivers can be
//! swapped while profiles flow: a batch that meets a receiver which has just ended goes to those that took its place.

use std::sync::Arc;

use futures::future::join_all;
use parking_lot::RwLock;

use crate::lang::schema::Arguments;
use crate::pipeline::component::Context;
use crate::pipeline::live::{Edge, Entry, LiveHandle, ProfileFacts};
use crate::profile::sink::Receiver;
use crate::profile::{RawProfile, SinkError, SinkErrorKind};

mod lane;
#[cfg(test)]
mod tests;

use lane::{Lane, LaneMetrics, Patience};

/// How often a batch looks for new receivers when those that it meets have ended.
const ROUNDS: usize = 5;

/// The receivers of a component.
pub struct Fanout {
    live: LiveHandle,
    metrics: LaneMetrics,
    patience: Patience,
    outputs: RwLock<Arc<[Arc<Output>]>>,
}

/// One receiver.
struct Output {
    receiver: Receiver,
    edge: Arc<Edge>,
    lane: Arc<Lane>,
}

/// Errors with the index of the profile in the batch.
type Errors = Vec<(usize, SinkError)>;

impl Fanout {
    /// No receivers yet; `context` is the component's.
    pub fn new(context: &Context) -> Self {
        Self {
            live: context.live.clone(),
            metrics: LaneMetrics::new(&context.metrics),
            patience: Patience::default(),
            outputs: RwLock::default(),
        }
    }

    /// Takes the receivers of the attribute `forward_to`; batches under way finish with the old ones.
    pub fn update(&self, arguments: &Arguments) {
        let receivers = arguments.capsules::<Receiver>("forward_to");
        let mut outputs = self.outputs.write();
        // One that stays keeps what waits for it.
        let output = |receiver: Receiver| {
            let known = outputs.iter().find(|output| Arc::ptr_eq(&output.receiver, &receiver));
            known.cloned().unwrap_or_else(|| {
                Arc::new(Output {
                    edge: self.live.edge(receiver.component_id()),
                    lane: Lane::new(receiver.clone(), self.metrics.clone(), self.patience),
                    receiver,
                })
            })
        };
        let new: Arc<[Arc<Output>]> = receivers.into_iter().map(output).collect();
        *outputs = new;
    }

    /// Hands `profiles` to every receiver. A profile counts as failed when any of them refused it; the first reason is kept.
    pub async fn append(&self, profiles: Vec<RawProfile>) -> Errors {
        for profile in &profiles {
            self.live.tell(|| Entry::Profile(ProfileFacts::of(profile)));
        }
        let mut met: Arc<[Arc<Output>]> = self.outputs.read().clone();
        let mut failed = deliver(&met, &profiles).await;
        for _ in 0..ROUNDS {
            let mut gone: Vec<usize> = failed
                .iter()
                .filter(|(_, error)| error.kind == SinkErrorKind::Gone)
                .map(|(index, _)| *index)
                .collect();
            gone.dedup();
            let now = self.outputs.read().clone();
            if gone.is_empty() || Arc::ptr_eq(&now, &met) {
                break;
            }
            // Who has had them must not have them twice; when nobody took the place of who is gone, nobody is to have them.
            let fresh: Vec<Arc<Output>> = now
                .iter()
                .filter(|output| !met.iter().any(|old| Arc::ptr_eq(old, output)))
                .cloned()
                .collect();
            let again: Vec<RawProfile> = gone.iter().filter_map(|index| profiles.get(*index)).cloned().collect();
            failed.retain(|(_, error)| error.kind != SinkErrorKind::Gone);
            let still = deliver(&fresh, &again).await;
            failed.extend(
                still
                    .into_iter()
                    .filter_map(|(place, error)| Some((*gone.get(place)?, error))),
            );
            failed.sort_by_key(|(index, _)| *index);
            met = now;
        }
        refusals(failed, met.len())
    }
}

/// One error for each profile. `Gone` invites the caller to hand the profile out anew, which it may only when none of so many receivers took it.
fn refusals(failed: Errors, receivers: usize) -> Errors {
    let mut errors: Errors = Vec::new();
    for of_one in failed.chunk_by(|left, right| left.0 == right.0) {
        let others = of_one.iter().filter(|(_, error)| error.kind != SinkErrorKind::Gone);
        let all_gone = of_one.len() >= receivers && others.clone().next().is_none();
        let Some((index, first)) = others.chain(of_one).next() else {
            continue;
        };
        let mut error = first.clone();
        if error.kind == SinkErrorKind::Gone && !all_gone {
            error.kind = SinkErrorKind::Unavailable;
        }
        errors.push((*index, error));
    }
    errors
}

/// Errors of all receivers, in the order of the profiles.
async fn deliver(outputs: &[Arc<Output>], profiles: &[RawProfile]) -> Errors {
    if profiles.is_empty() {
        return Vec::new();
    }
    let bytes = profiles.iter().map(|profile| profile.pprof.len()).sum();
    for output in outputs {
        output.edge.count(profiles.len(), bytes);
    }
    // Cheap copies: labels and bytes are shared.
    if let [only] = outputs {
        return only.receiver.append(profiles.to_vec()).await;
    }
    let answers = join_all(
        outputs
            .iter()
            .map(|output| output.lane.append(profiles.to_vec(), bytes)),
    )
    .await;
    let mut errors: Errors = answers.into_iter().flatten().collect();
    errors.sort_by_key(|(index, _)| *index);
    errors
}
