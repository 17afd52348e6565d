//! Synthetic profiles of a realistic shape, for benchmarks, tests and load generators. The same seed always results in
//! the same profile.
//!
//! The profiles have the same shape as profiles of a busy Go service: functions in packages, call trees that share
//! their roots, and most samples on few stacks. The program does not contain this module.

use crate::pprof::{Function, Line, Location, Mapping, Profile, SampleLabel, ValueType};

const PACKAGES: [&str; 12] = [
    "runtime",
    "net/http",
    "encoding/json",
    "database/sql",
    "github.com/acme/shop/cart",
    "github.com/acme/shop/checkout",
    "github.com/acme/shop/internal/pricing",
    "github.com/lib/pq",
    "google.golang.org/grpc",
    "google.golang.org/grpc/internal/transport",
    "github.com/prometheus/client_golang/prometheus",
    "bufio",
];
const VERBS: [&str; 8] = ["Read", "write", "Handle", "parse", "Encode", "lookup", "Merge", "flush"];
const NOUNS: [&str; 8] = [
    "Frame", "Header", "Row", "request", "Buffer", "Index", "Price", "Session",
];

/// Sizes of a synthetic profile.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Number of distinct functions, with two locations each.
    pub functions: usize,
    /// Number of samples, nearly all with distinct stacks.
    pub samples: usize,
    /// Maximum number of locations of a stack.
    pub depth: usize,
    /// One sample in this many has a text label; 0 for none.
    pub labelled_every: usize,
}

impl Default for Shape {
    /// 2,000 functions and 5,000 stacks up to 60 deep: about 500 kB of pprof, like a profile of a busy Go service.
    fn default() -> Self {
        Self {
            functions: 2_000,
            samples: 5_000,
            depth: 60,
            labelled_every: 10,
        }
    }
}

/// The strings that synthetic profiles borrow.
pub struct Names {
    functions: Vec<(String, String)>,
    routes: Vec<String>,
}

impl Names {
    /// Creates names for `functions` functions.
    pub fn new(functions: usize) -> Self {
        let function = |index: usize| {
            let package = PACKAGES[index % PACKAGES.len()];
            let (verb, noun) = (VERBS[index / 7 % VERBS.len()], NOUNS[index / 3 % NOUNS.len()]);
            let last = package.rsplit('/').next().unwrap_or(package);
            let name = match index % 3 {
                0 => format!("{package}.{verb}{noun}{index}"),
                1 => format!("{package}.(*{noun}).{verb}{index}"),
                _ => format!("{package}.(*{noun}).{verb}{index}.func1"),
            };
            (name, format!("/src/{package}/{last}_{}.go", index / 40))
        };
        Self {
            functions: (0..functions).map(function).collect(),
            routes: (0..16).map(|route| format!("/api/v1/route{route}")).collect(),
        }
    }
}

/// Creates a CPU profile of `shape` with functions from `names`. If `names` has fewer functions than `shape`, the
/// profile has fewer functions too. The same `seed` always results in the same profile.
pub fn cpu_profile(names: &Names, shape: Shape, seed: u64) -> Profile<'_> {
    let mut random = Random(seed.wrapping_mul(2).wrapping_add(1));
    let count = shape.functions.min(names.functions.len()).max(1);
    let mut profile = Profile {
        sample_types: vec![value_type("samples", "count"), value_type("cpu", "nanoseconds")],
        period_type: value_type("cpu", "nanoseconds"),
        period: 10_000_000,
        time_nanos: 1_700_000_000_000_000_000 + (seed as i64 % 1_000_000) * 15_000_000_000,
        duration_nanos: 15_000_000_000,
        mappings: vec![Mapping {
            start: 0x40_0000,
            limit: 0xc0_0000,
            offset: 0,
            file: "/usr/bin/shop",
            build_id: "5f2c9a0d11e84b7f",
            has: [true, true, true, false],
        }],
        sample_starts: vec![0],
        label_starts: vec![0],
        ..Profile::default()
    };
    for (index, (name, file)) in names.functions.iter().take(count).enumerate() {
        profile.functions.push(Function {
            name,
            system_name: name,
            file,
            start_line: (index % 40 * 25) as i64,
        });
        // Two call sites per function. In every fifth function, the next function is inlined.
        for site in 0..2 {
            let lines_start = profile.lines.len() as u32;
            if index % 5 == 0 && site == 1 {
                let function = ((index + 1) % count) as u32;
                profile.lines.push(Line { function, line: 12 });
            }
            let line = (index % 40 * 25 + site * 7 + 3) as i64;
            let function = index as u32;
            profile.lines.push(Line { function, line });
            profile.locations.push(Location {
                mapping: 0,
                address: 0x40_1000 + (index * 2 + site) as u64 * 0x90,
                lines_start,
                lines_end: profile.lines.len() as u32,
                is_folded: false,
            });
        }
    }
    let locations = profile.locations.len() as u64;
    let mut stack: Vec<u32> = Vec::new();
    for sample in 0..shape.samples {
        // Keep a random root part of the previous stack and grow a new leaf part, because call trees share their
        // roots.
        let kept = random.below(stack.len() as u64 + 1) as usize;
        stack.truncate(kept.min(shape.depth.saturating_sub(1)));
        let room = (shape.depth - stack.len()).max(1) as u64;
        for _ in 0..=random.below(room) {
            // Callees lie near their callers, so that paths repeat from profile to profile.
            let caller = u64::from(stack.last().copied().unwrap_or(0));
            stack.push(((caller * 3 + 1 + random.below(6)) % locations) as u32);
        }
        stack.truncate(shape.depth.max(1));
        profile.sample_locations.extend(stack.iter().rev());
        profile.sample_starts.push(profile.sample_locations.len() as u32);
        // Only few samples are large.
        let ticks = 1 + 200 / (1 + random.below(400)) as i64;
        profile.values.extend([ticks, ticks * 10_000_000]);
        if shape.labelled_every > 0 && sample % shape.labelled_every == 0 {
            let route = &names.routes[random.below(names.routes.len() as u64) as usize];
            profile.labels.push(SampleLabel::Text("http.route", route));
        }
        profile.label_starts.push(profile.labels.len() as u32);
    }
    profile
}

fn value_type<'a>(kind: &'a str, unit: &'a str) -> ValueType<'a> {
    ValueType { kind, unit }
}

/// A xorshift generator. It is good enough for synthetic profiles, and returns the same numbers on all platforms.
pub(crate) struct Random(u64);

impl Random {
    /// Creates a generator. Similar seeds result in unrelated numbers.
    pub(crate) fn new(seed: u64) -> Self {
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)) | 1)
    }

    /// Returns the next 64-bit number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns the next number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit.max(1)
    }

    /// Returns the next number from 0 up to but not including 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
