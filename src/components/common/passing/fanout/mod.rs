//! The producers' end of `forward_to`: one batch to several receivers.
//!
//! In: profiles. Out: the same profiles to every receiver; errors come back together. A single receiver is waited for,
//! so the sender is as slow as it is. With several, each has a `lane`, a bounded queue of its own: a slow receiver does
//! not delay the others, and what it cannot take is dropped and counted. Receivers can be swapped while profiles flow:
//! a batch for a receiver that has just ended goes to its replacement.

use std::fmt;
use std::sync::Arc;

use futures::future::join_all;
use parking_lot::RwLock;

use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::FromValue;
use crate::lang::schema::{Kind, RECEIVERS};
use crate::lang::value::Value;
use crate::pipeline::component::live::{Edge, Entry, LiveHandle, ProfileFacts};
use crate::pipeline::component::{Context, InFlight};
use crate::profile::sink::Receiver;
use crate::profile::{RawProfile, RefusedProfile, SinkErrorKind};

mod lane;
#[cfg(test)]
mod tests;

pub(crate) use lane::LaneMetrics;
use lane::{Lane, Patience};

/// How many times a batch whose receivers have ended is offered to their replacements.
const ROUNDS: usize = 5;

/// The receivers of a component.
pub(crate) struct Fanout {
    live: LiveHandle,
    metrics: LaneMetrics,
    in_flight: InFlight,
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

/// A receiver, with its edge in the live view and its lane.
struct Output {
    receiver: Receiver,
    edge: Arc<Edge>,
    lane: Arc<Lane>,
}

impl Fanout {
    /// A fan-out without receivers; `context` is that of the component.
    pub(crate) fn new(context: &Context) -> Self {
        Self::with_patience(context, Patience::default())
    }

    /// As [`Fanout::new`], for a component whose senders forget a profile once it is acknowledged: when one of several
    /// receivers does not answer in time, the profile counts as refused.
    pub(crate) fn until_taken(context: &Context) -> Self {
        Self::with_patience(context, Patience::until_taken())
    }

    fn with_patience(context: &Context, patience: Patience) -> Self {
        Self {
            live: context.live.clone(),
            metrics: LaneMetrics::new(&context.metrics),
            in_flight: context.in_flight.clone(),
            patience,
            outputs: RwLock::default(),
        }
    }

    /// Replaces the receivers; batches under way finish with the old ones.
    pub(crate) fn update(&self, receivers: &Receivers) {
        let mut outputs = self.outputs.write();
        // A receiver that stays keeps the profiles in its lane.
        let output = |receiver: Receiver| {
            let known = outputs.iter().find(|output| Arc::ptr_eq(&output.receiver, &receiver));
            known.cloned().unwrap_or_else(|| {
                Arc::new(Output {
                    edge: self.live.edge(receiver.component_id()),
                    lane: Lane::new(
                        receiver.clone(),
                        self.metrics.clone(),
                        self.in_flight.clone(),
                        self.patience,
                    ),
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
                // A receiver must not get the same profiles twice.
                let is_fresh = !met.iter().any(|old| Arc::ptr_eq(old, output));
                // When the number of receivers is the same, a new receiver gets the profiles that the one at its
                // position did not take. Otherwise every new receiver gets what no receiver took.
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
            // From positions in the smaller batches back to positions in the whole batch.
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

/// Merges refusals to one error for each profile. `Gone` tells the caller to hand out the profile again, so it is kept
/// only when every receiver answered with it.
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

/// Hands each receiver its batch and returns the refusals of each.
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
