//! Power cuts at any moment: a store works on a disk that guarantees only the synced changes.
//!
//! The disk is a test file system in memory (by FUSE) that records every change and sync. A seed selects a moment in
//! the record. It also selects which changes without a sync survive: none, all, or some in any order. The last write of
//! a file may be torn. So names may exist without their bytes, and bytes without their names.
//!
//! Guarantee: the folder contains an acknowledged profile exactly once, with its samples and names. It contains no
//! profile that a finished deletion or retention removed. The test starts a store on a copy of the surviving folder,
//! and checks the copy. For half of the seeds, it also checks the surviving folder itself. For one seed in ten, the
//! store also carries out all maintenance, and the test checks the result.
//!
//! A life is the work of a store from its start to its end. The first life begins with an empty disk. Later lives begin
//! in turn with the disk of a killed process and with the disk after a power cut, so power cuts also hit stores that
//! start with existing data. The disk of a killed process contains all changes, although few of them are durable.
//! `ALLUVIUM_POWER_CUTS` sets the number of seeds.
//!
//! In the module `trouble`, the disk is slow or full, and the real program works on it.

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
use alluvium_telemetry::metrics::Scope;
use tempfile::TempDir;

use crate::workload::{self, Ledger, STRIDE, Say, TENANTS};
use disk::{Change, Luck, Random};
use layer::{Disk, Mounted};

/// Number of seeds unless `ALLUVIUM_POWER_CUTS` is set.
const SEEDS: u64 = 1000;
/// Number of lives of a store. Each life has the tenant `young` and one of the other tenants, in turn.
const LIVES: u64 = 6;
/// Number of work cycles of a life.
const CYCLES: u64 = 4;
/// Number of threads that check the surviving folders.
const JUDGES: u64 = 2;

fn seeds() -> u64 {
    std::env::var("ALLUVIUM_POWER_CUTS").map_or(SEEDS, |text| text.parse().unwrap())
}

/// Mounts the disk. If that is impossible, CI fails, and elsewhere the test is skipped with a message.
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

/// State from which a store starts.
enum Start {
    /// The state after a power cut.
    Cut(Rest),
    /// The changes of a killed process. The disk contains all of them, but only the synced ones are durable.
    Killed(Vec<Change>, Ledger),
}

/// Work of a store on a disk, from its start.
struct Life {
    changes: Vec<Change>,
    /// Number of changes before the start.
    before: usize,
    /// Reported lines, each with the number of changes at that time.
    lines: Vec<(usize, String)>,
    /// Reports of the earlier lives.
    ledger: Ledger,
}

/// The state after a power cut.
struct Rest {
    folder: TempDir,
    ledger: Ledger,
}

/// Creates a folder for the state after a cut, in memory if possible. The state is small, and a file system in memory
/// is faster than a disk.
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
    /// Starts a store on the given state, works, and shuts down cleanly. Returns `None` if nothing can be mounted.
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

    /// Returns the ledger of a process that ends after this many changes.
    fn ledger_at(&self, moment: usize) -> Ledger {
        let mut ledger = self.ledger.clone();
        let heard = self.lines.iter().take_while(|(position, _)| *position <= moment);
        heard.for_each(|(_, line)| ledger.hear(line));
        ledger.killed();
        ledger
    }

    /// Selects a moment after the start.
    fn moment(&self, random: &mut Random) -> usize {
        self.before + random.below(self.changes.len() - self.before + 1)
    }

    /// Returns the state when the process is killed at a moment that the seed selects.
    fn kill(&self, seed: u64) -> Start {
        let moment = self.moment(&mut Random(seed));
        Start::Killed(self.changes[..moment].to_vec(), self.ledger_at(moment))
    }

    /// Cuts the power at a moment that the seed selects, and checks the surviving state.
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
                "seed {seed}: power cut after change {moment} with {luck:?}; the surviving folder is {}",
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

    /// Checks the surviving folder with a store that opens a copy of the folder. If the ledger has profiles, half of
    /// the seeds also check the folder itself with a read-only store.
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
        // Lives begin in turn with the state after a kill and with the state after a cut.
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
