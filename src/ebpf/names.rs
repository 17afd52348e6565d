//! Converts the stacks of processes in a window to a pprof profile with names.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::bounds::LoggedOmissions;
use crate::files::FileId;
use crate::name_cache::NameCache;
use crate::window::{Frame, FrameSources, ProcessInfo, Stacks, Window};
use alluvium_profile::pprof::{Builder, Function, Line, Location, Mapping, Profile, SampleLabel, ValueType, encode};
use alluvium_symbols::Demangle;
use alluvium_symbols::calls::Call;

/// The place of a thread's name in a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Comm {
    /// The profile does not contain the name.
    #[default]
    None,
    /// In the label `comm` of the sample.
    Label,
    /// As the outermost frame of the stack.
    Frame,
    /// In the label and as the outermost frame.
    Both,
}

/// Options for the contents of profiles.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// Form of C++ and Rust names.
    pub demangle: Demangle,
    /// The place of the thread's name.
    pub comm: Comm,
    /// If true, each sample gets the process id as a label.
    pub pid_label: bool,
    /// If true, each stack gets the name of the process as its outermost frame.
    pub process_frame: bool,
}

/// Time of a window, and the CPU time of a tick in it.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Start as Unix time in nanoseconds.
    pub start_nanos: i64,
    /// Length of the window in nanoseconds.
    pub duration_nanos: i64,
    /// Nanoseconds of CPU time that a tick stands for.
    pub period_nanos: i64,
}

/// Looks up the names of all frames of a window.
pub struct Namer<'a> {
    cache: &'a mut NameCache,
    style: Style,
    /// Bytes of the profiles written so far.
    written: usize,
    logged: LoggedOmissions,
}

/// When the profiles of a window together reach this size in bytes, further profiles contain only the names of kernel
/// functions. Each profile contains the names of all its functions. Without this limit, many profiles could repeat the
/// same long names of one file.
const MAX_WRITTEN_BYTES: usize = 256 << 20;

impl<'a> Namer<'a> {
    /// Creates a namer that stores names in `cache`.
    pub fn new(cache: &'a mut NameCache, style: Style) -> Self {
        Self {
            cache,
            style,
            written: 0,
            logged: LoggedOmissions::default(),
        }
    }

    /// Looks up all unknown kernel functions of a window at once.
    pub fn learn_kernel(&mut self, window: &Window) {
        let frames = window
            .processes
            .values()
            .flat_map(|(_, stacks)| stacks.weights.keys())
            .flat_map(|stack| stack.iter());
        let addresses = frames
            .filter(|frame| frame.file == FileId::KERNEL)
            .map(|frame| frame.address);
        self.cache.resolve_kernel(addresses);
    }

    /// Looks up the unknown functions of some stacks. All addresses of a binary are looked up together, because
    /// reading its line numbers is expensive.
    pub fn learn<'s>(&mut self, stacks: impl Iterator<Item = &'s Stacks>, sources: &FrameSources) {
        let mut by_file: BTreeMap<FileId, HashSet<u64>> = BTreeMap::new();
        for frame in stacks
            .flat_map(|stacks| stacks.weights.keys())
            .flat_map(|stack| stack.iter())
        {
            by_file.entry(frame.file).or_default().insert(frame.address);
        }
        for (file, addresses) in by_file {
            if let Some(binary) = sources.binaries.get(&file) {
                let mut addresses: Vec<u64> = addresses.into_iter().collect();
                addresses.sort_unstable();
                self.cache.resolve(file, binary, &addresses, self.style.demangle);
            }
        }
    }

    /// Returns the profile of some processes as uncompressed pprof bytes. The sample type is `cpu` in nanoseconds.
    #[expect(clippy::iter_over_hash_type, reason = "samples of a profile have no order")]
    pub fn profile(&mut self, parts: &[(&ProcessInfo, &Stacks)], sources: &FrameSources, span: Span) -> Vec<u8> {
        let named: Vec<Vec<(Frame, Arc<[Call]>)>> = parts
            .iter()
            .map(|(process, stacks)| self.names(process, stacks, sources))
            .collect();
        let cpu = ValueType {
            kind: "cpu",
            unit: "nanoseconds",
        };
        let mut builder = Builder::new(Profile {
            sample_types: vec![cpu],
            period_type: cpu,
            period: span.period_nanos,
            time_nanos: span.start_nanos,
            duration_nanos: span.duration_nanos,
            ..Profile::default()
        });
        let as_frame = matches!(self.style.comm, Comm::Frame | Comm::Both);
        let as_label = matches!(self.style.comm, Comm::Label | Comm::Both);
        let mut locations_of_stack = Vec::new();
        for ((process, stacks), named) in parts.iter().zip(&named) {
            let mut locations: HashMap<Frame, u32> = HashMap::with_capacity(named.len());
            for (frame, calls) in named {
                let binary = sources.binaries.get(&frame.file);
                let mapping = binary.map_or(Location::NO_MAPPING, |binary| {
                    // True if the source lines of some code of the binary are known.
                    let has_lines = calls.iter().any(|call| call.line > 0);
                    builder.mapping(Mapping {
                        file: &binary.path,
                        build_id: &binary.build_id,
                        has: [true, has_lines, has_lines, has_lines],
                        ..Mapping::default()
                    })
                });
                let lines: Vec<Line> = calls.iter().map(|call| line(&mut builder, call)).collect();
                locations.insert(*frame, builder.location(mapping, frame.address, &lines));
            }
            let root = self.style.process_frame.then(|| builder.named(title(process)));
            for (stack, weight) in &stacks.weights {
                let mut comm = None;
                locations_of_stack.clear();
                for frame in stack {
                    let location = if frame.file == FileId::COMM {
                        comm = usize::try_from(frame.address)
                            .ok()
                            .and_then(|index| sources.comms.get(index));
                        comm.filter(|_| as_frame).map(|name| builder.named(name))
                    } else {
                        locations.get(frame).copied()
                    };
                    locations_of_stack.extend(location);
                }
                let comm = comm.filter(|_| as_label).map(|name| SampleLabel::Text("comm", name));
                let pid = SampleLabel::Number("pid", i64::from(process.pid), "");
                builder.sample(
                    locations_of_stack.iter().copied().chain(root),
                    comm.into_iter().chain(self.style.pid_label.then_some(pid)),
                    &[i64::try_from(weight.nanos).unwrap_or(i64::MAX)],
                );
            }
        }
        let bytes = encode(&builder.finish());
        self.written += bytes.len();
        bytes
    }

    /// Returns every address of the stacks with its name.
    fn names(&mut self, process: &ProcessInfo, stacks: &Stacks, sources: &FrameSources) -> Vec<(Frame, Arc<[Call]>)> {
        let mut frames: Vec<Frame> = stacks
            .weights
            .keys()
            .flat_map(|stack| stack.iter())
            .filter(|frame| frame.file != FileId::COMM)
            .copied()
            .collect();
        frames.sort_unstable();
        frames.dedup();
        let has_room = self.written < MAX_WRITTEN_BYTES;
        if !has_room {
            self.cache.count_omission(process, &self.logged);
        }
        let mut named = Vec::with_capacity(frames.len());
        for group in frames.chunk_by(|a, b| a.file == b.file) {
            let Some(first) = group.first() else { continue };
            let addresses: Vec<u64> = group.iter().map(|frame| frame.address).collect();
            let names = match first.file {
                FileId::KERNEL => Some(&self.cache.kernel.names),
                _ if !has_room => None,
                FileId::ANONYMOUS | FileId::TRAMPOLINES => Some(self.cache.resolve_run_time(process, &addresses)),
                FileId::UNKNOWN => None,
                file => sources
                    .binaries
                    .get(&file)
                    .map(|binary| self.cache.resolve(file, binary, &addresses, self.style.demangle)),
            };
            let resolved: Vec<Option<Arc<[Call]>>> = addresses
                .iter()
                .map(|address| {
                    names
                        .and_then(|names| names.find_calls(*address))
                        .filter(|calls| calls.iter().any(|call| !call.name.is_empty()))
                        .cloned()
                })
                .collect();
            for (frame, calls) in group.iter().zip(resolved) {
                named.push((
                    *frame,
                    calls.unwrap_or_else(|| Arc::new([Call::named(placeholder(*frame, sources))])),
                ));
            }
        }
        named
    }
}

/// Converts a call to a line of a location.
fn line<'a>(builder: &mut Builder<'a>, call: &'a Call) -> Line {
    let function = builder.function(Function {
        name: &call.name,
        system_name: &call.name,
        file: &call.file,
        start_line: 0,
    });
    Line {
        function,
        line: i64::from(call.line),
    }
}

/// Returns the text for an address without a name.
fn placeholder(frame: Frame, sources: &FrameSources) -> Arc<str> {
    match frame.file {
        FileId::KERNEL => "[kernel]".into(),
        FileId::ANONYMOUS | FileId::TRAMPOLINES => "[anonymous]".into(),
        FileId::UNKNOWN => "[unknown]".into(),
        file => {
            let path = sources
                .binaries
                .get(&file)
                .map(|binary| binary.path.clone())
                .unwrap_or_default();
            let name = path.rsplit('/').next().unwrap_or_default();
            format!("{name}+{:#x}", frame.address).into()
        }
    }
}

/// Returns the name of the outermost frame in the stacks of a process.
fn title(process: &ProcessInfo) -> &str {
    if process.comm.is_empty() {
        process.executable.rsplit('/').next().unwrap_or_default()
    } else {
        &process.comm
    }
}
