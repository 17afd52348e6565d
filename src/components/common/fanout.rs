//! The producers' end of `forward_to`: one batch to several receivers.
//!
//! In: profiles. Out: the same profiles to every receiver, at once; errors come back together. Receivers can be swapped while profiles flow.
//! What is handed over is counted by receiver, and told to whoever looks at the component.

use std::sync::Arc;

use futures::future::join_all;
use parking_lot::RwLock;

use crate::lang::schema::Arguments;
use crate::pipeline::live::{Edge, Entry, LiveHandle, ProfileFacts};
use crate::profile::sink::Receiver;
use crate::profile::{RawProfile, SinkError};

/// The receivers of a component.
pub struct Fanout {
    live: LiveHandle,
    receivers: RwLock<Arc<[Output]>>,
}

struct Output {
    receiver: Receiver,
    edge: Arc<Edge>,
}

impl Fanout {
    /// No receivers yet; `live` is the component's.
    pub fn new(live: LiveHandle) -> Self {
        Self {
            live,
            receivers: RwLock::default(),
        }
    }

    /// Takes the receivers of the attribute `forward_to`; batches under way finish with the old ones.
    pub fn update(&self, arguments: &Arguments) {
        let output = |receiver: Receiver| Output {
            edge: self.live.edge(receiver.component_id()),
            receiver,
        };
        let receivers = arguments.capsules::<Receiver>("forward_to").into_iter().map(output);
        *self.receivers.write() = receivers.collect();
    }

    /// Hands `profiles` to every receiver. A profile counts as failed when any of them refused it; the first reason is kept.
    pub async fn append(&self, profiles: Vec<RawProfile>) -> Vec<(usize, SinkError)> {
        let receivers = self.receivers.read().clone();
        self.show(&profiles, &receivers);
        if let [only] = receivers.as_ref() {
            return only.receiver.append(profiles).await;
        }
        // Cheap copies: labels and bytes are shared.
        let answers = join_all(receivers.iter().map(|output| output.receiver.append(profiles.clone()))).await;
        let mut errors: Vec<(usize, SinkError)> = answers.into_iter().flatten().collect();
        errors.sort_by_key(|(index, _)| *index);
        errors.dedup_by_key(|(index, _)| *index);
        errors
    }

    fn show(&self, profiles: &[RawProfile], receivers: &[Output]) {
        let bytes = profiles.iter().map(|profile| profile.pprof.len()).sum();
        for output in receivers {
            output.edge.count(profiles.len(), bytes);
        }
        for profile in profiles {
            self.live.tell(|| Entry::Profile(ProfileFacts::of(profile)));
        }
    }
}
