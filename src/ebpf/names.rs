//! A process's share of a window as a pprof profile with names.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::ebpf::files::FileId;
use crate::ebpf::name_cache::NameCache;
use crate::ebpf::window::{Frame, Places, ProcessInfo, Stacks, Weight, Window};
use crate::profile::pprof::{Function, Line, Location, Mapping, Profile, SampleLabel, ValueType, encode};
use crate::symbols::Demangle;
use crate::symbols::calls::Call;

/// What a thread's name becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Comm {
    /// Nothing.
    #[default]
    None,
    /// A label of the sample.
    Label,
    /// The outermost frame.
    Frame,
    /// Both.
    Both,
}

/// How profiles are written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// Form of C++ and Rust names.
    pub demangle: Demangle,
    /// Where the name of the thread goes.
    pub comm: Comm,
    /// Put the process id on each sample.
    pub pid_label: bool,
    /// Put the name of the process under each stack, as its outermost frame.
    pub process_frame: bool,
}

/// The time of a window.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Start, Unix time in nanoseconds.
    pub start_nanos: i64,
    /// Length in nanoseconds.
    pub duration_nanos: i64,
    /// Nanoseconds of CPU time that a tick stands for.
    pub period_nanos: i64,
}

/// A binary in the profile's table of mappings.
struct Listed {
    index: u32,
    path: Arc<str>,
    build_id: Arc<str>,
    /// The places in the source of some of its code are known.
    has_lines: bool,
}

/// Looks up the names of all frames of a window.
pub struct Namer<'a> {
    cache: &'a mut NameCache,
    style: Style,
}

impl<'a> Namer<'a> {
    /// A namer that keeps what it finds.
    pub fn new(cache: &'a mut NameCache, style: Style) -> Self {
        Self { cache, style }
    }

    /// Reads the names of the kernel functions of a window that are not known yet, all at once.
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

    /// Looks up the functions of binaries in some stacks that are not known yet, those of a binary all at once: its lines may be looked for once a while.
    pub fn learn<'s>(&mut self, stacks: impl Iterator<Item = &'s Stacks>, places: &Places) {
        let mut by_file: BTreeMap<FileId, HashSet<u64>> = BTreeMap::new();
        for frame in stacks
            .flat_map(|stacks| stacks.weights.keys())
            .flat_map(|stack| stack.iter())
        {
            by_file.entry(frame.file).or_default().insert(frame.address);
        }
        for (file, addresses) in by_file {
            if let Some(binary) = places.binaries.get(&file) {
                let mut addresses: Vec<u64> = addresses.into_iter().collect();
                addresses.sort_unstable();
                self.cache.resolve(file, binary, &addresses, self.style.demangle);
            }
        }
    }

    /// The profile of some processes, as pprof bytes without compression. Sample type is `cpu` in nanoseconds.
    pub fn profile(&mut self, parts: &[(&ProcessInfo, &Stacks)], places: &Places, span: Span) -> Vec<u8> {
        let named: Vec<Vec<(Frame, Arc<[Call]>)>> = parts
            .iter()
            .map(|(process, stacks)| self.names(process, stacks, places))
            .collect();
        let mut binaries: BTreeMap<FileId, Listed> = BTreeMap::new();
        for (frame, calls) in named.iter().flatten() {
            if let Some(binary) = places.binaries.get(&frame.file) {
                let index = u32::try_from(binaries.len()).unwrap_or(u32::MAX);
                let binary = binaries.entry(frame.file).or_insert_with(|| Listed {
                    index,
                    path: binary.path.clone(),
                    build_id: binary.build_id.clone(),
                    has_lines: false,
                });
                binary.has_lines |= calls.iter().any(|call| call.line > 0);
            }
        }
        let mut builder = Builder::new(span);
        let mut in_order: Vec<&Listed> = binaries.values().collect();
        in_order.sort_unstable_by_key(|binary| binary.index);
        builder
            .profile
            .mappings
            .extend(in_order.into_iter().map(|binary| Mapping {
                file: &binary.path,
                build_id: &binary.build_id,
                has: [true, binary.has_lines, binary.has_lines, binary.has_lines],
                ..Mapping::default()
            }));
        let as_frame = matches!(self.style.comm, Comm::Frame | Comm::Both);
        let as_label = matches!(self.style.comm, Comm::Label | Comm::Both);
        for ((process, stacks), named) in parts.iter().zip(&named) {
            let mut locations: HashMap<Frame, u32> = HashMap::with_capacity(named.len());
            for (frame, name) in named {
                let mapping = binaries
                    .get(&frame.file)
                    .map_or(Location::NO_MAPPING, |binary| binary.index);
                locations.insert(*frame, builder.calls(mapping, frame.address, name));
            }
            let root = self
                .style
                .process_frame
                .then(|| builder.location(Location::NO_MAPPING, 0, title(process)));
            for (stack, weight) in &stacks.weights {
                let mut comm = None;
                for frame in stack.iter() {
                    let location = if frame.file == FileId::COMM {
                        comm = usize::try_from(frame.address)
                            .ok()
                            .and_then(|index| places.comms.get(index));
                        comm.filter(|_| as_frame)
                            .map(|name| builder.location(Location::NO_MAPPING, 0, name))
                    } else {
                        locations.get(frame).copied()
                    };
                    builder.profile.sample_locations.extend(location);
                }
                builder.profile.sample_locations.extend(root);
                if let Some(name) = comm.filter(|_| as_label) {
                    builder.profile.labels.push(SampleLabel::Text("comm", name));
                }
                if self.style.pid_label {
                    let pid = i64::from(process.pid);
                    builder.profile.labels.push(SampleLabel::Number("pid", pid, ""));
                }
                builder.end_sample(*weight);
            }
        }
        encode(&builder.profile)
    }

    /// Every address of the stacks with its name.
    fn names(&mut self, process: &ProcessInfo, stacks: &Stacks, places: &Places) -> Vec<(Frame, Arc<[Call]>)> {
        let mut frames: Vec<Frame> = stacks
            .weights
            .keys()
            .flat_map(|stack| stack.iter())
            .filter(|frame| frame.file != FileId::COMM)
            .copied()
            .collect();
        frames.sort_unstable();
        frames.dedup();
        let mut named = Vec::with_capacity(frames.len());
        for group in frames.chunk_by(|a, b| a.file == b.file) {
            let Some(first) = group.first() else { continue };
            let addresses: Vec<u64> = group.iter().map(|frame| frame.address).collect();
            let names = match first.file {
                FileId::KERNEL => Some(&self.cache.kernel.names),
                FileId::ANONYMOUS | FileId::TRAMPOLINES => {
                    Some(self.cache.run_times.resolve(process, &addresses, self.cache.age))
                }
                FileId::UNKNOWN => None,
                file => places
                    .binaries
                    .get(&file)
                    .map(|binary| self.cache.resolve(file, binary, &addresses, self.style.demangle)),
            };
            let found: Vec<Option<Arc<[Call]>>> = addresses
                .iter()
                .map(|address| {
                    names
                        .and_then(|names| names.find_calls(*address))
                        .filter(|calls| calls.iter().any(|call| !call.name.is_empty()))
                        .cloned()
                })
                .collect();
            for (frame, calls) in group.iter().zip(found) {
                named.push((
                    *frame,
                    calls.unwrap_or_else(|| Arc::new([Call::named(stand_in(*frame, places))])),
                ));
            }
        }
        named
    }
}

/// What is shown for an address without a name.
fn stand_in(frame: Frame, places: &Places) -> Arc<str> {
    match frame.file {
        FileId::KERNEL => "[kernel]".into(),
        FileId::ANONYMOUS | FileId::TRAMPOLINES => "[anonymous]".into(),
        FileId::UNKNOWN => "[unknown]".into(),
        file => {
            let path = places
                .binaries
                .get(&file)
                .map(|binary| binary.path.clone())
                .unwrap_or_default();
            let name = path.rsplit('/').next().unwrap_or_default();
            format!("{name}+{:#x}", frame.address).into()
        }
    }
}

/// What a process is called in a frame.
fn title(process: &ProcessInfo) -> &str {
    if process.comm.is_empty() {
        process.executable.rsplit('/').next().unwrap_or_default()
    } else {
        &process.comm
    }
}

/// A profile that grows: each name becomes one function, each place one location.
struct Builder<'a> {
    profile: Profile<'a>,
    /// By name and file.
    functions: HashMap<(&'a str, &'a str), u32>,
    locations: HashMap<(u32, u64, u32), u32>,
}

impl<'a> Builder<'a> {
    fn new(span: Span) -> Self {
        let cpu = ValueType {
            kind: "cpu",
            unit: "nanoseconds",
        };
        Self {
            profile: Profile {
                sample_types: vec![cpu],
                period_type: cpu,
                period: span.period_nanos,
                time_nanos: span.start_nanos,
                duration_nanos: span.duration_nanos,
                sample_starts: vec![0],
                label_starts: vec![0],
                ..Profile::default()
            },
            functions: HashMap::new(),
            locations: HashMap::new(),
        }
    }

    fn function(&mut self, name: &'a str, file: &'a str) -> u32 {
        let profile = &mut self.profile;
        *self.functions.entry((name, file)).or_insert_with(|| {
            profile.functions.push(Function {
                name,
                system_name: name,
                file,
                ..Function::default()
            });
            profile.functions.len() as u32 - 1
        })
    }

    /// The location of a name without a place in the source.
    fn location(&mut self, mapping: u32, address: u64, name: &'a str) -> u32 {
        let function = self.function(name, "");
        self.place(mapping, address, &[Line { function, line: 0 }])
    }

    /// The location of a function and of what was inlined into it.
    fn calls(&mut self, mapping: u32, address: u64, calls: &'a [Call]) -> u32 {
        let lines: Vec<Line> = calls
            .iter()
            .map(|call| Line {
                function: self.function(&call.name, &call.file),
                line: i64::from(call.line),
            })
            .collect();
        self.place(mapping, address, &lines)
    }

    fn place(&mut self, mapping: u32, address: u64, lines: &[Line]) -> u32 {
        let profile = &mut self.profile;
        let outer = lines.last().map_or(0, |line| line.function);
        *self.locations.entry((mapping, address, outer)).or_insert_with(|| {
            let start = profile.lines.len() as u32;
            profile.lines.extend_from_slice(lines);
            profile.locations.push(Location {
                mapping,
                address,
                lines_start: start,
                lines_end: profile.lines.len() as u32,
                is_folded: false,
            });
            profile.locations.len() as u32 - 1
        })
    }

    /// Ends the sample whose locations and labels were pushed.
    fn end_sample(&mut self, weight: Weight) {
        let nanos = i64::try_from(weight.nanos).unwrap_or(i64::MAX);
        let profile = &mut self.profile;
        profile.values.push(nanos);
        profile.sample_starts.push(profile.sample_locations.len() as u32);
        profile.label_starts.push(profile.labels.len() as u32);
    }
}
