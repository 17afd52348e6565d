//! Drives the program: reads its ring and the side band, keeps the table of processes, walks snapshots, fills windows.
//!
//! One thread calls [`Profiler::poll`] some times a second and [`Profiler::take`] at the end of each window. Nothing here waits.

use std::collections::{HashMap, HashSet, VecDeque};
use std::mem;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::ebpf::arrays::{KernelMapping, array, ignored};
use crate::ebpf::events::{Clock, News, SideBand, online_cpus};
use crate::ebpf::files::{Budget, FileId, Files};
use crate::ebpf::object::{LoadSettings, Loaded, StartError, load};
use crate::ebpf::proc::{self, MapsLine};
use crate::ebpf::records::{Record, User};
use crate::ebpf::window::{Accounts, Frame, ProcessInfo, Window};
use crate::unwind::walk::{Found, REGISTERS, Snapshot, walk};
use crate::unwind::{Arch, Stop};

/// How a profiler works.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Ticks a second of busy CPU time, on each CPU.
    pub hertz: u32,
    /// Take kernel stacks too.
    pub kernel_stacks: bool,
    /// Put the name of the thread into each stack, as its outermost frame.
    pub comm: bool,
    /// Which processes.
    pub scope: Scope,
    /// Bounds of memory.
    pub budget: Budget,
}

/// Which processes are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of the machine.
    All,
    /// This one and those that it starts from now on.
    Process(u32),
    /// Those that this one starts from now on.
    ChildrenOf(u32),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hertz: 19,
            kernel_stacks: true,
            comm: false,
            scope: Scope::All,
            budget: Budget::default(),
        }
    }
}

/// User frames at most, as in the program.
const MAX_FRAMES: usize = 896;
/// Bytes of snapshots that wait for tables at most; more are walked with what is there.
const MAX_PENDING: usize = 8 << 20;
/// Polls that a snapshot waits for its tables at most.
const MAX_WAIT: u32 = 30;

/// The running profiler. Dropping it closes the clocks and unloads the program: nothing stays in the kernel.
pub struct Profiler {
    // The clocks go first when this is dropped.
    _clocks: Vec<Clock>,
    side_bands: Vec<SideBand>,
    loaded: Loaded,
    state: State,
}

/// All that is not the kernel's.
struct State {
    settings: Settings,
    /// Processes that are looked at, when not all are.
    followed: HashSet<u32>,
    /// Room for the news of a poll.
    news: Vec<(u64, News)>,
    /// Processes that the program is to pass over from now on.
    ignored: HashSet<u32>,
    /// Processes that the program passes over.
    passed_over: HashSet<u32>,
    /// Processes that it shall not pass over any more.
    unignored: Vec<u32>,
    files: Files,
    processes: HashMap<u32, Process>,
    pending: VecDeque<Pending>,
    pending_bytes: usize,
    window: Window,
    accounts: Accounts,
    frames: Vec<Frame>,
    addresses: Vec<u64>,
}

struct Process {
    info: Arc<ProcessInfo>,
    image: Image,
    /// It was seen by a tick: its tables are wanted and its mappings are told to the program.
    active: bool,
    /// The mappings changed since they were told.
    stale: bool,
    /// The program has its mappings.
    told: bool,
    exited: bool,
}

#[derive(Debug, Clone, Copy)]
struct Mapping {
    start: u64,
    end: u64,
    file: FileId,
    bias: u64,
}

/// The executable mappings of a process until it runs another program, sorted by start, without overlaps. Copied stacks keep the image that
/// they were taken of.
type Image = Arc<RwLock<Vec<Mapping>>>;

/// A copied stack that waits for tables.
struct Pending {
    image: Image,
    info: Arc<ProcessInfo>,
    comm: [u8; 16],
    kernel: Vec<u64>,
    ip: u64,
    sp: u64,
    bp: u64,
    aux: u64,
    registers: [u64; REGISTERS],
    bytes: Vec<u8>,
    waited: u32,
}

impl Profiler {
    /// Loads the program and starts the clocks of all CPUs.
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        let system = |what| move |error| StartError::System { what, error };
        let cpus = online_cpus().map_err(system("/sys/devices/system/cpu/online"))?;
        // Half a megabyte holds a second of a CPU at 99 Hz; a power of two for any number and rate.
        let cpu_count = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
        let ring_bytes = cpu_count
            .saturating_mul(512 << 10)
            .saturating_mul(settings.hertz.div_ceil(100).max(1))
            .clamp(1 << 20, 64 << 20)
            .next_power_of_two();
        let mut loaded = load(LoadSettings {
            kernel_stacks: settings.kernel_stacks,
            ring_bytes,
        })?;
        let mut side_bands = Vec::with_capacity(cpus.len());
        let failed = |cpu| move |error| StartError::PerfEvent { cpu, error };
        for cpu in &cpus {
            side_bands.push(SideBand::open(*cpu).map_err(failed(*cpu))?);
        }
        let files = Files::new(settings.budget).map_err(system("a new thread"))?;
        let mut state = State {
            settings,
            followed: match settings.scope {
                Scope::All => HashSet::new(),
                Scope::Process(pid) | Scope::ChildrenOf(pid) => HashSet::from([pid]),
            },
            news: Vec::new(),
            ignored: HashSet::new(),
            passed_over: HashSet::new(),
            unignored: Vec::new(),
            files,
            processes: HashMap::new(),
            pending: VecDeque::new(),
            pending_bytes: 0,
            window: Window::default(),
            accounts: Accounts::default(),
            frames: Vec::new(),
            addresses: Vec::new(),
        };
        if settings.scope != Scope::All {
            // Before the clocks start, or the ring would be full of those that nobody asked for.
            let pids = proc::pids().map_err(system("/proc"))?;
            let own = std::process::id();
            state.ignored.extend(
                pids.into_iter()
                    .filter(|pid| *pid == own || !state.followed.contains(pid)),
            );
            state.tell(&mut loaded);
        }
        let mut clocks = Vec::with_capacity(cpus.len());
        let program = loaded.program()?;
        for cpu in cpus {
            clocks.push(Clock::open(cpu, u64::from(settings.hertz), program).map_err(failed(cpu))?);
        }
        Ok(Self {
            _clocks: clocks,
            side_bands,
            loaded,
            state,
        })
    }

    /// Reads what has come. To be called some times a second.
    pub fn poll(&mut self) {
        let Self {
            side_bands,
            loaded,
            state,
            ..
        } = self;
        let mut news = mem::take(&mut state.news);
        for band in side_bands {
            band.drain(&mut news);
        }
        // Each CPU has a ring of its own: what a process did on several of them is put in order, and so are its ticks between.
        news.sort_by_key(|(time, _)| *time);
        let mut next = news.drain(..).peekable();
        for (id, table) in state.files.ready() {
            let told = array("rows", table.rows())
                .and_then(|rows| loaded.tables.insert(id.0, &rows, 0).map_err(std::io::Error::other));
            if let Err(error) = told {
                tracing::warn!(error = %error, rows = table.rows().len(), "cannot hand an unwind table to the kernel");
            }
        }
        while let Some(record) = loaded.ring.next() {
            match Record::parse(&record) {
                Some(record) => {
                    while let Some((_, before)) = next.next_if(|(time, _)| *time <= record.time) {
                        state.hear(before);
                    }
                    state.take(&record);
                }
                None => state.accounts.malformed += 1,
            }
        }
        for (_, rest) in next.by_ref() {
            state.hear(rest);
        }
        drop(next);
        state.news = news;
        state.tell(loaded);
        state.walk_pending(false);
        state.forget_exited(loaded);
    }

    /// Ends the window and answers with it.
    pub fn take(&mut self) -> Window {
        self.poll();
        self.state.walk_pending(true);
        for id in self.state.files.age() {
            // A table that is not there any more is walked around by frame pointers.
            let _ = self.loaded.tables.remove(&id.0);
        }
        mem::take(&mut self.state.window)
    }

    /// The binaries, for names.
    pub fn files(&mut self) -> &mut Files {
        &mut self.state.files
    }

    /// Where the ticks went.
    pub fn accounts(&self) -> Accounts {
        Accounts {
            ticks: self.loaded.counter(0),
            stacks: self.loaded.counter(1),
            snapshots: self.loaded.counter(2),
            ring_full: self.loaded.counter(3),
            no_scratch: self.loaded.counter(4),
            idle: self.loaded.counter(5),
            ignored: self.loaded.counter(6),
            ..self.state.accounts
        }
    }

    /// Nanoseconds of CPU time that a tick stands for.
    pub fn period(&self) -> u64 {
        1_000_000_000 / u64::from(self.state.settings.hertz.max(1))
    }
}

impl State {
    fn hear(&mut self, news: News) {
        match news {
            News::Lost(count) => {
                self.accounts.news_lost += count;
                // Something is missing of someone: ask again for all, at their next tick.
                for process in self.processes.values_mut() {
                    process.active = false;
                }
            }
            News::Executed { pid, comm } => {
                let started = self.processes.get(&pid).map_or(0, |process| process.info.start);
                let mut process = Process::new(pid, started);
                if !comm.is_empty() && process.info.comm.is_empty() {
                    Arc::make_mut(&mut process.info).comm = comm;
                }
                if let Some(before) = self.processes.insert(pid, process) {
                    let told = before.told;
                    if let Some(process) = self.processes.get_mut(&pid) {
                        process.told = told;
                        process.stale = true;
                    }
                }
            }
            News::Forked { pid, parent } => {
                self.end_ignoring(pid);
                if self.followed.contains(&parent) {
                    self.followed.insert(pid);
                } else if self.settings.scope != Scope::All {
                    self.ignored.insert(pid);
                    return;
                }
                if let Some(parent) = self.processes.get(&parent) {
                    let mut process = Process::new(pid, 0);
                    process.image = Arc::new(RwLock::new(parent.image.read().clone()));
                    self.processes.insert(pid, process);
                }
            }
            News::Mapped {
                pid,
                start,
                end,
                offset,
                device,
                inode,
                path,
            } => {
                let Some(process) = self.processes.get_mut(&pid) else {
                    return;
                };
                let line = MapsLine {
                    start,
                    end,
                    offset,
                    device,
                    inode,
                    path,
                };
                if process.info.executable.is_empty() && line.path.starts_with('/') {
                    Arc::make_mut(&mut process.info).executable.clone_from(&line.path);
                }
                process.map(&mut self.files, &line);
            }
            News::Exited { pid, tid } if pid == tid => {
                self.end_ignoring(pid);
                if let Some(process) = self.processes.get_mut(&pid) {
                    process.exited = true;
                }
            }
            News::Exited { .. } => {}
        }
    }

    /// Looks whether a process that nobody told of was made by one that is followed: on a busy machine news of it may have been lost.
    fn adopt(&mut self, pid: u32) -> bool {
        /// Generations that are looked at.
        const DEEPEST: usize = 16;
        if self.ignored.contains(&pid) || self.passed_over.contains(&pid) || pid == std::process::id() {
            return false;
        }
        let mut at = pid;
        for _ in 0..DEEPEST {
            match proc::parent(at) {
                Some(parent) if self.followed.contains(&parent) => {
                    self.followed.insert(pid);
                    return true;
                }
                Some(parent) if parent > 1 => at = parent,
                _ => return false,
            }
        }
        false
    }

    /// The id belongs to another process from now on.
    fn end_ignoring(&mut self, pid: u32) {
        self.ignored.remove(&pid);
        if self.passed_over.remove(&pid) {
            self.unignored.push(pid);
        }
    }

    fn take(&mut self, record: &Record<'_>) {
        let is_wanted = match self.settings.scope {
            Scope::All => true,
            Scope::Process(_) => self.followed.contains(&record.pid),
            Scope::ChildrenOf(parent) => record.pid != parent && self.followed.contains(&record.pid),
        };
        if !is_wanted && !self.adopt(record.pid) {
            self.accounts.filtered += 1;
            self.ignored.insert(record.pid);
            return;
        }
        self.meet(record.pid, record.start);
        let Some(process) = self.processes.get(&record.pid) else {
            return;
        };
        match record.user {
            User::Frames(user) => {
                self.addresses.clear();
                self.addresses.extend(user.iter());
                let info = process.info.clone();
                self.frames.clear();
                push_kernel(&mut self.frames, record.kernel().iter());
                push_user(&mut self.frames, &self.addresses, &process.image.read());
                self.count(&info, &record.comm, record.stop);
            }
            User::Snapshot(snapshot) => {
                let pending = Pending {
                    image: process.image.clone(),
                    info: process.info.clone(),
                    comm: record.comm,
                    kernel: record.kernel().iter().collect(),
                    ip: snapshot.ip,
                    sp: snapshot.sp,
                    bp: snapshot.bp,
                    aux: snapshot.aux,
                    registers: snapshot.registers,
                    bytes: snapshot.bytes.to_vec(),
                    waited: 0,
                };
                self.pending_bytes += pending.bytes.len();
                self.pending.push_back(pending);
            }
        }
    }

    /// Makes sure that the process of a tick is known, and that it is the same as before.
    fn meet(&mut self, pid: u32, start: u64) {
        let known = self.processes.get_mut(&pid);
        let process = match known {
            Some(process) if process.info.start == 0 || process.info.start == start => process,
            _ => {
                let mut process = Process::new(pid, start);
                process.read(pid, &mut self.files);
                self.processes.entry(pid).insert_entry(process).into_mut()
            }
        };
        if process.info.start == 0 {
            Arc::make_mut(&mut process.info).start = start;
        }
        if !process.active {
            process.active = true;
            process.stale = true;
            // Forks of processes that were not known, and those whose news were lost.
            if process.image.read().is_empty() {
                process.read(pid, &mut self.files);
            }
            if process.info.executable.is_empty() {
                let info = Arc::make_mut(&mut process.info);
                info.executable = proc::executable(pid);
            }
        }
    }

    /// Tells the program the mappings of processes whose tables are there.
    fn tell(&mut self, loaded: &mut Loaded) {
        for pid in self.unignored.drain(..) {
            // It is not there when the id was given to a process that was told meanwhile.
            let _ = loaded.processes.remove(&pid);
        }
        for pid in self.ignored.drain() {
            // Whoever cannot be told to be passed over is sorted out here at each tick.
            if ignored().is_ok_and(|map| loaded.processes.insert(pid, &map, 0).is_ok()) {
                self.passed_over.insert(pid);
            }
        }
        for (pid, process) in &mut self.processes {
            if !process.active || !process.stale || process.exited {
                continue;
            }
            let image = process.image.read();
            if image.is_empty() || !self.files.want_tables(image.iter().map(|mapping| mapping.file)) {
                continue;
            }
            let mappings: Vec<KernelMapping> = image
                .iter()
                .map(|mapping| KernelMapping {
                    start: mapping.start,
                    end: mapping.end,
                    bias: mapping.bias,
                    table: self
                        .files
                        .get(mapping.file)
                        .and_then(|entry| entry.table())
                        .map_or(0, |_| mapping.file.0),
                    reserved: 0,
                })
                .collect();
            let told = array("mappings", &mappings)
                .and_then(|map| loaded.processes.insert(pid, &map, 0).map_err(std::io::Error::other));
            process.stale = false;
            match told {
                Ok(()) => process.told = true,
                // The program goes on sending snapshots of it.
                Err(error) => tracing::debug!(error = %error, pid, "cannot tell the program the mappings of a process"),
            }
        }
    }

    /// Walks the snapshots whose tables are there, and those that waited too long; all when `all`.
    fn walk_pending(&mut self, all: bool) {
        for _ in 0..self.pending.len() {
            let Some(mut pending) = self.pending.pop_front() else {
                return;
            };
            pending.waited += 1;
            // The news of what was mapped just before may come one poll later.
            let wait = !all
                && pending.waited < MAX_WAIT
                && self.pending_bytes <= MAX_PENDING
                && (pending.waited < 2
                    || !self
                        .files
                        .want_tables(pending.image.read().iter().map(|mapping| mapping.file)));
            if wait {
                self.pending.push_back(pending);
                continue;
            }
            self.pending_bytes -= pending.bytes.len();
            self.walk(&pending);
        }
    }

    fn walk(&mut self, pending: &Pending) {
        self.addresses.clear();
        self.frames.clear();
        push_kernel(&mut self.frames, pending.kernel.iter().copied());
        let mappings = pending.image.read();
        let snapshot = Snapshot {
            ip: pending.ip,
            sp: pending.sp,
            bp: pending.bp,
            aux: pending.aux,
            registers: pending.registers,
            bytes: &pending.bytes,
        };
        let files = &self.files;
        let find = |address: u64| {
            let Some(mapping) = mapping_at(&mappings, address) else {
                return Found::NoMapping;
            };
            let Some(table) = files.get(mapping.file).and_then(|entry| entry.table()) else {
                return Found::FramePointers;
            };
            u32::try_from(address.wrapping_sub(mapping.bias))
                .ok()
                .and_then(|pc| table.find(pc))
                .map_or(Found::NoMapping, |row| Found::Row(*row))
        };
        let arch = Arch::native().unwrap_or(Arch::X86_64);
        let stop = walk(arch, &snapshot, MAX_FRAMES, find, &mut self.addresses);
        push_user(&mut self.frames, &self.addresses, &mappings);
        drop(mappings);
        let (info, comm) = (pending.info.clone(), pending.comm);
        self.count(&info, &comm, stop);
    }

    /// Puts the frames into the window.
    fn count(&mut self, info: &Arc<ProcessInfo>, comm: &[u8; 16], stop: Stop) {
        if self.settings.comm {
            let frame = self.window.comm(comm);
            self.frames.push(frame);
        }
        if !matches!(stop, Stop::End | Stop::NoUser) && tracing::enabled!(tracing::Level::DEBUG) {
            let last = self.frames.iter().rfind(|frame| frame.file != FileId::COMM);
            let path = last
                .and_then(|frame| self.files.get(frame.file))
                .map(|entry| entry.path.as_ref());
            let address = last.map(|frame| format!("{:#x}", frame.address));
            tracing::debug!(
                pid = info.pid,
                stop = stop.name(),
                path,
                address,
                frames = self.frames.len(),
                "incomplete stack"
            );
        }
        self.accounts.samples += 1;
        self.accounts.by_stop[stop as usize] += 1;
        if !self.window.add(info, &self.frames) {
            self.accounts.folded += 1;
        }
    }

    fn forget_exited(&mut self, loaded: &mut Loaded) {
        self.processes.retain(|pid, process| {
            if !process.exited {
                return true;
            }
            if process.told {
                // It may have been removed with an earlier life of the id.
                let _ = loaded.processes.remove(pid);
            }
            false
        });
    }
}

impl Process {
    fn new(pid: u32, start: u64) -> Self {
        Self {
            info: Arc::new(ProcessInfo {
                pid,
                start,
                executable: proc::executable(pid),
                comm: proc::comm(pid),
                container_id: proc::container_id(pid),
            }),
            image: Image::default(),
            active: false,
            stale: false,
            told: false,
            exited: false,
        }
    }

    /// Takes the mappings from `/proc`; a process that is gone has none.
    fn read(&mut self, pid: u32, files: &mut Files) {
        for line in proc::executable_mappings(pid).unwrap_or_default() {
            self.map(files, &line);
        }
    }

    /// Adds a mapping in place of what it covers.
    fn map(&mut self, files: &mut Files, line: &MapsLine) {
        if line.start >= line.end {
            return;
        }
        let file = files.intern(self.info.pid, line);
        let bias = files
            .get(file)
            .and_then(|entry| entry.address_of(line.offset))
            .map_or(0, |address| line.start.wrapping_sub(address));
        let new = Mapping {
            start: line.start,
            end: line.end,
            file,
            bias,
        };
        let mut mappings = self.image.write();
        let mut kept = Vec::with_capacity(mappings.len() + 1);
        for old in mappings.iter() {
            if old.end <= new.start || old.start >= new.end {
                kept.push(*old);
                continue;
            }
            if old.start < new.start {
                kept.push(Mapping { end: new.start, ..*old });
            }
            if old.end > new.end {
                kept.push(Mapping { start: new.end, ..*old });
            }
        }
        kept.push(new);
        kept.sort_unstable_by_key(|mapping| mapping.start);
        *mappings = kept;
        self.stale = true;
    }
}

fn mapping_at(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let after = mappings.partition_point(|mapping| mapping.start <= address);
    let mapping = mappings.get(after.checked_sub(1)?)?;
    (address < mapping.end).then_some(mapping)
}

fn push_kernel(frames: &mut Vec<Frame>, addresses: impl Iterator<Item = u64>) {
    for (index, address) in addresses.enumerate() {
        frames.push(Frame {
            file: FileId::KERNEL,
            address: address.wrapping_sub(u64::from(index > 0)),
        });
    }
}

fn push_user(frames: &mut Vec<Frame>, addresses: &[u64], mappings: &[Mapping]) {
    for (index, address) in addresses.iter().enumerate() {
        // A return address may be the first byte after the function: the call is what counts.
        let address = address.wrapping_sub(u64::from(index > 0));
        frames.push(match mapping_at(mappings, address) {
            Some(mapping) => Frame {
                file: mapping.file,
                address: address.wrapping_sub(mapping.bias),
            },
            None => Frame {
                file: FileId::UNKNOWN,
                address,
            },
        });
    }
}
