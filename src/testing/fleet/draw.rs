//! Draws the profiles of a synthetic service for one tick (15 seconds) of the fleet.
//!
//! The call paths of each endpoint are drawn by Zipf's law. The load of an endpoint rises and falls over minutes. The
//! allocations of an allocation site vary around a rate.

use std::f64::consts::TAU;

use crate::fleet::program::Program;
use crate::fleet::shape::TICK_SECONDS;
use crate::pprof::{Builder, Function, Line, Mapping, Profile, SampleLabel, ValueType};
use crate::synthetic::Random;

/// Mean distance in bytes between two samples of Go's heap profiler.
const HEAP_RATE: f64 = 524_288.0;
/// Samples per second of Go's CPU profiler.
const HERTZ: f64 = 100.0;

impl Program {
    /// Draws the CPU profile of a pod at a tick.
    pub(super) fn cpu(&self, tick: u64, pod: usize, cores: f64, time_ns: i64, random: &mut Random) -> Profile<'_> {
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
        let template = Profile {
            sample_types: vec![value_type("samples", "count"), value_type("cpu", "nanoseconds")],
            period_type: value_type("cpu", "nanoseconds"),
            period: 10_000_000,
            ..Profile::default()
        };
        let mut samples = Samples::new(self, time_ns, template);
        for (stack, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            samples.add(stack, &[*count, *count * 10_000_000], None);
        }
        samples.builder.finish()
    }

    /// Draws the heap profile of a pod at a tick.
    pub(super) fn heap(&self, tick: u64, pod: usize, time_ns: i64, random: &mut Random) -> Profile<'_> {
        let template = Profile {
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
        let mut samples = Samples::new(self, time_ns, template);
        for site in &self.sites {
            let swing = (tick as f64 / site.period * TAU + site.phase + pod as f64 * 0.4).sin();
            let live = (site.live * (1.0 + 0.3 * swing)).round().max(0.0);
            let allocated = (site.rate.max(0.0) * (0.5 + random.unit()) + random.unit() * 0.9).floor();
            // Factor that estimates the number of all allocations from the sampled ones, as Go computes it.
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

/// Adds samples of a program to a profile. As in Go, the profile contains only locations and functions that samples
/// use.
struct Samples<'a> {
    program: &'a Program,
    builder: Builder<'a>,
    mapping: u32,
    /// For each location of the program, its index in the profile.
    locations: Vec<Option<u32>>,
}

impl<'a> Samples<'a> {
    /// Creates a profile without samples. `template` contains the sample types and the period of the profile.
    fn new(program: &'a Program, time_ns: i64, template: Profile<'a>) -> Self {
        let mut builder = Builder::new(Profile {
            time_nanos: time_ns,
            duration_nanos: TICK_SECONDS * 1_000_000_000,
            ..template
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

    /// Returns the index in the profile of a location of the program. Adds the location to the profile if it is new.
    fn location(&mut self, index: u32) -> u32 {
        if let Some(known) = self.locations[index as usize] {
            return known;
        }
        let (function, line) = self.program.locations[index as usize];
        let mut lines = Vec::with_capacity(2);
        // The last location of every seventh function has the next function inlined.
        if function % 7 == 0 && index % 3 == 2 && (function as usize) + 1 < self.program.functions.len() {
            let line = self.program.functions[function as usize + 1].2 + 2;
            lines.push(self.line(function + 1, line));
        }
        lines.push(self.line(function, line));
        let address = 0x40_1000 + u64::from(index) * 0x5a;
        let location = self.builder.location(self.mapping, address, &lines);
        self.locations[index as usize] = Some(location);
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

fn value_type<'a>(kind: &'a str, unit: &'a str) -> ValueType<'a> {
    ValueType { kind, unit }
}
