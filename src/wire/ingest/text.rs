//! Folded stacks as text: `main;work;parse 12` a line (`groups`), or one stack a line that counts once (`lines`).
//!
//! In: the body and what the query says. Out: a pprof profile and the name that goes with it. The last part of the application's name says
//! what the numbers mean, as in Pyroscope; parts whose meaning is not certain are refused by name.

use hashbrown::HashMap;

use crate::profile::pprof::{Function, Line, Location, Profile, ValueType};
use crate::wire::ingest::IngestQuery;

const SECOND_NANOS: i64 = 1_000_000_000;

/// Longest line, as in Pyroscope; there the rest of the body is dropped without a word, here the line is an error.
const MAX_LINE_BYTES: usize = 64 << 10;

/// What a text profile is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextType {
    /// Application without the part that names the type.
    pub app: String,
    /// `__name__`.
    pub name: &'static str,
    kind: &'static str,
    unit: &'static str,
    period: Option<i64>,
    scale: i64,
}

impl TextType {
    /// The type that the application's name and the sample rate mean.
    pub fn of(query: &IngestQuery) -> Result<Self, String> {
        let (app, suffix) = query.app.rsplit_once('.').unwrap_or((&query.app, ""));
        let memory = |kind, unit| Self {
            app: app.to_owned(),
            name: "memory",
            kind,
            unit,
            period: None,
            scale: 1,
        };
        Ok(match suffix {
            "" | "cpu" => match SECOND_NANOS.checked_div(i64::from(query.sample_rate)) {
                Some(period) => Self {
                    app: app.to_owned(),
                    name: "process_cpu",
                    kind: "cpu",
                    unit: "nanoseconds",
                    period: Some(period),
                    scale: period,
                },
                None => Self {
                    app: app.to_owned(),
                    name: "process_cpu",
                    kind: "samples",
                    unit: "count",
                    period: Some(0),
                    scale: 1,
                },
            },
            "inuse_objects" => memory("inuse_objects", "count"),
            "alloc_objects" => memory("alloc_objects", "count"),
            "inuse_space" => memory("inuse_space", "bytes"),
            "alloc_space" => memory("alloc_space", "bytes"),
            "bytes" => memory("samples", "bytes"),
            other => return Err(format!("unknown profile type: {other}")),
        })
    }

    /// The profile of the lines of `text`; `counted` tells whether each ends with its count.
    pub fn profile<'a>(&self, text: &'a str, counted: bool, query: &IngestQuery) -> Result<Profile<'a>, String> {
        let mut profile = Profile {
            sample_types: vec![ValueType {
                kind: self.kind,
                unit: self.unit,
            }],
            time_nanos: query.from_nanos,
            duration_nanos: query.until_nanos.saturating_sub(query.from_nanos).max(0),
            sample_starts: vec![0],
            label_starts: vec![0],
            ..Profile::default()
        };
        if let Some(period) = self.period {
            profile.period = period;
            profile.period_type = ValueType {
                kind: "cpu",
                unit: "nanoseconds",
            };
        }
        let mut functions: HashMap<&str, u32> = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            if line.len() > MAX_LINE_BYTES {
                return Err(format!("line {} is longer than {MAX_LINE_BYTES} bytes", index + 1));
            }
            let (stack, count) = match (counted, line.rsplit_once(' ')) {
                (false, _) => (line, 1),
                // A line without a count is no stack.
                (true, None) => continue,
                (true, Some((stack, count))) => {
                    let count: i64 = count
                        .trim()
                        .parse()
                        .map_err(|_| format!("line {}: `{count}` is not a count", index + 1))?;
                    (stack, count)
                }
            };
            let stack = stack.trim();
            if stack.is_empty() {
                continue;
            }
            // The text has the root first, pprof the leaf.
            for name in stack.rsplit(';').filter(|name| !name.is_empty()) {
                let location = *functions
                    .entry(name)
                    .or_insert_with(|| push_function(&mut profile, name));
                profile.sample_locations.push(location);
            }
            profile.sample_starts.push(profile.sample_locations.len() as u32);
            profile.label_starts.push(0);
            profile.values.push(count.saturating_mul(self.scale));
        }
        Ok(profile)
    }
}

/// A function of its own location; the index of both.
fn push_function<'a>(profile: &mut Profile<'a>, name: &'a str) -> u32 {
    let index = profile.functions.len() as u32;
    profile.functions.push(Function {
        name,
        ..Function::default()
    });
    profile.lines.push(Line {
        function: index,
        line: 0,
    });
    profile.locations.push(Location {
        mapping: Location::NO_MAPPING,
        lines_start: index,
        lines_end: index + 1,
        ..Location::default()
    });
    index
}
