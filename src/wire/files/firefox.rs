//! JSON of the Firefox Profiler, which samply also writes: tables of frames and stacks, and a list of samples per
//! thread.
//!
//! In: JSON as the profiler's page and samply save it. Out: one profile for each kind of value that the samples count.
//! The stacks of each thread are below a frame with the thread's name. A sample stands for one sampling interval of the
//! profile. If the file states how much CPU time a thread used since its previous sample, this time becomes
//! `process_cpu`. If waiting threads were sampled too, the samples also become `wall`.

use std::borrow::Cow;

use hashbrown::HashMap;
use serde::Deserialize;

use crate::files::error::FileError;
use crate::files::imported::{FileFormat, ImportedProfile, Meaning};
use alluvium_profile::call_tree::{CallTree, Calls, FrameId, LimitExceeded, NodeId, Size, SizeLimit};

const MICROSECOND_NANOS: f64 = 1e3;
const MILLISECOND_NANOS: f64 = 1e6;

/// Maximum number of rows of stack tables that the samples of a profile refer to. A row counts once for each thread
/// that refers to it.
const MAX_ROWS: usize = 1 << 22;

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow, default)]
    meta: Metadata<'a>,
    #[serde(borrow)]
    threads: Vec<Thread<'a>>,
    #[serde(borrow, default)]
    libs: Vec<Library<'a>>,
    #[serde(borrow, default)]
    shared: Shared<'a>,
}

/// Metadata of a file. Times are in milliseconds.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata<'a> {
    interval: f64,
    start_time: f64,
    #[serde(borrow)]
    sample_units: Units<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Units<'a> {
    #[serde(borrow, rename = "threadCPUDelta")]
    cpu: Option<Cow<'a, str>>,
}

/// A binary that contains functions of the profile.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Library<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    path: Cow<'a, str>,
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
    #[serde(default)]
    resource_table: Option<Resources>,
    #[serde(borrow, default)]
    string_array: Option<Vec<Cow<'a, str>>>,
    #[serde(borrow, default)]
    string_table: Option<Vec<Cow<'a, str>>>,
}

/// Tables that all threads share, in newer files.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Shared<'a> {
    stack_table: Option<Stacks>,
    frame_table: Option<Frames>,
    func_table: Option<Functions>,
    resource_table: Option<Resources>,
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
    #[serde(rename = "threadCPUDelta")]
    cpu: Option<Vec<Option<f64>>>,
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
    /// Index of the resource that contains the function; -1 for none.
    #[serde(default)]
    resource: Vec<Option<i64>>,
}

/// Origins of functions. If the origin is a binary, `lib` is its index in the list of libraries.
#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    lib: Vec<Option<i64>>,
}

/// Meaning of the weights of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    Samples,
    Milliseconds,
    Bytes,
}

/// Kind of values in a profile that [`read`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    /// CPU time between a sample and the preceding one.
    Cpu,
    /// All time, including the time in which threads waited.
    Wall,
    /// The weights of the samples.
    Weights(Weight),
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    TooMany(#[from] LimitExceeded),
    #[error("`{0}` is missing: save the file from the profiler's page or with samply")]
    Missing(&'static str),
    #[error("`{table}` has no row {row}")]
    NoRow { table: &'static str, row: u32 },
    #[error("row {0} of `stackTable` has a prefix that is not before it")]
    Prefix(u32),
    #[error("the threads refer to more than {0} rows of `stackTable`")]
    TooManyRows(usize),
    #[error("the weight type `{0}` is unknown")]
    WeightType(String),
}

/// Reads one profile for each kind of value that the samples count.
pub(super) fn read(json: &[u8]) -> Result<Vec<ImportedProfile>, FileError> {
    let format = FileFormat::Firefox;
    let file: File<'_> = serde_json::from_slice(json).map_err(|error| format.invalid(&error))?;
    let samples: &[Count] = match (file.has_cpu_time(), file.has_waits()) {
        (true, true) => &[Count::Cpu, Count::Wall],
        (true, false) => &[Count::Cpu],
        (false, _) => &[Count::Weights(Weight::Samples)],
    };
    let others = [Weight::Milliseconds, Weight::Bytes].map(Count::Weights);
    let mut profiles = Vec::new();
    for count in samples.iter().chain(&others) {
        profiles.extend(profile(&file, *count).map_err(|error| format.invalid(&error))?);
    }
    Ok(profiles)
}

fn profile(file: &File<'_>, count: Count) -> Result<Option<ImportedProfile>, Problem> {
    let weight = match count {
        Count::Cpu | Count::Wall => Weight::Samples,
        Count::Weights(weight) => weight,
    };
    let mut tree = CallTree::new(SizeLimit::new(Size::MAX));
    let mut rows = 0;
    for thread in &file.threads {
        if Weight::of(&thread.samples)? == weight && !thread.samples.stack.is_empty() {
            rows += add(&mut tree, file, thread, count)?;
            // Threads may share a table of stacks, so the number of rows may exceed the length of the file.
            if rows > MAX_ROWS {
                return Err(Problem::TooManyRows(MAX_ROWS));
            }
        }
    }
    let (name, kind, unit) = match count {
        Count::Weights(Weight::Bytes) => ("memory", "space", "bytes"),
        Count::Weights(Weight::Samples) if file.meta.interval <= 0.0 => ("process_cpu", "samples", "count"),
        Count::Wall => ("wall", "wall", "nanoseconds"),
        Count::Cpu | Count::Weights(_) => ("process_cpu", "cpu", "nanoseconds"),
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

/// Adds the samples of a thread. Returns the number of rows of the stack table that the samples refer to.
fn add(tree: &mut CallTree, file: &File<'_>, thread: &Thread<'_>, count: Count) -> Result<usize, Problem> {
    let samples = &thread.samples;
    let tables = Tables::of(file, thread)?;
    let root = match thread.name.as_ref() {
        "" => tree.root(),
        name => tree.call(tree.root(), name)?,
    };
    let (values, default_value, scale) = match count {
        Count::Cpu => (&samples.cpu, 0.0, file.meta.cpu_nanos().unwrap_or_default()),
        Count::Weights(Weight::Samples) if file.meta.interval <= 0.0 => (&samples.weight, 1.0, 1.0),
        Count::Wall | Count::Weights(Weight::Samples) => (&samples.weight, 1.0, file.meta.interval * MILLISECOND_NANOS),
        Count::Weights(Weight::Milliseconds) => (&samples.weight, 1.0, MILLISECOND_NANOS),
        Count::Weights(Weight::Bytes) => (&samples.weight, 1.0, 1.0),
    };
    let mut nodes = HashMap::new();
    for (index, stack) in samples.stack.iter().enumerate() {
        let Some(stack) = stack else { continue };
        let raw_value = values.as_ref().and_then(|values| values.get(index).copied().flatten());
        // Freed memory has a negative weight, and counts as 0.
        let value = (raw_value.unwrap_or(default_value) * scale).round().max(0.0) as i64;
        let node = tables.call(tree, &mut nodes, root, *stack)?;
        tree.add(node, value)?;
    }
    Ok(nodes.len())
}

impl File<'_> {
    /// Returns true when threads report their CPU time. samply writes zero if it has no measurement.
    fn has_cpu_time(&self) -> bool {
        let deltas = |thread: &Thread<'_>| {
            let deltas = thread.samples.cpu.as_ref();
            deltas.is_some_and(|deltas| deltas.iter().flatten().any(|delta| *delta > 0.0))
        };
        self.meta.cpu_nanos().is_some() && self.threads.iter().any(deltas)
    }

    /// Returns true when a thread used no CPU time between two samples. A profiler that samples only running threads
    /// writes no such samples.
    fn has_waits(&self) -> bool {
        let waits = |thread: &Thread<'_>| {
            let deltas = thread.samples.cpu.iter().flatten();
            deltas.skip(1).flatten().any(|delta| *delta <= 0.0)
        };
        self.threads.iter().any(waits)
    }
}

impl Metadata<'_> {
    /// Returns the length of the CPU time unit in nanoseconds, or `None` if the unit is not a time. On some machines
    /// the unit is a CPU cycle, and the frequency of the CPU varies.
    fn cpu_nanos(&self) -> Option<f64> {
        match self.sample_units.cpu.as_deref()? {
            "ns" => Some(1.0),
            "\u{b5}s" => Some(MICROSECOND_NANOS),
            _ => None,
        }
    }
}

/// Tables that the samples of a thread refer to: the tables of the thread, or the shared tables of the file.
struct Tables<'f, 'a> {
    stacks: &'f Stacks,
    frames: &'f Frames,
    functions: &'f Functions,
    resources: &'f [Option<i64>],
    libraries: &'f [Library<'a>],
    texts: &'f [Cow<'a, str>],
}

impl<'f, 'a> Tables<'f, 'a> {
    fn of(file: &'f File<'a>, thread: &'f Thread<'a>) -> Result<Self, Problem> {
        let shared = &file.shared;
        let stacks = thread.stack_table.as_ref().or(shared.stack_table.as_ref());
        let frames = thread.frame_table.as_ref().or(shared.frame_table.as_ref());
        let functions = thread.func_table.as_ref().or(shared.func_table.as_ref());
        let resources = thread.resource_table.as_ref().or(shared.resource_table.as_ref());
        let own_texts = thread.string_array.as_ref().or(thread.string_table.as_ref());
        let texts = own_texts.or(shared.string_array.as_ref());
        Ok(Self {
            stacks: stacks.ok_or(Problem::Missing("stackTable"))?,
            frames: frames.ok_or(Problem::Missing("frameTable"))?,
            functions: functions.ok_or(Problem::Missing("funcTable"))?,
            resources: resources.map_or(&[], |resources| &resources.lib),
            libraries: &file.libs,
            texts: texts.ok_or(Problem::Missing("stringArray"))?,
        })
    }

    /// Returns the node of the call tree for the row `stack` of the stack table. `root` is the node of the thread.
    /// `nodes` contains the nodes of the rows that were resolved before.
    fn call(
        &self,
        tree: &mut CallTree,
        nodes: &mut HashMap<u32, NodeId>,
        root: NodeId,
        stack: u32,
    ) -> Result<NodeId, Problem> {
        // The rows without a known node: `stack`, then its callers.
        let mut path = Vec::new();
        let mut node = root;
        let mut next = Some(stack);
        while let Some(row) = next {
            if let Some(known_node) = nodes.get(&row) {
                node = *known_node;
                break;
            }
            path.push(row);
            next = self.stacks.prefix.get(row as usize).copied().flatten();
            if next.is_some_and(|prefix| prefix >= row) {
                return Err(Problem::Prefix(row));
            }
        }
        for row in path.into_iter().rev() {
            let frame = self.frame(tree, row)?;
            node = tree.call_frame(node, frame)?;
            nodes.insert(row, node);
        }
        Ok(node)
    }

    fn frame(&self, tree: &mut CallTree, stack: u32) -> Result<FrameId, Problem> {
        let frame = row("stackTable", &self.stacks.frame, stack)?;
        let function = row("frameTable", &self.frames.func, frame)?;
        let line = self.frames.line.get(frame as usize).copied().flatten().unwrap_or(0);
        let name = row("funcTable", &self.functions.name, function)?;
        let file = match self.functions.file_name.get(function as usize).copied().flatten() {
            Some(file) => self.text(file)?,
            None => "",
        };
        let (name, library) = (self.text(name)?, self.library(function));
        let Some(Library { name: binary, path }) = library else {
            return Ok(tree.frame(name, file, line.max(0))?);
        };
        let path = if path.is_empty() { binary } else { path };
        // samply leaves symbolization to the profiler's page. The name is then an address in the binary. Functions of
        // other binaries may have the same address.
        if name.starts_with("0x") {
            return Ok(tree.frame_in(&format!("{binary}+{name}"), file, line.max(0), path)?);
        }
        Ok(tree.frame_in(name, file, line.max(0), path)?)
    }

    /// Returns the binary that contains a function.
    fn library(&self, function: u32) -> Option<&'f Library<'a>> {
        let resource = self.functions.resource.get(function as usize).copied().flatten()?;
        let library = self.resources.get(usize::try_from(resource).ok()?).copied().flatten()?;
        self.libraries.get(usize::try_from(library).ok()?)
    }

    fn text(&self, index: u32) -> Result<&str, Problem> {
        let text = self.texts.get(index as usize).ok_or(Problem::NoRow {
            table: "stringArray",
            row: index,
        })?;
        Ok(text.as_ref())
    }
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

#[cfg(test)]
mod tests {
    use crate::files::tests::{describe, read_text};

    /// Written like samply's files: two binaries whose functions are addresses, and one named function.
    const SAMPLY: &str = r#"{"meta": {"interval": 2, "startTime": 1000, "sampleUnits": {"threadCPUDelta": "\u00b5s"}},
        "libs": [{"name": "shop", "path": "/srv/shop"}, {"name": "libc.so.6", "path": "/lib/libc.so.6"}],
        "threads": [{"name": "shop", "samples": {"stack": [1, 1, 2, null], "weight": [1, 1, 4, 1],
            "threadCPUDelta": [null, 1500, 250, 9], "weightType": "samples"},
        "stackTable": {"frame": [0, 1, 2], "prefix": [null, 0, 0]},
        "frameTable": {"func": [0, 1, 2], "address": [64, 64, -1], "line": [null, null, null]},
        "funcTable": {"name": [0, 0, 1], "resource": [0, 1, -1], "fileName": [null, null, null]},
        "resourceTable": {"lib": [0, 1]}, "stringArray": ["0x40", "render"]}]}"#;

    #[test]
    fn cpu_time_is_what_the_file_says_and_addresses_are_those_of_a_binary() {
        let imported = read_text(SAMPLY).unwrap();
        let stacks = ["shop;shop+0x40;libc.so.6+0x40", "shop;shop+0x40;render"].map(str::to_owned);
        let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds".to_owned();
        assert_eq!(describe(&imported), [(cpu.clone(), 1_750_000, stacks.to_vec())]);
        let profile = imported.profiles[0].columns.get();
        assert_eq!(profile.values, [1_500_000, 250_000]);
        let files: Vec<&str> = profile.mappings.iter().map(|mapping| mapping.file).collect();
        assert_eq!(files, ["/srv/shop", "/lib/libc.so.6"]);
        // Samples of a waiting thread are not CPU time.
        let waits = read_text(&SAMPLY.replace("250,", "0,")).unwrap();
        let wall = "wall:wall:nanoseconds:wall:nanoseconds".to_owned();
        let expected = [
            (cpu.clone(), 1_500_000, stacks[..1].to_vec()),
            (wall, 12_000_000, stacks.to_vec()),
        ];
        assert_eq!(describe(&waits), expected);
        // If the file does not state the CPU time of the samples, each sample is one interval of CPU time.
        for nothing in [
            SAMPLY.replace("\\u00b5s", "variable CPU cycles"),
            SAMPLY.replace("1500, 250, 9", "0, 0, 0"),
        ] {
            assert_eq!(
                describe(&read_text(&nothing).unwrap()),
                [(cpu.clone(), 12_000_000, stacks.to_vec())]
            );
        }
    }
}
