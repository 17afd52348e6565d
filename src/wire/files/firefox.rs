//! JSON of the Firefox Profiler, which samply writes, too: tables of frames and stacks, a list of samples a thread.
//!
//! In: JSON as the profiler's page and samply save it. Out: a profile for each kind of weight, with the samples of all
//! threads below the names of these. A sample stands for the interval of the profile.

use std::borrow::Cow;

use serde::Deserialize;

use crate::profile::call_tree::{CallTree, Calls, NodeId, Room, Size, TooMany};
use crate::wire::files::error::FileError;
use crate::wire::files::imported::{FileFormat, ImportedProfile, Meaning};

const MILLISECOND_NANOS: f64 = 1e6;

#[derive(Deserialize)]
struct File<'a> {
    #[serde(default)]
    meta: About,
    #[serde(borrow)]
    threads: Vec<Thread<'a>>,
    #[serde(borrow, default)]
    shared: Tables<'a>,
}

/// Times are milliseconds.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct About {
    interval: f64,
    start_time: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Thread<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    samples: Samples<'a>,
    #[serde(default)]
    stack_table: Option<Stacks>,
    #[serde(default)]
    frame_table: Option<Frames>,
    #[serde(default)]
    func_table: Option<Functions>,
    #[serde(borrow, default)]
    string_array: Option<Vec<Cow<'a, str>>>,
    #[serde(borrow, default)]
    string_table: Option<Vec<Cow<'a, str>>>,
}

/// Tables of all threads, in newer files.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Tables<'a> {
    stack_table: Option<Stacks>,
    frame_table: Option<Frames>,
    func_table: Option<Functions>,
    #[serde(borrow)]
    string_array: Option<Vec<Cow<'a, str>>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Samples<'a> {
    stack: Vec<Option<u32>>,
    weight: Option<Vec<Option<f64>>>,
    #[serde(borrow)]
    weight_type: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Stacks {
    frame: Vec<u32>,
    prefix: Vec<Option<u32>>,
}

#[derive(Deserialize)]
struct Frames {
    func: Vec<u32>,
    #[serde(default)]
    line: Vec<Option<i64>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Functions {
    name: Vec<u32>,
    #[serde(default)]
    file_name: Vec<Option<u32>>,
}

/// What the weights of samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    Samples,
    Milliseconds,
    Bytes,
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    TooMany(#[from] TooMany),
    #[error("`{0}` is missing: save the file by the profiler's page, or by samply")]
    Missing(&'static str),
    #[error("`{table}` has no row {row}")]
    NoRow { table: &'static str, row: u32 },
    #[error("row {0} of `stackTable` has a prefix that is not before it")]
    Prefix(usize),
    #[error("weights of the type `{0}` are not known")]
    WeightType(String),
}

/// A profile for each kind of weight.
pub(super) fn read(json: &[u8]) -> Result<Vec<ImportedProfile>, FileError> {
    let format = FileFormat::Firefox;
    let file: File<'_> = serde_json::from_slice(json).map_err(|error| format.wrong(&error))?;
    let mut profiles = Vec::new();
    for weight in [Weight::Samples, Weight::Milliseconds, Weight::Bytes] {
        profiles.extend(profile(&file, weight).map_err(|error| format.wrong(&error))?);
    }
    Ok(profiles)
}

fn profile(file: &File<'_>, weight: Weight) -> Result<Option<ImportedProfile>, Problem> {
    let mut tree = CallTree::new(Room::new(Size::MOST));
    for thread in &file.threads {
        if Weight::of(&thread.samples)? == weight && !thread.samples.stack.is_empty() {
            add(&mut tree, file, thread, weight)?;
        }
    }
    let (name, kind, unit) = match weight {
        Weight::Samples if file.meta.interval <= 0.0 => ("process_cpu", "samples", "count"),
        Weight::Samples | Weight::Milliseconds => ("process_cpu", "cpu", "nanoseconds"),
        Weight::Bytes => ("memory", "space", "bytes"),
    };
    let meaning = Meaning {
        name,
        kind,
        unit,
        period: if unit == "nanoseconds" {
            (file.meta.interval * MILLISECOND_NANOS) as i64
        } else {
            0
        },
        time_nanos: (file.meta.start_time * MILLISECOND_NANOS) as i64,
        duration_nanos: 0,
    };
    Ok(ImportedProfile::of_tree(tree, meaning)?)
}

/// Adds the samples of a thread.
fn add(tree: &mut CallTree, file: &File<'_>, thread: &Thread<'_>, weight: Weight) -> Result<(), Problem> {
    let samples = &thread.samples;
    let nodes = nodes(tree, file, thread)?;
    let scale = match weight {
        Weight::Samples if file.meta.interval > 0.0 => file.meta.interval * MILLISECOND_NANOS,
        Weight::Milliseconds => MILLISECOND_NANOS,
        Weight::Samples | Weight::Bytes => 1.0,
    };
    for (index, stack) in samples.stack.iter().enumerate() {
        let Some(stack) = stack else { continue };
        let given = samples
            .weight
            .as_ref()
            .and_then(|weights| weights.get(index).copied().flatten());
        // Memory that was given back has a negative weight.
        let value = (given.unwrap_or(1.0) * scale).round().max(0.0) as i64;
        tree.add(row("stackTable", &nodes, *stack)?, value)?;
    }
    Ok(())
}

/// The call of each row of the thread's table of stacks.
fn nodes(tree: &mut CallTree, file: &File<'_>, thread: &Thread<'_>) -> Result<Vec<NodeId>, Problem> {
    let shared = &file.shared;
    let stacks = thread.stack_table.as_ref().or(shared.stack_table.as_ref());
    let frames = thread.frame_table.as_ref().or(shared.frame_table.as_ref());
    let functions = thread.func_table.as_ref().or(shared.func_table.as_ref());
    let own_texts = thread.string_array.as_ref().or(thread.string_table.as_ref());
    let stacks = stacks.ok_or(Problem::Missing("stackTable"))?;
    let frames = frames.ok_or(Problem::Missing("frameTable"))?;
    let functions = functions.ok_or(Problem::Missing("funcTable"))?;
    let texts = own_texts
        .or(shared.string_array.as_ref())
        .ok_or(Problem::Missing("stringArray"))?;
    let root = match thread.name.as_ref() {
        "" => tree.root(),
        name => tree.call(tree.root(), name)?,
    };
    let mut nodes: Vec<NodeId> = Vec::with_capacity(stacks.frame.len());
    for (index, frame) in stacks.frame.iter().enumerate() {
        let caller = match stacks.prefix.get(index).copied().flatten() {
            None => root,
            Some(prefix) => *nodes.get(prefix as usize).ok_or(Problem::Prefix(index))?,
        };
        let function = row("frameTable", &frames.func, *frame)?;
        let line = frames.line.get(*frame as usize).copied().flatten().unwrap_or(0);
        let name = row("funcTable", &functions.name, function)?;
        let file = functions.file_name.get(function as usize).copied().flatten();
        let text = |index: u32| {
            texts.get(index as usize).ok_or(Problem::NoRow {
                table: "stringArray",
                row: index,
            })
        };
        let file = match file {
            Some(file) => text(file)?.as_ref(),
            None => "",
        };
        let frame = tree.frame(text(name)?, file, line.max(0))?;
        nodes.push(tree.call_frame(caller, frame)?);
    }
    Ok(nodes)
}

fn row<T: Copy>(table: &'static str, rows: &[T], index: u32) -> Result<T, Problem> {
    rows.get(index as usize)
        .copied()
        .ok_or(Problem::NoRow { table, row: index })
}

impl Weight {
    fn of(samples: &Samples<'_>) -> Result<Self, Problem> {
        match samples.weight_type.as_deref() {
            None | Some("samples") => Ok(Self::Samples),
            Some("tracing-ms") => Ok(Self::Milliseconds),
            Some("bytes") => Ok(Self::Bytes),
            Some(other) => Err(Problem::WeightType(other.chars().take(40).collect())),
        }
    }
}
