//! Traces of Chrome: the CPU profiles that are among their events, as `Profile` and `ProfileChunk`.
//!
//! Events are read one after the other; of all others nothing is kept. Each profile has the name of its thread as the
//! label `profile_name`, when the trace says it and has several profiles.

use std::fmt;

use hashbrown::HashMap;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::wire::files::error::FileError;
use crate::wire::files::imported::{FileFormat, ImportedProfile};
use crate::wire::files::v8::{CallFrame, Node, V8Profile};

/// Profiles of a trace, one a thread.
const MAX_PROFILES: usize = 1000;

/// The profiles of a trace.
pub(super) fn read(json: &[u8]) -> Result<Vec<ImportedProfile>, FileError> {
    let format = FileFormat::ChromeTrace;
    let mut found = Found::default();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let read = Whole(&mut found).deserialize(&mut deserializer);
    read.and_then(|()| deserializer.end())
        .map_err(|error| format.wrong(&error))?;
    if found.profiles.is_empty() {
        return Err(
            format.wrong(&"the trace has no CPU profile (no event `Profile`): record it with JavaScript samples")
        );
    }
    let has_several = found.profiles.len() > 1;
    let mut profiles = Vec::new();
    for part in &found.profiles {
        let read = part.profile.finish().map_err(|error| format.wrong(&error))?;
        let Some(mut profile) = read else { continue };
        if let Some(name) = found.threads.get(&part.thread).filter(|_| has_several) {
            profile.labels.push(("profile_name".to_owned(), name.clone()));
        }
        profiles.push(profile);
    }
    Ok(profiles)
}

/// Process and thread, or process and id of a profile, as they are written.
type Key = (String, String);

/// What was found in the events so far.
#[derive(Default)]
struct Found {
    profiles: Vec<Part>,
    /// Indices of the profiles by process and id.
    indices: HashMap<Key, usize>,
    threads: HashMap<Key, String>,
}

/// A profile and the thread that it is of.
struct Part {
    thread: Key,
    profile: V8Profile,
}

/// The parts of an event that matter here.
#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    name: String,
    #[serde(default)]
    pid: Value,
    #[serde(default)]
    tid: Value,
    #[serde(default)]
    id: Value,
    #[serde(default)]
    args: Value,
}

/// `args.data` of `Profile` and `ProfileChunk`. Times are microseconds.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Data {
    start_time: f64,
    end_time: f64,
    cpu_profile: Chunk,
    time_deltas: Vec<f64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Chunk {
    nodes: Vec<ChunkNode>,
    samples: Vec<u64>,
    time_deltas: Vec<f64>,
    end_time: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChunkNode {
    id: u64,
    #[serde(default)]
    parent: Option<u64>,
    call_frame: CallFrame,
}

impl Found {
    /// Takes what an event says, or what is wrong with it.
    fn take(&mut self, event: Event) -> Result<(), String> {
        let thread = (event.pid.to_string(), event.tid.to_string());
        match event.name.as_str() {
            "thread_name" => {
                if let Some(name) = event.args.get("name").and_then(Value::as_str) {
                    self.threads.insert(thread, name.to_owned());
                }
                Ok(())
            }
            "Profile" | "ProfileChunk" => {
                let data = event.args.get("data").cloned().unwrap_or_default();
                let data = Data::deserialize(data).map_err(|error| format!("event `{}`: {error}", event.name))?;
                let key = (event.pid.to_string(), event.id.to_string());
                self.add(key, thread, data)
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, key: Key, thread: Key, data: Data) -> Result<(), String> {
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
struct Whole<'a>(&'a mut Found);

impl<'de> DeserializeSeed<'de> for Whole<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of events, or an object with `traceEvents`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(event) = events.next_element()? {
            self.0.take(event).map_err(A::Error::custom)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
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
