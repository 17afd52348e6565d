//! SIGKILL at every kind of place: a child process works on a store (pushes of four tenants, flushes, merges, retention, downsampling, deletions, vacuum, checkpoints)
//! and stands still at a place of the disk that its round has drawn; there it is killed. One round in ten is killed at a random moment instead.
//!
//! Guarantee, checked in the folder as it lies after every kill and so again after the recovery of the next round: an acknowledged profile is there
//! once, with its samples; what a finished deletion took is not; nothing is there twice. `ALLUVIUM_KILLS` sets the number of rounds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use alluvium::profile::RawProfile;
use alluvium::store::fault::{FaultHook, Faults, Place};
use alluvium::store::maintenance::deletion::Deletion;
use alluvium::store::maintenance::{MaintenanceConfig, Work};
use alluvium::store::schema::Table;
use alluvium::store::snapshot::{ScanFilter, SnapshotSource};
use alluvium::store::{Limits, Store, StoreConfig, inspect};
use alluvium::telemetry::metrics::Scope;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::kill::numbered_at;

/// Rounds unless `ALLUVIUM_KILLS` says otherwise.
const ROUNDS: u64 = 200;
/// Rounds with the same folder. Entries of the tables' logs stay for a week, so later rounds would take longer and longer.
const ROUNDS_A_FOLDER: usize = 40;
/// Names the child's data folder; without it the child's test does nothing.
const CHILD: &str = "ALLUVIUM_TEST_KILL_CHILD";
/// Where the child stands still: `class count`, or nothing.
const TARGET: &str = "ALLUVIUM_TEST_KILL_TARGET";
/// First number of the round's profiles.
const FIRST: &str = "ALLUVIUM_TEST_KILL_FIRST";
/// Numbers of a round.
const STRIDE: u64 = 1_000_000;
/// Time for a round; none depends on speed, this ends a test that hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// What the store is doing, and up to which event of it a round may count. A round counts two events an operation.
const CLASSES: [(&str, u64); 9] = [
    ("log", 60),
    ("flush", 150),
    ("compact", 90),
    ("retention", 20),
    ("downsample", 30),
    ("delete", 60),
    ("vacuum", 40),
    ("checkpoint", 16),
    ("open", 24),
];

/// Pause of a pusher between two profiles.
const PUSH_EVERY: Duration = Duration::from_millis(10);

/// Tenants: young profiles, three hours old (downsampled), forty days old (retired), and young ones that are deleted.
const TENANTS: [(&str, u64); 4] = [("young", 0), ("coarse", 3 * 3600), ("old", 40 * 86_400), ("gone", 0)];

fn config(dir: &Path) -> StoreConfig {
    let mut maintenance = MaintenanceConfig {
        // The child says when.
        interval: Duration::from_secs(3600),
        ..MaintenanceConfig::default()
    };
    maintenance.policy.min_files = 3;
    maintenance.aging.tenants = [("old".to_owned(), Duration::from_secs(30 * 86_400))].into();
    maintenance.aging.downsample = vec![(Duration::from_secs(2 * 3600), Duration::from_secs(300))];
    StoreConfig {
        checkpoint_interval: 10,
        limits: Limits {
            reject_older_than: Duration::ZERO,
            ..Limits::default()
        },
        maintenance,
        ..StoreConfig::new(dir)
    }
}

/// One line that the parent has even when this process dies right after.
fn say(line: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "@{line}").unwrap();
    out.flush().unwrap();
}

/// Stands still at the nth event of a class.
struct Stand {
    class: String,
    left: AtomicU64,
    job: Mutex<&'static str>,
    opened: AtomicBool,
}

impl Stand {
    fn event(&self, place: Place, when: &str) {
        if let Place::Job(job) = place {
            *self.job.lock().unwrap() = job;
        }
        let thread = std::thread::current();
        let class = match (place, thread.name()) {
            (
                Place::CheckpointWrite(_)
                | Place::CheckpointSync(_)
                | Place::CheckpointRename(_)
                | Place::CheckpointFolderSync(_)
                | Place::CheckpointHint(_),
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
        // Until the kill.
        loop {
            std::thread::park();
        }
    }
}

impl FaultHook for Stand {
    fn check(&self, place: Place) -> io::Result<()> {
        self.event(place, "before");
        Ok(())
    }

    fn done(&self, place: Place) {
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
    let config = StoreConfig {
        faults: Faults::new(stand.clone()),
        ..config(Path::new(&dir))
    };
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let store = Store::open(config, &Scope::new()).unwrap();
            stand.opened.store(true, Ordering::SeqCst);
            say("open");
            let next = Arc::new(AtomicU64::new(first));
            // The young, and one that the class of the round needs: more would cost time only.
            let other = match class {
                "downsample" => 1,
                "retention" => 2,
                "delete" => 3,
                _ => 1 + (first / STRIDE) as usize % 3,
            };
            for (tenant, age) in [TENANTS[0], TENANTS[other]] {
                tokio::spawn(push(store.clone(), tenant, age, next.clone()));
            }
            work(store).await;
        });
}

/// Pushes for one tenant, for ever.
async fn push(store: Arc<Store>, tenant: &'static str, age: u64, next: Arc<AtomicU64>) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let time = now - Duration::from_secs(age);
        if tenant == "gone" {
            say(&format!("sent {number}"));
        }
        let profile: RawProfile = numbered_at(number, &format!("service-{}", number % 3), time);
        assert!(store.append(tenant, vec![profile]).await.is_empty());
        say(&format!("kept {tenant} {number}"));
        tokio::time::sleep(PUSH_EVERY).await;
    }
}

/// Every kind of work in turn, for ever.
async fn work(store: Arc<Store>) {
    for cycle in 0u64.. {
        store.flush().await.unwrap();
        store.maintain(Work::Due).await.unwrap();
        store.maintain(Work::Vacuum(Duration::ZERO)).await.unwrap();
        if cycle % 3 == 2 {
            store.maintain(Work::Compact).await.unwrap();
        }
        say("deleting");
        let everything = Deletion::new("gone", "{}", (i64::MIN, i64::MAX));
        store.maintain(Work::Delete(everything)).await.unwrap();
        say("deleted");
    }
}

/// What the children have said.
#[derive(Default)]
struct Told {
    kept: HashMap<String, BTreeSet<u64>>,
    /// Numbers of the tenant whose profiles are deleted, from before they are pushed on.
    sent: BTreeSet<u64>,
    /// What was kept when the deletion that is under way was asked for.
    asked: Option<BTreeSet<u64>>,
    /// A deletion may have taken these: it was asked for or under way when they were pushed.
    may_be_gone: BTreeSet<u64>,
    /// A deletion that was answered has taken these.
    deleted: BTreeSet<u64>,
}

impl Told {
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match *words.as_slice() {
            ["kept", tenant, number] => {
                let of_tenant = self.kept.entry(tenant.to_owned()).or_default();
                of_tenant.insert(number.parse().unwrap());
            }
            ["sent", number] => drop(self.sent.insert(number.parse().unwrap())),
            ["deleting"] => self.asked = Some(self.kept.get("gone").cloned().unwrap_or_default()),
            ["deleted"] => {
                self.deleted.extend(self.asked.take().unwrap());
                self.may_be_gone.extend(&self.sent);
            }
            _ => {}
        }
    }

    /// The child is gone; a deletion that it had begun goes on with what was pushed until now.
    fn killed(&mut self) {
        if self.asked.take().is_some() {
            self.may_be_gone.extend(&self.sent);
        }
    }

    /// Compares with what is in the folder. `all` also has retention and deletions carried out.
    fn check(&self, source: &impl SnapshotSource, round: u64, all: bool) {
        let mut problems = Vec::new();
        let profiles = numbers(source, Table::Profiles, "total");
        let samples = numbers(source, Table::Samples, "value");
        for (tenant, _) in TENANTS {
            let empty = BTreeMap::new();
            let found = profiles.get(tenant).unwrap_or(&empty);
            let none = BTreeSet::new();
            let kept = self.kept.get(tenant).unwrap_or(&none);
            problems.extend(
                found
                    .iter()
                    .filter(|(_, count)| **count != 1)
                    .map(|(number, count)| format!("{tenant}: {number} is there {count} times")),
            );
            let may_be_gone = |number: &u64| tenant == "old" || (tenant == "gone" && self.may_be_gone.contains(number));
            let lost = kept
                .iter()
                .filter(|number| !found.contains_key(number) && !may_be_gone(number));
            problems.extend(lost.map(|number| format!("{tenant}: {number} is lost")));
            if tenant == "gone" {
                let back = self.deleted.iter().filter(|number| found.contains_key(number));
                problems.extend(back.map(|number| format!("{number} was deleted and is there")));
            }
            if all && tenant == "old" && !found.is_empty() {
                problems.push(format!("{} profiles have outlived their retention", found.len()));
            }
            // Deletions, as retention, change one table after the other: they may be between the two.
            let of_samples = samples.get(tenant).unwrap_or(&empty);
            if tenant == "gone" || tenant == "young" {
                let doubled = of_samples.iter().filter(|(_, count)| **count != 1);
                problems.extend(doubled.map(|(number, count)| format!("{tenant}: samples of {number}: {count} times")));
                let lost = kept
                    .iter()
                    .filter(|number| !of_samples.contains_key(number) && !may_be_gone(number));
                problems.extend(lost.map(|number| format!("{tenant}: samples of {number} are lost")));
            }
            let sum = |rows: &BTreeMap<u64, u64>| rows.iter().map(|(number, count)| number * count).sum::<u64>();
            if sum(found) != sum(of_samples) && (all || matches!(tenant, "young" | "coarse")) {
                problems.push(format!(
                    "{tenant}: profiles and samples differ by {}",
                    sum(found).abs_diff(sum(of_samples))
                ));
            }
        }
        assert!(problems.is_empty(), "round {round}: {problems:#?}");
    }
}

/// How often each number is in a column, by tenant.
fn numbers(source: &impl SnapshotSource, table: Table, column: &str) -> HashMap<String, BTreeMap<u64, u64>> {
    let snapshot = source.snapshot();
    let mut found: HashMap<String, BTreeMap<u64, u64>> = HashMap::new();
    let mut add = |tenant: &str, batch: &RecordBatch| {
        let of_tenant = found.entry(tenant.to_owned()).or_default();
        let values = batch.column_by_name(column).unwrap().as_primitive::<Int64Type>();
        for value in values.values() {
            *of_tenant.entry(u64::try_from(*value).unwrap()).or_default() += 1;
        }
    };
    for file in snapshot.files.iter().filter(|file| file.table == table) {
        let open = File::open(snapshot.root.name(&file.path)).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(open).unwrap().build().unwrap();
        reader.for_each(|batch| add(&file.tenant, &batch.unwrap()));
    }
    for (tenant, _) in TENANTS {
        let filter = ScanFilter {
            tenant: Some(tenant.into()),
            ..ScanFilter::default()
        };
        for head in &snapshot.heads {
            head.scan(table, &filter).iter().for_each(|batch| add(tenant, batch));
        }
    }
    found
}

/// A sequence of numbers that differs from round to round and is the same in every run.
fn drawn(round: u64, salt: u64) -> u64 {
    let mut x = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Runs one child until it is killed. Returns the class of the place, or `moment`.
fn round(dir: &Path, round: u64, told: &mut Told) -> &'static str {
    let (class, events) = CLASSES[(round % CLASSES.len() as u64) as usize];
    let at_a_moment = round % 10 == 9;
    let target = match at_a_moment {
        true => "moment 1".to_owned(),
        false => format!("{class} {}", 1 + drawn(round, 1) % events),
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
            // The harness writes before the first line of ours.
            if let Some((_, line)) = line.split_once('@') {
                let _ = lines.send(line.to_owned());
            }
        }
    });
    let started = Instant::now();
    let mut killed = "moment";
    let mut wait = PATIENCE;
    loop {
        match heard.recv_timeout(wait.saturating_sub(started.elapsed())) {
            Ok(line) => {
                told.hear(&line);
                if line.starts_with("at ") {
                    killed = class;
                    break;
                }
                // A start has fewer places than were drawn, or it is no place that was drawn.
                if line == "open" && (at_a_moment || class == "open") {
                    wait = started.elapsed() + Duration::from_millis(drawn(round, 2) % 150);
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
    heard.try_iter().for_each(|line| told.hear(&line));
    told.killed();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        ended.is_none(),
        "round {round}: the child ended by itself with {ended:?}\n{errors}"
    );
    killed
}

/// Everything is carried out and merged: still the same, and the folder is sound.
fn finish(dir: &Path, told: &Told, rounds: u64) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(config(dir), &Scope::new()).unwrap();
        told.check(store.as_ref(), rounds, false);
        store.flush().await.unwrap();
        for work in [Work::Due, Work::Compact, Work::Due, Work::Vacuum(Duration::ZERO)] {
            store.maintain(work).await.unwrap();
        }
        told.check(store.as_ref(), rounds, true);
        store.close(Duration::from_secs(60)).await.unwrap();
    });
    let checked = inspect::check(dir).unwrap();
    assert!(!checked.has_errors(), "{:?}", checked.findings);
}

#[test]
fn nothing_acknowledged_is_lost_or_doubled_by_kills_at_places() {
    let rounds = std::env::var("ALLUVIUM_KILLS").map_or(ROUNDS, |text| text.parse().unwrap());
    let mut kills: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut kept, mut deleted) = (0, 0);
    let started = Instant::now();
    for first in (0..rounds).step_by(ROUNDS_A_FOLDER) {
        // A kill leaves what was written, synced or not: memory, where there is room, says as much as a disk and is not slow.
        let dir = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let mut told = Told::default();
        let end = rounds.min(first + ROUNDS_A_FOLDER as u64);
        for number in first..end {
            *kills.entry(round(dir.path(), number, &mut told)).or_default() += 1;
            told.check(&Store::open_read_only(dir.path()).unwrap(), number, false);
        }
        finish(dir.path(), &told, end);
        kept += told.kept.values().map(BTreeSet::len).sum::<usize>();
        deleted += told.deleted.len();
    }
    println!(
        "{rounds} kills in {:?}: {kills:?}; {kept} profiles acknowledged, 0 lost, 0 doubled; {deleted} deleted on request",
        started.elapsed()
    );
    for (class, _) in CLASSES {
        let least = if rounds >= 100 { rounds / 50 } else { 0 };
        assert!(kills.get(class).copied().unwrap_or(0) >= least, "{class}: {kills:?}");
    }
}
