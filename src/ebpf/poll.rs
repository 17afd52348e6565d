//! The polling thread moves records from the kernel's rings into batches. It never waits for files or for the worker.
//!
//! In: the ring of the BPF program (or the rings of perf events), the side bands (rings of process events), and the
//! clocks. Out: batches to the worker, bounded in bytes. While the worker is behind, records stay in the kernel's ring.
//! If the ring is full, too, the BPF program counts the lost records. The thread also adapts the sampling rate
//! to the CPU budget and follows CPUs that go online or offline.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::cost::{CostAccount, Governor};
use crate::events::{Clock, ProcessEvent, SampleRing, SideBand, online_cpus};
use crate::object::{KernelSide, StartError};
use crate::perf_sample::{self, Sample};
use crate::records::time_of;
use crate::window::{Accounts, Window};
use crate::work::{Batch, Work};

/// Interval between polls.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Interval after a poll with few records. It is longer, because waking two threads costs more than reading the
/// records of a few ticks.
const CALM_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// A poll finds few records if it reads no events and at most this many bytes, a hundredth of the smallest ring.
const MAX_CALM_BYTES: usize = 10 << 10;
/// Interval at which the rate and the CPUs are checked.
const GOVERN_INTERVAL: Duration = Duration::from_secs(5);

/// A request to the polling thread.
pub(crate) enum PollRequest {
    Take(Sender<Window>),
    /// Stop the clocks, then end the window, so that it contains every tick.
    Finish(Sender<Window>),
    #[cfg(test)]
    Hold(Receiver<()>),
}

pub(super) enum Source {
    Program {
        /// Clocks by CPU. They are dropped before the BPF program.
        clocks: HashMap<u32, Clock>,
        /// Ring, counters and BPF program.
        side: Box<KernelSide>,
    },
    Events {
        rings: HashMap<u32, SampleRing>,
        /// The counters that the BPF program would keep.
        counts: Box<Accounts>,
    },
}

/// The amount of available records that a poll reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Amount {
    Everything,
    /// All records, or none while too many bytes wait for the worker. The records then stay in the ring.
    WithinLimit,
}

/// The state after the end of a window: another window, or the end of the profiler.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextWindow {
    Window,
    Nothing,
}

pub(crate) struct Poller {
    pub source: Source,
    /// The side band of each CPU.
    pub bands: HashMap<u32, SideBand>,
    pub work: Sender<Work>,
    /// Number of bytes that wait for the worker.
    pub backlog: Arc<AtomicUsize>,
    pub limit: usize,
    pub governor: Governor,
    /// Current rate in ticks per second, read by other threads.
    pub hertz: Arc<AtomicU32>,
    pub cost: CostAccount,
    /// Number of ticks that were due on the clocks that have been closed.
    pub expected: u64,
    /// True if the last poll found few records.
    pub is_calm: bool,
}

impl Poller {
    /// Opens the clock of a CPU.
    pub(crate) fn open_cpu(&mut self, cpu: u32) -> Result<(), StartError> {
        let failed = |error| StartError::PerfEvent { cpu, error };
        if let std::collections::hash_map::Entry::Vacant(entry) = self.bands.entry(cpu) {
            entry.insert(SideBand::open(cpu).map_err(failed)?);
        }
        let period = period_of(self.hertz.load(Ordering::Relaxed));
        let old = match &mut self.source {
            Source::Program { clocks, side } => {
                let new = Clock::open(cpu, period, side.program().as_fd()).map_err(failed)?;
                clocks.insert(cpu, new).map(|old| old.due())
            }
            Source::Events { rings, .. } => {
                let new = SampleRing::open(cpu, period).map_err(failed)?;
                rings.insert(cpu, new).map(|old| old.due())
            }
        };
        self.expected += old.unwrap_or(0);
        Ok(())
    }

    fn close_cpu(&mut self, cpu: u32) {
        self.bands.remove(&cpu);
        let due = match &mut self.source {
            Source::Program { clocks, .. } => clocks.remove(&cpu).map(|old| old.due()),
            Source::Events { rings, .. } => rings.remove(&cpu).map(|old| old.due()),
        };
        self.expected += due.unwrap_or(0);
    }

    /// Runs until the sender of the requests is dropped, or the worker has ended.
    pub(super) fn run(mut self, orders: &Receiver<PollRequest>) {
        let thread_cost = self.cost.thread();
        let mut last_measurement = (Instant::now(), self.nanos_used());
        let mut is_finished = false;
        loop {
            let order = orders.recv_timeout(if self.is_calm {
                CALM_POLL_INTERVAL
            } else {
                POLL_INTERVAL
            });
            let is_open = match order {
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => self.drain(Amount::WithinLimit),
                Ok(PollRequest::Take(reply)) => {
                    self.drain(Amount::WithinLimit) && self.end_window(reply, NextWindow::Window)
                }
                Ok(PollRequest::Finish(reply)) => {
                    is_finished = true;
                    self.drain(Amount::Everything);
                    let cpus = match &self.source {
                        Source::Program { clocks, .. } => clocks.keys().copied().collect::<Vec<_>>(),
                        Source::Events { .. } => Vec::new(),
                    };
                    for cpu in cpus {
                        self.close_cpu(cpu);
                    }
                    self.drain(Amount::Everything) && self.end_window(reply, NextWindow::Nothing)
                }
                #[cfg(test)]
                Ok(PollRequest::Hold(release)) => self.work.send(Work::Hold(release)).is_ok(),
            };
            if !is_open {
                return;
            }
            thread_cost.note();
            let elapsed = last_measurement.0.elapsed();
            // After the last window the clocks stay closed, so no clock is opened for a new CPU.
            if elapsed >= GOVERN_INTERVAL && !is_finished {
                let used = self.nanos_used();
                self.govern(used.saturating_sub(last_measurement.1) as f64 / elapsed.as_nanos() as f64);
                self.follow_cpus();
                last_measurement = (Instant::now(), used);
            }
        }
    }

    /// Reads the available records. Returns false if the worker has ended.
    #[expect(
        clippy::iter_over_hash_type,
        reason = "the records of all rings are sorted by time afterwards"
    )]
    fn drain(&mut self, amount: Amount) -> bool {
        let mut batch = Batch::default();
        if amount == Amount::Everything || self.backlog.load(Ordering::Relaxed) < self.limit {
            match &mut self.source {
                Source::Program { side, .. } => {
                    while let Some(record) = side.ring.next() {
                        let from = batch.bytes.len();
                        batch.bytes.extend_from_slice(&record);
                        match time_of(&record) {
                            Some(time) => batch.order.push((time, from, batch.bytes.len())),
                            None => batch.malformed += 1,
                        }
                    }
                }
                Source::Events { rings, counts } => {
                    for ring in rings.values_mut() {
                        drain_samples(ring, counts, &mut batch);
                    }
                }
            }
        }
        // The events are read after the records, so that all events before each record are present.
        for band in self.bands.values_mut() {
            band.drain(&mut batch.events);
        }
        self.is_calm = batch.events.is_empty() && batch.bytes.len() <= MAX_CALM_BYTES;
        if batch.order.is_empty() && batch.events.is_empty() && batch.malformed == 0 {
            // A stack waits for its tables for a limited number of batches. Empty batches count, too, so they are sent.
            return self.work.send(Work::Batch(batch)).is_ok();
        }
        // Each CPU has its own ring, so the events and ticks of a process on several CPUs must be sorted by time.
        batch.events.sort_by_key(|(time, _)| *time);
        batch.order.sort_by_key(|(time, _, _)| *time);
        let waiting = self.backlog.fetch_add(batch.size(), Ordering::Relaxed);
        if waiting > self.limit * 2 {
            // More than twice the limit waits. The events of this batch are dropped, and the worker reads the missed
            // changes from `/proc`.
            let lost = batch.events.len() as u64;
            self.backlog.fetch_sub(batch.size(), Ordering::Relaxed);
            batch.events = vec![(0, ProcessEvent::Lost(lost))];
            self.backlog.fetch_add(batch.size(), Ordering::Relaxed);
        }
        self.work.send(Work::Batch(batch)).is_ok()
    }

    fn end_window(&mut self, reply: Sender<Window>, next: NextWindow) -> bool {
        let accounts = self.accounts();
        let hertz = self.hertz.load(Ordering::Relaxed);
        let take = Work::Take {
            accounts,
            hertz,
            is_last: next == NextWindow::Nothing,
            reply,
        };
        self.work.send(take).is_ok()
    }

    fn accounts(&self) -> Accounts {
        let (mut accounts, running) = match &self.source {
            Source::Program { clocks, side } => (side.counts(), clocks.values().map(Clock::due).sum::<u64>()),
            Source::Events { rings, counts } => (**counts, rings.values().map(SampleRing::due).sum::<u64>()),
        };
        // Clocks and counters are not read at the same moment, so they may differ by one tick per CPU.
        accounts.expected = (self.expected + running).max(accounts.ticks);
        accounts.missed = accounts.expected - accounts.ticks;
        accounts
    }

    fn nanos_used(&self) -> u64 {
        let in_kernel = match &self.source {
            Source::Program { side, .. } => side.counts().kernel_nanos,
            Source::Events { .. } => 0,
        };
        in_kernel + self.cost.nanos()
    }

    /// Adjusts the rate to a measured `cost`, which is a share of one CPU.
    fn govern(&mut self, cost: f64) {
        let before = self.hertz.load(Ordering::Relaxed);
        let next = self.governor.next(before, cost);
        if next == before {
            return;
        }
        // On a busy machine the rate changes all the time, so the message has the level debug. Metrics and the health
        // of the component show the rate.
        tracing::debug!(
            before,
            hertz = next,
            cost_percent = cost * 100.0,
            "changed the rate to stay within the CPU budget"
        );
        self.hertz.store(next, Ordering::Relaxed);
        let cpus: Vec<u32> = self.bands.keys().copied().collect();
        for cpu in cpus {
            if let Err(error) = self.open_cpu(cpu) {
                tracing::warn!(error = %error, cpu, "cannot change the rate of a clock");
            }
        }
    }

    fn follow_cpus(&mut self) {
        let Ok(online) = online_cpus() else { return };
        let online: HashSet<u32> = online.into_iter().collect();
        let known: HashSet<u32> = self.bands.keys().copied().collect();
        for cpu in known.difference(&online) {
            tracing::info!(cpu, "a cpu went offline");
            self.close_cpu(*cpu);
        }
        for cpu in online.difference(&known) {
            match self.open_cpu(*cpu) {
                Ok(()) => tracing::info!(cpu, "a cpu came online"),
                Err(error) => tracing::warn!(error = %error, cpu, "cannot profile a cpu that came online"),
            }
        }
    }
}

fn drain_samples(ring: &mut SampleRing, counts: &mut Accounts, batch: &mut Batch) {
    let Batch {
        bytes,
        order,
        malformed,
        ..
    } = batch;
    let lost = ring.drain(|body| {
        counts.ticks += 1;
        let from = bytes.len();
        match perf_sample::encode(body, bytes) {
            Some(Sample::Idle) => counts.idle += 1,
            Some(Sample::Task(time)) => {
                counts.snapshots += 1;
                order.push((time, from, bytes.len()));
            }
            None => {
                counts.snapshots += 1;
                *malformed += 1;
            }
        }
    });
    counts.ticks += lost;
    counts.ring_full += lost;
}

/// Returns the number of nanoseconds between two ticks at a rate.
pub(crate) fn period_of(hertz: u32) -> u64 {
    1_000_000_000 / u64::from(hertz.max(1))
}
