//! Measures how many instructions the hooks of live debugging cost. Run the bench under callgrind, which counts
//! instructions.
//!
//! Arguments: the number of events, and a mode. `bare` computes the size of a batch of one profile, as every component
//! does before it forwards a batch. `hooked` does the same with the hooks, while no client watches. With `watched`, a
//! client watches the component but reads nothing. `docs/pipeline-page.md` has the command and the results. Hooks are
//! generic or inline, so only this file must be compiled with optimisation.

use std::hint::black_box;
use std::sync::Arc;

use alluvium_pipeline::component::live::{Entry, LiveHandle, ProfileFacts};
use alluvium_profile::{Labels, RawProfile};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|text| !text.starts_with('-')).collect();
    let events: u64 = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let mode = arguments.get(1).map_or("hooked", String::as_str);
    let profiles = vec![RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", "bench")]),
        id: Arc::from(""),
        pprof: vec![0; 100].into(),
    }];
    let live = LiveHandle::detached("pyroscope.scrape.bench");
    let edge = live.edge("pyroscope.write.bench");
    let _watch = (mode == "watched").then(|| live.watch(1.0));
    if mode == "bare" {
        for _ in 0..events {
            black_box(size(black_box(&profiles)));
        }
    } else {
        for _ in 0..events {
            let profiles = black_box(&profiles);
            edge.count(profiles.len(), black_box(size(profiles)));
            for profile in profiles {
                live.tell(|| Entry::Profile(ProfileFacts::of(profile)));
            }
        }
    }
}

#[inline]
fn size(profiles: &[RawProfile]) -> usize {
    profiles.iter().map(|profile| profile.pprof.len()).sum()
}
