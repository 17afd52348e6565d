//! The kinds of profiles that a job collects, from the `profiling_config` of conprof and Parca.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::app::foreign::findings::Findings;
use crate::app::foreign::format::Format;
use crate::app::foreign::text::Writer;
use crate::app::foreign::yaml::{integer, truth};
use alluvium_lang::literal::quote;

/// Go's execution traces, which are not profiles.
const TRACE: &str = "trace";
/// Minimum scrape interval for profiles that cover a time span, in milliseconds.
const MIN_INTERVAL: u64 = 2_000;
/// Pause between two profiles that cover a time span, in milliseconds.
const GAP: u64 = 1_000;

/// A kind of profile that has a name in one of the formats.
struct Preset {
    /// Name of the kind in the format.
    name: &'static str,
    /// The block of `pyroscope.scrape` for this kind; `None` for a custom profile.
    block: Option<&'static str>,
    path: &'static str,
    /// If true, the profile covers a time span instead of a moment.
    delta: bool,
}

/// The kinds that have a block of their own or that conprof collects by default. The CPU kinds cover a time span.
const PRESETS: [Preset; 9] = [
    momentary_preset("allocs", Some("memory"), "/debug/pprof/allocs"),
    momentary_preset("memory", Some("memory"), "/debug/pprof/allocs"),
    momentary_preset("block", Some("block"), "/debug/pprof/block"),
    momentary_preset("goroutine", Some("goroutine"), "/debug/pprof/goroutine"),
    momentary_preset("mutex", Some("mutex"), "/debug/pprof/mutex"),
    momentary_preset("heap", None, "/debug/pprof/heap"),
    momentary_preset("threadcreate", Some("threadcreate"), "/debug/pprof/threadcreate"),
    Preset {
        delta: true,
        ..momentary_preset("profile", Some("process_cpu"), "/debug/pprof/profile")
    },
    Preset {
        delta: true,
        ..momentary_preset("process_cpu", Some("process_cpu"), "/debug/pprof/profile")
    },
];
/// Blocks of `pyroscope.scrape` that are enabled by default.
const ON: [&str; 5] = ["block", "goroutine", "memory", "mutex", "process_cpu"];

/// The kinds of profiles that a job collects.
pub(super) struct Kinds {
    path_prefix: Option<String>,
    /// Kinds by their names in the foreign format.
    by_name: BTreeMap<String, Kind>,
    /// Requested duration of profiles that cover a time span, in milliseconds; `None` for the longest duration that the
    /// scrape interval allows.
    duration_ms: Option<u64>,
}

struct Kind {
    path: String,
    delta: bool,
}

const fn momentary_preset(name: &'static str, block: Option<&'static str>, path: &'static str) -> Preset {
    Preset {
        name,
        block,
        path,
        delta: false,
    }
}

impl Kinds {
    /// Returns the default kinds of the format, changed by the job's `profiling_config` at `path`.
    pub(super) fn new(format: Format, (path, config): (&str, Option<&Value>), findings: &mut Findings) -> Self {
        let (names, duration_ms): (&[&str], _) = match format {
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
        let default_kind = |name: &&str| {
            let preset = PRESETS.iter().find(|preset| preset.name == *name)?;
            let (path, delta) = (preset.path.to_owned(), preset.delta);
            Some(((*name).to_owned(), Kind { path, delta }))
        };
        let mut kinds = Self {
            path_prefix: None,
            by_name: names.iter().filter_map(default_kind).collect(),
            duration_ms,
        };
        match config {
            None | Some(Value::Null) => {}
            Some(Value::Object(config)) => kinds.change(path, config, findings),
            Some(_) => findings.problem(path, "must be a mapping"),
        }
        kinds
    }

    fn change(&mut self, path: &str, config: &Map<String, Value>, findings: &mut Findings) {
        for (key, value) in config {
            let path = format!("{path}.{key}");
            match (&**key, value) {
                ("path_prefix", Value::String(prefix)) => self.path_prefix = Some(prefix.clone()),
                ("pprof_config", Value::Object(kinds)) => {
                    for (name, value) in kinds {
                        self.kind(name, (&format!("{path}.{name}"), value), findings);
                    }
                }
                ("path_prefix" | "pprof_config", Value::Null) => {}
                ("path_prefix" | "pprof_config", _) => findings.problem(&path, "has the wrong type"),
                _ => findings.problem(&path, "unknown key"),
            }
        }
    }

    fn kind(&mut self, name: &str, (path, value): (&str, &Value), findings: &mut Findings) {
        let before = self.by_name.remove(name);
        let (mut is_taken, mut kind) = (true, before.unwrap_or_else(|| Kind::named(name)));
        if name == TRACE {
            return findings.note(path, "execution traces are not profiles and are left out");
        }
        let empty = Map::new();
        let settings = match value {
            Value::Object(settings) => settings,
            Value::Null => &empty,
            _ => return findings.problem(path, "must be a mapping"),
        };
        for (key, value) in settings {
            let path = format!("{path}.{key}");
            match (&**key, value) {
                ("enabled" | "delta", Value::String(text)) => match (truth(text), &**key) {
                    (Some(is_enabled), "enabled") => is_taken = is_enabled,
                    (Some(is_delta), _) => kind.delta = is_delta,
                    (None, _) => findings.problem(&path, "has the wrong type"),
                },
                ("path", Value::String(text)) if text.is_empty() => {}
                ("path", Value::String(text)) => text.clone_into(&mut kind.path),
                ("seconds", Value::String(text)) => match integer(text) {
                    Some(seconds) => {
                        let seconds = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
                        self.duration_ms = seconds.map(|seconds| seconds.saturating_mul(1_000));
                    }
                    None => findings.problem(&path, "has the wrong type"),
                },
                ("keep_sample_type", _) => findings.note(&path, "all sample types are kept"),
                ("enabled" | "path" | "delta" | "seconds", Value::Null) => {}
                ("enabled" | "path" | "delta" | "seconds", _) => findings.problem(&path, "has the wrong type"),
                _ => findings.problem(&path, "unknown key"),
            }
        }
        if is_taken {
            self.by_name.insert(name.to_owned(), kind);
        }
    }

    /// Writes the `profiling_config` of the job at `path`. `interval` is the job's scrape interval in milliseconds.
    pub(super) fn write(mut self, interval: u64, path: &str, out: &mut Writer, findings: &mut Findings) {
        if interval < MIN_INTERVAL {
            let timed: Vec<String> = self
                .by_name
                .iter()
                .filter(|(_, kind)| kind.delta)
                .map(|(name, _)| name.clone())
                .collect();
            for name in timed {
                self.by_name.remove(&name);
                findings.note(
                    path,
                    format_args!(
                        "the profile `{name}` covers a time span, for which the scrape interval of {interval} ms is \
                         too short: this profile is not taken"
                    ),
                );
            }
        }
        let longest = interval.saturating_sub(GAP);
        let has_timed = self.by_name.values().any(|kind| kind.delta);
        match self.duration_ms {
            // The attribute defaults to the longest duration, so it is written only if the wanted duration is shorter.
            Some(duration_ms) if has_timed && duration_ms < longest => {
                out.attribute("delta_profiling_duration", &quote(&format!("{duration_ms}ms")));
            }
            _ => {}
        }
        out.open("profiling_config", None);
        if let Some(prefix) = &self.path_prefix {
            out.attribute("path_prefix", &quote(prefix));
        }
        for block in ON {
            if !self.by_name.keys().any(|name| block_of(name) == Some(block)) {
                out.open(&format!("profile.{block}"), None);
                out.attribute("enabled", "false");
                out.close();
            }
        }
        for (name, kind) in &self.by_name {
            kind.write(name, out);
        }
        out.close();
    }
}

impl Kind {
    /// Returns the kind of this name with its default path.
    fn named(name: &str) -> Self {
        let preset = PRESETS.iter().find(|preset| preset.name == name);
        Self {
            path: preset.map_or_else(|| format!("/debug/pprof/{name}"), |preset| preset.path.to_owned()),
            delta: preset.is_some_and(|preset| preset.delta) || name == "fgprof",
        }
    }

    fn write(&self, name: &str, out: &mut Writer) {
        let block = block_of(name);
        let is_on = |preset: &&Preset| preset.name == name && preset.block.is_some_and(|block| ON.contains(&block));
        let preset = PRESETS.iter().find(is_on);
        // A kind that is enabled by default and has its default settings is not written.
        if preset.is_some_and(|preset| preset.path == self.path && preset.delta == self.delta) {
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
    PRESETS
        .iter()
        .find(|preset| preset.name == name)
        .and_then(|preset| preset.block)
}
