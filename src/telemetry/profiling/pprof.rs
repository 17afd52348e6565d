//! A small writer of pprof for profiles of our own process.
//!
//! In: stacks of named frames. Out: gzip pprof. `profile::pprof` has the real codec, with another purpose (bytes of others, without copies)
//! and in a layer above this one. Field numbers are those of `profile.proto`. Equal frames, locations and stacks are joined.

use std::collections::HashMap;
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prost::Message;

/// A frame with its names; the file may be empty, the line 0.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    pub function: &'a str,
    pub file: &'a str,
    pub line: u32,
}

/// Collects samples.
pub struct Writer {
    profile: Profile,
    strings: HashMap<String, i64>,
    /// Name and file to function id.
    functions: HashMap<(i64, i64), u64>,
    /// Address and lines (function, line) to location id.
    locations: HashMap<(u64, Vec<(u64, u32)>), u64>,
    /// Stack to its place among the samples.
    samples: HashMap<Vec<u64>, usize>,
}

impl Writer {
    /// An empty profile; types and the period's type are `(type, unit)`.
    pub fn new(types: &[(&str, &str)], period_type: (&str, &str), period: i64) -> Self {
        let mut writer = Self {
            profile: Profile {
                period,
                string_table: vec![String::new()],
                ..Profile::default()
            },
            strings: HashMap::from([(String::new(), 0)]),
            functions: HashMap::new(),
            locations: HashMap::new(),
            samples: HashMap::new(),
        };
        for &pair in types {
            let value_type = writer.value_type(pair);
            writer.profile.sample_type.push(value_type);
        }
        writer.profile.period_type = Some(writer.value_type(period_type));
        let program = std::env::current_exe().unwrap_or_default();
        let filename = writer.string(&program.to_string_lossy());
        writer.profile.mapping.push(Mapping {
            id: 1,
            filename,
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        });
        writer
    }

    /// The id of the location at this address (0 when unknown) with these frames, innermost inlined first.
    pub fn location(&mut self, address: u64, frames: &[Frame<'_>]) -> u64 {
        let lines: Vec<_> = frames.iter().map(|frame| (self.function(frame), frame.line)).collect();
        let next = self.locations.len() as u64 + 1;
        let key = (address, lines);
        if let Some(&id) = self.locations.get(&key) {
            return id;
        }
        let line = |&(function_id, line): &(u64, u32)| Line {
            function_id,
            line: i64::from(line),
        };
        self.profile.location.push(Location {
            id: next,
            mapping_id: 1,
            address,
            line: key.1.iter().map(line).collect(),
        });
        self.locations.insert(key, next);
        next
    }

    /// Adds values to a stack, leaf first; one value a sample type.
    pub fn sample(&mut self, stack: &[u64], values: &[i64]) {
        if let Some(&place) = self.samples.get(stack) {
            let old = &mut self.profile.sample[place].value;
            old.iter_mut()
                .zip(values)
                .for_each(|(old, &new)| *old = old.saturating_add(new));
            return;
        }
        self.samples.insert(stack.to_vec(), self.profile.sample.len());
        self.profile.sample.push(Sample {
            location_id: stack.to_vec(),
            value: values.to_vec(),
        });
    }

    /// The gzip bytes.
    pub fn finish(mut self, started: SystemTime, duration: Duration) -> Vec<u8> {
        let since_epoch = started.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.profile.time_nanos = i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX);
        self.profile.duration_nanos = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        let bytes = self.profile.encode_to_vec();
        let mut gzip = flate2::write::GzEncoder::new(Vec::with_capacity(bytes.len() / 3), flate2::Compression::fast());
        // Writing to memory does not fail.
        let _ = gzip.write_all(&bytes);
        gzip.finish().unwrap_or_default()
    }

    fn value_type(&mut self, (kind, unit): (&str, &str)) -> ValueType {
        ValueType {
            kind: self.string(kind),
            unit: self.string(unit),
        }
    }

    fn function(&mut self, frame: &Frame<'_>) -> u64 {
        let (name, filename) = (self.string(frame.function), self.string(short_path(frame.file)));
        let next = self.functions.len() as u64 + 1;
        *self.functions.entry((name, filename)).or_insert_with(|| {
            self.profile.function.push(Function {
                id: next,
                name,
                system_name: name,
                filename,
            });
            next
        })
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(&id) = self.strings.get(text) {
            return id;
        }
        let id = self.profile.string_table.len() as i64;
        self.profile.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), id);
        id
    }
}

/// A path without what depends on the machine that built the program: `tokio-1.0.0/src/lib.rs`, `library/std/src/rt.rs`.
fn short_path(path: &str) -> &str {
    for (before, parts) in [("/registry/src/", 1), ("/rustc/", 1)] {
        if let Some(at) = path.find(before) {
            let rest = &path[at + before.len()..];
            return rest.splitn(parts + 1, '/').nth(parts).unwrap_or(rest);
        }
    }
    path
}

#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub period: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct ValueType {
    #[prost(int64, tag = "1")]
    pub kind: i64,
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Mapping {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(int64, tag = "5")]
    pub filename: i64,
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Location {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub address: u64,
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Line {
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    #[prost(int64, tag = "2")]
    pub line: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Function {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(int64, tag = "2")]
    pub name: i64,
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    #[prost(int64, tag = "4")]
    pub filename: i64,
}

#[cfg(test)]
mod unit {
    use super::short_path;

    #[test]
    fn paths_lose_what_is_the_machines() {
        let cases = [
            (
                "/h/.cargo/registry/src/index-1/tokio-1.0.0/src/lib.rs",
                "tokio-1.0.0/src/lib.rs",
            ),
            ("/rustc/abc/library/std/src/rt.rs", "library/std/src/rt.rs"),
            ("src/main.rs", "src/main.rs"),
            ("", ""),
        ];
        for (path, short) in cases {
            assert_eq!(short_path(path), short);
        }
    }
}
