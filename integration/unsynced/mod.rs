//! The power is cut at any moment: a store works on a disk that keeps for sure only what was synced.
//!
//! The disk is a file system of ours in memory (by FUSE) that notes every change and sync. From its notes a seed draws
//! a moment, and which of the changes that were not synced by then are found on the disk afterwards: none, all, or some
//! in any order, the last write of a file torn. So names come without their bytes, and bytes without their names.
//!
//! Guarantee, checked in what is found, after the start from it, and of one seed in ten after everything was carried
//! out: an acknowledged profile is there once, with its samples and names; what a finished deletion or retention took
//! is not. The disk of each further life is one that a cut left, so starts are cut, too; of every second life one that
//! a killed process left, with all that it had done and little of it durable.
//! `ALLUVIUM_POWER_CUTS` sets the number of seeds.
//!
//! The same disk may be slow or full, for the real program (`trouble`).

mod disk;
mod layer;
mod queue;
mod trouble;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alluvium::store::Store;
use alluvium::telemetry::metrics::Scope;
use tempfile::TempDir;

use crate::workload::{self, Ledger, STRIDE, Say, TENANTS};
use disk::{Change, Luck, Random};
use layer::{Disk, Mounted};

/// Seeds unless `ALLUVIUM_POWER_CUTS` says otherwise.
const SEEDS: u64 = 1000;
/// Lives of a store. Each has the young tenant and one of the others, in turn.
const LIVES: u64 = 6;
/// Cycles of a life's work.
const CYCLES: u64 = 4;
/// Threads that look at what is found.
const JUDGES: u64 = 2;

fn seeds() -> u64 {
    std::env::var("ALLUVIUM_POWER_CUTS").map_or(SEEDS, |text| text.parse().unwrap())
}

/// Mounts the disk. Where that cannot be, CI fails, and anybody else is told that the test is skipped.
fn mount(disk: &Disk, at: &Path) -> Option<Mounted> {
    match disk.mount(at) {
        Ok(mounted) => Some(mounted),
        Err(error) if std::env::var_os("CI").is_none() => {
            println!("skipped: no file system can be mounted by FUSE here: {error}");
            None
        }
        Err(error) => panic!("cannot mount a file system by FUSE: {error}"),
    }
}

/// What a store starts on.
enum Start {
    /// What was found after a power cut.
    Cut(Rest),
    /// What a process that was killed has done: all of it is there, and only what was synced is durable.
    Killed(Vec<Change>, Ledger),
}

/// What a store did on a disk, from its start on.
struct Life {
    changes: Vec<Change>,
    /// Number of changes before the start.
    before: usize,
    /// What was told, and how many changes there were then.
    lines: Vec<(usize, String)>,
    /// What is told of the lives before.
    ledger: Ledger,
}

/// What is found after a cut.
struct Rest {
    folder: TempDir,
    ledger: Ledger,
}

/// A cut leaves little: memory, where there is room, is as good as a disk and not slow.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

fn data(folder: &TempDir) -> PathBuf {
    folder.path().join("data")
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

impl Life {
    /// Starts a store on what is there, works, and ends in good order. `None` where nothing can be mounted.
    fn live(number: u64, start: Start) -> Option<Self> {
        let (disk, found, ledger) = match start {
            Start::Cut(rest) => (Disk::new(), Some(rest.folder), rest.ledger),
            Start::Killed(changes, ledger) => (Disk::after(&changes), None, ledger),
        };
        let at = tempfile::tempdir().unwrap();
        let mounted = mount(&disk, at.path())?;
        if let Some(found) = found {
            copy(found.path(), at.path()).unwrap();
            disk.settle();
        }
        let before = disk.length();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let say: Say = Arc::new({
            let (disk, lines) = (disk.clone(), lines.clone());
            move |line: &str| {
                let mut lines = lines.lock().unwrap();
                lines.push((disk.length(), line.to_owned()));
            }
        });
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let store = Store::open(workload::config(&data(&at)), &Scope::new()).unwrap();
            let next = Arc::new(AtomicU64::new(1 + number * STRIDE));
            let other = TENANTS[1 + number as usize % (TENANTS.len() - 1)];
            let pushers = [TENANTS[0], other]
                .map(|tenant| tokio::spawn(workload::push(store.clone(), tenant, next.clone(), say.clone())));
            workload::work(&store, CYCLES, say.clone()).await;
            for pusher in pushers {
                pusher.abort();
                assert!(pusher.await.unwrap_err().is_cancelled());
            }
            store.close(Duration::from_mins(1)).await.unwrap();
        });
        drop(runtime);
        drop(mounted);
        let lines = std::mem::take(&mut *lines.lock().unwrap());
        Some(Self {
            changes: disk.changes(),
            before,
            lines,
            ledger,
        })
    }

    /// What is known when everything ends after so many changes.
    fn ledger_at(&self, moment: usize) -> Ledger {
        let mut ledger = self.ledger.clone();
        let heard = self.lines.iter().take_while(|(position, _)| *position <= moment);
        heard.for_each(|(_, line)| ledger.hear(line));
        ledger.killed();
        ledger
    }

    /// A moment after the start.
    fn moment(&self, random: &mut Random) -> usize {
        self.before + random.below(self.changes.len() - self.before + 1)
    }

    /// What is there when the process is killed at a moment that the seed draws.
    fn kill(&self, seed: u64) -> Start {
        let moment = self.moment(&mut Random(seed));
        Start::Killed(self.changes[..moment].to_vec(), self.ledger_at(moment))
    }

    /// Cuts the power at a moment that the seed draws, and checks what is found.
    fn cut(&self, seed: u64) -> Rest {
        let mut random = Random(seed);
        let moment = self.moment(&mut random);
        let luck = Luck::drawn(seed, &mut random);
        let folder = folder();
        let found = disk::found(&self.changes[..moment], luck, &mut random);
        found.write(folder.path()).unwrap();
        let ledger = self.ledger_at(moment);
        let rest = Rest { folder, ledger };
        let problem = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rest.check(seed)));
        if problem.is_err() {
            let kept = rest.folder.keep();
            panic!(
                "seed {seed}: power cut after change {moment} with {luck:?}; found in {}",
                kept.display()
            );
        }
        rest
    }
}

impl Rest {
    fn nothing() -> Self {
        Self {
            folder: folder(),
            ledger: Ledger::default(),
        }
    }

    /// The folder as it lies is looked at by a reader, each second time and where there is anything; then a copy of it
    /// gets a store.
    fn check(&self, seed: u64) {
        if seed % 4 < 2 && self.ledger.kept() > 0 {
            let reader = Store::open_read_only(&data(&self.folder)).unwrap();
            self.ledger.check(&reader, seed, false);
        }
        let copied = folder();
        copy(self.folder.path(), copied.path()).unwrap();
        let mut ledger = self.ledger.clone();
        if seed.is_multiple_of(10) {
            workload::finish(&data(&copied), &mut ledger, seed);
            return;
        }
        let store = Store::open(workload::config(&data(&copied)), &Scope::new()).unwrap();
        ledger.check(store.as_ref(), seed, false);
    }
}

#[test]
fn nothing_acknowledged_is_lost_or_doubled_when_the_power_is_cut() {
    let seeds = seeds();
    let started = Instant::now();
    let mut start = Start::Cut(Rest::nothing());
    let (mut changes, mut kept) = (0, 0);
    for number in 0..LIVES {
        let Some(life) = Life::live(number, start) else {
            return;
        };
        changes += life.changes.len() - life.before;
        let of_life = number * seeds / LIVES..(number + 1) * seeds / LIVES;
        let rests: Vec<Option<Rest>> = std::thread::scope(|scope| {
            let judges: Vec<_> = (0..JUDGES)
                .map(|judge| {
                    let (life, of_life) = (&life, of_life.clone());
                    let seeds = of_life.filter(move |seed| seed % JUDGES == judge);
                    scope.spawn(move || seeds.fold(None, |_, seed| Some(life.cut(seed))))
                })
                .collect();
            judges.into_iter().map(|judge| judge.join().unwrap()).collect()
        });
        let rest = rests.into_iter().flatten().next().unwrap_or_else(Rest::nothing);
        kept += rest.ledger.kept();
        // Every second life begins with what a process left that was killed.
        start = if number.is_multiple_of(2) {
            life.kill(number)
        } else {
            Start::Cut(rest)
        };
    }
    println!(
        "{seeds} power cuts among {changes} changes of a disk in {:?}; {kept} profiles acknowledged before the last \
         cuts of {LIVES} lives, 0 lost, 0 doubled",
        started.elapsed()
    );
    assert!(seeds < LIVES || kept > 0);
}
