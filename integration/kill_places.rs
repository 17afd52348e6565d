//! SIGKILL at every kind of operation on the disk. Each round starts a child process that works on a store: pushes of
//! five tenants, flushes, merges, retention by age, by size and for free space, downsampling, deletions, vacuum,
//! checkpoints. The round selects an operation. The child stops at this operation, and the test kills it there. One
//! round in ten kills the child at a random moment instead: while it starts, after it has opened the store, or after
//! one or two cycles of work. The next round recovers the same folder.
//!
//! Guarantee, checked in the folder after every kill and after a last recovery: the folder contains each acknowledged
//! profile exactly once, with its samples, unless a deletion or retention removed it. For every day with profiles and
//! samples, the folder also contains the names of their functions and services. Sums by name do not change when samples
//! are downsampled. The folder contains no profile that a finished deletion or retention removed, and no profile twice.
//! `ALLUVIUM_KILLS` sets the number of rounds.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alluvium::store::common::fault::{FaultHook, FaultPoint, Faults};
use alluvium::store::maintenance::Work;
use alluvium::store::{Store, StoreConfig};
use alluvium_telemetry::metrics::Scope;

use crate::workload::{self, Ledger, STRIDE, TENANTS, drawn};

/// Number of rounds unless `ALLUVIUM_KILLS` is set.
const ROUNDS: u64 = 100;
/// Number of rounds with the same folder. Entries of the table logs stay for a week, so later rounds would take longer
/// and longer.
const ROUNDS_A_FOLDER: usize = 40;
/// Environment variable with the child's data folder. If it is not set, the child's test does nothing.
const CHILD: &str = "ALLUVIUM_TEST_KILL_CHILD";
/// Environment variable with the class of operations and the number of the event at which the child stops, as
/// `CLASS NUMBER`.
const TARGET: &str = "ALLUVIUM_TEST_KILL_TARGET";
/// Environment variable with the number of the first profile of the round.
const FIRST: &str = "ALLUVIUM_TEST_KILL_FIRST";
/// Time limit of a round. No round depends on speed; the limit ends a test that hangs.
const PATIENCE: Duration = Duration::from_mins(5);

/// Class of operations of the store, and the maximum event number that a round may select. Each operation on the disk
/// counts as two events, one before it and one after it.
const CLASSES: [(&str, u64); 11] = [
    ("log", 60),
    ("flush", 150),
    ("compact", 90),
    ("retention", 20),
    ("retention_size", 40),
    ("free_space", 8),
    ("downsample", 30),
    ("delete", 60),
    ("vacuum", 40),
    ("checkpoint", 16),
    ("open", 24),
];

/// Stages of the child. A round that kills at a random moment selects one of them.
const MOMENTS: [&str; 4] = ["starting", "opened", "one cycle later", "two cycles later"];
/// Maximum time between the selected stage and the random moment.
const MOMENT: Duration = Duration::from_millis(400);

/// Prints a line that the parent receives even if this process dies right after.
fn say(line: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "@{line}").unwrap();
    out.flush().unwrap();
}

/// Stops the process at the nth event of a class.
struct Stand {
    class: String,
    left: AtomicU64,
    job: Mutex<&'static str>,
    opened: AtomicBool,
}

impl Stand {
    fn event(&self, place: FaultPoint, when: &str) {
        if let FaultPoint::Job(job) = place {
            *self.job.lock().unwrap() = job;
        }
        let thread = std::thread::current();
        let class = match (place, thread.name()) {
            (
                FaultPoint::CheckpointWrite(_)
                | FaultPoint::CheckpointSync(_)
                | FaultPoint::CheckpointRename(_)
                | FaultPoint::CheckpointFolderSync(_)
                | FaultPoint::CheckpointHint(_),
                _,
            ) => "checkpoint",
            (_, Some("store-log" | "store-apply")) => "log",
            (_, Some("store-flush")) => "flush",
            (_, Some("store-maintain")) => *self.job.lock().unwrap(),
            _ if !self.opened.load(Ordering::SeqCst) => "open",
            _ => return,
        };
        if class != self.class || self.left.fetch_sub(1, Ordering::SeqCst) != 1 {
            return;
        }
        say(&format!("at {class} {when} {place:?}"));
        // Waits for the kill.
        loop {
            std::thread::park();
        }
    }
}

impl FaultHook for Stand {
    fn check(&self, place: FaultPoint) -> io::Result<()> {
        self.event(place, "before");
        Ok(())
    }

    fn done(&self, place: FaultPoint) {
        self.event(place, "after");
    }
}

#[test]
fn child_that_is_killed_at_a_place() {
    let Some(dir) = std::env::var_os(CHILD) else {
        return;
    };
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let target = std::env::var(TARGET).unwrap();
    let (class, left) = target.split_once(' ').unwrap();
    let stand = Arc::new(Stand {
        class: class.to_owned(),
        left: AtomicU64::new(left.parse().unwrap()),
        job: Mutex::new(""),
        opened: AtomicBool::new(false),
    });
    let is_short = class == "free_space";
    let dir = Path::new(&dir);
    let config = StoreConfig {
        faults: Faults::new(stand.clone()),
        ..if is_short {
            workload::config_with_floor(dir)
        } else {
            workload::config(dir)
        }
    };
    // If profiles are removed only for lack of free space, some eligible profiles stay. Therefore the child omits the
    // lines that report a complete removal.
    let full = Arc::new(AtomicU64::new(0));
    let counted = full.clone();
    let say: workload::Say = Arc::new(move |line| {
        if line.starts_with("kept full") {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        if !is_short || !matches!(line, "mark full" | "took full") {
            say(line);
        }
    });
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let store = Store::open(config, &Scope::new()).unwrap();
            stand.opened.store(true, Ordering::SeqCst);
            say("open");
            let _ = std::fs::remove_file(dir.join(workload::SHORT));
            let next = Arc::new(AtomicU64::new(first));
            // The tenant `young`, and the tenant that the class of the round needs. More tenants would only cost time.
            let other = match class {
                "downsample" => 1,
                "retention" => 2,
                "delete" => 3,
                "retention_size" | "free_space" => 4,
                _ => 1 + drawn(first / STRIDE, 4) as usize % 4,
            };
            for tenant in [TENANTS[0], TENANTS[other]] {
                tokio::spawn(workload::push(store.clone(), tenant, next.clone(), say.clone()));
            }
            let short = dir.join(workload::SHORT);
            if is_short {
                // The second profile of `full` is a day older than the first one, and maintenance may remove it. The
                // test waits for it, so that the oldest profile of the store is one that maintenance may remove.
                while full.load(Ordering::SeqCst) < 2 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                store.flush().await.unwrap();
                std::fs::write(&short, "").unwrap();
                for line in ["taking old", "taking full"] {
                    say(line);
                }
                store.maintain(Work::Due).await.unwrap();
            }
            workload::work(&store, u64::MAX, say).await;
        });
}

/// Runs one child until it is killed. Returns the class of the operation at which it was killed, or the stage before
/// the random moment.
fn round(dir: &Path, round: u64, ledger: &mut Ledger) -> &'static str {
    let (class, events) = CLASSES[(round % CLASSES.len() as u64) as usize];
    let at_a_moment = round % 10 == 9;
    let target = if at_a_moment {
        "moment 1".to_owned()
    } else {
        format!("{class} {}", 1 + drawn(round, 1) % events)
    };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill_places::child_that_is_killed_at_a_place", "--nocapture"])
        .env(CHILD, dir)
        .env(TARGET, &target)
        .env(FIRST, (1 + round * STRIDE).to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (lines, heard) = channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            // The test harness writes text before the first line of the child.
            if let Some((_, line)) = line.split_once('@') {
                let _ = lines.send(line.to_owned());
            }
        }
    });
    let started = Instant::now();
    // The number of stages that the child has reached, and the stage before the random moment.
    let mut come = 0;
    let from = if at_a_moment {
        drawn(round, 3) as usize % MOMENTS.len()
    } else {
        usize::MAX
    };
    let moment = MOMENT.mul_f64(drawn(round, 2) as f64 / u64::MAX as f64);
    let mut killed = MOMENTS[0];
    let mut wait = if from == 0 { moment } else { PATIENCE };
    loop {
        match heard.recv_timeout(wait.saturating_sub(started.elapsed())) {
            Ok(line) => {
                ledger.hear(&line);
                if line.starts_with("at ") {
                    killed = class;
                    break;
                }
                if line == "open" || line == "took gone" {
                    come += 1;
                    // A start may have fewer events than the number that the round selected. In that case, the child is
                    // killed at a random moment after the start.
                    if come == from || (class == "open" && come == 1 && !at_a_moment) {
                        killed = MOMENTS[come];
                        wait = started.elapsed() + moment;
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    assert!(
        started.elapsed() < PATIENCE,
        "round {round}: `{target}` was never reached"
    );
    let ended = child.try_wait().unwrap();
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    reader.join().unwrap();
    heard.try_iter().for_each(|line| ledger.hear(&line));
    ledger.killed();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        ended.is_none(),
        "round {round}: the child ended by itself with {ended:?}\n{errors}"
    );
    killed
}

#[test]
fn nothing_acknowledged_is_lost_or_doubled_by_kills_at_places() {
    let rounds = std::env::var("ALLUVIUM_KILLS").map_or(ROUNDS, |text| text.parse().unwrap());
    let mut kills: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut kept, mut deleted, mut retired, mut crowded) = (0, 0, 0, 0);
    let started = Instant::now();
    for first in (0..rounds).step_by(ROUNDS_A_FOLDER) {
        // A kill preserves all written data, synced or not. Therefore a file system in memory has the same result as a
        // disk and is faster. The test uses it if possible.
        let dir = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let mut ledger = Ledger::default();
        let end = rounds.min(first + ROUNDS_A_FOLDER as u64);
        for number in first..end {
            *kills.entry(round(dir.path(), number, &mut ledger)).or_default() += 1;
            ledger.check(&Store::open_read_only(dir.path()).unwrap(), number, false);
        }
        workload::finish(dir.path(), &mut ledger, end);
        kept += ledger.kept();
        deleted += ledger.gone("gone");
        retired += ledger.gone("old");
        crowded += ledger.gone("full");
    }
    println!(
        "{rounds} kills in {:?}: {kills:?}; {kept} profiles acknowledged, 0 lost, 0 doubled; {deleted} deleted on \
         request, {retired} removed by age, {crowded} removed by size or for free space",
        started.elapsed()
    );
    if rounds >= 100 {
        let of = |class: &str| kills.get(class).copied().unwrap_or(0);
        assert!(CLASSES.iter().all(|(class, _)| of(class) >= rounds / 50), "{kills:?}");
        assert!(MOMENTS.iter().all(|moment| of(moment) > 0), "{kills:?}");
        assert!(deleted > 0 && retired > 0 && crowded > 0);
    }
}
