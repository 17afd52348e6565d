//! Flamebearer, version 1: the JSON format in which Pyroscope's routes `/pyroscope/render` and
//! `/pyroscope/render-diff` return a flame graph with its metadata.
//!
//! In: flame graphs and differences as in `profile`. Out: values that serde writes with exactly Pyroscope's fields.
//! Numbers are JSON numbers, not strings as in protobuf's JSON. The caller adds the time lines.

use std::collections::BTreeMap;

use serde::Serialize;

use alluvium_profile::ProfileType;
use alluvium_profile::flamegraph::{DiffGraph, FlameGraph};

/// Sample rate reported for types other than CPU time.
const SAMPLE_RATE: u32 = 100;
/// Sample rate reported for CPU time. CPU time is in nanoseconds, so one sample stands for one nanosecond.
const CPU_SAMPLE_RATE: u32 = 1_000_000_000;

/// Response of `/pyroscope/render` or `/pyroscope/render-diff`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlamebearerProfile {
    version: u32,
    flamebearer: Flamebearer,
    metadata: Metadata,
    /// Time line of all values; `None` for a difference.
    pub timeline: Option<Timeline>,
    /// Time lines by value of the `group_by` label.
    pub groups: Option<BTreeMap<String, Timeline>>,
    /// Always `null`, as in Pyroscope: heat maps have a route of their own.
    heatmap: Option<()>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_ticks: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    right_ticks: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Flamebearer {
    names: Vec<String>,
    /// The nodes of each level as one list of integers: four for each node, or seven in a difference.
    levels: Vec<Vec<i64>>,
    num_ticks: i64,
    max_self: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    format: &'static str,
    /// Always empty, because a response may cover profiles of several agents.
    spy_name: &'static str,
    sample_rate: u32,
    units: String,
    name: String,
}

/// Values at equal intervals.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    /// Time of the first value in Unix seconds.
    pub start_time: i64,
    /// One value for each step; 0 for a step without profiles.
    pub samples: Vec<u64>,
    /// Length of a step in seconds.
    pub duration_delta: i64,
    /// Always `null`, as in Pyroscope.
    pub watermarks: Option<()>,
}

impl FlamebearerProfile {
    /// Builds the response for a flame graph of one profile type, without time lines.
    pub fn single(graph: FlameGraph, profile_type: &ProfileType) -> Self {
        Self {
            version: 1,
            flamebearer: Flamebearer {
                names: graph.names,
                levels: graph.levels,
                num_ticks: graph.total,
                max_self: graph.max_self,
            },
            metadata: Metadata::new("single", profile_type),
            timeline: None,
            groups: None,
            heatmap: None,
            left_ticks: None,
            right_ticks: None,
        }
    }

    /// Builds the response for the difference between two flame graphs of one profile type.
    pub fn double(graph: DiffGraph, profile_type: &ProfileType) -> Self {
        Self {
            version: 1,
            flamebearer: Flamebearer {
                names: graph.names,
                levels: graph.levels,
                num_ticks: graph.total,
                max_self: graph.max_self,
            },
            metadata: Metadata::new("double", profile_type),
            timeline: None,
            groups: None,
            heatmap: None,
            left_ticks: Some(graph.left_ticks),
            right_ticks: Some(graph.right_ticks),
        }
    }

    /// Estimates the length of the JSON in bytes.
    pub fn bytes(&self) -> usize {
        let Flamebearer { names, levels, .. } = &self.flamebearer;
        let names: usize = names.iter().map(|name| name.len() + 3).sum();
        let numbers: usize = levels.iter().map(Vec::len).sum();
        let lines = self
            .timeline
            .iter()
            .chain(self.groups.iter().flat_map(BTreeMap::values));
        let samples: usize = lines.map(|line| line.samples.len()).sum();
        names + (numbers + samples) * 8
    }
}

impl Metadata {
    fn new(format: &'static str, profile_type: &ProfileType) -> Self {
        let (units, sample_rate) = match profile_type.sample_type.as_str() {
            "inuse_objects" | "alloc_objects" | "goroutine" | "samples" => ("objects", SAMPLE_RATE),
            "cpu" => ("samples", CPU_SAMPLE_RATE),
            _ => (profile_type.sample_unit.as_str(), SAMPLE_RATE),
        };
        Self {
            format,
            spy_name: "",
            sample_rate,
            units: units.to_owned(),
            name: profile_type.sample_type.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn profile_type(id: &str) -> ProfileType {
        id.parse().unwrap()
    }

    #[test]
    fn a_flame_graph_has_the_fields_of_pyroscope() {
        let graph = FlameGraph {
            names: vec!["total".to_owned(), "main".to_owned()],
            levels: vec![vec![0, 5, 0, 0], vec![0, 5, 5, 1]],
            total: 5,
            max_self: 5,
            ..FlameGraph::default()
        };
        let cpu = profile_type("process_cpu:cpu:nanoseconds:cpu:nanoseconds");
        let mut profile = FlamebearerProfile::single(graph, &cpu);
        let line = Timeline {
            start_time: 1_700_000_010,
            samples: vec![0, 5],
            duration_delta: 15,
            watermarks: None,
        };
        profile.timeline = Some(line.clone());
        profile.groups = Some(BTreeMap::from([("eu".to_owned(), line)]));
        let line = json!({"startTime": 1_700_000_010, "samples": [0, 5], "durationDelta": 15, "watermarks": null});
        assert_eq!(
            serde_json::to_value(&profile).unwrap(),
            json!({
                "version": 1,
                "flamebearer": {
                    "names": ["total", "main"], "levels": [[0, 5, 0, 0], [0, 5, 5, 1]], "numTicks": 5, "maxSelf": 5,
                },
                "metadata": {
                    "format": "single", "spyName": "", "sampleRate": 1_000_000_000, "units": "samples", "name": "cpu",
                },
                "timeline": line.clone(),
                "groups": {"eu": line},
                "heatmap": null,
            })
        );
    }

    #[test]
    fn a_difference_has_both_sums_and_no_time_line() {
        let graph = DiffGraph {
            names: vec!["total".to_owned()],
            levels: vec![vec![0, 3, 0, 0, 4, 0, 0]],
            total: 7,
            left_ticks: 3,
            right_ticks: 4,
            ..DiffGraph::default()
        };
        let memory = profile_type("memory:inuse_space:bytes:space:bytes");
        let written = serde_json::to_value(FlamebearerProfile::double(graph, &memory)).unwrap();
        assert_eq!(written["metadata"]["format"], "double");
        assert_eq!((&written["leftTicks"], &written["rightTicks"]), (&json!(3), &json!(4)));
        assert_eq!((&written["timeline"], &written["groups"]), (&json!(null), &json!(null)));
        assert_eq!(written["flamebearer"]["numTicks"], 7);
    }

    #[test]
    fn units_and_rate_follow_from_the_type() {
        for (id, units, rate) in [
            ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", "samples", 1_000_000_000),
            ("process_cpu:samples:count:cpu:nanoseconds", "objects", 100),
            ("goroutine:goroutine:count:goroutine:count", "objects", 100),
            ("memory:alloc_space:bytes:space:bytes", "bytes", 100),
            ("mutex:delay:nanoseconds:contentions:count", "nanoseconds", 100),
        ] {
            let metadata = Metadata::new("single", &profile_type(id));
            assert_eq!((metadata.units.as_str(), metadata.sample_rate), (units, rate), "{id}");
        }
    }
}
