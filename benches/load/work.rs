//! The pushes: profiles of the fleet. Separate threads encode and compress them ahead of time, so that the driver
//! measures the server and not itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alluvium_profile::RawProfile;
use alluvium_profile::pprof;
use alluvium_testing::fleet::{Fleet, FleetShape, TICK_SECONDS};
use alluvium_wire::push::to_request;
use bytes::Bytes;
use prost::Message;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Maximum number of pushes that are prepared but not sent yet. A push has 13 kB.
const AHEAD: usize = 100_000;
/// Number of ticks of an endless plan after which a service is deployed again. At 500 profiles per second, that is
/// every five seconds, and about 240 new stacks per second.
const DEPLOY_EVERY: u64 = 20;

/// Profiles of about half the usual size. The result `fill.raw_kb_per_profile` states their size before gzip.
pub(crate) const SMALL: FleetShape = FleetShape {
    services: 20,
    pods: 3,
    cpu_stacks: 280,
    heap_sites: 60,
    cores: 0.07,
};
/// A thousand services, each with its own functions.
pub(crate) const WIDE: FleetShape = FleetShape {
    services: 1000,
    ..SMALL
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub seed: u64,
    pub shape: FleetShape,
    pub start_ms: i64,
    // Number of ticks of 15 seconds.
    pub ticks: u64,
}

impl Plan {
    /// Returns the first millisecond after the profiles.
    pub(crate) fn end_ms(&self) -> i64 {
        self.start_ms + self.ticks as i64 * TICK_SECONDS * 1000
    }
}

/// Timestamps of the profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    Planned,
    /// No timestamp, so that a server uses the time of arrival.
    OnArrival,
}

/// A push with one profile.
pub(crate) struct Push {
    pub body: Bytes,
    /// Size of the pprof before gzip in bytes.
    pub raw_bytes: usize,
    /// Size of the pprof after gzip in bytes.
    pub gzip_bytes: usize,
    pub values: usize,
}

/// Prepares the pushes of a plan tick by tick. Neighbouring ticks may arrive in a different order. Returns when
/// the channel is full or all pushes are ready.
pub(crate) async fn prepare(plan: Plan, stamp: Stamp) -> Receiver<Vec<Push>> {
    let fleet = Arc::new(Fleet::new(plan.shape, plan.seed));
    let (ready, pushes) = channel((AHEAD / fleet.profiles_per_tick()).max(1));
    let next = Arc::new(AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    for _ in 0..threads {
        let (fleet, ready, next) = (fleet.clone(), ready.clone(), next.clone());
        std::thread::spawn(move || {
            loop {
                let tick = next.fetch_add(1, Ordering::Relaxed);
                if tick >= plan.ticks || ready.blocking_send(made(&fleet, &plan, tick, stamp)).is_err() {
                    return;
                }
            }
        });
    }
    drop(ready);
    let wanted = pushes.max_capacity().min(plan.ticks as usize);
    while pushes.len() < wanted {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    pushes
}

/// Prepares an endless series of pushes while earlier ones are sent. No body occurs twice, and services are deployed
/// with new stacks. One thread prepares the pushes. Returns when the first pushes are ready, so that the preparation
/// does not count as a delay of the server.
pub(crate) async fn endless(plan: Plan) -> Receiver<Vec<Push>> {
    let (ready, pushes) = channel(8);
    std::thread::spawn(move || make_for_ever(plan, &ready));
    while pushes.len() < pushes.max_capacity() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    pushes
}

fn make_for_ever(plan: Plan, ready: &Sender<Vec<Push>>) {
    let mut fleet = Fleet::new(plan.shape, plan.seed);
    let mut tick = 0;
    while ready.blocking_send(made(&fleet, &plan, tick, Stamp::OnArrival)).is_ok() {
        tick += 1;
        if tick % DEPLOY_EVERY == 0 {
            let release = tick / DEPLOY_EVERY;
            fleet.redeploy(release as usize, release);
        }
    }
}

fn made(fleet: &Fleet, plan: &Plan, tick: u64, stamp: Stamp) -> Vec<Push> {
    let pushes = (0..fleet.profiles_per_tick()).map(|index| push(fleet, plan, tick, index, stamp));
    pushes.collect()
}

fn push(fleet: &Fleet, plan: &Plan, tick: u64, index: usize, stamp: Stamp) -> Push {
    let (labels, mut profile) = fleet.profile(tick, index, plan.start_ms * 1_000_000);
    if stamp == Stamp::OnArrival {
        profile.time_nanos = 0;
    }
    let raw = pprof::encode(&profile);
    let packed = pprof::gzip(&raw);
    let gzip_bytes = packed.len();
    let request = to_request(&[RawProfile {
        labels,
        id: uuid::Uuid::new_v4().to_string().into(),
        pprof: packed.into(),
    }]);
    Push {
        body: request.encode_to_vec().into(),
        raw_bytes: raw.len(),
        gzip_bytes,
        values: profile.values.iter().filter(|value| **value > 0).count(),
    }
}
