//! SIGKILL at every kind of place: a child process works on a store (pushes of four tenants, flushes, merges,
//! retention, downsampling, deletions, vacuum, checkpoints) and stands still at a place of the disk that its round has
//! drawn; there it is killed. One round in ten is killed at a random moment instead: while it starts, after opening, or
//! after one or two cycles of work.
//!
//! Guarantee, checked in the folder as it lies after every kill and so again after the recovery of the next round: an
//! acknowledged profile is there once, with its samples, and both find their names (function and service) in the tables
//! of the same day; sums by name stay when samples become coarse; what a finished deletion or retention took is not
//! there; nothing is there twice. `ALLUVIUM_KILLS` sets the number of rounds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use alluvium::profile::{RawProfile, TimeSpan};
use alluvium::store::fault::{FaultHook, Faults, Place};
use alluvium::store::maintenance::deletion::Deletion;
use alluvium::store::maintenance::{Downsampling, MaintenanceConfig, Work};
use alluvium::store::schema::Table;
use alluvium::store::snapshot::{ScanFilter, SnapshotSource};
use alluvium::store::{Limits, Store, StoreConfig, inspect};
use alluvium::telemetry::metrics::Scope;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Date32Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::harness::tenant;
use crate::kill::numbered_at;

/// Rounds unless `ALLUVIUM_KILLS` says otherwise.
const ROUNDS: u64 = 200;
/// Rounds with the same folder. Entries of the tables' logs stay for a week, so later rounds would take longer and
/// longer.
const ROUNDS_A_FOLDER: usize = 40;
/// Names the child's data folder; without it the child's test does nothing.
const CHILD: &str = "ALLUVIUM_TEST_KILL_CHILD";
/// Where the child stands still: `class count`, or nothing.
const TARGET: &str = "ALLUVIUM_TEST_KILL_TARGET";
/// First number of the round's profiles.
const FIRST: &str = "ALLUVIUM_TEST_KILL_FIRST";
const STRIDE: u64 = 1_000_000;
/// Time for a round; none depends on speed, this ends a test that hangs.
const PATIENCE: Duration = Duration::from_mins(5);

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

/// From when on a random moment is drawn, and how long it may take from there.
const MOMENTS: [&str; 4] = ["starting", "opened", "one cycle later", "two cycles later"];
const MOMENT: Duration = Duration::from_millis(400);

/// Pause of a pusher between two profiles.
const PUSH_EVERY: Duration = Duration::from_millis(10);

/// Tenants: young profiles, three hours old (downsampled), forty days old (retired), and young ones that are deleted.
const TENANTS: [(&str, u64); 4] = [("young", 0), ("coarse", 3 * 3600), ("old", 40 * 86_400), ("gone", 0)];

fn config(dir: &Path) -> StoreConfig {
    let mut maintenance = MaintenanceConfig {
        // The child says when.
        interval: Duration::from_hours(1),
        ..MaintenanceConfig::default()
    };
    maintenance.policy.min_files = 3;
    maintenance.aging.tenants = [(tenant("old"), Duration::from_hours(720))].into();
    maintenance.aging.downsample = vec![Downsampling {
        after: Duration::from_hours(2),
        interval: Duration::from_mins(5),
    }];
    StoreConfig {
        checkpoint_interval: 10,
        limits: Limits {
            reject_older_than: Duration::ZERO,
            ..Limits::default()
        }
        .into(),
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
                _ => 1 + drawn(first / STRIDE, 4) as usize % 3,
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
        let time = now.checked_sub(Duration::from_secs(age)).unwrap();
        if matches!(tenant, "gone" | "old") {
            say(&format!("sent {tenant} {number}"));
        }
        let profile: RawProfile = numbered_at(number, &format!("service-{}", number % 3), time);
        assert!(store.append(&tenant.parse().unwrap(), vec![profile]).await.is_empty());
        say(&format!("kept {tenant} {number}"));
        tokio::time::sleep(PUSH_EVERY).await;
    }
}

/// Every kind of work in turn, for ever.
async fn work(store: Arc<Store>) {
    for cycle in 0u64.. {
        say("mark old");
        store.flush().await.unwrap();
        say("taking old");
        store.maintain(Work::Due).await.unwrap();
        say("took old");
        store.maintain(Work::Vacuum(Duration::ZERO)).await.unwrap();
        if cycle % 3 == 2 {
            store.maintain(Work::Compact).await.unwrap();
        }
        say("mark gone");
        say("taking gone");
        let everything = Deletion::new(tenant("gone"), "{}", TimeSpan::ALL);
        store.maintain(Work::Delete(everything)).await.unwrap();
        say("took gone");
    }
}

/// What the children have said.
#[derive(Default)]
struct Told {
    kept: HashMap<String, BTreeSet<u64>>,
    /// Of the tenants whose profiles a deletion or retention takes.
    taken: BTreeMap<String, Taken>,
}

/// What may be gone and what must be.
#[derive(Default)]
struct Taken {
    /// Numbers from before they are pushed on.
    sent: BTreeSet<u64>,
    /// What was kept before the flush of the work that comes or is under way: it will be taken.
    marked: BTreeSet<u64>,
    is_under_way: bool,
    /// Work was under way when they were pushed, or began later.
    may_be_gone: BTreeSet<u64>,
    /// Work that was answered has taken these.
    gone: BTreeSet<u64>,
}

impl Taken {
    fn ended(&mut self) {
        self.is_under_way = false;
        self.may_be_gone.extend(&self.sent);
    }
}

impl Told {
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match *words.as_slice() {
            ["kept", tenant, number] => {
                let of_tenant = self.kept.entry(tenant.to_owned()).or_default();
                of_tenant.insert(number.parse().unwrap());
            }
            ["sent", tenant, number] => drop(self.of(tenant).sent.insert(number.parse().unwrap())),
            ["mark", tenant] => {
                let kept = self.kept.get(tenant).cloned().unwrap_or_default();
                self.of(tenant).marked = kept;
            }
            ["taking", tenant] => self.of(tenant).is_under_way = true,
            ["took", tenant] => {
                let taken = self.of(tenant);
                taken.gone.append(&mut taken.marked);
                taken.ended();
            }
            _ => {}
        }
    }

    fn of(&mut self, tenant: &str) -> &mut Taken {
        self.taken.entry(tenant.to_owned()).or_default()
    }

    /// The child is gone; work that it had begun goes on with what was pushed until now.
    fn killed(&mut self) {
        for taken in self.taken.values_mut() {
            if taken.is_under_way {
                taken.ended();
            }
        }
    }

    /// Compares with what is in the folder. `all` also has retention and deletions carried out.
    fn check(&self, source: &impl SnapshotSource, round: u64, all: bool) {
        let stored = stored(source);
        let mut problems = Vec::new();
        for (tenant, _) in TENANTS {
            let empty = Rows::default();
            let found = stored.get(tenant).unwrap_or(&empty);
            let nothing = (BTreeSet::new(), Taken::default());
            let kept = self.kept.get(tenant).unwrap_or(&nothing.0);
            let taken = self.taken.get(tenant).unwrap_or(&nothing.1);
            let of_tenant = check_tenant(tenant, kept, taken, found, all);
            problems.extend(of_tenant.into_iter().map(|problem| format!("{tenant}: {problem}")));
        }
        assert!(problems.is_empty(), "round {round}: {problems:#?}");
    }
}

fn check_tenant(tenant: &str, kept: &BTreeSet<u64>, taken: &Taken, found: &Rows, all: bool) -> Vec<String> {
    let mut problems = found.problems.clone();
    // Of a tenant from which things are taken the tables change one after the other: they may be between the two.
    let agree = all || matches!(tenant, "young" | "coarse");
    let samples_are_whole = matches!(tenant, "young" | "gone");
    // Names of a day that is past its retention go, and profiles of that day that come meanwhile go with the next
    // round.
    let names_may_be_gone = tenant == "old" && !taken.may_be_gone.is_empty();
    let mut unnamed = 0;
    let (mut profiles, mut samples) = (BTreeMap::new(), BTreeMap::new());
    let (mut totals, mut values) = (Sums::new(), Sums::new());
    for (number, series) in &found.profiles {
        *profiles.entry(*number).or_insert(0) += 1;
        let expected = service_of(*number);
        match found.services.get(series) {
            Some(service) if *service == expected => {}
            None if names_may_be_gone => {}
            other => problems.push(format!("the series of {number} is {other:?} and not {expected}")),
        }
        *totals.entry((function_of(*number), expected)).or_insert(0) += number;
    }
    for (value, series, stack) in &found.samples {
        let (Some(function), Some(service)) = (found.functions.get(stack), found.services.get(series)) else {
            unnamed += value;
            if !names_may_be_gone {
                problems.push(format!(
                    "a sample of {value} finds no name for stack {stack:?} or series {series:?}"
                ));
            }
            continue;
        };
        *values.entry((function.clone(), service.clone())).or_insert(0) += value;
        if samples_are_whole {
            *samples.entry(*value).or_insert(0) += 1;
            let expected = (function_of(*value), service_of(*value));
            if (function, service) != (&expected.0, &expected.1) {
                problems.push(format!(
                    "the sample of {value} is of {function} and {service}, not {expected:?}"
                ));
            }
        }
    }
    let mut compare = |what: &str, counts: &BTreeMap<u64, u64>| {
        let doubled = counts.iter().filter(|(_, count)| **count != 1);
        problems.extend(doubled.map(|(number, count)| format!("{what} of {number} is there {count} times")));
        let lost = kept
            .iter()
            .filter(|number| !counts.contains_key(number) && !taken.may_be_gone.contains(number));
        problems.extend(lost.map(|number| format!("{what} of {number} is lost")));
        let back = taken.gone.iter().filter(|number| counts.contains_key(number));
        problems.extend(back.map(|number| format!("{what} of {number} was taken and is there")));
        if all && tenant == "old" && !counts.is_empty() {
            problems.push(format!("{} of {what} have outlived their retention", counts.len()));
        }
    };
    compare("the profile", &profiles);
    if samples_are_whole {
        compare("the sample", &samples);
    }
    // What nothing can have taken must be in the sums by name.
    let mut least = Sums::new();
    for number in kept.iter().filter(|number| !taken.may_be_gone.contains(number)) {
        *least.entry((function_of(*number), service_of(*number))).or_insert(0) += number;
    }
    for (name, sum) in least {
        let there = values.get(&name).copied().unwrap_or(0);
        if there + unnamed < sum {
            problems.push(format!("samples of {name:?} sum up to {there}, and {sum} was kept"));
        }
    }
    if agree && totals != values {
        problems.push(format!(
            "profiles and samples differ by name: {totals:?} and {values:?}"
        ));
    }
    problems
}

/// Sums of values by function and service.
type Sums = BTreeMap<(String, String), u64>;

/// The function of the one sample that `numbered_at` makes.
fn function_of(number: u64) -> String {
    format!("work_{}", number % 50)
}

fn service_of(number: u64) -> String {
    format!("service-{}", number % 3)
}

/// A stack or series, which has a row on each day.
type Name = (i32, i64);

/// What the four tables have of one tenant.
#[derive(Default)]
struct Rows {
    /// Number and series of each profile.
    profiles: Vec<(u64, Name)>,
    /// Value, series and stack of each sample.
    samples: Vec<(u64, Name, Name)>,
    functions: HashMap<Name, String>,
    /// Service of each series.
    services: HashMap<Name, String>,
    /// Names that are told in two ways.
    problems: Vec<String>,
}

impl Rows {
    fn add(&mut self, table: Table, batch: &RecordBatch, day: impl Fn(usize) -> i32) {
        let column = |name: &str| batch.column_by_name(name).unwrap();
        let number = |name: &str, row: usize| column(name).as_primitive::<Int64Type>().value(row);
        let value = |name: &str, row: usize| u64::try_from(number(name, row)).unwrap();
        let name = |name: &str, row: usize| (day(row), number(name, row));
        for row in 0..batch.num_rows() {
            match table {
                Table::Profiles => self.profiles.push((value("total", row), name("series", row))),
                Table::Samples => {
                    let sample = (value("value", row), name("series", row), name("stack", row));
                    self.samples.push(sample);
                }
                Table::Stacks => {
                    let frames = column("frames").as_list::<i32>().value(row);
                    let functions = frames.as_struct().column_by_name("function").unwrap();
                    let leaf = functions.as_string::<i32>().value(0).to_owned();
                    self.problems
                        .extend(tell(&mut self.functions, name("stack", row), leaf));
                }
                Table::Series => {
                    let service = column("service_name").as_string::<i32>().value(row).to_owned();
                    self.problems
                        .extend(tell(&mut self.services, name("series", row), service));
                }
            }
        }
    }
}

/// Notes what a name stands for. A row may be there several times, and always says the same.
fn tell(names: &mut HashMap<Name, String>, name: Name, text: String) -> Option<String> {
    let before = names.insert(name, text.clone()).filter(|before| *before != text)?;
    Some(format!("{name:?} is {before} and {text}"))
}

/// What is in files and heads, by tenant.
fn stored(source: &impl SnapshotSource) -> HashMap<String, Rows> {
    let snapshot = source.snapshot();
    let mut stored: HashMap<String, Rows> = HashMap::new();
    for file in snapshot.files.iter() {
        let open = File::open(snapshot.root.name(&file.path)).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(open).unwrap().build().unwrap();
        let rows = stored.entry(file.tenant.to_string()).or_default();
        reader.for_each(|batch| rows.add(file.table, &batch.unwrap(), |_| file.day));
    }
    for (tenant, _) in TENANTS {
        let filter = ScanFilter {
            tenant: Some(tenant.parse().unwrap()),
            ..ScanFilter::default()
        };
        let rows = stored.entry(tenant.to_owned()).or_default();
        for head in &snapshot.heads {
            for table in Table::ALL {
                for batch in head.scan(table, &filter) {
                    let days = batch.column_by_name("day").unwrap().as_primitive::<Date32Type>();
                    rows.add(table, &batch, |row| days.value(row));
                }
            }
        }
    }
    stored
}

/// A sequence of numbers that differs from round to round and is the same in every run.
fn drawn(round: u64, salt: u64) -> u64 {
    let mut x = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Runs one child until it is killed. Returns the class of the place, or from when on the moment was drawn.
fn round(dir: &Path, round: u64, told: &mut Told) -> &'static str {
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
            // The harness writes before the first line of ours.
            if let Some((_, line)) = line.split_once('@') {
                let _ = lines.send(line.to_owned());
            }
        }
    });
    let started = Instant::now();
    // How far the child has come, and how far it shall come before a moment is drawn.
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
                told.hear(&line);
                if line.starts_with("at ") {
                    killed = class;
                    break;
                }
                if line == "open" || line == "took gone" {
                    come += 1;
                    // A start may have fewer places than were drawn.
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
fn finish(dir: &Path, told: &mut Told, rounds: u64) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(config(dir), &Scope::new()).unwrap();
        told.check(store.as_ref(), rounds, false);
        told.hear("mark old");
        store.flush().await.unwrap();
        for work in [Work::Due, Work::Compact, Work::Due, Work::Vacuum(Duration::ZERO)] {
            store.maintain(work).await.unwrap();
        }
        told.hear("took old");
        told.check(store.as_ref(), rounds, true);
        store.close(Duration::from_mins(1)).await.unwrap();
    });
    let checked = inspect::check(dir).unwrap();
    assert!(!checked.has_errors(), "{:?}", checked.findings);
}

#[test]
fn nothing_acknowledged_is_lost_or_doubled_by_kills_at_places() {
    let rounds = std::env::var("ALLUVIUM_KILLS").map_or(ROUNDS, |text| text.parse().unwrap());
    let mut kills: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut kept, mut deleted, mut retired) = (0, 0, 0);
    let started = Instant::now();
    for first in (0..rounds).step_by(ROUNDS_A_FOLDER) {
        // A kill leaves what was written, synced or not: memory, where there is room, says as much as a disk and is not
        // slow.
        let dir = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let mut told = Told::default();
        let end = rounds.min(first + ROUNDS_A_FOLDER as u64);
        for number in first..end {
            *kills.entry(round(dir.path(), number, &mut told)).or_default() += 1;
            told.check(&Store::open_read_only(dir.path()).unwrap(), number, false);
        }
        finish(dir.path(), &mut told, end);
        kept += told.kept.values().map(BTreeSet::len).sum::<usize>();
        deleted += told.of("gone").gone.len();
        retired += told.of("old").gone.len();
    }
    println!(
        "{rounds} kills in {:?}: {kills:?}; {kept} profiles acknowledged, 0 lost, 0 doubled; {deleted} deleted on \
         request, \
         {retired} retired",
        started.elapsed()
    );
    if rounds >= 100 {
        let of = |class: &str| kills.get(class).copied().unwrap_or(0);
        assert!(CLASSES.iter().all(|(class, _)| of(class) >= rounds / 50), "{kills:?}");
        assert!(MOMENTS.iter().all(|moment| of(moment) > 0), "{kills:?}");
        assert!(deleted > 0 && retired > 0);
    }
}
