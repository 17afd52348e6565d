//! The kinds of profiles that a job collects, from the `profiling_config` of conprof and Parca.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::app::foreign::findings::Findings;
use crate::app::foreign::format::Format;
use crate::app::foreign::text::Writer;
use crate::app::foreign::yaml::{truth, whole};
use alluvium_lang::literal::quote;

/// Go's execution traces, which are not profiles.
const TRACE: &str = "trace";
/// Minimum scrape interval for profiles that cover a time span, in milliseconds.
const MIN_INTERVAL: u64 = 2_000;
/// Pause between two profiles that cover a time span, in milliseconds.
const GAP: u64 = 1_000;

/// A kind of profile that has a name in one of the formats.
struct Known {
    /// Name of the kind in the format.
    name: &'static str,
    /// The block of `pyroscope.scrape` for this kind; `None` for a custom profile.
    block: Option<&'static str>,
    path: &'static str,
    /// If true, the profile covers a time span instead of a moment.
    delta: bool,
}

/// The kinds that have a block of their own or that conprof collects by default. The CPU kinds cover a time span.
const KNOWN: [Known; 9] = [
    known("allocs", Some("memory"), "/debug/pprof/allocs"),
    known("memory", Some("memory"), "/debug/pprof/allocs"),
    known("block", Some("block"), "/debug/pprof/block"),
    known("goroutine", Some("goroutine"), "/debug/pprof/goroutine"),
    known("mutex", Some("mutex"), "/debug/pprof/mutex"),
    known("heap", None, "/debug/pprof/heap"),
    known("threadcreate", Some("threadcreate"), "/debug/pprof/threadcreate"),
    Known {
        delta: true,
        ..known("profile", Some("process_cpu"), "/debug/pprof/profile")
    },
    Known {
        delta: true,
        ..known("process_cpu", Some("process_cpu"), "/debug/pprof/profile")
    },
];
/// Blocks of `pyroscope.scrape` that are enabled by default.
const ON: [&str; 5] = ["block", "goroutine", "memory", "mutex", "process_cpu"];

/// The kinds of profiles that a job collects.
pub(super) struct Kinds {
    path_prefix: Option<String>,
    /// Kinds by their names in the foreign format.
    taken: BTreeMap<String, Kind>,
    /// Requested duration of profiles that cover a time span, in milliseconds; `None` for the longest duration that the
    /// scrape interval allows.
    wanted: Option<u64>,
}

struct Kind {
    path: String,
    delta: bool,
}

const fn known(name: &'static str, block: Option<&'static str>, path: &'static str) -> Known {
    Known {
        name,
        block,
        path,
        delta: false,
    }
}

impl Kinds {
    /// Returns the default kinds of the format, changed by the job's `profiling_config` at `path`.
    pub(super) fn new(format: Format, (path, given): (&str, Option<&Value>), found: &mut Findings) -> Self {
        let (names, wanted): (&[&str], _) = match format {
            Format::Conprof => (
                &[
                    "allocs",
                    "block",
                    "goroutine",
                    "heap",
                    "mutex",
                    "profile",
                    "threadcreate",
                ],
                Some(30_000),
            ),
            Format::Parca => (&["memory", "block", "goroutine", "mutex", "process_cpu"], None),
            _ => (&["allocs", "block", "goroutine", "mutex", "profile"], None),
        };
        let of = |name: &&str| {
            let known = KNOWN.iter().find(|known| known.name == *name)?;
            let (path, delta) = (known.path.to_owned(), known.delta);
            Some(((*name).to_owned(), Kind { path, delta }))
        };
        let mut kinds = Self {
            path_prefix: None,
            taken: names.iter().filter_map(of).collect(),
            wanted,
        };
        match given {
            None | Some(Value::Null) => {}
            Some(Value::Object(given)) => kinds.change(path, given, found),
            Some(_) => found.problem(path, "must be a mapping"),
        }
        kinds
    }

    fn change(&mut self, path: &str, given: &Map<String, Value>, found: &mut Findings) {
        for (key, value) in given {
            let path = format!("{path}.{key}");
            match (&**key, value) {
                ("path_prefix", Value::String(prefix)) => self.path_prefix = Some(prefix.clone()),
                ("pprof_config", Value::Object(kinds)) => {
                    for (name, value) in kinds {
                        self.kind(name, (&format!("{path}.{name}"), value), found);
                    }
                }
                ("path_prefix" | "pprof_config", Value::Null) => {}
                ("path_prefix" | "pprof_config", _) => found.problem(&path, "has the wrong type"),
                _ => found.problem(&path, "unknown key"),
            }
        }
    }

    fn kind(&mut self, name: &str, (path, value): (&str, &Value), found: &mut Findings) {
        let before = self.taken.remove(name);
        let (mut is_taken, mut kind) = (true, before.unwrap_or_else(|| Kind::named(name)));
        if name == TRACE {
            return found.note(path, "execution traces are not profiles and are left out");
        }
        let empty = Map::new();
        let settings = match value {
            Value::Object(settings) => settings,
            Value::Null => &empty,
            _ => return found.problem(path, "must be a mapping"),
        };
        for (key, value) in settings {
            let path = format!("{path}.{key}");
            match (&**key, value) {
                ("enabled" | "delta", Value::String(text)) => match (truth(text), &**key) {
                    (Some(is_enabled), "enabled") => is_taken = is_enabled,
                    (Some(is_delta), _) => kind.delta = is_delta,
                    (None, _) => found.problem(&path, "has the wrong type"),
                },
                ("path", Value::String(text)) if text.is_empty() => {}
                ("path", Value::String(text)) => text.clone_into(&mut kind.path),
                ("seconds", Value::String(text)) => match whole(text) {
                    Some(seconds) => {
                        let seconds = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
                        self.wanted = seconds.map(|seconds| seconds.saturating_mul(1_000));
                    }
                    None => found.problem(&path, "has the wrong type"),
                },
                ("keep_sample_type", _) => found.note(&path, "all sample types are kept"),
                ("enabled" | "path" | "delta" | "seconds", Value::Null) => {}
                ("enabled" | "path" | "delta" | "seconds", _) => found.problem(&path, "has the wrong type"),
                _ => found.problem(&path, "unknown key"),
            }
        }
        if is_taken {
            self.taken.insert(name.to_owned(), kind);
        }
    }

    /// Writes the `profiling_config` of the job at `path`. `interval` is the job's scrape interval in milliseconds.
    pub(super) fn write(mut self, interval: u64, path: &str, out: &mut Writer, found: &mut Findings) {
        if interval < MIN_INTERVAL {
            let timed: Vec<String> = self
                .taken
                .iter()
                .filter(|(_, kind)| kind.delta)
                .map(|(name, _)| name.clone())
                .collect();
            for name in timed {
                self.taken.remove(&name);
                found.note(
                    path,
                    format_args!(
                        "the profile `{name}` covers a time span, for which the scrape interval of {interval} ms is \
                         too short: this profile is not taken"
                    ),
                );
            }
        }
        let longest = interval.saturating_sub(GAP);
        let has_timed = self.taken.values().any(|kind| kind.delta);
        match self.wanted {
            // The attribute defaults to the longest duration, so it is written only if the wanted duration is shorter.
            Some(wanted) if has_timed && wanted < longest => {
                out.attribute("delta_profiling_duration", &quote(&format!("{wanted}ms")));
            }
            _ => {}
        }
        out.open("profiling_config", None);
        if let Some(prefix) = &self.path_prefix {
            out.attribute("path_prefix", &quote(prefix));
        }
        for block in ON {
            if !self.taken.keys().any(|name| block_of(name) == Some(block)) {
                out.open(&format!("profile.{block}"), None);
                out.attribute("enabled", "false");
                out.close();
            }
        }
        for (name, kind) in &self.taken {
            kind.write(name, out);
        }
        out.close();
    }
}

impl Kind {
    /// Returns the kind of this name with its default path.
    fn named(name: &str) -> Self {
        let known = KNOWN.iter().find(|known| known.name == name);
        Self {
            path: known.map_or_else(|| format!("/debug/pprof/{name}"), |known| known.path.to_owned()),
            delta: known.is_some_and(|known| known.delta) || name == "fgprof",
        }
    }

    fn write(&self, name: &str, out: &mut Writer) {
        let block = block_of(name);
        let is_on = |known: &&Known| known.name == name && known.block.is_some_and(|block| ON.contains(&block));
        let known = KNOWN.iter().find(is_on);
        // A kind that is enabled by default and has its default settings is not written.
        if known.is_some_and(|known| known.path == self.path && known.delta == self.delta) {
            return;
        }
        match block {
            Some(block) => out.open(&format!("profile.{block}"), None),
            None => out.open("profile.custom", Some(name)),
        }
        out.attribute("enabled", "true");
        out.attribute("path", &quote(&self.path));
        out.attribute("delta", if self.delta { "true" } else { "false" });
        out.close();
    }
}

/// Returns the block of `pyroscope.scrape` for a kind of this name.
fn block_of(name: &str) -> Option<&'static str> {
    if name == "fgprof" {
        return Some("fgprof");
    }
    KNOWN
        .iter()
        .find(|known| known.name == name)
        .and_then(|known| known.block)
}
