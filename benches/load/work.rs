//! The pushes: profiles of the fleet, encoded and compressed ahead of time by threads of their own, so that the driver measures the server and not itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alluvium::profile::RawProfile;
use alluvium::profile::fleet::{Fleet, FleetShape, TICK_SECONDS};
use alluvium::profile::pprof;
use alluvium::wire::push::to_request;
use bytes::Bytes;
use prost::Message;
use tokio::sync::mpsc::{Receiver, channel};

/// Pushes that are made before the first is sent: an hour's fit.
const AHEAD: usize = 40_000;
/// Ticks that an endless plan sends again and again: making profiles would take more of the machine than the server does.
const ROUND: u64 = 60;

/// Which profiles.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Seed of the fleet.
    pub seed: u64,
    /// Time of the first.
    pub start_ms: i64,
    /// Ticks of 15 seconds.
    pub ticks: u64,
}

impl Plan {
    /// First millisecond after the profiles.
    pub fn end_ms(&self) -> i64 {
        self.start_ms + self.ticks as i64 * TICK_SECONDS * 1000
    }
}

/// One push of one profile.
#[derive(Clone)]
pub struct Push {
    /// Body of the request.
    pub body: Bytes,
    /// Bytes of the pprof before gzip.
    pub raw_bytes: usize,
    /// Bytes of the pprof after gzip.
    pub gzip_bytes: usize,
    /// Values above zero.
    pub values: usize,
}

/// Makes the pushes of a plan, a tick at a time, in the order of the ticks but for neighbours. Returns when as many as fit are ready.
pub async fn prepare(plan: Plan) -> Receiver<Vec<Push>> {
    let fleet = Arc::new(Fleet::new(FleetShape::default(), plan.seed));
    let per_tick = fleet.profiles_per_tick();
    let (ready, pushes) = channel((AHEAD / per_tick).max(1));
    let next = Arc::new(AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    for _ in 0..threads {
        let (fleet, ready, next) = (fleet.clone(), ready.clone(), next.clone());
        std::thread::spawn(move || {
            loop {
                let tick = next.fetch_add(1, Ordering::Relaxed);
                if tick >= plan.ticks {
                    return;
                }
                let start_ns = Some(plan.start_ms * 1_000_000);
                let made = (0..per_tick).map(|index| push(&fleet, tick, index, start_ns)).collect();
                if ready.blocking_send(made).is_err() {
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

/// The same pushes round and round without an end. Their profiles have no time, so a server gives them the time at which they come.
pub async fn endless(seed: u64) -> Receiver<Vec<Push>> {
    let (ready, pushes) = channel(4);
    let round = tokio::task::spawn_blocking(move || {
        let fleet = Fleet::new(FleetShape::default(), seed);
        let tick = |tick| {
            let indices = 0..fleet.profiles_per_tick();
            indices.map(|index| push(&fleet, tick, index, None)).collect()
        };
        (0..ROUND).map(tick).collect::<Vec<Vec<Push>>>()
    });
    let round = round.await.unwrap_or_default();
    tokio::spawn(async move {
        for tick in round.iter().cycle() {
            if ready.send(tick.clone()).await.is_err() {
                return;
            }
        }
    });
    pushes
}

fn push(fleet: &Fleet, tick: u64, index: usize, start_ns: Option<i64>) -> Push {
    let (labels, mut profile) = fleet.profile(tick, index, start_ns.unwrap_or(0));
    if start_ns.is_none() {
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
