//! The worker: keeps the state of all processes, and fills the current window.
//!
//! In: batches of records and events from the polling thread, in order. Out: windows. The worker may wait for `/proc`
//! and for files. The polling thread continues meanwhile, and its batches wait in a bounded queue.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crate::copies::Copies;
use crate::cost::{CostAccount, ThreadCost};
use crate::events::ProcessEvent;
use crate::files::{FileId, Files};
use crate::foreign::Opener;
use crate::kernel_side::KernelSide;
use crate::object::KernelMaps;
use crate::pending::{Pending, Waiting, WalkPass};
use crate::proc::{self, MapsLine};
use crate::process::{Process, push_kernel, push_user};
use crate::records::{Record, User};
use crate::settings::{Scope, Settings};
use crate::window::{Accounts, Frame, OpenWindow, ProcessInfo, Window};
use crate::work::{Batch, Work};
use alluvium_unwind::Stop;

pub(crate) struct Worker {
    settings: Settings,
    kernel: KernelSide,
    /// Ids of the followed processes. Empty if all processes are followed.
    followed: HashSet<u32>,
    files: Files,
    processes: HashMap<u32, Process>,
    pending: Pending,
    filling: OpenWindow,
    copies: Copies,
    accounts: Accounts,
    /// True if events were lost in this window, so that the end of a process may have been missed.
    has_lost: bool,
    /// The time when all processes were last marked doubtful, and true if they must be marked again.
    doubted: (Option<Instant>, bool),
    cost: CostAccount,
    backlog: Arc<AtomicUsize>,
    frames: Vec<Frame>,
    addresses: Vec<u64>,
}

impl Worker {
    /// Creates a worker without processes. The worker lowers `backlog` by the bytes of each batch that it has handled.
    pub(super) fn new(
        settings: Settings,
        kernel: Option<KernelMaps>,
        cost: CostAccount,
        opener: Opener,
        backlog: Arc<AtomicUsize>,
    ) -> std::io::Result<Self> {
        let budget = settings.budget;
        Ok(Self {
            settings,
            kernel: KernelSide::new(kernel),
            followed: match settings.scope {
                Scope::All => HashSet::new(),
                Scope::Process(pid) | Scope::ChildrenOf(pid) => HashSet::from([pid]),
            },
            files: Files::new(budget.tables(), &cost, opener)?,
            processes: HashMap::new(),
            pending: Pending::new(budget.backlog() / 2),
            filling: OpenWindow::new(budget.window()),
            copies: Copies::new(budget.window()),
            accounts: Accounts::default(),
            has_lost: false,
            doubted: (None, false),
            cost,
            backlog,
            frames: Vec::new(),
            addresses: Vec::new(),
        })
    }

    /// Ignores all processes outside of the scope. Must be called before sampling starts, because the records of these
    /// processes would fill the ring.
    pub(crate) fn ignore_others(&mut self) -> std::io::Result<()> {
        if self.settings.scope == Scope::All {
            return Ok(());
        }
        let scope = self.settings.scope;
        let others = proc::pids()?
            .into_iter()
            .filter(|pid| scope == Scope::ChildrenOf(*pid) || !self.followed.contains(pid));
        others.for_each(|pid| self.kernel.ignore(pid));
        self.kernel.write_processes(&mut self.processes);
        Ok(())
    }

    /// Runs until the sender of the messages is dropped.
    pub(super) fn run(mut self, inbox: &Receiver<Work>) {
        let thread_cost: ThreadCost = self.cost.thread();
        for work in inbox {
            match work {
                Work::Batch(batch) => {
                    self.batch(&batch);
                    self.backlog.fetch_sub(batch.size(), Ordering::Relaxed);
                }
                Work::Take {
                    accounts,
                    hertz,
                    is_last,
                    reply,
                } => {
                    if is_last {
                        self.walk_last();
                    }
                    let window = self.take(accounts, hertz);
                    // The receiver is gone if the profiler was dropped.
                    let _ = reply.send(window);
                }
                #[cfg(test)]
                Work::Hold(release) => {
                    let _ = release.recv();
                }
            }
            thread_cost.note();
        }
    }

    fn batch(&mut self, batch: &Batch) {
        self.accounts.malformed += batch.malformed;
        if self.doubted.1 {
            self.mark_all_doubtful();
        }
        let mut events = batch.events.iter().peekable();
        self.write_tables();
        for (time, bytes) in batch.records() {
            while let Some((_, event)) = events.next_if(|(event_time, _)| *event_time <= time) {
                self.apply(event);
            }
            match Record::parse(bytes) {
                Some(record) => self.tick(&record),
                None => self.accounts.malformed += 1,
            }
        }
        for (_, event) in events {
            self.apply(event);
        }
        self.kernel.write_processes(&mut self.processes);
        self.walk_pending(WalkPass::Batch);
        self.forget_exited();
    }

    #[expect(clippy::iter_over_hash_type, reason = "each process is handled independently")]
    fn take(&mut self, polled: Accounts, hertz: u32) -> Window {
        self.kernel.write_processes(&mut self.processes);
        let counts = self.accounts;
        let accounts = Accounts {
            samples: counts.samples,
            filtered: counts.filtered,
            malformed: counts.malformed,
            folded: counts.folded,
            by_stop: counts.by_stop,
            events_lost: counts.events_lost,
            mappings_lost: counts.mappings_lost,
            agent_nanos: self.cost.nanos(),
            table_bytes: self.files.table_bytes() as u64,
            ..polled
        };
        let files = &mut self.files;
        let binary = |id| {
            files.mark_used(id);
            files.binary(id).cloned()
        };
        let mut window = self.filling.finish(binary, accounts, hertz);
        window.copies = self.copies.take();
        if std::mem::take(&mut self.has_lost)
            && let Ok(pids) = proc::pids()
        {
            let pids = pids.into_iter().collect();
            mark_ended(&mut self.processes, &pids);
        }
        let closed: HashSet<FileId> = self.files.end_window().into_iter().collect();
        self.write_tables();
        if !closed.is_empty() {
            // Processes that map one of the closed files are read again at their next tick.
            for process in self.processes.values_mut() {
                let has = process
                    .image
                    .read()
                    .iter()
                    .any(|mapping| closed.contains(&mapping.file));
                if has {
                    process.image = Default::default();
                    process.active = false;
                }
            }
        }
        window
    }

    fn write_tables(&mut self) {
        for (id, rows) in self.kernel.write_tables(self.files.changes()) {
            self.files.share(id, rows);
        }
    }

    fn apply(&mut self, event: &ProcessEvent) {
        match event {
            ProcessEvent::Lost(count) => {
                self.accounts.events_lost += count;
                self.has_lost = true;
                self.mark_all_doubtful();
            }
            ProcessEvent::Executed { pid, comm } => self.executed(*pid, comm),
            ProcessEvent::Forked { pid, parent } => {
                self.kernel.end_ignoring(*pid);
                if self.followed.contains(parent) {
                    self.followed.insert(*pid);
                } else if self.settings.scope != Scope::All {
                    // The id may have belonged to a followed process.
                    self.followed.remove(pid);
                    self.kernel.ignore(*pid);
                    return;
                }
                if let Some(parent) = self.processes.get(parent) {
                    let child = parent.fork(*pid);
                    self.processes.insert(*pid, child);
                }
            }
            ProcessEvent::Mapped {
                pid,
                start,
                end,
                offset,
                device,
                inode,
                path,
            } => {
                let Some(process) = self.processes.get_mut(pid) else {
                    return;
                };
                let line = MapsLine {
                    start: *start,
                    end: *end,
                    offset: *offset,
                    device: *device,
                    inode: *inode,
                    path: path.clone(),
                };
                // The first file that a new program maps is its own.
                if process.info.executable.is_empty() && line.path.starts_with('/') {
                    Arc::make_mut(&mut process.info).executable.clone_from(&line.path);
                }
                if !process.map(&mut self.files, &line) {
                    self.accounts.mappings_lost += 1;
                }
            }
            ProcessEvent::Exited { pid, tid } if pid == tid => {
                self.kernel.end_ignoring(*pid);
                if let Some(process) = self.processes.get_mut(pid) {
                    process.exited = 1;
                }
            }
            ProcessEvent::Exited { .. } => {}
        }
    }

    /// Marks all processes to be read again at their next tick, because an event of some process was lost. Marks them
    /// at most once a second, because a process may map files so fast that events are always lost.
    #[expect(clippy::iter_over_hash_type, reason = "each process is changed independently")]
    fn mark_all_doubtful(&mut self) {
        const MIN_INTERVAL: Duration = Duration::from_secs(1);
        if self.doubted.0.is_some_and(|last| last.elapsed() < MIN_INTERVAL) {
            self.doubted.1 = true;
            return;
        }
        self.doubted = (Some(Instant::now()), false);
        for process in self.processes.values_mut() {
            process.active = false;
            process.is_doubtful = true;
        }
    }

    fn executed(&mut self, pid: u32, comm: &str) {
        if self.settings.scope != Scope::All && !self.followed.contains(&pid) {
            return;
        }
        let before = self.processes.remove(&pid);
        let mut process = Process::new(pid, before.as_ref().map_or(0, |process| process.info.start));
        let info = Arc::make_mut(&mut process.info);
        comm.clone_into(&mut info.comm);
        if let Some(before) = before {
            info.container_id.clone_from(&before.info.container_id);
            info.user = before.info.user;
            process.in_kernel = before.in_kernel;
            process.is_stale = true;
        }
        self.processes.insert(pid, process);
    }

    fn tick(&mut self, record: &Record<'_>) {
        if let User::Copy(stack) = record.user {
            // The copy is not counted, because the frames of this tick follow in the next record.
            self.copies.keep_copy(record, &stack);
            return;
        }
        let is_wanted = match self.settings.scope {
            Scope::All => true,
            Scope::Process(_) => self.followed.contains(&record.pid),
            Scope::ChildrenOf(parent) => record.pid != parent && self.followed.contains(&record.pid),
        };
        if !is_wanted && !self.follow_descendant(record.pid) {
            self.accounts.filtered += 1;
            self.kernel.ignore(record.pid);
            return;
        }
        self.ensure_known(record.pid, record.start);
        let Some(process) = self.processes.get(&record.pid) else {
            return;
        };
        let info = process.info.clone();
        match record.user {
            User::Frames(user) => {
                self.addresses.clear();
                self.addresses.extend(user.iter());
                self.copies.pair(record, &self.addresses);
                self.frames.clear();
                if self.settings.kernel_stacks {
                    push_kernel(&mut self.frames, record.kernel().iter());
                }
                push_user(&mut self.frames, &self.addresses, &process.image.read());
                self.count(&info, &record.comm, record.period, record.stop);
            }
            User::Snapshot(snapshot) => {
                // The walk in user space may end at the end of the copy, before it reaches the file of the missing
                // table. Then no other code would request the table.
                if record.missing != 0 {
                    self.files.request_table(FileId(record.missing));
                }
                let waiting = Waiting::new(record, &snapshot, process.image.clone(), info);
                self.pending.push(waiting);
            }
            User::Copy(_) => {}
        }
    }

    /// Follows a process if one of its ancestors is followed. On a busy machine the event of its fork may have been
    /// lost.
    fn follow_descendant(&mut self, pid: u32) -> bool {
        /// Maximum number of ancestors that are checked.
        const MAX_GENERATIONS: usize = 16;
        if self.kernel.is_ignored(pid) || pid == std::process::id() {
            return false;
        }
        let mut ancestor = pid;
        for _ in 0..MAX_GENERATIONS {
            match proc::parent(ancestor) {
                Some(parent) if self.followed.contains(&parent) => {
                    self.followed.insert(pid);
                    return true;
                }
                Some(parent) if parent > 1 => ancestor = parent,
                _ => return false,
            }
        }
        false
    }

    /// Makes sure that `processes` contains the process of a tick, and not an earlier process with the same id.
    fn ensure_known(&mut self, pid: u32, start: u64) {
        let is_known = |process: &Process| {
            let known_start = process.info.start;
            known_start == 0 || start == 0 || known_start == start
        };
        let process = self
            .processes
            .entry(pid)
            .and_modify(|process| {
                if !is_known(process) {
                    *process = Process::new(pid, start);
                }
            })
            .or_insert_with(|| Process::new(pid, start));
        if process.info.start == 0 {
            let start = if start == 0 { proc::start(pid) } else { start };
            Arc::make_mut(&mut process.info).start = start;
        }
        if !process.active {
            process.active = true;
            process.is_stale = true;
            process.identify();
            // The mappings may be missing or wrong after a fork of an unknown process, or if events were lost.
            if process.is_doubtful || process.image.read().is_empty() {
                self.accounts.mappings_lost += process.read(&mut self.files);
            }
        }
    }

    fn walk_pending(&mut self, pass: WalkPass) {
        // Waiting stacks may use the free bytes of the window: at the start, most stacks wait and few are counted.
        for walked in self.pending.walk(&mut self.files, pass, self.filling.free()) {
            let waiting = &walked.waiting;
            self.frames.clear();
            if self.settings.kernel_stacks {
                push_kernel(&mut self.frames, waiting.kernel.iter().copied());
            }
            push_user(&mut self.frames, &walked.addresses, &waiting.image.read());
            self.count(&waiting.info, &waiting.comm, waiting.period, walked.stop);
        }
    }

    /// Walks all copied stacks, after waiting for the tables that they need.
    fn walk_last(&mut self) {
        const MAX_WAIT: Duration = Duration::from_secs(10);
        const POLL_INTERVAL: Duration = Duration::from_millis(50);
        let deadline = Instant::now() + MAX_WAIT;
        self.walk_pending(WalkPass::Try);
        while !self.pending.is_empty() && Instant::now() < deadline {
            self.files.wait(POLL_INTERVAL);
            self.walk_pending(WalkPass::Try);
        }
        self.walk_pending(WalkPass::Force);
    }

    /// Adds the frames to the window as one tick.
    fn count(&mut self, info: &Arc<ProcessInfo>, comm: &[u8; 16], period: u64, stop: Stop) {
        if self.settings.comm {
            let frame = self.filling.comm(comm);
            self.frames.push(frame);
        }
        if !matches!(stop, Stop::End | Stop::NoUser) && tracing::enabled!(tracing::Level::DEBUG) {
            let last = self.frames.iter().rfind(|frame| frame.file != FileId::COMM);
            let path = last
                .and_then(|frame| self.files.binary(frame.file))
                .map(|binary| binary.path.as_ref());
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
        if !self.filling.add(info, &self.frames, period) {
            self.accounts.folded += 1;
        }
    }

    /// Forgets processes that have ended. Their last ticks may arrive one batch after the event.
    fn forget_exited(&mut self) {
        let kernel = &mut self.kernel;
        self.processes.retain(|pid, process| {
            if process.exited == 0 {
                return true;
            }
            process.exited += 1;
            if process.exited <= 2 {
                return true;
            }
            if process.in_kernel {
                kernel.remove_process(*pid);
            }
            false
        });
    }
}

/// Marks processes that do not exist any more as ended. Otherwise they would be kept until their ids are reused.
#[expect(clippy::iter_over_hash_type, reason = "each process is changed independently")]
fn mark_ended(processes: &mut HashMap<u32, Process>, pids: &HashSet<u32>) {
    for (pid, process) in processes {
        if process.exited == 0 && !pids.contains(pid) {
            process.exited = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_processes_are_read_again_once_a_second_when_events_are_always_lost() {
        let mut worker = Worker::new(
            Settings::default(),
            None,
            CostAccount::default(),
            Opener::default(),
            Arc::default(),
        )
        .unwrap();
        // Returns true if the batch marks a known process to be read again.
        let doubts = |worker: &mut Worker, event: Option<ProcessEvent>| {
            let mut process = Process::new(7, 1);
            process.active = true;
            worker.processes.insert(7, process);
            let batch = Batch {
                events: event.into_iter().map(|event| (0, event)).collect(),
                ..Batch::default()
            };
            worker.batch(&batch);
            !worker.processes[&7].active
        };
        assert!(!doubts(&mut worker, None));
        assert!(doubts(&mut worker, Some(ProcessEvent::Lost(1))));
        // The result must not depend on the speed of this machine.
        worker.doubted.0 = Instant::now().checked_add(Duration::from_hours(1));
        assert!(!doubts(&mut worker, Some(ProcessEvent::Lost(1))));
        assert!(!doubts(&mut worker, None));
        worker.doubted.0 = Instant::now().checked_sub(Duration::from_secs(1));
        assert!(doubts(&mut worker, None));
        assert!(!doubts(&mut worker, None));
    }

    #[test]
    fn processes_whose_end_was_not_heard_of_are_not_kept() {
        let own_pid = std::process::id();
        let mut processes = HashMap::from([own_pid, u32::MAX].map(|pid| (pid, Process::new(pid, 1))));
        mark_ended(&mut processes, &proc::pids().unwrap().into_iter().collect());
        assert_eq!([own_pid, u32::MAX].map(|pid| processes[&pid].exited), [0, 1]);
    }
}
