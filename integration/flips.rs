//! Flips one bit at a random position of a file of any kind in a data folder. Each query then returns the correct
//! response, or an error that names the file. There is never a wrong response or a panic.
//!
//! Each flip happens in a copy of a folder whose store stopped without a last flush, as after a kill. The folder has
//! files of all tables (some merged), entries, checkpoints and checksums of the tables' logs, a write-ahead log with
//! records that are in no Parquet file, and a pending deletion. Half of the flips happen while no process uses the
//! folder, and half while a store has it open. Then the test queries all rows, runs the pending deletion, merges, and
//! checks the folder. It repeats the queries after the deletion and after the merge.
//!
//! `ALLUVIUM_FLIPS` sets the number of flips, `ALLUVIUM_FLIP` selects a single one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alluvium::query::output::format::{Format, encode_all};
use alluvium::query::{QueryEngine, QueryLimits};
use alluvium::store::common::fault::{FaultHook, FaultPoint, Faults};
use alluvium::store::common::schema::Table;
use alluvium::store::maintenance::deletion::request::Deletion;
use alluvium::store::maintenance::{MaintenanceConfig, Work};
use alluvium::store::tables::snapshot::SnapshotSource;
use alluvium::store::tools::inspect;
use alluvium::store::{Store, StoreConfig};
use alluvium_profile::TimeSpan;
use alluvium_telemetry::metrics::Scope;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::harness::{tenant, tenants};
use crate::kill::numbered_at;
use crate::workload::drawn;

/// Number of flips unless `ALLUVIUM_FLIPS` is set.
const FLIPS: u64 = 120;
/// Number of flips that are tried concurrently.
const JUDGES: u64 = 2;
/// Tenants with profiles. A deletion of all profiles of the second tenant is pending.
const TENANTS: [&str; 2] = ["kept", "gone"];

/// Contents of the tables, one text per row.
type Answer = BTreeMap<&'static str, Vec<String>>;

/// Returns whether a path is of a kind.
type IsKind = fn(&str) -> bool;

/// Kinds of files. Each kind is selected equally often.
const KINDS: [(&str, IsKind); 13] = [
    ("segment of the log", |path| path.starts_with("wal/")),
    ("samples", |path| is_data(path, "samples")),
    ("profiles", |path| is_data(path, "profiles")),
    ("stacks", |path| is_data(path, "stacks")),
    ("series", |path| is_data(path, "series")),
    ("entry", |path| {
        path.contains("/_delta_log/0") && path.ends_with(".json")
    }),
    ("checkpoint", |path| {
        path.contains("/_delta_log/0") && path.ends_with(".parquet")
    }),
    ("checksums of the table's log", |path| path.ends_with(".crc")),
    ("hint of the checkpoint", |path| path.ends_with("_last_checkpoint")),
    ("request", |path| path.starts_with("deletions/")),
    ("version", |path| path == "VERSION"),
    ("writer", |path| path == "WRITER"),
    ("clock", |path| path == "CLOCK"),
];

fn is_data(path: &str, table: &str) -> bool {
    path.starts_with(&format!("tables/{table}/tenant=")) && path.ends_with(".parquet")
}

/// Prevents the deletion from starting.
struct NoDeletion;

impl FaultHook for NoDeletion {
    fn check(&self, place: FaultPoint) -> io::Result<()> {
        if place == FaultPoint::Job("delete") {
            return Err(io::Error::other("not yet"));
        }
        Ok(())
    }
}

fn config(dir: &Path) -> StoreConfig {
    let mut maintenance = MaintenanceConfig {
        // The test decides when to flush.
        interval: Duration::from_hours(1),
        ..MaintenanceConfig::default()
    };
    maintenance.policy.min_files = 3;
    StoreConfig {
        checkpoint_interval: 5,
        maintenance,
        ..StoreConfig::new(dir)
    }
}

fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// A data folder, and the contents of its tables before and after the pending deletion.
struct Base {
    folder: TempDir,
    files: Vec<(&'static str, Vec<String>)>,
    before: Answer,
    after: Answer,
}

impl Base {
    fn new(runtime: &Runtime) -> Self {
        let folder = folder();
        let dir = folder.path().join("data");
        fs::create_dir(&dir).unwrap();
        runtime.block_on(async {
            let store = Store::open(
                StoreConfig {
                    faults: Faults::new(Arc::new(NoDeletion)),
                    ..config(&dir)
                },
                &Scope::new(),
            )
            .unwrap();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let mut number = 0;
            for flush in 0..8 {
                for _ in 0..12 {
                    for of in TENANTS {
                        number += 1;
                        let service = format!("service-{}", number % 3);
                        let profile = numbered_at(number, &service, now + Duration::from_millis(number));
                        assert!(store.append(&tenant(of), vec![profile]).await.is_empty());
                    }
                }
                match flush {
                    4 => {
                        store.flush().await.unwrap();
                        store.maintain(Work::Due).await.unwrap();
                    }
                    // The request flushes the profiles. The deletion fails and stays pending.
                    6 => {
                        let all = Deletion::new(tenant("gone"), "{}", TimeSpan::ALL);
                        store.maintain(Work::Delete(all)).await.unwrap_err();
                    }
                    // The last profiles stay in the log.
                    7 => {}
                    _ => store.flush().await.unwrap(),
                }
            }
        });
        let paths = paths(&dir);
        let of_kind = |(name, is_it): (&'static str, fn(&str) -> bool)| {
            let found: Vec<String> = paths.iter().filter(|path| is_it(path)).cloned().collect();
            assert!(!found.is_empty(), "there is no file of the kind `{name}`: {paths:#?}");
            (name, found)
        };
        let files = KINDS.into_iter().map(of_kind).collect();
        let mut base = Self {
            folder,
            files,
            before: Answer::new(),
            after: Answer::new(),
        };
        let copied = base.copied(None);
        runtime.block_on(async {
            let store = Store::open(config(copied.path()), &Scope::new()).unwrap();
            base.before = answer(store.clone()).await.unwrap();
            store.maintain(Work::Due).await.unwrap();
            base.after = answer(store).await.unwrap();
        });
        assert_ne!(base.before, base.after);
        base
    }

    /// Returns a copy of the folder. Parquet files and table log files are never written in place, so their copies are
    /// links, except for the file to alter.
    fn copied(&self, altered: Option<&str>) -> TempDir {
        let (from, to) = (self.folder.path().join("data"), folder_beside(self.folder.path()));
        for path in paths(&from) {
            let (from, to) = (from.join(&path), to.path().join(&path));
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            if path.starts_with("tables/") && !path.ends_with("_last_checkpoint") && altered != Some(path.as_str()) {
                fs::hard_link(from, to).unwrap();
            } else {
                fs::copy(from, to).unwrap();
            }
        }
        to
    }
}

fn folder_beside(other: &Path) -> TempDir {
    tempfile::tempdir_in(other).unwrap()
}

/// Returns all files below a folder as relative paths.
fn paths(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path.strip_prefix(dir).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// Returns everything that the tables contain, with an engine that has read nothing yet.
async fn answer(source: Arc<dyn SnapshotSource>) -> Result<Answer, String> {
    let engine = QueryEngine::new(source, QueryLimits::default()).unwrap();
    let all = tenants(&TENANTS.join("|"));
    let mut answer = Answer::new();
    for table in ["samples", "profiles", "stacks", "series"] {
        let failed = |error: alluvium::query::QueryError| error.to_string();
        let result = engine
            .sql(&all, &format!("SELECT * FROM {table}"))
            .await
            .map_err(failed)?;
        let text = encode_all(result, Format::Json).await.map_err(failed)?;
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&text).unwrap();
        let mut rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
        rows.sort();
        // A stack or series may have a row in several files.
        if matches!(table, "stacks" | "series") {
            rows.dedup();
        }
        answer.insert(table, rows);
    }
    Ok(answer)
}

#[derive(Debug)]
struct Flip {
    kind: &'static str,
    path: String,
    byte: u64,
    bit: u64,
    /// True if a store has the folder open while the bit flips.
    is_open: bool,
}

impl Flip {
    fn drawn(base: &Base, number: u64) -> Self {
        let mut salt = 0;
        let mut below = |limit: usize| {
            salt += 1;
            drawn(number, salt) as usize % limit
        };
        let (kind, files) = &base.files[below(base.files.len())];
        let path = files[below(files.len())].clone();
        let length = fs::metadata(base.folder.path().join("data").join(&path)).unwrap().len();
        Self {
            kind,
            byte: below(length as usize) as u64,
            bit: below(8) as u64,
            is_open: below(2) == 1,
            path,
        }
    }

    fn apply(&self, dir: &Path) {
        let path = dir.join(&self.path);
        // An open store may have replaced or removed the file.
        let Ok(mut bytes) = fs::read(&path) else { return };
        if let Some(byte) = bytes.get_mut(self.byte as usize) {
            *byte ^= 1 << self.bit;
            fs::write(path, bytes).unwrap();
        }
    }

    /// Returns whether an error names the file. If the file contains checksums, the error names the file to which they
    /// belong.
    fn is_named_by(&self, error: &str) -> bool {
        let name = Path::new(&self.path)
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let name = name.strip_suffix(".crc").map_or(name.as_str(), |name| &name[1..]);
        error.contains(name) || (self.kind == "version" && error.contains("has layout version"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// No error occurred, and the response is correct.
    Right,
    /// An error named the file.
    Named,
    /// A record of the log is damaged. The store counted the damaged bytes, and the tables contain a part of the rows.
    Less,
}

struct Trial<'a> {
    base: &'a Base,
    flip: &'a Flip,
    outcome: Outcome,
}

impl Trial<'_> {
    fn error(&mut self, action: &str, error: &str) -> Result<(), String> {
        if !self.flip.is_named_by(error) {
            return Err(format!("{action}: the error does not name the file: {error}"));
        }
        self.outcome = self.outcome.max(Outcome::Named);
        Ok(())
    }

    fn compare(&mut self, action: &str, found: Result<Answer, String>, damaged: u64) -> Result<(), String> {
        let found = match found {
            Ok(found) => found,
            Err(error) => return self.error(action, &error),
        };
        if found == self.base.before || found == self.base.after {
            return Ok(());
        }
        let is_part = |whole: &Answer| {
            found.iter().all(|(table, rows)| {
                let rows: BTreeSet<&String> = rows.iter().collect();
                rows.is_subset(&whole[table].iter().collect())
            })
        };
        if self.flip.kind == "segment of the log" && is_part(&self.base.before) && damaged > 0 {
            self.outcome = Outcome::Less;
            return Ok(());
        }
        let count = |answer: &Answer| {
            answer
                .iter()
                .map(|(table, rows)| (*table, rows.len()))
                .collect::<Vec<_>>()
        };
        Err(format!(
            "{action}: wrong rows: the tables have {:?} rows, expected {:?} or, after the deletion, {:?}",
            count(&found),
            count(&self.base.before),
            count(&self.base.after)
        ))
    }

    async fn run(&mut self, dir: &Path) -> Result<(), String> {
        let scope = Scope::new();
        let damaged = || {
            let text = scope.encode();
            let mut lines = text.lines();
            let value = lines.find_map(|line| line.strip_prefix("alluvium_store_damaged_bytes_total "));
            value.map_or(0, |value| value.parse::<u64>().unwrap())
        };
        if !self.flip.is_open {
            self.flip.apply(dir);
        }
        let store = match Store::open(config(dir), &scope) {
            Ok(store) => store,
            Err(error) => return self.error("start", &error.to_string()),
        };
        if self.flip.is_open {
            self.flip.apply(dir);
        }
        self.compare("first answer", answer(store.clone()).await, damaged())?;
        for work in [Work::Due, Work::Compact] {
            let action = format!("{work:?}");
            if let Err(error) = store.maintain(work).await {
                self.error(&action, &error.to_string())?;
            }
            self.compare(&action, answer(store.clone()).await, damaged())?;
        }
        if let Err(error) = store.close(Duration::from_mins(1)).await {
            self.error("stop", &error.to_string())?;
        }
        drop(store);
        match inspect::check(dir) {
            Ok(checked) => {
                let errors = checked.findings.iter();
                let errors = errors.filter(|finding| finding.severity == inspect::Severity::Error);
                // The store keeps a damaged part of the log under a separate name.
                let is_log = self.flip.kind == "segment of the log";
                let errors: Vec<String> = errors
                    .filter(|finding| !is_log || !finding.path.starts_with("wal/"))
                    .map(|finding| format!("{}: {}", finding.path, finding.detail))
                    .collect();
                // One error names the cause; others may name its consequences.
                match errors.iter().find(|error| self.flip.is_named_by(error)) {
                    Some(error) => self.error("check", error),
                    None if errors.is_empty() => Ok(()),
                    None => self.error("check", &errors.join("; ")),
                }
            }
            Err(error) => self.error("check", &error.to_string()),
        }
    }
}

fn try_one(base: &Base, runtime: &Runtime, number: u64) -> (&'static str, Outcome) {
    let flip = Flip::drawn(base, number);
    let copied = base.copied(Some(&flip.path));
    let dir: PathBuf = copied.path().to_owned();
    let mut trial = Trial {
        base,
        flip: &flip,
        outcome: Outcome::Right,
    };
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(trial.run(&dir))));
    let problem = match result {
        Ok(Ok(())) => return (flip.kind, trial.outcome),
        Ok(Err(problem)) => problem,
        Err(_) => "a panic".to_owned(),
    };
    panic!(
        "flip {number} ({flip:?}): {problem}\nonly this one: ALLUVIUM_FLIP={number} cargo test --test integration \
         flips -- --nocapture"
    );
}

/// Every part of a Parquet file is verified when a query reads it. Without this verification, some flips would change
/// values.
#[test]
fn a_query_of_an_altered_file_is_an_error_that_names_it() {
    const PLACES: u64 = 12;
    let runtime = Runtime::new().unwrap();
    let base = Base::new(&runtime);
    let copied = base.copied(None);
    let store = Store::open(config(copied.path()), &Scope::new()).unwrap();
    let snapshot = store.snapshot();
    for table in Table::ALL {
        let live = snapshot.files.iter().find(|file| file.table == table).unwrap();
        let path = copied.path().join("tables").join(&live.path);
        let sound = fs::read(&path).unwrap();
        // The path is a link. Without the removal, the writes would also change the file of `base`.
        fs::remove_file(&path).unwrap();
        for place in 0..PLACES {
            let mut bytes = sound.clone();
            bytes[sound.len() * place as usize / PLACES as usize] ^= 1 << (place % 8);
            fs::write(&path, bytes).unwrap();
            let found = runtime.block_on(answer(store.clone())).map(drop);
            let name = path.file_name().unwrap().to_string_lossy();
            let is_named = found.as_ref().is_err_and(|error| error.contains(&*name));
            assert!(is_named, "{}, place {place}: {found:?}", live.path);
        }
        fs::write(&path, &sound).unwrap();
    }
    assert_eq!(runtime.block_on(answer(store)).as_ref(), Ok(&base.before));
}

#[test]
fn a_flipped_bit_anywhere_is_an_error_that_names_the_file_or_changes_nothing() {
    let number = |name: &str| Some(std::env::var(name).ok()?.parse::<u64>().unwrap());
    let flips = number("ALLUVIUM_FLIPS").unwrap_or(FLIPS);
    let flips = number("ALLUVIUM_FLIP").map_or(0..flips, |one| one..one + 1);
    let runtime = Runtime::new().unwrap();
    let base = Base::new(&runtime);
    let next = AtomicU64::new(flips.start);
    let (base, next) = (&base, &next);
    let outcomes = std::thread::scope(|scope| {
        let judge = || {
            let runtime = Runtime::new().unwrap();
            let (mut outcomes, mut problems) = (Vec::new(), Vec::new());
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= flips.end {
                    return (outcomes, problems);
                }
                match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| try_one(base, &runtime, number))) {
                    Ok(outcome) => outcomes.push(outcome),
                    Err(_) => problems.push(number),
                }
            }
        };
        let judges: Vec<_> = (0..JUDGES).map(|_| scope.spawn(judge)).collect();
        let parts: Vec<_> = judges.into_iter().map(|judge| judge.join().unwrap()).collect();
        let problems: Vec<u64> = parts.iter().flat_map(|(_, problems)| problems.clone()).collect();
        assert!(problems.is_empty(), "{} flips failed: {problems:?}", problems.len());
        parts.into_iter().flat_map(|(outcomes, _)| outcomes).collect::<Vec<_>>()
    });
    let mut counts: BTreeMap<(&str, Outcome), u64> = BTreeMap::new();
    for outcome in outcomes {
        *counts.entry(outcome).or_default() += 1;
    }
    println!("flips {flips:?}:");
    for ((kind, outcome), count) in counts {
        println!("  {kind}: {outcome:?} {count}");
    }
}
