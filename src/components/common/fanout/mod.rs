//! The producers' end of `forward_to`: one batch to several receivers.
//!
//! In: profiles. Out: the same profiles to every receiver; errors come back together. A single receiver is waited for,
//! so its pace is the sender's. Of several, each has a `lane`, a bounded queue of its own: a slow one holds up no
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
use crate::profile::{RawProfile, SinkError, SinkErrorKind};

mod lane;
#[cfg(test)]
mod tests;

pub(crate) use lane::LaneMetrics;
use lane::{Lane, Patience};

/// How often a batch looks for new receivers when those that it meets have ended.
const ROUNDS: usize = 5;

/// The receivers of a component.
pub struct Fanout {
    live: LiveHandle,
    metrics: LaneMetrics,
    patience: Patience,
    outputs: RwLock<Arc<[Arc<Output>]>>,
}

/// The argument `forward_to`: the receivers in the order written.
#[derive(Clone, Default)]
pub struct Receivers(Vec<Receiver>);

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

    /// Takes other receivers; batches under way finish with the old ones.
    pub fn update(&self, receivers: &Receivers) {
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
    pub async fn append(&self, profiles: Vec<RawProfile>) -> Errors {
        for profile in &profiles {
            self.live.tell(|| Entry::Profile(ProfileFacts::of(profile)));
        }
        let mut met: Arc<[Arc<Output>]> = self.outputs.read().clone();
        let mut answers = deliver(met.iter().map(|output| (output, profiles.clone())).collect()).await;
        let mut errors: Errors = Vec::new();
        for round in 0..=ROUNDS {
            // By receiver, the places of the profiles that met nobody there.
            let gone: Vec<Vec<usize>> = answers.iter().map(places_of_gone).collect();
            let now = self.outputs.read().clone();
            if round == ROUNDS || gone.iter().all(Vec::is_empty) || Arc::ptr_eq(&now, &met) {
                errors.extend(refusals(answers, met.len()));
                break;
            }
            let by_nobody = |place: &usize| gone.iter().all(|places| places.contains(place));
            let again = now.iter().enumerate().map(|(position, output)| {
                // Who has had them must not have them twice.
                let is_fresh = !met.iter().any(|old| Arc::ptr_eq(old, output));
                // Who stands where another stood has its profiles; when the list has another form, what nobody had goes
                // to all who are new.
                let places: Vec<usize> = match gone.get(position).filter(|_| is_fresh) {
                    Some(places) if now.len() == met.len() => places.clone(),
                    _ if is_fresh => (0..profiles.len()).filter(by_nobody).collect(),
                    _ => Vec::new(),
                };
                (output, places)
            });
            let again: Vec<(&Arc<Output>, Vec<usize>)> = again.collect();
            for errors_of_one in &mut answers {
                errors_of_one.retain(|(_, error)| error.kind != SinkErrorKind::Gone);
            }
            errors.extend(refusals(std::mem::take(&mut answers), met.len()));
            let batches = again.iter().map(|(output, places)| {
                let batch = places.iter().filter_map(|place| profiles.get(*place)).cloned();
                (*output, batch.collect())
            });
            let failed = deliver(batches.collect()).await;
            // Back from places in the smaller batches to places in ours.
            let ours = |(of_one, (_, places)): (Errors, &(&Arc<Output>, Vec<usize>))| -> Errors {
                let ours = of_one
                    .into_iter()
                    .filter_map(|(at, error)| Some((*places.get(at)?, error)));
                ours.collect()
            };
            answers = failed.into_iter().zip(&again).map(ours).collect();
            met = now.clone();
        }
        errors.sort_by_key(|(index, _)| *index);
        errors.dedup_by_key(|(index, _)| *index);
        errors
    }
}

fn places_of_gone(errors: &Errors) -> Vec<usize> {
    let gone = errors.iter().filter(|(_, error)| error.kind == SinkErrorKind::Gone);
    gone.map(|(place, _)| *place).collect()
}

/// One error for each profile. `Gone` invites the caller to hand the profile out anew, which it may only when none of
/// so many receivers took it.
fn refusals(answers: Vec<Errors>, receivers: usize) -> Errors {
    let mut failed: Errors = answers.into_iter().flatten().collect();
    failed.sort_by_key(|(index, _)| *index);
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

/// Hands each receiver its batch; the errors of each.
async fn deliver(batches: Vec<(&Arc<Output>, Vec<RawProfile>)>) -> Vec<Errors> {
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
