//! A store for tests of queries. Profiles are added and then written as Parquet files or kept in a head. The fixture
//! uses no code of the store except the schema and the types of a snapshot.
//!
//! The head of the fixture returns all rows of all tenants regardless of the filter. [`ScanFilter`] allows a head to
//! return more rows than requested. So if a query relies on the filter, its test fails.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use alluvium::store::common::schema::{Table, labels as labels_type};
use alluvium::store::tables::snapshot::{FileEntry, HeadScan, Receive, ScanFilter, Snapshot, SnapshotSource};
use alluvium::store::tables::stats::Bounds;
use alluvium_profile::{Labels, ProfileTypeId, SeriesId};
use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Int32Builder, Int64Array, ListArray, ListBuilder, MapBuilder, MapFieldNames,
    RecordBatch, StringArray, StringBuilder, StructArray, TimestampMicrosecondArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field};
use parking_lot::Mutex;
use parquet::arrow::ArrowWriter;

pub(super) const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
pub(super) const HEAP: &str = "memory:inuse_space:bytes:space:bytes";
/// 2026-11-20T12:00:00Z, in the middle of a day.
pub(super) const NOON: i64 = 1_795_176_000_000;

pub(super) type TestFrame = (&'static str, &'static str, i64);

#[derive(Clone, Debug)]
pub(super) struct TestProfile {
    pub tenant: &'static str,
    pub labels: Labels,
    pub profile_type: String,
    pub time_ms: i64,
    pub id: String,
    /// For each sample: the frames (the leaf first), the value, and the id of the span.
    pub samples: Vec<(Vec<OwnedFrame>, i64, Option<String>)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct OwnedFrame {
    pub function: String,
    pub file: String,
    pub line: i64,
    pub mapping: String,
    pub address: i64,
    pub inlined: bool,
    /// Line at which the function starts. It does not change the id of the stack.
    pub start_line: i32,
}

pub(super) struct TestStore {
    root: tempfile::TempDir,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pending: Vec<TestProfile>,
    files: Vec<FileEntry>,
    heads: Vec<Arc<dyn HeadScan>>,
}

struct TestHead(HashMap<Table, Vec<RecordBatch>>);

impl HeadScan for TestHead {
    fn scan_with(&self, table: Table, _filter: &ScanFilter, receive: &mut Receive<'_>) {
        let batches = self.0.get(&table).into_iter().flatten();
        let _ = batches.cloned().try_for_each(receive);
    }
}

/// A head that returns the same rows again and again. A reader that collects all of them runs out of memory.
struct EndlessHead {
    tables: HashMap<Table, RecordBatch>,
    given: Arc<AtomicUsize>,
}

/// Maximum number of batches of an endless head, so that a test of an unbounded reader ends.
pub(super) const ENDLESS: usize = 100_000;

impl HeadScan for EndlessHead {
    fn scan_with(&self, table: Table, _filter: &ScanFilter, receive: &mut Receive<'_>) {
        for _ in 0..ENDLESS {
            self.given.fetch_add(1, Ordering::Relaxed);
            if receive(self.tables[&table].clone()).is_break() {
                return;
            }
        }
    }
}

impl SnapshotSource for TestStore {
    fn snapshot(&self) -> Arc<Snapshot> {
        let state = self.state.lock();
        Arc::new(Snapshot {
            root: self.root.path().into(),
            files: state.files.clone().into(),
            heads: state.heads.clone(),
        })
    }
}

pub(super) fn profile(
    tenant: &'static str,
    labels: &[(&str, &str)],
    profile_type: &str,
    time_ms: i64,
    samples: &[(&[TestFrame], i64)],
) -> TestProfile {
    let owned = |frame: &TestFrame| OwnedFrame {
        function: frame.0.to_owned(),
        file: frame.1.to_owned(),
        line: frame.2,
        mapping: "/usr/bin/app".to_owned(),
        ..OwnedFrame::default()
    };
    TestProfile {
        tenant,
        labels: Labels::from_pairs(labels.iter().copied()),
        profile_type: profile_type.to_owned(),
        time_ms,
        id: format!("id-{tenant}-{time_ms}"),
        samples: samples
            .iter()
            .map(|(frames, value)| (frames.iter().map(owned).collect(), *value, None))
            .collect(),
    }
}

impl TestStore {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            root: tempfile::tempdir().unwrap(),
            state: Mutex::default(),
        })
    }

    pub(super) fn add(&self, profile: TestProfile) -> &Self {
        self.state.lock().pending.push(profile);
        self
    }

    /// Moves the added profiles to a head.
    pub(super) fn to_head(&self) -> &Self {
        let mut state = self.state.lock();
        let pending = std::mem::take(&mut state.pending);
        let tables = Table::ALL.map(|table| (table, vec![batch(table, &pending)]));
        state.heads.push(Arc::new(TestHead(tables.into_iter().collect())));
        self
    }

    /// Moves the added profiles to a head that repeats them endlessly. Returns the counter of requested batches.
    pub(super) fn to_endless_head(&self) -> Arc<AtomicUsize> {
        let mut state = self.state.lock();
        let pending = std::mem::take(&mut state.pending);
        let tables = Table::ALL.map(|table| (table, batch(table, &pending)));
        let given = Arc::new(AtomicUsize::new(0));
        state.heads.push(Arc::new(EndlessHead {
            tables: tables.into_iter().collect(),
            given: given.clone(),
        }));
        given
    }

    /// Writes the added profiles to files, one for each table, tenant and day.
    pub(super) fn to_files(&self) -> &Self {
        let mut state = self.state.lock();
        let pending = std::mem::take(&mut state.pending);
        let mut parts: BTreeMap<(&str, i32), Vec<TestProfile>> = BTreeMap::new();
        for profile in pending {
            let day = day(profile.time_ms);
            parts.entry((profile.tenant, day)).or_default().push(profile);
        }
        for ((tenant, day), profiles) in parts {
            for table in Table::ALL {
                let number = state.files.len();
                let entry = write(self.root.path(), table, tenant, day, number, &profiles);
                state.files.push(entry);
            }
        }
        self
    }

    /// For each file of the snapshot, adds an entry that names a missing file. `change` may modify this entry. A query
    /// that opens a missing file fails.
    pub(super) fn list_missing(&self, change: impl Fn(&mut FileEntry)) -> &Self {
        let mut state = self.state.lock();
        let mut missing: Vec<FileEntry> = state.files.clone();
        for (number, entry) in missing.iter_mut().enumerate() {
            entry.path = format!("{}/missing-{number}.parquet", entry.table.name());
            change(entry);
        }
        state.files.extend(missing);
        self
    }
}

fn day(time_ms: i64) -> i32 {
    time_ms.div_euclid(86_400_000) as i32
}

fn write(root: &Path, table: Table, tenant: &str, day: i32, number: usize, profiles: &[TestProfile]) -> FileEntry {
    let batch = batch(table, profiles);
    let in_file = batch.project(&(2..batch.num_columns()).collect::<Vec<_>>()).unwrap();
    // The path contains a space and a percent sign, which readers must handle.
    let path = format!("{}/tenant={tenant}/day=%25 {day}/part-{number}.parquet", table.name());
    std::fs::create_dir_all(root.join(&path).parent().unwrap()).unwrap();
    let file = std::fs::File::create(root.join(&path)).unwrap();
    let mut writer = ArrowWriter::try_new(file, in_file.schema(), None).unwrap();
    writer.write(&in_file).unwrap();
    writer.close().unwrap();
    let has_time = matches!(table, Table::Profiles | Table::Samples);
    let times = || profiles.iter().map(|profile| profile.time_ms * 1000);
    let types = || {
        profiles
            .iter()
            .map(|profile| ProfileTypeId::from(profile.profile_type.as_str()))
    };
    let ids = || profiles.iter().map(|profile| SeriesId(profile.labels.hash64() as i64));
    FileEntry {
        table,
        size: std::fs::metadata(root.join(&path)).unwrap().len(),
        path,
        rows: in_file.num_rows() as u64,
        tenant: crate::harness::tenant(tenant),
        day,
        time: has_time.then(|| Bounds::new(times().min().unwrap(), times().max().unwrap())),
        profile_type: has_time.then(|| Bounds::new(types().min().unwrap(), types().max().unwrap())),
        series: (table != Table::Stacks).then(|| Bounds::new(ids().min().unwrap(), ids().max().unwrap())),
        checksum: None,
    }
}

pub(super) fn stack_id(frames: &[OwnedFrame]) -> i64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    let unplaced = |frame: &OwnedFrame| OwnedFrame {
        start_line: 0,
        ..frame.clone()
    };
    frames.iter().map(unplaced).collect::<Vec<_>>().hash(&mut hasher);
    hasher.finish() as i64
}

fn batch(table: Table, profiles: &[TestProfile]) -> RecordBatch {
    let samples: Vec<_> = profiles
        .iter()
        .flat_map(|profile| profile.samples.iter().map(move |sample| (profile, sample)))
        .collect();
    let time = |profile: &TestProfile| profile.time_ms * 1000;
    let id = |profile: &TestProfile| profile.labels.hash64() as i64;
    let text = |values: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(values)) };
    let numbers = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    let times =
        |values: Vec<i64>| -> ArrayRef { Arc::new(TimestampMicrosecondArray::from(values).with_timezone("UTC")) };
    let rows: Vec<&TestProfile> = match table {
        Table::Samples | Table::Stacks => samples.iter().map(|(profile, _)| *profile).collect(),
        Table::Profiles | Table::Series => profiles.iter().collect(),
    };
    let mut columns: Vec<ArrayRef> = vec![
        text(rows.iter().map(|profile| profile.tenant).collect()),
        Arc::new(Date32Array::from_iter_values(
            rows.iter().map(|profile| day(profile.time_ms)),
        )),
    ];
    columns.extend(match table {
        Table::Profiles => vec![
            times(rows.iter().map(|profile| time(profile)).collect()),
            numbers(rows.iter().map(|profile| id(profile)).collect()),
            text(rows.iter().map(|profile| profile.profile_type.as_str()).collect()),
            numbers(
                rows.iter()
                    .map(|profile| profile.samples.iter().map(|sample| sample.1).sum())
                    .collect(),
            ),
            numbers(rows.iter().map(|profile| profile.samples.len() as i64).collect()),
            numbers(rows.iter().map(|_| 15_000_000_000).collect()),
            numbers(rows.iter().map(|_| 10_000_000).collect()),
            text(rows.iter().map(|profile| profile.id.as_str()).collect()),
        ],
        Table::Samples => vec![
            times(rows.iter().map(|profile| time(profile)).collect()),
            numbers(rows.iter().map(|profile| id(profile)).collect()),
            text(rows.iter().map(|profile| profile.profile_type.as_str()).collect()),
            numbers(samples.iter().map(|(_, sample)| stack_id(&sample.0)).collect()),
            numbers(samples.iter().map(|(_, sample)| sample.1).collect()),
            Arc::new(
                samples
                    .iter()
                    .map(|(_, sample)| sample.2.clone())
                    .collect::<StringArray>(),
            ),
            Arc::new(samples.iter().map(|_| None::<&str>).collect::<StringArray>()),
        ],
        // A stack has one row for each sample in which it occurs. Readers must not count these rows twice.
        Table::Stacks => {
            let stacks: Vec<&[OwnedFrame]> = samples.iter().map(|(_, sample)| sample.0.as_slice()).collect();
            vec![
                numbers(stacks.iter().map(|stack| stack_id(stack)).collect()),
                frames(&stacks),
                start_lines(&stacks),
            ]
        }
        Table::Series => {
            let services = rows
                .iter()
                .map(|profile| profile.labels.get("service_name").unwrap_or("unknown"));
            vec![
                numbers(rows.iter().map(|profile| id(profile)).collect()),
                text(services.collect()),
                label_maps(&rows),
            ]
        }
    });
    RecordBatch::try_new(table.schema(), columns).unwrap()
}

fn label_maps(rows: &[&TestProfile]) -> ArrayRef {
    let names = MapFieldNames {
        entry: "key_value".to_owned(),
        key: "key".to_owned(),
        value: "value".to_owned(),
    };
    let mut builder = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    for profile in rows {
        for (name, value) in profile.labels.iter() {
            builder.keys().append_value(name);
            builder.values().append_value(value);
        }
        builder.append(true).unwrap();
    }
    let array: ArrayRef = Arc::new(builder.finish());
    assert_eq!(array.data_type(), &labels_type());
    array
}

/// Returns the start lines of the functions of each stack, or null if no function has one.
fn start_lines(stacks: &[&[OwnedFrame]]) -> ArrayRef {
    let element = Field::new("element", DataType::Int32, false);
    let mut builder = ListBuilder::new(Int32Builder::new()).with_field(element);
    for stack in stacks {
        let has_lines = stack.iter().any(|frame| frame.start_line != 0);
        if has_lines {
            stack
                .iter()
                .for_each(|frame| builder.values().append_value(frame.start_line));
        }
        builder.append(has_lines);
    }
    Arc::new(builder.finish())
}

fn frames(stacks: &[&[OwnedFrame]]) -> ArrayRef {
    let schema = Table::Stacks.schema();
    let DataType::List(element) = schema.field_with_name("frames").unwrap().data_type().clone() else {
        panic!("the column `frames` must be a list")
    };
    let DataType::Struct(fields) = element.data_type().clone() else {
        panic!("an element of the column `frames` must be a struct")
    };
    let all: Vec<&OwnedFrame> = stacks.iter().flat_map(|stack| stack.iter()).collect();
    let text = |values: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(values)) };
    let values = StructArray::new(
        fields,
        vec![
            text(all.iter().map(|frame| frame.function.as_str()).collect()),
            text(all.iter().map(|frame| frame.file.as_str()).collect()),
            Arc::new(Int64Array::from_iter_values(all.iter().map(|frame| frame.line))),
            text(all.iter().map(|frame| frame.mapping.as_str()).collect()),
            Arc::new(Int64Array::from_iter_values(all.iter().map(|frame| frame.address))),
            text(all.iter().map(|_| "b1d").collect()),
            Arc::new(BooleanArray::from(
                all.iter().map(|frame| frame.inlined).collect::<Vec<_>>(),
            )),
        ],
        None,
    );
    let offsets = OffsetBuffer::from_lengths(stacks.iter().map(|stack| stack.len()));
    Arc::new(ListArray::new(element, offsets, Arc::new(values), None))
}
