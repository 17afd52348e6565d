//! `.cpuprofile`: CPU profiles of V8, as Node.js, Deno and Chrome's *Performance* page write them.

use hashbrown::HashMap;
use serde::Deserialize;

use crate::files::error::FileError;
use crate::files::imported::{FileFormat, ImportedProfile};
use crate::files::v8::{CallFrame, Node, V8Profile};

/// A file. Times are in microseconds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(borrow)]
    nodes: Vec<FileNode<'a>>,
    #[serde(default)]
    samples: Vec<u64>,
    #[serde(default)]
    time_deltas: Vec<f64>,
    #[serde(default)]
    start_time: f64,
    #[serde(default)]
    end_time: f64,
}

/// A node, which lists its children or names its parent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileNode<'a> {
    id: u64,
    #[serde(borrow)]
    call_frame: CallFrame<'a>,
    #[serde(default)]
    children: Vec<u64>,
    #[serde(default)]
    parent: Option<u64>,
    #[serde(default)]
    hit_count: Option<i64>,
}

/// Reads the single profile of a file.
pub(super) fn read(json: &[u8]) -> Result<Vec<ImportedProfile>, FileError> {
    let format = FileFormat::CpuProfile;
    let file: File<'_> = serde_json::from_slice(json).map_err(|error| format.invalid(&error))?;
    let mut parents: HashMap<u64, u64> = HashMap::new();
    for node in &file.nodes {
        parents.extend(node.children.iter().map(|child| (*child, node.id)));
    }
    let nodes = file.nodes.into_iter().map(|node| Node {
        id: node.id,
        parent: node.parent.or_else(|| parents.get(&node.id).copied()),
        frame: node.call_frame,
        hits: node.hit_count.unwrap_or(0),
    });
    let profile = V8Profile {
        nodes: nodes.collect(),
        samples: file.samples,
        deltas: file.time_deltas,
        start: file.start_time,
        end: file.end_time,
    };
    let profile = profile.finish().map_err(|error| format.invalid(&error))?;
    Ok(profile.into_iter().collect())
}
