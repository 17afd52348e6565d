//! Records the profiles that a store has acknowledged, and compares them with the contents of a folder.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;

use alluvium::store::common::schema::Table;
use alluvium::store::tables::snapshot::{ScanFilter, SnapshotSource};
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Date32Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::TENANTS;

/// The profiles that pushes to one folder and its maintenance have reported, in all rounds so far. In the test
/// `unsynced`, a round is a life of the store.
#[derive(Default, Clone)]
pub(crate) struct Ledger {
    kept: HashMap<String, BTreeSet<u64>>,
    /// Profiles of the tenants from which a deletion or retention removes profiles.
    taken: BTreeMap<String, Taken>,
}

/// Profiles of a tenant that may be removed, and profiles that must be removed.
#[derive(Default, Clone)]
struct Taken {
    /// Numbers of profiles that a removal may affect, recorded before the profiles are pushed.
    sent: BTreeSet<u64>,
    /// Profiles of `sent` that were acknowledged at the last report `mark`. The removal after it removes all of them.
    marked: BTreeSet<u64>,
    /// True while a removal runs.
    is_under_way: bool,
    /// Profiles that earlier removals may have removed: all profiles that were sent before the end of such a removal.
    may_be_gone: BTreeSet<u64>,
    /// Profiles that finished removals have removed.
    gone: BTreeSet<u64>,
}

impl Taken {
    fn ended(&mut self) {
        self.is_under_way = false;
        self.may_be_gone.extend(&self.sent);
    }
}

impl Ledger {
    pub(crate) fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match *words.as_slice() {
            ["kept", tenant, number] => {
                let of_tenant = self.kept.entry(tenant.to_owned()).or_default();
                of_tenant.insert(number.parse().unwrap());
            }
            ["sent", tenant, number] => drop(self.of(tenant).sent.insert(number.parse().unwrap())),
            ["mark", tenant] => {
                let kept = self.kept.get(tenant).cloned().unwrap_or_default();
                let taken = self.of(tenant);
                taken.marked = kept.intersection(&taken.sent).copied().collect();
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

    /// Returns the number of acknowledged profiles.
    pub(crate) fn kept(&self) -> usize {
        self.kept.values().map(BTreeSet::len).sum()
    }

    /// Returns the number of a tenant's profiles that finished removals have removed.
    pub(crate) fn gone(&self, tenant: &str) -> usize {
        self.taken.get(tenant).map_or(0, |taken| taken.gone.len())
    }

    fn of(&mut self, tenant: &str) -> &mut Taken {
        self.taken.entry(tenant.to_owned()).or_default()
    }

    /// Records that the process was killed. If a removal was under way, it may have removed any profile that was sent
    /// so far.
    pub(crate) fn killed(&mut self) {
        for taken in self.taken.values_mut() {
            if taken.is_under_way {
                taken.ended();
            }
        }
    }

    /// Compares the ledger with the contents of the folder. If `all` is true, all retention and deletions must have
    /// been carried out.
    pub(crate) fn check(&self, source: &impl SnapshotSource, round: u64, all: bool) {
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
    // The tables of a tenant with removals change one after the other, so they may disagree for a moment.
    let agree = all || matches!(tenant, "young" | "coarse");
    let samples_are_whole = matches!(tenant, "young" | "gone");
    let (mut profiles, mut samples) = (BTreeMap::new(), BTreeMap::new());
    let (mut totals, mut values) = (Sums::new(), Sums::new());
    for (number, series) in &found.profiles {
        *profiles.entry(*number).or_insert(0) += 1;
        let expected = service_of(*number);
        match found.services.get(series) {
            Some(service) if *service == expected => {}
            other => problems.push(format!("the series of {number} is {other:?} and not {expected}")),
        }
        *totals.entry((function_of(*number), expected)).or_insert(0) += number;
    }
    for (value, series, stack) in &found.samples {
        let (Some(function), Some(service)) = (found.functions.get(stack), found.services.get(series)) else {
            problems.push(format!(
                "a sample of {value} finds no name for stack {stack:?} or series {series:?}"
            ));
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
        problems.extend(doubled.map(|(number, count)| format!("{what} of {number} exists {count} times")));
        let lost = kept
            .iter()
            .filter(|number| !counts.contains_key(number) && !taken.may_be_gone.contains(number));
        problems.extend(lost.map(|number| format!("{what} of {number} is lost")));
        let back = taken.gone.iter().filter(|number| counts.contains_key(number));
        problems.extend(back.map(|number| format!("{what} of {number} was removed but still exists")));
        if all && tenant == "old" && !counts.is_empty() {
            problems.push(format!("{what} of {} numbers exists after its retention", counts.len()));
        }
    };
    compare("the profile", &profiles);
    if samples_are_whole {
        compare("the sample", &samples);
    }
    // The sums by name must include all profiles that no removal can have removed.
    let mut least = Sums::new();
    for number in kept.iter().filter(|number| !taken.may_be_gone.contains(number)) {
        *least.entry((function_of(*number), service_of(*number))).or_insert(0) += number;
    }
    for (name, sum) in least {
        let there = values.get(&name).copied().unwrap_or(0);
        if there < sum {
            problems.push(format!("samples of {name:?} add up to {there}, less than {sum}"));
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

/// Returns the function of the single sample in the profile that `numbered_at` creates for a number.
fn function_of(number: u64) -> String {
    format!("work_{}", number % 50)
}

fn service_of(number: u64) -> String {
    format!("service-{}", number % 3)
}

/// Day and id of a stack or series. The tables have a row of a stack or series for each day.
type Name = (i32, i64);

/// Contents of the four tables for one tenant.
#[derive(Default)]
struct Rows {
    /// Number and series of each profile.
    profiles: Vec<(u64, Name)>,
    /// Value, series and stack of each sample.
    samples: Vec<(u64, Name, Name)>,
    functions: HashMap<Name, String>,
    /// Service of each series.
    services: HashMap<Name, String>,
    /// Descriptions of the names whose rows contradict each other.
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

/// Records the function of a stack, or the service of a series. The tables may contain the row of a stack or series
/// several times. Returns a problem if two of these rows differ.
fn tell(names: &mut HashMap<Name, String>, name: Name, text: String) -> Option<String> {
    let before = names.insert(name, text.clone()).filter(|before| *before != text)?;
    Some(format!("{name:?} is {before} and {text}"))
}

/// Returns the contents of files and heads by tenant.
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
            tenants: Some(tenant.parse().unwrap()),
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
