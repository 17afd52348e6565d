//! Builds gzip pprof from samples of the own process. Frames are identified by name, equal stacks are merged, and the
//! program is the only mapping.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alluvium_profile::pprof::{Builder, Function, Line, Mapping, Profile, encode, gzip};

/// A frame with its names; the file may be empty and the line 0.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    pub function: &'a str,
    pub file: &'a str,
    pub line: u32,
}

/// Samples of one profile, summed by stack.
pub(super) struct Samples<'a> {
    builder: Builder<'a>,
    mapping: u32,
    /// Sums of the values by stack.
    sums: BTreeMap<Vec<u32>, Vec<i64>>,
}

/// Returns the path of the running program, for [`Samples::new`].
pub(super) fn program() -> String {
    std::env::current_exe()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

impl<'a> Samples<'a> {
    /// Creates an empty set of samples. `header` contains the sample types and the period.
    pub(super) fn new(program: &'a str, header: Profile<'a>) -> Self {
        let mut builder = Builder::new(header);
        let mapping = builder.mapping(Mapping {
            file: program,
            has: [true; 4],
            ..Mapping::default()
        });
        Self {
            builder,
            mapping,
            sums: BTreeMap::new(),
        }
    }

    /// Adds or finds the location at this address (0 when unknown) with these frames, innermost inlined frame first.
    pub(super) fn location(&mut self, address: u64, frames: impl IntoIterator<Item = Frame<'a>>) -> u32 {
        let lines = frames.into_iter().map(|frame| Line {
            function: self.builder.function(Function {
                name: frame.function,
                system_name: frame.function,
                file: short_path(frame.file),
                start_line: 0,
            }),
            line: i64::from(frame.line),
        });
        let lines: Vec<Line> = lines.collect();
        self.builder.location(self.mapping, address, &lines)
    }

    /// Adds values to a stack, leaf first, with one value for each sample type.
    pub(super) fn add(&mut self, stack: Vec<u32>, values: &[i64]) {
        let sums = self.sums.entry(stack).or_insert_with(|| vec![0; values.len()]);
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = sum.saturating_add(*value);
        }
    }

    /// Encodes the profile as gzip pprof, with its start time and duration.
    pub(super) fn finish(mut self, started: SystemTime, duration: Duration) -> Vec<u8> {
        for (stack, values) in self.sums {
            self.builder.sample(stack, [], &values);
        }
        let since_epoch = started.duration_since(UNIX_EPOCH).unwrap_or_default();
        gzip(&encode(&Profile {
            time_nanos: i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX),
            duration_nanos: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX),
            ..self.builder.finish()
        }))
    }
}

/// Removes the beginning of a path, which depends on the build machine. The result is for example
/// `tokio-1.0.0/src/lib.rs` or `library/std/src/rt.rs`.
fn short_path(path: &str) -> &str {
    for (marker, parts) in [("/registry/src/", 1), ("/rustc/", 1)] {
        if let Some(offset) = path.find(marker) {
            let rest = &path[offset + marker.len()..];
            return rest.splitn(parts + 1, '/').nth(parts).unwrap_or(rest);
        }
    }
    path
}
