//! A made-up fleet of Go services whose profiles look like those of real ones, for load drivers and measurements: the
//! same seed gives the same bytes.
//!
//! In: a seed and sizes. Out: for a service, a pod and a tick of 15 seconds the CPU and the heap profile that a scraper
//! would push. The model: a service has endpoints and background work, each a trunk of frames under which call paths
//! branch; paths are drawn by Zipf's law, endpoints rise and fall over minutes, so stacks repeat from tick to tick as
//! they do in life. A heap is a list of allocation sites that changes slowly; what was allocated since the tick before
//! is drawn around a rate of the site, as after the collector took the difference of two scrapes. Nothing here is used
//! by the running program on real data.

use std::f64::consts::TAU;

use crate::profile::Labels;
use crate::profile::labels::{PROFILE_NAME, SERVICE_NAME};
use crate::profile::pprof::{Builder, Function, Line, Mapping, Profile, SampleLabel, ValueType};
use crate::profile::synthetic::Random;

/// Seconds between two profiles of a pod.
pub const TICK_SECONDS: i64 = 15;
/// Mean distance in bytes of two samples of Go's heap profiler.
const HEAP_RATE: f64 = 524_288.0;
/// Samples per second of Go's CPU profiler.
const HERTZ: f64 = 100.0;

const LIBRARIES: [(&str, &str); 10] = [
    ("runtime", "/usr/local/go/src/runtime"),
    ("net/http", "/usr/local/go/src/net/http"),
    ("encoding/json", "/usr/local/go/src/encoding/json"),
    ("database/sql", "/usr/local/go/src/database/sql"),
    ("bufio", "/usr/local/go/src/bufio"),
    ("compress/flate", "/usr/local/go/src/compress/flate"),
    ("crypto/tls", "/usr/local/go/src/crypto/tls"),
    (
        "google.golang.org/grpc/internal/transport",
        "/go/pkg/mod/google.golang.org/grpc@v1.71.0/internal/transport",
    ),
    (
        "google.golang.org/protobuf/internal/impl",
        "/go/pkg/mod/google.golang.org/protobuf@v1.36.6/internal/impl",
    ),
    (
        "github.com/prometheus/client_golang/prometheus",
        "/go/pkg/mod/github.com/prometheus/client_golang@v1.21.1/prometheus",
    ),
];
const SERVICES: [&str; 20] = [
    "cart",
    "checkout",
    "catalog",
    "search",
    "pricing",
    "payment",
    "shipping",
    "inventory",
    "review",
    "account",
    "session",
    "recommend",
    "frontend",
    "gateway",
    "mailer",
    "billing",
    "ledger",
    "report",
    "media",
    "audit",
];
const PARTS: [&str; 6] = ["server", "storage", "cache", "codec", "rules", "client"];
const NAMESPACES: [&str; 5] = ["shop", "platform", "finance", "edge", "data"];
const VERBS: [&str; 12] = [
    "Read", "write", "Handle", "parse", "Encode", "lookup", "Merge", "flush", "Decode", "acquire", "Validate", "scan",
];
const NOUNS: [&str; 12] = [
    "Frame", "Header", "Row", "request", "Buffer", "Index", "Price", "Session", "Conn", "Batch", "Item", "Cursor",
];

/// How many services, pods and stacks a fleet has.
#[derive(Debug, Clone, Copy)]
pub struct FleetShape {
    /// How many services there are.
    pub services: usize,
    /// Number of pods of each service.
    pub pods: usize,
    /// Distinct call paths that a CPU profile of a service can meet.
    pub cpu_stacks: usize,
    /// Allocation sites of a service.
    pub heap_sites: usize,
    /// Mean share of a core that a pod uses.
    pub cores: f64,
}

impl Default for FleetShape {
    /// 20 services of 3 pods; one hour of both is 28,800 profiles, some 1.8 GB of pprof, 0.77 GB after gzip.
    fn default() -> Self {
        Self {
            services: 20,
            pods: 3,
            cpu_stacks: 900,
            heap_sites: 260,
            cores: 0.35,
        }
    }
}

/// Which profile of a pod is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `process_cpu`: samples and CPU time.
    Cpu,
    /// `memory`: allocations since the tick before, and the heap in use.
    Heap,
}

/// Services with their pods.
pub struct Fleet {
    shape: FleetShape,
    seed: u64,
    programs: Vec<Program>,
}

/// One service: its functions, and the stacks that its profiles are drawn from.
struct Program {
    name: String,
    namespace: &'static str,
    build_id: String,
    binary: String,
    /// Name, file, start line.
    functions: Vec<(String, String, i64)>,
    /// Function and line of each location; its address follows from its index.
    locations: Vec<(u32, i64)>,
    /// Leaf first, indices of `locations`.
    stacks: Vec<Vec<u32>>,
    endpoints: Vec<Endpoint>,
    sites: Vec<Site>,
}

/// Part of a program whose share of the CPU rises and falls as one.
struct Endpoint {
    /// Sums of the weights up to and with each stack.
    sums: Vec<f64>,
    stacks: Vec<u32>,
    weight: f64,
    period: f64,
    phase: f64,
}

/// A place in a program that allocates memory.
struct Site {
    stack: u32,
    size: i64,
    /// Samples of the heap in use, in the middle.
    live: f64,
    /// Samples of allocations a tick.
    rate: f64,
    period: f64,
    phase: f64,
}

impl Fleet {
    /// Makes the fleet of a seed: the same seed gives the same fleet.
    pub fn new(shape: FleetShape, seed: u64) -> Self {
        let programs = (0..shape.services.max(1))
            .map(|index| Program::new(index, &shape, seed))
            .collect();
        Self { shape, seed, programs }
    }

    /// Profiles that the fleet gives in one tick.
    pub fn profiles_per_tick(&self) -> usize {
        self.programs.len() * self.shape.pods.max(1) * 2
    }

    /// Replaces the program of a service by another release of it: the same functions, other stacks.
    pub fn redeploy(&mut self, service: usize, release: u64) {
        let service = service % self.programs.len();
        let seed = self.seed ^ release.wrapping_mul(0xa076_1d64_78bd_642f);
        self.programs[service] = Program::new(service, &self.shape, seed);
    }

    /// Name of a service by its index.
    pub fn service(&self, service: usize) -> &str {
        &self.programs[service % self.programs.len()].name
    }

    /// Profile `index` of a tick: every service, pod and kind once.
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

    /// Labels of a pod, as a collector in Kubernetes sets them.
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

impl Program {
    fn new(index: usize, shape: &FleetShape, seed: u64) -> Self {
        let base = SERVICES[index % SERVICES.len()];
        let name = match index / SERVICES.len() {
            0 => base.to_owned(),
            round => format!("{base}-{round}"),
        };
        let mut random = Random::new(seed ^ (index as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95));
        let mut program = Self {
            namespace: NAMESPACES[index % NAMESPACES.len()],
            build_id: format!("{:016x}{:016x}", random.next(), random.next()),
            binary: format!("/app/{name}"),
            functions: functions(&name),
            locations: Vec::new(),
            stacks: Vec::new(),
            endpoints: Vec::new(),
            sites: Vec::new(),
            name,
        };
        // Three places in a function are called from, or are where the time goes.
        for (function, (.., start)) in program.functions.iter().enumerate() {
            for site in 0..3 {
                program.locations.push((function as u32, start + 4 + site * 9));
            }
        }
        let endpoints = 14;
        for endpoint in 0..endpoints {
            let trunk = program.trunk(endpoint, &mut random);
            let count = (shape.cpu_stacks / endpoints).max(1);
            let first = program.stacks.len() as u32;
            program.grow(&trunk, count, &mut random);
            let mut sum = 0.0;
            let sums = (0..count)
                .map(|rank| {
                    sum += 1.0 / (rank as f64 + 1.7).powf(1.25);
                    sum
                })
                .collect();
            program.endpoints.push(Endpoint {
                sums,
                stacks: (first..first + count as u32).collect(),
                weight: 1.0 / (endpoint as f64 + 1.0).powf(0.8),
                period: 20.0 + random.below(160) as f64,
                phase: random.unit() * TAU,
            });
        }
        for site in 0..shape.heap_sites {
            if site % 20 == 0 {
                let trunk = program.trunk(site / 20, &mut random);
                program.grow(&trunk, 20.min(shape.heap_sites - site), &mut random);
            }
            let rank = random.below(shape.heap_sites as u64) as f64;
            program.sites.push(Site {
                stack: (program.stacks.len() - 20.min(shape.heap_sites - site / 20 * 20) + site % 20) as u32,
                size: 16 << random.below(13),
                live: 60.0 / (rank + 1.0).powf(0.7) - 1.2,
                rate: 25.0 / (random.below(400) as f64 + 1.0).powf(0.9) - 0.05,
                period: 40.0 + random.below(400) as f64,
                phase: random.unit() * TAU,
            });
        }
        program
    }

    /// The frames from the root of a goroutine to a handler, root first.
    fn trunk(&self, endpoint: usize, random: &mut Random) -> Vec<u32> {
        let mut trunk = vec![2, 40 * 3 + (endpoint % 3) as u32];
        for depth in 0..6 + random.below(5) {
            trunk.push(((41 + depth * 3) * 3 + random.below(2)) as u32);
        }
        let own = (LIBRARIES.len() * 40) as u64;
        let rest = self.functions.len() as u64 - own;
        for step in 0..3 + random.below(6) {
            trunk.push(((own + (endpoint as u64 * 11 + step * 5) % rest) * 3 + random.below(2)) as u32);
        }
        trunk
    }

    /// Adds `count` stacks below a trunk. Each keeps a part of one before it, so they form a tree.
    fn grow(&mut self, trunk: &[u32], count: usize, random: &mut Random) {
        let functions = self.functions.len() as u64;
        let first = self.stacks.len();
        for _ in 0..count {
            let mut path: Vec<u32> = match self.stacks.len() - first {
                0 => trunk.to_vec(),
                grown => {
                    let other = &self.stacks[first + random.below(grown as u64) as usize];
                    let kept = trunk.len() + random.below((other.len() - trunk.len()) as u64 + 1) as usize;
                    other.iter().rev().take(kept).copied().collect()
                }
            };
            let more = 1 + random.below(9);
            for _ in 0..more {
                if path.len() >= 62 {
                    break;
                }
                let caller = u64::from(path.last().copied().unwrap_or(0)) / 3;
                // A function calls few others, near it or in a library.
                let callee = match random.below(3) {
                    0 => (caller * 13 + 7 + random.below(3)) % (LIBRARIES.len() as u64 * 40),
                    _ => (caller + 1 + random.below(4)) % functions,
                };
                path.push((callee * 3 + random.below(3)) as u32);
            }
            path.reverse();
            self.stacks.push(path);
        }
    }

    fn cpu(&self, tick: u64, pod: usize, cores: f64, time_ns: i64, random: &mut Random) -> Profile<'_> {
        let swing = |period: f64, phase: f64| (tick as f64 / period * TAU + phase + pod as f64).sin();
        let weights: Vec<f64> = self
            .endpoints
            .iter()
            .map(|endpoint| endpoint.weight * (1.0 + 0.8 * swing(endpoint.period, endpoint.phase)))
            .collect();
        let all: f64 = weights.iter().sum();
        let load = cores * (1.0 + 0.5 * swing(90.0, self.name.len() as f64)) * (0.8 + 0.4 * random.unit());
        let ticks = (load * HERTZ * TICK_SECONDS as f64) as u64;
        let mut counts = vec![0i64; self.stacks.len()];
        for _ in 0..ticks {
            let mut point = random.unit() * all;
            let chosen = weights
                .iter()
                .position(|weight| {
                    point -= weight;
                    point < 0.0
                })
                .unwrap_or(0);
            let endpoint = &self.endpoints[chosen];
            let point = random.unit() * endpoint.sums.last().copied().unwrap_or(0.0);
            let rank = endpoint.sums.partition_point(|sum| *sum < point);
            counts[endpoint.stacks[rank.min(endpoint.stacks.len() - 1)] as usize] += 1;
        }
        let about = Profile {
            sample_types: vec![value_type("samples", "count"), value_type("cpu", "nanoseconds")],
            period_type: value_type("cpu", "nanoseconds"),
            period: 10_000_000,
            ..Profile::default()
        };
        let mut samples = Samples::new(self, time_ns, about);
        for (stack, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            samples.add(stack, &[*count, *count * 10_000_000], None);
        }
        samples.builder.finish()
    }

    fn heap(&self, tick: u64, pod: usize, time_ns: i64, random: &mut Random) -> Profile<'_> {
        let about = Profile {
            sample_types: vec![
                value_type("alloc_objects", "count"),
                value_type("alloc_space", "bytes"),
                value_type("inuse_objects", "count"),
                value_type("inuse_space", "bytes"),
            ],
            period_type: value_type("space", "bytes"),
            period: HEAP_RATE as i64,
            ..Profile::default()
        };
        let mut samples = Samples::new(self, time_ns, about);
        for site in &self.sites {
            let swing = (tick as f64 / site.period * TAU + site.phase + pod as f64 * 0.4).sin();
            let live = (site.live * (1.0 + 0.3 * swing)).round().max(0.0);
            let allocated = (site.rate.max(0.0) * (0.5 + random.unit()) + random.unit() * 0.9).floor();
            // What the profiler's samples stand for, as Go scales them.
            let scale = 1.0 / (1.0 - (-(site.size as f64) / HEAP_RATE).exp());
            let objects = [(allocated * scale) as i64, (live * scale) as i64];
            let values = [objects[0], objects[0] * site.size, objects[1], objects[1] * site.size];
            if values != [0; 4] {
                samples.add(site.stack as usize, &values, Some(site.size));
            }
        }
        samples.builder.finish()
    }
}

/// Puts samples of a program into a profile, which holds only what they refer to, as Go writes it.
struct Samples<'a> {
    program: &'a Program,
    builder: Builder<'a>,
    mapping: u32,
    /// By place of the program: the location in the profile.
    locations: Vec<Option<u32>>,
}

impl<'a> Samples<'a> {
    /// Starts from a profile with its types and its period.
    fn new(program: &'a Program, time_ns: i64, about: Profile<'a>) -> Self {
        let mut builder = Builder::new(Profile {
            time_nanos: time_ns,
            duration_nanos: TICK_SECONDS * 1_000_000_000,
            ..about
        });
        let mapping = builder.mapping(Mapping {
            start: 0x40_0000,
            limit: 0x200_0000,
            offset: 0,
            file: &program.binary,
            build_id: &program.build_id,
            has: [true; 4],
        });
        Self {
            program,
            builder,
            mapping,
            locations: vec![None; program.locations.len()],
        }
    }

    fn add(&mut self, stack: usize, values: &[i64], size: Option<i64>) {
        let program = self.program;
        let stack: Vec<u32> = program.stacks[stack]
            .iter()
            .map(|location| self.location(*location))
            .collect();
        let size = size.map(|size| SampleLabel::Number("bytes", size, ""));
        self.builder.sample(stack, size, values);
    }

    /// The location of a place of the program.
    fn location(&mut self, place: u32) -> u32 {
        if let Some(known) = self.locations[place as usize] {
            return known;
        }
        let (function, line) = self.program.locations[place as usize];
        let mut lines = Vec::with_capacity(2);
        // The last place of every seventh function is where the next one was inlined.
        if function % 7 == 0 && place % 3 == 2 && (function as usize) + 1 < self.program.functions.len() {
            let line = self.program.functions[function as usize + 1].2 + 2;
            lines.push(self.line(function + 1, line));
        }
        lines.push(self.line(function, line));
        let address = 0x40_1000 + u64::from(place) * 0x5a;
        let location = self.builder.location(self.mapping, address, &lines);
        self.locations[place as usize] = Some(location);
        location
    }

    fn line(&mut self, function: u32, line: i64) -> Line {
        let (name, file, start_line) = &self.program.functions[function as usize];
        let function = self.builder.function(Function {
            name,
            system_name: name,
            file,
            start_line: *start_line,
        });
        Line { function, line }
    }
}

/// 40 functions a library, which all services share, and 240 of the service's own.
fn functions(service: &str) -> Vec<(String, String, i64)> {
    let name = |package: &str, index: usize| {
        let (verb, noun) = (VERBS[index * 5 % VERBS.len()], NOUNS[(index / 3 + index) % NOUNS.len()]);
        match index % 4 {
            0 => format!("{package}.{verb}{noun}"),
            3 => format!("{package}.(*{noun}).{verb}.func{}", index % 5 + 1),
            _ => format!("{package}.(*{noun}).{verb}{}", NOUNS[(index * 7 + 1) % NOUNS.len()]),
        }
    };
    let mut functions = Vec::new();
    for (package, folder) in LIBRARIES {
        for index in 0..40 {
            let file = format!("{folder}/{}.go", NOUNS[index / 4].to_lowercase());
            functions.push((name(package, index), file, (index % 12 * 60 + 17) as i64));
        }
    }
    for index in 0..240 {
        let part = PARTS[index / 40 % PARTS.len()];
        let package = format!("github.com/acme/{service}/internal/{part}");
        let file = format!(
            "/src/{service}/internal/{part}/{}.go",
            NOUNS[index / 5 % NOUNS.len()].to_lowercase()
        );
        functions.push((name(&package, index), file, (index % 9 * 70 + 21) as i64));
    }
    functions
}

fn value_type<'a>(kind: &'a str, unit: &'a str) -> ValueType<'a> {
    ValueType { kind, unit }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::profile::pprof::{decode, encode, stack_ids};

    #[test]
    fn one_seed_gives_one_fleet_and_every_profile_is_valid() {
        let shape = FleetShape::default();
        let (one, same, other) = (Fleet::new(shape, 7), Fleet::new(shape, 7), Fleet::new(shape, 8));
        let mut differ = 0;
        for index in 0..one.profiles_per_tick() {
            let (labels, profile) = one.profile(3, index, 0);
            let bytes = encode(&profile);
            assert_eq!(decode(&bytes).unwrap(), profile);
            assert!(profile.sample_count() > 50, "{labels}: {}", profile.sample_count());
            assert_eq!(encode(&same.profile(3, index, 0).1), bytes);
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
            let mut seen: HashSet<u64> = HashSet::new();
            let (mut new, mut all) = (0, 0);
            for tick in 0..40 {
                for id in stack_ids(&fleet.profile(tick, index, 0).1) {
                    all += 1;
                    new += usize::from(seen.insert(id));
                }
            }
            assert!(new * 4 < all, "{new} of {all} stacks are new");
        }
    }
}
