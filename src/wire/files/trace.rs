//! Traces of Chrome: the CPU profiles that are among their events, as `Profile` and `ProfileChunk`.
//!
//! Events are read one after the other; of all others nothing is kept. Each profile has the name of its thread as the
//! label `profile_name`, when the trace says it and has several profiles. A trace without a CPU profile may have calls
//! that begin and end (`durations`).

use std::borrow::Cow;
use std::fmt;

use hashbrown::HashMap;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::wire::files::durations::Durations;
use crate::wire::files::error::FileError;
use crate::wire::files::imported::{FileFormat, ImportedProfile};
use crate::wire::files::v8::{CallFrame, Node, V8Profile};

/// Profiles of a trace, one a thread.
const MAX_PROFILES: usize = 1000;

/// Memory of all profiles together: each has the limits of a file, and may be large without being long in the trace.
const MAX_BYTES: usize = 256 << 20;

/// The profiles of a trace.
pub(super) fn read(json: &[u8]) -> Result<Vec<ImportedProfile>, FileError> {
    read_within(json, MAX_BYTES)
}

fn read_within(json: &[u8], max_bytes: usize) -> Result<Vec<ImportedProfile>, FileError> {
    let format = FileFormat::ChromeTrace;
    let mut found = Found::default();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let read = Whole(&mut found).deserialize(&mut deserializer);
    read.and_then(|()| deserializer.end())
        .map_err(|error| format.wrong(&error))?;
    if found.profiles.is_empty() {
        let durations = found.durations.finish().map_err(|error| format.wrong(&error))?;
        let profile = durations.ok_or_else(|| {
            format.wrong(
                &"the trace has no CPU profile (no event `Profile`) and no calls (events `B` and `E`): record it with \
                    JavaScript samples",
            )
        })?;
        return Ok(vec![profile]);
    }
    let has_several = found.profiles.len() > 1;
    let (mut profiles, mut bytes) = (Vec::new(), 0);
    for part in &found.profiles {
        let read = part.profile.finish().map_err(|error| format.wrong(&error))?;
        let Some(mut profile) = read else { continue };
        bytes += profile.columns.bytes();
        if bytes > max_bytes {
            return Err(format.wrong(&format_args!("its profiles take more than {max_bytes} bytes")));
        }
        if let Some(name) = found.threads.get(&part.thread).filter(|_| has_several) {
            profile.labels.push(("profile_name".to_owned(), name.clone()));
        }
        profiles.push(profile);
    }
    Ok(profiles)
}

/// Process and thread, or process and id of a profile, as they are written.
type Key<'a> = (&'a str, &'a str);

/// What was found in the events so far.
#[derive(Default)]
struct Found<'a> {
    profiles: Vec<Part<'a>>,
    /// Indices of the profiles by process and id.
    indices: HashMap<Key<'a>, usize>,
    threads: HashMap<Key<'a>, String>,
    durations: Durations<'a>,
}

/// A profile and the thread that it is of.
struct Part<'a> {
    thread: Key<'a>,
    profile: V8Profile<'a>,
}

/// The parts of an event that matter here. Those that most events do not need are not read before they are asked for.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    ph: Cow<'a, str>,
    /// Time of the event in microseconds.
    #[serde(borrow, default)]
    ts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pid: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tid: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

/// `args` of the event that names a thread.
#[derive(Deserialize)]
struct ThreadArguments<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// `args` of `Profile` and `ProfileChunk`.
#[derive(Deserialize, Default)]
struct ProfileArguments<'a> {
    #[serde(borrow, default)]
    data: Data<'a>,
}

/// Times are microseconds.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Data<'a> {
    start_time: f64,
    end_time: f64,
    #[serde(borrow)]
    cpu_profile: Chunk<'a>,
    time_deltas: Vec<f64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Chunk<'a> {
    #[serde(borrow)]
    nodes: Vec<ChunkNode<'a>>,
    samples: Vec<u64>,
    time_deltas: Vec<f64>,
    end_time: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChunkNode<'a> {
    id: u64,
    #[serde(default)]
    parent: Option<u64>,
    #[serde(borrow)]
    call_frame: CallFrame<'a>,
}

fn text(value: Option<&RawValue>) -> &str {
    value.map_or("", RawValue::get)
}

impl<'a> Found<'a> {
    /// Takes what an event says, or what is wrong with it.
    fn take(&mut self, event: Event<'a>) -> Result<(), String> {
        let thread = (text(event.pid), text(event.tid));
        match (event.name.as_ref(), event.ph.as_ref()) {
            ("thread_name", _) => {
                let named = event.args.map(|args| serde_json::from_str(args.get()));
                if let Some(Ok(ThreadArguments { name })) = named {
                    self.threads.insert(thread, name.into_owned());
                }
                Ok(())
            }
            (name @ ("Profile" | "ProfileChunk"), _) => {
                let args = event.args.map(|args| serde_json::from_str(args.get()));
                let args: ProfileArguments<'a> = args
                    .transpose()
                    .map_err(|error| format!("event `{name}`: {error}"))?
                    .unwrap_or_default();
                self.add((text(event.pid), text(event.id)), thread, args.data)
            }
            (name, "B") => {
                self.durations.begin(thread, text(event.ts), name, text(event.args));
                Ok(())
            }
            (_, "E") => {
                self.durations.end(thread, text(event.ts));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, key: Key<'a>, thread: Key<'a>, data: Data<'a>) -> Result<(), String> {
        let index = *self.indices.entry(key).or_insert(self.profiles.len());
        if index == self.profiles.len() {
            if index >= MAX_PROFILES {
                return Err(format!("there are more than {MAX_PROFILES} profiles"));
            }
            let profile = V8Profile {
                start: data.start_time,
                ..V8Profile::default()
            };
            self.profiles.push(Part { thread, profile });
        }
        let Some(part) = self.profiles.get_mut(index) else {
            return Ok(());
        };
        let Data {
            end_time, cpu_profile, ..
        } = data;
        let profile = &mut part.profile;
        profile.end = profile.end.max(end_time).max(cpu_profile.end_time);
        profile.samples.extend(cpu_profile.samples);
        profile.deltas.extend(data.time_deltas);
        profile.deltas.extend(cpu_profile.time_deltas);
        profile.nodes.extend(cpu_profile.nodes.into_iter().map(|node| Node {
            id: node.id,
            parent: node.parent,
            frame: node.call_frame,
            hits: 0,
        }));
        Ok(())
    }
}

/// A trace: a list of events, or an object that has one.
struct Whole<'f, 'a>(&'f mut Found<'a>);

impl<'a> DeserializeSeed<'a> for Whole<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Whole<'_, 'a> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of events, or an object with `traceEvents`")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(event) = events.next_element()? {
            self.0.take(event).map_err(A::Error::custom)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "traceEvents" {
                map.next_value_seed(Whole(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profiles_of_a_trace_have_one_limit_together() {
        let nodes = serde_json::json!([{"id": 1, "callFrame": {"functionName": "main"}}]);
        let data = serde_json::json!({"cpuProfile": {"nodes": nodes, "samples": [1, 1]}, "timeDeltas": [5, 9]});
        let event = |id| serde_json::json!({"name": "ProfileChunk", "id": id, "pid": 1, "args": {"data": data}});
        let trace = serde_json::json!([event(1), event(2)]).to_string();
        let profiles = read(trace.as_bytes()).unwrap();
        assert_eq!(profiles.len(), 2);
        let bytes: usize = profiles.iter().map(|profile| profile.columns.bytes()).sum();
        assert_eq!(read_within(trace.as_bytes(), bytes).unwrap().len(), 2);
        let error = read_within(trace.as_bytes(), bytes - 1).unwrap_err().to_string();
        assert!(
            error.ends_with(&format!("its profiles take more than {} bytes", bytes - 1)),
            "{error}"
        );
    }
}
