//! Chrome traces: reads the CPU profiles in their events `Profile` and `ProfileChunk`.
//!
//! The reader parses the events one by one and keeps only the data that it uses. If the trace has several profiles and
//! names their threads, each profile gets the thread's name as the label `profile_name`. If the trace has no CPU
//! profile, the module `durations` makes one from the events `B` and `E`, which begin and end a call.

use std::borrow::Cow;
use std::fmt;

use hashbrown::HashMap;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::files::durations::Durations;
use crate::files::error::FileError;
use crate::files::imported::{FileFormat, ImportedProfile};
use crate::files::v8::{CallFrame, Node, V8Profile};

/// Maximum number of profiles in a trace, one per thread.
const MAX_PROFILES: usize = 1000;

/// Maximum memory in bytes of all profiles together. The other limits apply to each profile alone, and a short text in
/// the trace may become a large profile.
const MAX_BYTES: usize = 256 << 20;

/// Reads the profiles of a trace.
pub(super) fn read(json: &[u8]) -> Result<Vec<ImportedProfile>, FileError> {
    read_within(json, MAX_BYTES)
}

fn read_within(json: &[u8], max_bytes: usize) -> Result<Vec<ImportedProfile>, FileError> {
    let format = FileFormat::ChromeTrace;
    let mut contents = Contents::default();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let result = TraceVisitor(&mut contents).deserialize(&mut deserializer);
    result
        .and_then(|()| deserializer.end())
        .map_err(|error| format.invalid(&error))?;
    if contents.profiles.is_empty() {
        let durations = contents.durations.finish().map_err(|error| format.invalid(&error))?;
        let profile = durations.ok_or_else(|| {
            format.invalid(
                &"the trace has no CPU profile (no event `Profile`) and no calls (events `B` and `E`): record it with \
                    JavaScript samples",
            )
        })?;
        return Ok(vec![profile]);
    }
    let has_several = contents.profiles.len() > 1;
    let (mut profiles, mut bytes) = (Vec::new(), 0);
    for part in contents.profiles {
        let (thread, profile) = part.into_profile();
        let profile = profile.finish().map_err(|error| format.invalid(&error))?;
        let Some(mut profile) = profile else { continue };
        bytes += profile.columns.bytes();
        if bytes > max_bytes {
            return Err(format.invalid(&format_args!("its profiles take more than {max_bytes} bytes")));
        }
        if let Some(name) = contents.threads.get(&thread).filter(|_| has_several) {
            profile.labels.push(("profile_name".to_owned(), name.clone()));
        }
        profiles.push(profile);
    }
    Ok(profiles)
}

/// Process and thread, or process and profile id, as they are in the JSON.
type Key<'a> = (&'a str, &'a str);

/// The reason why an event cannot be used.
#[derive(Debug, thiserror::Error)]
enum EventError {
    /// The arguments of an event have an unexpected form.
    #[error("event `{name}`: {source}")]
    Arguments { name: String, source: serde_json::Error },
    #[error("there are more than {MAX_PROFILES} profiles")]
    TooManyProfiles,
}

/// Contents of the events that have been read so far.
#[derive(Default)]
struct Contents<'a> {
    profiles: Vec<Part<'a>>,
    /// Indices of the profiles by process and id.
    indices: HashMap<Key<'a>, usize>,
    threads: HashMap<Key<'a>, String>,
    durations: Durations<'a>,
}

/// A profile and its thread.
struct Part<'a> {
    thread: Key<'a>,
    profile: V8Profile<'a>,
    chunks: Vec<Samples>,
}

/// Samples of a chunk. Events may come in any order, so only the time of the event decides the order of the samples.
struct Samples {
    /// Time of the event in microseconds.
    time: f64,
    samples: Vec<u64>,
    deltas: Vec<f64>,
}

impl<'a> Part<'a> {
    /// Returns the thread, and the profile with the samples of all chunks ordered by time.
    fn into_profile(self) -> (Key<'a>, V8Profile<'a>) {
        let (mut profile, mut chunks) = (self.profile, self.chunks);
        chunks.sort_by(|one, other| one.time.total_cmp(&other.time));
        for chunk in chunks {
            profile.samples.extend(chunk.samples);
            profile.deltas.extend(chunk.deltas);
        }
        (self.thread, profile)
    }
}

/// The fields of an event that the reader uses. Fields that most events do not need are parsed only on demand.
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

/// Contents of a profile event. Times are in microseconds.
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

impl<'a> Contents<'a> {
    /// Adds the data of an event. Fails if the event is invalid.
    fn take(&mut self, event: Event<'a>) -> Result<(), EventError> {
        let thread = (text(event.pid), text(event.tid));
        match (event.name.as_ref(), event.ph.as_ref()) {
            ("thread_name", _) => {
                let arguments = event.args.map(|args| serde_json::from_str(args.get()));
                if let Some(Ok(ThreadArguments { name })) = arguments {
                    self.threads.insert(thread, name.into_owned());
                }
                Ok(())
            }
            (name @ ("Profile" | "ProfileChunk"), _) => {
                let args = event.args.map(|args| serde_json::from_str(args.get()));
                let args: ProfileArguments<'a> = args
                    .transpose()
                    .map_err(|source| EventError::Arguments {
                        name: name.to_owned(),
                        source,
                    })?
                    .unwrap_or_default();
                let key = (text(event.pid), text(event.id));
                let is_start = name == "Profile";
                self.add(key, thread, is_start, text(event.ts), args.data)
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

    /// Adds a part of a profile. A profile belongs to the thread of the event that starts it. Its chunks may come from
    /// another thread, and may precede that event.
    fn add(
        &mut self,
        key: Key<'a>,
        thread: Key<'a>,
        is_start: bool,
        time: &str,
        data: Data<'a>,
    ) -> Result<(), EventError> {
        let index = *self.indices.entry(key).or_insert(self.profiles.len());
        if index == self.profiles.len() {
            if index >= MAX_PROFILES {
                return Err(EventError::TooManyProfiles);
            }
            self.profiles.push(Part {
                thread,
                profile: V8Profile::default(),
                chunks: Vec::new(),
            });
        }
        let Some(part) = self.profiles.get_mut(index) else {
            return Ok(());
        };
        if is_start {
            part.thread = thread;
        }
        let Data {
            start_time,
            end_time,
            cpu_profile,
            time_deltas: mut deltas,
        } = data;
        let profile = &mut part.profile;
        if profile.start == 0.0 {
            profile.start = start_time;
        }
        profile.end = profile.end.max(end_time).max(cpu_profile.end_time);
        deltas.extend(cpu_profile.time_deltas);
        let last = part.chunks.last().map_or(0.0, |chunk| chunk.time);
        part.chunks.push(Samples {
            time: time.parse().unwrap_or(last),
            samples: cpu_profile.samples,
            deltas,
        });
        profile.nodes.extend(cpu_profile.nodes.into_iter().map(|node| Node {
            id: node.id,
            parent: node.parent,
            frame: node.call_frame,
            hits: 0,
        }));
        Ok(())
    }
}

/// A trace: a list of events, or an object that contains one.
struct TraceVisitor<'f, 'a>(&'f mut Contents<'a>);

impl<'a> DeserializeSeed<'a> for TraceVisitor<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for TraceVisitor<'_, 'a> {
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
                map.next_value_seed(TraceVisitor(self.0))?;
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

    /// Returns a chunk at a given time, with samples every 100 microseconds in one node.
    fn chunk(time: u64, node: u64, samples: usize) -> serde_json::Value {
        let nodes = serde_json::json!([{"id": node, "callFrame": {"functionName": format!("f{node}")}}]);
        let profile = serde_json::json!({"nodes": nodes, "samples": vec![node; samples]});
        let data = serde_json::json!({"cpuProfile": profile, "timeDeltas": vec![100; samples]});
        serde_json::json!({"name": "ProfileChunk", "ts": time, "id": 1, "pid": 1, "tid": 9, "args": {"data": data}})
    }

    #[test]
    fn chunks_belong_where_their_times_say_in_whatever_order_they_come() {
        let start = serde_json::json!(
            {"name": "Profile", "ts": 1000, "id": 1, "pid": 1, "tid": 2, "args": {"data": {"startTime": 1000}}}
        );
        let [first, second] = [chunk(1100, 1, 2), chunk(1300, 2, 2)];
        let name = serde_json::json!({"name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "main"}});
        let values = |events: &[&serde_json::Value]| {
            let trace = serde_json::json!(events).to_string();
            let profiles = read(trace.as_bytes()).unwrap();
            let profile = profiles[0].columns.get();
            let named = |sample: usize| {
                let location = profile.stack(sample)[0];
                let line = profile.lines_of(&profile.locations[location as usize])[0];
                (
                    profile.functions[line.function as usize].name.to_owned(),
                    profile.values[sample],
                )
            };
            let mut samples: Vec<_> = (0..profile.sample_count()).map(named).collect();
            samples.sort();
            samples
        };
        // The last sample lasts until the end of the profile, which these events do not state.
        let expected = [("f1".to_owned(), 200_000), ("f2".to_owned(), 100_000)];
        for events in [
            [&name, &start, &first, &second],
            [&name, &start, &second, &first],
            [&second, &first, &start, &name],
        ] {
            assert_eq!(values(&events), expected);
        }
    }

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
