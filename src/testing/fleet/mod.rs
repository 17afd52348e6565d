//! A synthetic fleet of Go services with realistic profiles, for load drivers and measurements. The same seed always
//! results in the same bytes.
//!
//! In: a seed and sizes. Out: the CPU and the heap profile that a scraper would push, for a service, a pod and a tick
//! of 15 seconds. The model: a service has endpoints and background work. Each is a trunk of frames under which call
//! paths branch. Paths are drawn by Zipf's law, and the load of endpoints rises and falls over minutes, so that stacks
//! repeat from tick to tick as in reality. A heap is a list of allocation sites that changes slowly. Allocations since
//! the previous tick vary around a rate per site, as if the collector had computed the difference of two scrapes. Only
//! tests and benchmarks use this module; it is not in the program `alluvium`.

use crate::Labels;
use crate::labels::{PROFILE_NAME, SERVICE_NAME};
use crate::pprof::Profile;
use crate::synthetic::Random;

mod draw;
mod program;
mod shape;

pub use shape::{FleetShape, TICK_SECONDS};

use program::Program;

/// Kind of a pod's profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `process_cpu`: samples and CPU time.
    Cpu,
    /// `memory`: allocations since the previous tick, and the heap in use.
    Heap,
}

/// Services with their pods.
pub struct Fleet {
    shape: FleetShape,
    seed: u64,
    programs: Vec<Program>,
}

impl Fleet {
    /// Creates the fleet for a seed.
    pub fn new(shape: FleetShape, seed: u64) -> Self {
        let programs = (0..shape.services.max(1))
            .map(|index| Program::new(index, &shape, seed))
            .collect();
        Self { shape, seed, programs }
    }

    /// Returns the number of profiles of the fleet in one tick.
    pub fn profiles_per_tick(&self) -> usize {
        self.programs.len() * self.shape.pods.max(1) * 2
    }

    /// Replaces the program of a service with another release of the same program. The functions stay the same, and the
    /// stacks change.
    pub fn redeploy(&mut self, service: usize, release: u64) {
        let service = service % self.programs.len();
        let seed = self.seed ^ release.wrapping_mul(0xa076_1d64_78bd_642f);
        self.programs[service] = Program::new(service, &self.shape, seed);
    }

    /// Returns the name of a service by its index.
    pub fn service(&self, service: usize) -> &str {
        &self.programs[service % self.programs.len()].name
    }

    /// Returns profile `index` of a tick. The indices cover every service, pod and kind once. `start_ns` is the time of
    /// tick 0 in Unix nanoseconds.
    pub fn profile(&self, tick: u64, index: usize, start_ns: i64) -> (Labels, Profile<'_>) {
        let kind = if index.is_multiple_of(2) { Kind::Cpu } else { Kind::Heap };
        let pod = index / 2 % self.shape.pods.max(1);
        let service = index / 2 / self.shape.pods.max(1) % self.programs.len();
        let labels = self.labels(service, pod, kind);
        let time_ns = start_ns + tick as i64 * TICK_SECONDS * 1_000_000_000 + index as i64 * 1_000_000;
        let program = &self.programs[service];
        let seed = [service as u64, pod as u64, tick, kind as u64]
            .iter()
            .fold(self.seed, |seed, part| {
                (seed ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
            });
        let mut random = Random::new(seed);
        let profile = match kind {
            Kind::Cpu => program.cpu(tick, pod, self.shape.cores, time_ns, &mut random),
            Kind::Heap => program.heap(tick, pod, time_ns, &mut random),
        };
        (labels, profile)
    }

    /// Returns the labels of a pod, as a collector in Kubernetes sets them.
    pub fn labels(&self, service: usize, pod: usize, kind: Kind) -> Labels {
        let program = &self.programs[service];
        let name = match kind {
            Kind::Cpu => "process_cpu",
            Kind::Heap => "memory",
        };
        let pod = format!("{}-{:x}-{pod}", program.name, 0x7f3c + service * 0x111);
        let node = format!("node-{}", (service * 7 + pod.len() + self.shape.pods) % 12);
        Labels::from_pairs([
            (PROFILE_NAME, name),
            (SERVICE_NAME, &program.name),
            ("namespace", program.namespace),
            ("pod", &pod),
            ("node", &node),
            ("container", &program.name),
        ])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::pprof::{decode, encode, stack_ids};

    #[test]
    fn one_seed_gives_one_fleet_and_every_profile_is_valid() {
        let shape = FleetShape::default();
        let (one, twin, other) = (Fleet::new(shape, 7), Fleet::new(shape, 7), Fleet::new(shape, 8));
        let mut differ = 0;
        for index in 0..one.profiles_per_tick() {
            let (labels, profile) = one.profile(3, index, 0);
            let bytes = encode(&profile);
            assert_eq!(decode(&bytes).unwrap(), profile);
            assert!(profile.sample_count() > 50, "{labels}: {}", profile.sample_count());
            assert_eq!(encode(&twin.profile(3, index, 0).1), bytes);
            differ += usize::from(encode(&other.profile(3, index, 0).1) != bytes);
        }
        assert_eq!(differ, one.profiles_per_tick());
    }

    #[test]
    fn another_release_of_a_service_has_stacks_of_its_own() {
        let mut fleet = Fleet::new(FleetShape::default(), 1);
        let stacks = |fleet: &Fleet, index| {
            stack_ids(&fleet.profile(0, index, 0).1)
                .into_iter()
                .collect::<HashSet<_>>()
        };
        let (before, neighbour) = (stacks(&fleet, 0), stacks(&fleet, 6));
        fleet.redeploy(0, 1);
        assert!(stacks(&fleet, 0).intersection(&before).count() * 10 < before.len());
        assert_eq!(stacks(&fleet, 6), neighbour);
    }

    #[test]
    fn stacks_repeat_from_tick_to_tick() {
        let fleet = Fleet::new(FleetShape::default(), 1);
        for index in [0, 1, 40, 41] {
            let mut known_ids: HashSet<u64> = HashSet::new();
            let (mut new, mut all) = (0, 0);
            for tick in 0..40 {
                for id in stack_ids(&fleet.profile(tick, index, 0).1) {
                    all += 1;
                    new += usize::from(known_ids.insert(id));
                }
            }
            assert!(new * 4 < all, "{new} of {all} stacks are new");
        }
    }
}
