//! The producers' end of `forward_to`: one batch to several receivers.
//!
//! In: profiles. Out: the same profiles to every receiver; errors come back together. A single receiver is waited for,
//! so the sender is as slow as it is. Of several, each has a `lane`, a bounded queue of its own: a slow one holds up no
//! other, and what it cannot take is dropped and counted. Receivers can be swapped while profiles flow: a batch that
//! meets a receiver which has just ended goes to those that took its place.

use std::fmt;
use std::sync::Arc;

use futures::future::join_all;
use parking_lot::RwLock;

use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::FromValue;
use crate::lang::schema::{Kind, RECEIVERS};
use crate::lang::value::Value;
use crate::pipeline::component::Context;
use crate::pipeline::component::live::{Edge, Entry, LiveHandle, ProfileFacts};
use crate::profile::sink::Receiver;
use crate::profile::{RawProfile, RefusedProfile, SinkErrorKind};

mod lane;
#[cfg(test)]
mod tests;

pub(crate) use lane::LaneMetrics;
use lane::{Lane, Patience};

/// How often a batch looks for new receivers when those that it meets have ended.
const ROUNDS: usize = 5;

/// The receivers of a component.
pub(crate) struct Fanout {
    live: LiveHandle,
    metrics: LaneMetrics,
    patience: Patience,
    outputs: RwLock<Arc<[Arc<Output>]>>,
}

/// The argument `forward_to`: the receivers in the order written.
#[derive(Clone, Default)]
pub(crate) struct Receivers(Vec<Receiver>);

impl FromValue for Receivers {
    const KIND: Kind = RECEIVERS;

    fn from_value(_: &str, value: &Value) -> Result<Self, ArgumentError> {
        let Value::Array(items) = value else {
            return Ok(Self::default());
        };
        let receiver = |item: &Value| match item {
            Value::Capsule(capsule) => capsule.downcast(),
            _ => None,
        };
        Ok(Self(items.iter().filter_map(receiver).collect()))
    }
}

/// Receivers are equal when they are the same components.
impl PartialEq for Receivers {
    fn eq(&self, other: &Self) -> bool {
        let pairs = || self.0.iter().zip(&other.0);
        self.0.len() == other.0.len() && pairs().all(|(left, right)| Arc::ptr_eq(left, right))
    }
}

impl fmt::Debug for Receivers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.0.iter().map(|receiver| receiver.component_id());
        out.debug_list().entries(ids).finish()
    }
}

/// One receiver and what leads to it.
struct Output {
    receiver: Receiver,
    edge: Arc<Edge>,
    lane: Arc<Lane>,
}

impl Fanout {
    /// No receivers yet; `context` is the component's.
    pub(crate) fn new(context: &Context) -> Self {
        Self::with_patience(context, Patience::default())
    }

    /// The same for a component whose senders forget a profile when it is taken: one of several receivers that does not
    /// answer has not taken it.
    pub(crate) fn until_taken(context: &Context) -> Self {
        Self::with_patience(context, Patience::until_taken())
    }

    fn with_patience(context: &Context, patience: Patience) -> Self {
        Self {
            live: context.live.clone(),
            metrics: LaneMetrics::new(&context.metrics),
            patience,
            outputs: RwLock::default(),
        }
    }

    /// Takes other receivers; batches under way finish with the old ones.
    pub(crate) fn update(&self, receivers: &Receivers) {
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
        let new: Arc<[Arc<Output>]> = receivers.0.iter().cloned().map(output).collect();
        *outputs = new;
    }

    /// Hands `profiles` to every receiver. A profile counts as failed when any of them refused it; the first reason is
    /// kept.
    pub(crate) async fn append(&self, profiles: Vec<RawProfile>) -> Vec<RefusedProfile> {
        for profile in &profiles {
            self.live.tell(|| Entry::Profile(ProfileFacts::of(profile)));
        }
        let mut met: Arc<[Arc<Output>]> = self.outputs.read().clone();
        let mut answers = deliver(met.iter().map(|output| (output, profiles.clone())).collect()).await;
        let mut refused: Vec<RefusedProfile> = Vec::new();
        for round in 0..=ROUNDS {
            // By receiver, the places of the profiles that it did not take because it has ended.
            let gone: Vec<Vec<usize>> = answers.iter().map(|refused| places_of_gone(refused)).collect();
            let now = self.outputs.read().clone();
            if round == ROUNDS || gone.iter().all(Vec::is_empty) || Arc::ptr_eq(&now, &met) {
                refused.extend(refusals(answers, met.len()));
                break;
            }
            let by_nobody = |place: &usize| gone.iter().all(|places| places.contains(place));
            let again = now.iter().enumerate().map(|(position, output)| {
                // A receiver that has had them must not have them twice.
                let is_fresh = !met.iter().any(|old| Arc::ptr_eq(old, output));
                // A receiver in the place of another gets the profiles of that one; when the list has another form,
                // what no receiver has had goes to all new ones.
                let places: Vec<usize> = match gone.get(position).filter(|_| is_fresh) {
                    Some(places) if now.len() == met.len() => places.clone(),
                    _ if is_fresh => (0..profiles.len()).filter(by_nobody).collect(),
                    _ => Vec::new(),
                };
                (output, places)
            });
            let again: Vec<(&Arc<Output>, Vec<usize>)> = again.collect();
            for of_one in &mut answers {
                of_one.retain(|refused| refused.error.kind != SinkErrorKind::Gone);
            }
            refused.extend(refusals(std::mem::take(&mut answers), met.len()));
            let batches = again.iter().map(|(output, places)| {
                let batch = places.iter().filter_map(|place| profiles.get(*place)).cloned();
                (*output, batch.collect())
            });
            let failed = deliver(batches.collect()).await;
            // Back from places in the smaller batches to places in ours.
            let ours = |(of_one, (_, places)): (Vec<RefusedProfile>, &(&Arc<Output>, Vec<usize>))| {
                let ours = of_one.into_iter().filter_map(|refused| refused.within(places));
                ours.collect()
            };
            answers = failed.into_iter().zip(&again).map(ours).collect();
            met = now.clone();
        }
        refused.sort_by_key(|refused| refused.index);
        refused.dedup_by_key(|refused| refused.index);
        refused
    }
}

fn places_of_gone(refused: &[RefusedProfile]) -> Vec<usize> {
    let gone = refused
        .iter()
        .filter(|refused| refused.error.kind == SinkErrorKind::Gone);
    gone.map(|refused| refused.index).collect()
}

/// One error for each profile. `Gone` invites the caller to hand the profile out anew, which it may only when none of
/// so many receivers took it.
fn refusals(answers: Vec<Vec<RefusedProfile>>, receivers: usize) -> Vec<RefusedProfile> {
    let mut failed: Vec<RefusedProfile> = answers.into_iter().flatten().collect();
    failed.sort_by_key(|refused| refused.index);
    let mut refused: Vec<RefusedProfile> = Vec::new();
    for of_one in failed.chunk_by(|left, right| left.index == right.index) {
        let others = of_one.iter().filter(|one| one.error.kind != SinkErrorKind::Gone);
        let all_gone = of_one.len() >= receivers && others.clone().next().is_none();
        let Some(mut first) = others.chain(of_one).next().cloned() else {
            continue;
        };
        if first.error.kind == SinkErrorKind::Gone && !all_gone {
            first.error.kind = SinkErrorKind::Unavailable;
        }
        refused.push(first);
    }
    refused
}

/// Hands each receiver its batch; the errors of each.
async fn deliver(batches: Vec<(&Arc<Output>, Vec<RawProfile>)>) -> Vec<Vec<RefusedProfile>> {
    let single = batches.len() == 1;
    let hand = |(output, profiles): (&Arc<Output>, Vec<RawProfile>)| {
        let output = output.clone();
        async move {
            if profiles.is_empty() {
                return Vec::new();
            }
            let bytes = profiles.iter().map(|profile| profile.pprof.len()).sum();
            output.edge.count(profiles.len(), bytes);
            if single {
                output.receiver.append(profiles).await
            } else {
                output.lane.append(profiles, bytes).await
            }
        }
    };
    join_all(batches.into_iter().map(hand)).await
}
