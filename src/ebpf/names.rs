//! A process's share of a window as a pprof profile with names.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::sync::Arc;

use crate::ebpf::files::{FileId, Files};
use crate::ebpf::run_time::RunTimes;
use crate::ebpf::window::{Frame, ProcessInfo, Stacks, Window};
use crate::profile::pprof::{Function, Line, Location, Mapping, Profile, SampleLabel, ValueType, encode};
use crate::symbols::calls::Call;
use crate::symbols::{Demangle, Ranges, kernel};

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

/// Names of the kernel's functions that were met.
#[derive(Debug, Default)]
pub struct KernelNames {
    names: Ranges,
    /// The list hides its addresses.
    hidden: bool,
    /// Names that runtimes wrote for their own code.
    run_times: RunTimes,
}

/// Kernel functions whose names are kept; there are some ten thousand that ever run.
const MAX_KERNEL_NAMES: usize = 50_000;

/// A binary in the profile's table of mappings.
struct Binary {
    index: u32,
    path: Arc<str>,
    build_id: Arc<str>,
    /// The places in the source of some of its code are known.
    has_lines: bool,
}

/// Looks up the names of all frames of a window.
pub struct Namer<'a> {
    files: &'a mut Files,
    kernel: &'a mut KernelNames,
    style: Style,
}

impl<'a> Namer<'a> {
    /// A namer over the binaries that a profiler knows.
    pub fn new(files: &'a mut Files, kernel: &'a mut KernelNames, style: Style) -> Self {
        Self { files, kernel, style }
    }

    /// Reads the names of the kernel functions of a window that are not known yet, in one pass over the list.
    pub fn learn_kernel(&mut self, window: &Window) {
        if self.kernel.hidden {
            return;
        }
        if self.kernel.names.len() > MAX_KERNEL_NAMES {
            self.kernel.names = Ranges::default();
        }
        let mut missing: Vec<u64> = window
            .processes
            .values()
            .flat_map(|(_, stacks)| stacks.ticks.keys())
            .flat_map(|stack| stack.iter())
            .filter(|frame| frame.file == FileId::KERNEL && self.kernel.names.find(frame.address).is_none())
            .map(|frame| frame.address)
            .collect();
        if missing.is_empty() {
            return;
        }
        missing.sort_unstable();
        missing.dedup();
        let read =
            File::open("/proc/kallsyms").and_then(|list| kernel::resolve(list, &missing, &mut self.kernel.names));
        match read {
            Ok(true) => {}
            Ok(false) => {
                self.kernel.hidden = true;
                tracing::warn!(
                    "the kernel hides its addresses (kernel.kptr_restrict, CAP_SYSLOG): kernel frames have no names"
                );
            }
            Err(error) => tracing::warn!(error = %error, "cannot read the list of kernel symbols"),
        }
        for address in missing {
            if self.kernel.names.find(address).is_none() {
                self.kernel.names.insert(address, address + 1, Arc::from(""));
            }
        }
    }

    /// The profile of some processes, as pprof bytes without compression. Sample type is `cpu` in nanoseconds.
    pub fn profile(&mut self, parts: &[(&ProcessInfo, &Stacks)], comms: &[Arc<str>], span: Span) -> Vec<u8> {
        let named: Vec<Vec<(Frame, Arc<[Call]>)>> = parts
            .iter()
            .map(|(process, stacks)| self.names(process, stacks))
            .collect();
        let mut binaries: BTreeMap<FileId, Binary> = BTreeMap::new();
        for (frame, calls) in named.iter().flatten() {
            if let Some(entry) = self.files.get(frame.file) {
                let index = u32::try_from(binaries.len()).unwrap_or(u32::MAX);
                let binary = binaries.entry(frame.file).or_insert_with(|| Binary {
                    index,
                    path: entry.path.clone(),
                    build_id: entry.build_id.clone(),
                    has_lines: false,
                });
                binary.has_lines |= calls.iter().any(|call| call.line > 0);
            }
        }
        let mut builder = Builder::new(span);
        let mut in_order: Vec<&Binary> = binaries.values().collect();
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
            for (stack, ticks) in &stacks.ticks {
                let mut comm = None;
                for frame in stack.iter() {
                    let location = if frame.file == FileId::COMM {
                        comm = usize::try_from(frame.address).ok().and_then(|index| comms.get(index));
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
                builder.end_sample(*ticks);
            }
        }
        encode(&builder.profile)
    }

    /// Every address of the stacks with its name.
    fn names(&mut self, process: &ProcessInfo, stacks: &Stacks) -> Vec<(Frame, Arc<[Call]>)> {
        let mut frames: Vec<Frame> = stacks
            .ticks
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
                FileId::KERNEL => Some(&self.kernel.names),
                FileId::ANONYMOUS => Some(self.kernel.run_times.resolve(process, &addresses)),
                FileId::UNKNOWN => None,
                file => self.files.resolve(file, &addresses, self.style.demangle),
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
                    calls.unwrap_or_else(|| Arc::new([Call::named(self.stand_in(*frame))])),
                ));
            }
        }
        named
    }

    /// What is shown for an address without a name.
    fn stand_in(&self, frame: Frame) -> Arc<str> {
        match frame.file {
            FileId::KERNEL => "[kernel]".into(),
            FileId::ANONYMOUS => "[anonymous]".into(),
            FileId::UNKNOWN => "[unknown]".into(),
            file => {
                let path = self.files.get(file).map(|entry| entry.path.clone()).unwrap_or_default();
                let name = path.rsplit('/').next().unwrap_or_default();
                format!("{name}+{:#x}", frame.address).into()
            }
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
    fn end_sample(&mut self, ticks: u64) {
        let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
        let profile = &mut self.profile;
        profile.values.push(ticks.saturating_mul(profile.period));
        profile.sample_starts.push(profile.sample_locations.len() as u32);
        profile.label_starts.push(profile.labels.len() as u32);
    }
}
