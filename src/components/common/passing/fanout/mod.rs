//! The producers' end of `forward_to`: passes one batch to several receivers.
//!
//! In: profiles. Out: the same profiles to every receiver, and the combined errors. If there is a single receiver, the
//! fan-out waits for this receiver, so the sender is as slow as the receiver. If there are several receivers, each
//! receiver has a bounded queue of its own, a `lane`. A slow receiver does not delay the other receivers, and profiles
//! that do not fit into its lane are dropped and counted. Receivers can be replaced at any time. A batch for a receiver
//! that has just ended goes to its replacement.

use std::fmt;
use std::sync::Arc;

use futures::future::join_all;
use parking_lot::RwLock;

use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::FromValue;
use alluvium_lang::schema::{Kind, RECEIVERS};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::live::{Edge, Entry, LiveHandle, ProfileFacts};
use alluvium_pipeline::component::{Context, InFlight};
use alluvium_profile::sink::Receiver;
use alluvium_profile::{RawProfile, RefusedProfile, SinkErrorKind};

mod lane;
#[cfg(test)]
mod tests;

pub(crate) use lane::LaneMetrics;
use lane::{Lane, Patience};

/// Maximum number of times that a batch is offered to new receivers because the old receivers have ended.
const ROUNDS: usize = 5;

/// The receivers of a component.
pub(crate) struct Fanout {
    live: LiveHandle,
    metrics: LaneMetrics,
    in_flight: InFlight,
    patience: Patience,
    outputs: RwLock<Arc<[Arc<Output>]>>,
}

/// The argument `forward_to`: the receivers in the written order.
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

/// Two lists are equal if they contain the same receivers in the same order.
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

/// A receiver, its edge in the live view, and its lane.
struct Output {
    receiver: Receiver,
    edge: Arc<Edge>,
    lane: Arc<Lane>,
}

impl Fanout {
    /// Creates a fan-out without receivers for the component of `context`.
    pub(crate) fn new(context: &Context) -> Self {
        Self::with_patience(context, Patience::default())
    }

    /// Like [`Fanout::new`], for a component with senders that delete a profile once it is acknowledged. If one of
    /// several receivers does not respond in time, the profile counts as refused.
    pub(crate) fn with_acknowledgement(context: &Context) -> Self {
        Self::with_patience(context, Patience::with_acknowledgement())
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

    /// Replaces the receivers. A batch that is being sent stays with the old receivers, unless they have ended.
    pub(crate) fn update(&self, receivers: &Receivers) {
        let mut outputs = self.outputs.write();
        // A receiver that is also in the new list keeps its lane and the profiles in it.
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

    /// Passes `profiles` to every receiver. Returns the profiles that at least one receiver refused, each with the
    /// first reason.
    pub(crate) async fn append(&self, profiles: Vec<RawProfile>) -> Vec<RefusedProfile> {
        for profile in &profiles {
            self.live.tell(|| Entry::Profile(ProfileFacts::of(profile)));
        }
        let mut outputs = self.outputs.read().clone();
        let mut answers = deliver(outputs.iter().map(|output| (output, profiles.clone())).collect()).await;
        let mut refused: Vec<RefusedProfile> = Vec::new();
        for _ in 0..ROUNDS {
            // For each receiver, the indices of the profiles that the receiver did not accept because it has ended.
            let undelivered: Vec<Vec<usize>> = answers.iter().map(|refused| undelivered_indices(refused)).collect();
            let now = self.outputs.read().clone();
            if undelivered.iter().all(Vec::is_empty) || Arc::ptr_eq(&now, &outputs) {
                break;
            }
            for refusals_of_receiver in &mut answers {
                refusals_of_receiver.retain(|refused| refused.error.kind != SinkErrorKind::Gone);
            }
            refused.extend(refusals(answers, outputs.len()));
            let shares = shares_of_replacements(&outputs, &now, &undelivered, profiles.len());
            answers = deliver_shares(&profiles, &now, &shares).await;
            outputs = now;
        }
        refused.extend(refusals(answers, outputs.len()));
        refused.sort_by_key(|refused| refused.index);
        refused.dedup_by_key(|refused| refused.index);
        refused
    }
}

fn undelivered_indices(refused: &[RefusedProfile]) -> Vec<usize> {
    let undelivered = refused
        .iter()
        .filter(|refused| refused.error.kind == SinkErrorKind::Gone);
    undelivered.map(|refused| refused.index).collect()
}

/// Returns the indices of the profiles to offer to each receiver in `now`, after the receivers in `before` have
/// responded. For each receiver in `before`, `gone` contains the indices of the profiles that the receiver did not
/// accept because its component has ended.
fn shares_of_replacements(
    before: &[Arc<Output>],
    now: &[Arc<Output>],
    undelivered: &[Vec<usize>],
    profiles: usize,
) -> Vec<Vec<usize>> {
    let is_undelivered = |index: &usize| undelivered.iter().all(|indices| indices.contains(index));
    let share = |(position, output): (usize, &Arc<Output>)| {
        // A receiver must not receive the same profiles twice.
        if before.iter().any(|old| Arc::ptr_eq(old, output)) {
            return Vec::new();
        }
        // If the number of receivers is unchanged, a new receiver gets the profiles that the receiver at its position
        // did not accept. Otherwise every new receiver gets the profiles that no receiver accepted.
        match undelivered.get(position) {
            Some(indices) if now.len() == before.len() => indices.clone(),
            _ => (0..profiles).filter(is_undelivered).collect(),
        }
    };
    now.iter().enumerate().map(share).collect()
}

/// Merges refusals into one error for each profile. `Gone` tells the caller to pass on the profile again, so a profile
/// keeps this error only if every receiver returned it.
fn refusals(answers: Vec<Vec<RefusedProfile>>, receivers: usize) -> Vec<RefusedProfile> {
    let mut failed: Vec<RefusedProfile> = answers.into_iter().flatten().collect();
    failed.sort_by_key(|refused| refused.index);
    let mut refused: Vec<RefusedProfile> = Vec::new();
    for refusals_of_profile in failed.chunk_by(|left, right| left.index == right.index) {
        let others = refusals_of_profile
            .iter()
            .filter(|one| one.error.kind != SinkErrorKind::Gone);
        let all_gone = refusals_of_profile.len() >= receivers && others.clone().next().is_none();
        let Some(mut first) = others.chain(refusals_of_profile).next().cloned() else {
            continue;
        };
        if first.error.kind == SinkErrorKind::Gone && !all_gone {
            first.error.kind = SinkErrorKind::Unavailable;
        }
        refused.push(first);
    }
    refused
}

/// Passes each receiver its batch and returns the refusals of each receiver.
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

/// Passes each receiver its share of `profiles`, given as indices, and returns the refusals of each receiver. The
/// indices in the refusals are indices of the whole batch.
async fn deliver_shares(
    profiles: &[RawProfile],
    outputs: &[Arc<Output>],
    shares: &[Vec<usize>],
) -> Vec<Vec<RefusedProfile>> {
    let batches = outputs.iter().zip(shares).map(|(output, share)| {
        let batch = share.iter().filter_map(|index| profiles.get(*index)).cloned();
        (output, batch.collect())
    });
    let answers = deliver(batches.collect()).await;
    let to_batch_indices = |(refused, share): (Vec<RefusedProfile>, &Vec<usize>)| {
        let refused = refused.into_iter().filter_map(|refused| refused.within(share));
        refused.collect()
    };
    answers.into_iter().zip(shares).map(to_batch_indices).collect()
}
