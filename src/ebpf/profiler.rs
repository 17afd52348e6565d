//! The public interface of the profiler. It starts the threads, returns windows, and leaves nothing in the kernel
//! when it is dropped.
//!
//! One thread polls the rings, one maintains processes and windows, and one compiles unwind tables. The caller that
//! takes a window looks up names on its own thread, so a slow look-up loses no tick.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use crate::cost::{CostAccount, Governor};
use crate::events::online_cpus;
use crate::foreign::Opener;
use crate::object::{KernelMaps, LoadSettings, StartError, load};
use crate::poll::{PollRequest, Poller, Source};
use crate::settings::{Choice, Settings};
use crate::window::Window;
use crate::worker::Worker;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Engine {
    Program,
    /// The profiler uses only perf events, for this reason.
    Events(String),
}

/// A thread of the profiler ended too early, because of a panic that is in the log.
#[derive(Debug, thiserror::Error)]
#[error("a thread of the profiler ended unexpectedly")]
pub struct ThreadEnded;

/// A running profiler. Dropping it closes the clocks and unloads the BPF program, so nothing stays in the kernel.
pub struct Profiler {
    orders: Option<Sender<PollRequest>>,
    threads: Vec<JoinHandle<()>>,
    hertz: Arc<AtomicU32>,
    cost: CostAccount,
    opener: Opener,
    engine: Engine,
}

impl Profiler {
    /// Loads the BPF program and starts the clocks of all CPUs.
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        let system = |resource| move |error| StartError::System { resource, error };
        let cpus = online_cpus().map_err(system("/sys/devices/system/cpu/online"))?;
        let (source, maps, engine) = source(settings, cpus.len())?;
        let opener = Opener::new().map_err(StartError::Files)?;
        let cost = CostAccount::default();
        let backlog = Arc::new(AtomicUsize::new(0));
        let hertz = Arc::new(AtomicU32::new(settings.hertz.max(1)));
        let (work, inbox) = channel();
        let (orders, poll_inbox) = channel();
        let mut worker = Worker::new(settings, maps, cost.clone(), opener.clone(), backlog.clone())
            .map_err(system("a new thread"))?;
        worker.ignore_others().map_err(system("/proc"))?;
        let mut poller = Poller {
            source,
            bands: HashMap::new(),
            work,
            backlog,
            limit: settings.budget.backlog() / 2,
            governor: Governor::new(settings.hertz, settings.cpu_limit),
            hertz: hertz.clone(),
            cost: cost.clone(),
            expected: 0,
            is_calm: false,
        };
        for cpu in cpus {
            poller.open_cpu(cpu)?;
        }
        let mut threads = Vec::new();
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(run)
                .map_err(system("a new thread"))
        };
        threads.push(spawn("ebpf-poll", Box::new(move || poller.run(&poll_inbox)))?);
        threads.push(spawn("ebpf-processes", Box::new(move || worker.run(&inbox)))?);
        Ok(Self {
            orders: Some(orders),
            threads,
            hertz,
            cost,
            opener,
            engine,
        })
    }

    /// Ends the current window and returns it.
    pub fn take(&self) -> Result<Window, ThreadEnded> {
        self.request_window(PollRequest::Take)
    }

    /// Stops the clocks and returns the last window. The accounts count, by reason, the ticks that are in no window.
    pub fn finish(mut self) -> Result<Window, ThreadEnded> {
        self.stop()
    }

    /// Like [`Self::finish`], but does not consume the profiler. Later windows are empty.
    pub fn stop(&mut self) -> Result<Window, ThreadEnded> {
        self.request_window(PollRequest::Finish)
    }

    fn request_window(&self, order: impl FnOnce(Sender<Window>) -> PollRequest) -> Result<Window, ThreadEnded> {
        let (reply, response) = channel();
        let orders = self.orders.as_ref().ok_or(ThreadEnded)?;
        orders.send(order(reply)).map_err(|_| ThreadEnded)?;
        response.recv().map_err(|_| ThreadEnded)
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the current rate in ticks per second.
    pub fn hertz(&self) -> u32 {
        self.hertz.load(Ordering::Relaxed)
    }

    /// Returns the account to which threads that look up names report their CPU time.
    pub fn cost(&self) -> &CostAccount {
        &self.cost
    }

    /// Returns the opener, which opens files of processes and counts the refused files.
    pub fn opener(&self) -> &Opener {
        &self.opener
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        // The polling thread ends and drops the clocks, the BPF program and its end of the worker's channel. Then the
        // worker ends.
        self.orders = None;
        for thread in self.threads.drain(..) {
            // The panic is already in the log.
            let _ = thread.join();
        }
    }
}

/// Loads the BPF program. If the kernel refuses the program, prepares to use perf events alone.
fn source(settings: Settings, cpus: usize) -> Result<(Source, Option<KernelMaps>, Engine), StartError> {
    let events = |reason: String| {
        let source = Source::Events {
            rings: HashMap::new(),
            counts: Box::default(),
        };
        (source, None, Engine::Events(reason))
    };
    if settings.engine == Choice::Events {
        return Ok(events("as requested".to_owned()));
    }
    // Half a megabyte per CPU holds the records of one second at 99 Hz. The size is rounded up, because it must be a
    // power of two.
    let ring_bytes = u32::try_from(cpus)
        .unwrap_or(u32::MAX)
        .saturating_mul(512 << 10)
        .saturating_mul(settings.hertz.div_ceil(100).max(1))
        .clamp(1 << 20, 64 << 20)
        .next_power_of_two();
    match load(LoadSettings {
        kernel_stacks: settings.kernel_stacks,
        copies: settings.copies,
        ring_bytes,
    }) {
        Ok((side, maps)) => {
            let source = Source::Program {
                clocks: HashMap::new(),
                side: Box::new(side),
            };
            Ok((source, Some(maps), Engine::Program))
        }
        Err(error) if error.is_of_program() => {
            // The kernel may also deny perf events. Then the error of the BPF program is reported.
            crate::events::SampleRing::open(0, 1_000_000_000)
                .map(|_| events(error.to_string()))
                .map_err(|_| error)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::budget::Budget;
    use crate::settings::Scope;

    /// Starts a thread that is busy until `stop` is set. The thread returns the nanoseconds of CPU time that it used.
    fn spin(stop: &Arc<AtomicBool>) -> JoinHandle<u64> {
        let stop = stop.clone();
        std::thread::spawn(move || {
            let cost = CostAccount::default();
            let thread_cost = cost.thread();
            let mut number = 1_u64;
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..10_000 {
                    number = std::hint::black_box(number.wrapping_mul(31).wrapping_add(7));
                }
            }
            thread_cost.note();
            cost.nanos()
        })
    }

    #[test]
    fn a_worker_that_is_blocked_for_seconds_loses_no_tick() {
        let pid = std::process::id();
        let profiler = Profiler::start(Settings {
            // Until the worker has seen a process, each tick of the process copies up to 64 KiB of its stack. Other
            // tests start such processes meanwhile. The rate is so low and the budget so large
            // that five seconds of such copies fit into the queues.
            hertz: 23,
            budget: Budget::new(256 << 20),
            scope: Scope::Process(pid),
            ..Settings::default()
        })
        .unwrap();
        assert_eq!(profiler.engine(), &Engine::Program);
        let stop = Arc::new(AtomicBool::new(false));
        let spinner = spin(&stop);
        // Once the mappings of this process are in the kernel, its ticks arrive as frames and not as copies of
        // stacks.
        let deadline = Instant::now() + Duration::from_mins(1);
        let before = profiler.take().unwrap().accounts.stacks;
        loop {
            std::thread::sleep(Duration::from_millis(100));
            let stacks = profiler.take().unwrap().accounts.stacks;
            if stacks > before + 5 {
                break;
            }
            assert!(Instant::now() < deadline, "no stacks");
        }
        let baseline = profiler.take().unwrap().accounts;
        let (release, receiver) = channel::<()>();
        profiler
            .orders
            .as_ref()
            .unwrap()
            .send(PollRequest::Hold(receiver))
            .unwrap();
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::Relaxed);
        let used = spinner.join().unwrap();
        drop(release);
        let window = profiler.finish().unwrap();
        let accounts = window.accounts;
        assert_eq!(accounts.ring_full, 0, "{accounts:?}");
        assert_eq!(
            accounts.samples + accounts.filtered + accounts.malformed,
            accounts.stacks + accounts.snapshots
        );
        assert!(
            accounts.samples > baseline.samples + 20,
            "{accounts:?} after {baseline:?}"
        );
        assert_eq!(
            accounts.samples - baseline.samples,
            window.ticks(),
            "every tick since the last window is in this one"
        );
        assert!(used > 0);
    }
}
