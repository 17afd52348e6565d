//! The producers' end of `forward_to`: one batch to several receivers.
//!
//! In: profiles. Out: the same profiles to every receiver, at once; errors come back together. Receivers can be swapped while profiles flow.

use std::sync::Arc;

use futures::future::join_all;
use parking_lot::RwLock;

use crate::lang::schema::Arguments;
use crate::profile::sink::Receiver;
use crate::profile::{RawProfile, SinkError};

/// The receivers of a component.
#[derive(Default)]
pub struct Fanout {
    receivers: RwLock<Arc<[Receiver]>>,
}

impl Fanout {
    /// Takes the receivers of the attribute `forward_to`.
    pub fn from_arguments(arguments: &Arguments) -> Self {
        let fanout = Self::default();
        fanout.update(arguments);
        fanout
    }

    /// Replaces the receivers; batches under way finish with the old ones.
    pub fn update(&self, arguments: &Arguments) {
        *self.receivers.write() = arguments.capsules::<Receiver>("forward_to").into();
    }

    /// Hands `profiles` to every receiver. A profile counts as failed when any of them refused it; the first reason is kept.
    pub async fn append(&self, profiles: Vec<RawProfile>) -> Vec<(usize, SinkError)> {
        let receivers = self.receivers.read().clone();
        if let [only] = receivers.as_ref() {
            return only.append(profiles).await;
        }
        // Cheap copies: labels and bytes are shared.
        let answers = join_all(receivers.iter().map(|receiver| receiver.append(profiles.clone()))).await;
        let mut errors: Vec<(usize, SinkError)> = answers.into_iter().flatten().collect();
        errors.sort_by_key(|(index, _)| *index);
        errors.dedup_by_key(|(index, _)| *index);
        errors
    }
}
