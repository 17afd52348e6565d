//! Measures physical layouts of the tables with an hour of profiles of a simulated fleet (`alluvium_testing::fleet`).
//! Prints a table of the bytes per value of flushed and of merged files. A second table compares candidate layouts by
//! their bytes per value and the times of three queries. `docs/adr/0004-layout.md` contains the tables.
//!
//! Run it with `cargo test --lib store::flush::files::layout -- --ignored --nocapture`. `LAYOUT_TICKS` sets the number
//! of ticks of 15 seconds, 240 by default; a smaller number takes less time.

use std::collections::BTreeMap;
use std::time::Instant;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, StringArray, TimestampMicrosecondArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int64Type, TimestampMicrosecondType};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::basic::Encoding;
use parquet::file::metadata::{PageIndexPolicy, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use super::*;
use crate::store::ingest;
use crate::store::maintenance::merge::rewrite;
use crate::store::maintenance::merge::rewrite::{Change, Environment, Job};
use crate::store::rules::limits::Limits;
use crate::store::tables::snapshot::FileEntry;
use alluvium_profile::{RawProfile, pprof};
use alluvium_testing::fleet::{Fleet, FleetShape};
use alluvium_testing::tenant_id;

/// 2027-01-15 08:00 UTC, in nanoseconds.
const START_NS: i64 = 1_800_000_000_000_000_000;
/// Ticks between flushes: five minutes.
const FLUSH_TICKS: u64 = 20;

/// The rows of the samples table, column by column. Each candidate layout sorts these rows.
#[derive(Default)]
struct Rows {
    kind: Vec<u8>,
    service: Vec<u16>,
    series: Vec<i64>,
    stack: Vec<i64>,
    time: Vec<i64>,
    value: Vec<i64>,
}

/// Key by which rows are sorted.
type SortKey = (u8, i64, i64, i64, i64);
type Order = fn(&Rows, usize) -> SortKey;

/// A candidate layout for the samples table.
struct Candidate {
    name: &'static str,
    order: Order,
    change: fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder,
    /// If true, the file stores a consecutive number in place of each stack id, and the size includes a table with the
    /// id of each number.
    numbered: bool,
}

fn by_time(rows: &Rows, row: usize) -> SortKey {
    (rows.kind[row], rows.series[row], rows.time[row], rows.stack[row], 0)
}

fn by_stack(rows: &Rows, row: usize) -> SortKey {
    (rows.kind[row], rows.series[row], rows.stack[row], rows.time[row], 0)
}

fn by_service(rows: &Rows, row: usize) -> SortKey {
    (
        rows.kind[row],
        i64::from(rows.service[row]),
        rows.stack[row],
        rows.series[row],
        rows.time[row],
    )
}

fn keep_properties(properties: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
    properties
}

fn encoded(properties: WriterPropertiesBuilder, column: &str, encoding: Encoding) -> WriterPropertiesBuilder {
    properties
        .set_column_dictionary_enabled(ColumnPath::from(column), false)
        .set_column_encoding(ColumnPath::from(column), encoding)
}

fn zstd(properties: WriterPropertiesBuilder, level: i32) -> WriterPropertiesBuilder {
    properties.set_compression(Compression::ZSTD(ZstdLevel::try_new(level).unwrap()))
}

const CANDIDATES: [Candidate; 14] = [
    candidate("type, series, time, stack", by_time, keep_properties),
    candidate("type, series, stack, time", by_stack, keep_properties),
    candidate("type, service, stack, series, time", by_service, keep_properties),
    candidate("by stack, pages of 100,000 rows", by_stack, |p| {
        p.set_data_page_row_count_limit(100_000)
    }),
    candidate("by service, pages of 100,000 rows", by_service, |p| {
        p.set_data_page_row_count_limit(100_000)
    }),
    candidate("by stack, row groups of 128 Ki", by_stack, |p| {
        p.set_max_row_group_row_count(Some(128 << 10))
    }),
    candidate("by stack, zstd 9", by_stack, |p| zstd(p, 9)),
    candidate("by stack, zstd 9, pages of 100,000", by_stack, |p| {
        zstd(p, 9).set_data_page_row_count_limit(100_000)
    }),
    candidate("by stack, zstd 19", by_stack, |p| zstd(p, 19)),
    candidate("by stack, time delta", by_stack, |p| {
        encoded(p, "time", Encoding::DELTA_BINARY_PACKED)
    }),
    candidate("by stack, stack delta", by_stack, |p| {
        encoded(p, "stack", Encoding::DELTA_BINARY_PACKED)
    }),
    candidate("by stack, value delta", by_stack, |p| {
        encoded(p, "value", Encoding::DELTA_BINARY_PACKED)
    }),
    candidate("by stack, bloom filter of stacks", by_stack, |p| {
        p.set_column_bloom_filter_enabled(ColumnPath::from("stack"), true)
    }),
    Candidate {
        name: "by stack, stacks numbered by file",
        order: by_stack,
        change: keep_properties,
        numbered: true,
    },
];

const fn candidate(
    name: &'static str,
    order: Order,
    change: fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder,
) -> Candidate {
    Candidate {
        name,
        order,
        change,
        numbered: false,
    }
}

#[test]
#[ignore = "a measurement that takes some minutes without optimisation"]
fn layout() {
    let ticks: u64 = std::env::var("LAYOUT_TICKS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(240);
    let folder = tempfile::tempdir().unwrap();
    let (flushed, values) = flush_all(folder.path(), ticks);
    println!("{values} values");
    let mut compacted = Vec::new();
    for table in Table::ALL {
        let inputs: Vec<FileEntry> = flushed.iter().filter(|file| file.table == table).cloned().collect();
        let before: u64 = inputs.iter().map(|file| file.size).sum();
        let start = Instant::now();
        let files = compact(folder.path(), table, inputs);
        let after: u64 = files.iter().map(|file| file.size).sum();
        println!(
            "{:9} flushed {:.4} compacted {:.4} bytes a value, {} files, {:.1} s",
            table.name(),
            before as f64 / values as f64,
            after as f64 / values as f64,
            files.len(),
            start.elapsed().as_secs_f64(),
        );
        if table == Table::Stacks {
            columns_of(folder.path(), "flushed", table, &flushed, values);
            columns_of(folder.path(), "compacted", table, &files, values);
        }
        compacted.extend(files);
    }
    let all = |files: &[FileEntry]| files.iter().map(|file| file.size).sum::<u64>() as f64 / values as f64;
    println!(
        "all       flushed {:.4} compacted {:.4}",
        all(&flushed),
        all(&compacted)
    );
    let rows = read_rows(folder.path(), &compacted);
    println!("| samples | bytes a value | all, 1 h ms | one service, 1 h ms | one service, 5 min ms |");
    for candidate in &CANDIDATES {
        measure(candidate, &rows);
    }
    lists(&rows);
    assert!(all(&compacted) < all(&flushed));
}

/// Flushes the fleet's profiles to files. Returns the files and the number of sample rows.
fn flush_all(root: &Path, ticks: u64) -> (Vec<FileEntry>, u64) {
    let fleet = Fleet::new(FleetShape::default(), 1);
    let tenant = tenant_id("t");
    let (mut files, mut values) = (Vec::new(), 0);
    let known = Arc::default();
    let mut head = Head::new(Arc::clone(&known));
    for tick in 0..ticks {
        for index in 0..fleet.profiles_per_tick() {
            let (labels, profile) = fleet.profile(tick, index, START_NS);
            let raw = RawProfile {
                labels,
                id: uuid::Uuid::new_v4().to_string().into(),
                pprof: pprof::encode(&profile).into(),
            };
            values += head.apply(&tenant, &ingest::prepare(&raw, 0, &Limits::unlimited()).unwrap());
        }
        if (tick + 1) % FLUSH_TICKS == 0 || tick + 1 == ticks {
            let name = FileName {
                segment: tick + 1,
                attempt: 1,
                writer: "w".to_owned(),
            };
            for table in Table::ALL {
                fs::create_dir_all(root.join(table.name())).unwrap();
                let written = write_table(
                    &head,
                    table,
                    &Root::from(root),
                    &name,
                    (&Faults::default(), &Lifecycle::default()),
                )
                .unwrap();
                files.extend(written.iter().map(|file| file.entry(table)));
            }
            head.remember_stacks();
            head = Head::new(Arc::clone(&known));
        }
    }
    (files, values)
}

/// Prints the bytes per value of each column of a table's files.
fn columns_of(root: &Path, state: &str, table: Table, files: &[FileEntry], values: u64) {
    let mut bytes: BTreeMap<String, i64> = BTreeMap::new();
    for file in files.iter().filter(|file| file.table == table) {
        let file = File::open(root.join(&file.path)).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        for column in reader
            .metadata()
            .row_groups()
            .iter()
            .flat_map(RowGroupMetaData::columns)
        {
            *bytes.entry(column.column_path().string()).or_default() += column.compressed_size();
        }
    }
    for (column, bytes) in bytes {
        println!(
            "  {state:9} {column:30} {:.5} bytes a value",
            bytes as f64 / values as f64
        );
    }
}

fn compact(root: &Path, table: Table, inputs: Vec<FileEntry>) -> Vec<FileEntry> {
    let job = Job {
        table,
        tenant: tenant_id("t"),
        day: inputs[0].day,
        inputs,
        change: Change::default(),
        level: 2,
        resolution: 0,
        by_hour: true,
        by_type: table == Table::Samples,
        reason: "compact",
    };
    let mut environment = Environment {
        root: &Root::from(root),
        writer: "w",
        effort: SETTLED,
        faults: &Faults::default(),
        memory_bytes: usize::MAX,
        memory_used: &Default::default(),
        throttle: &mut || Ok(()),
    };
    let files = rewrite::run(&job, &mut environment).unwrap();
    files.iter().map(|file| file.entry(table)).collect()
}

fn read_rows(root: &Path, files: &[FileEntry]) -> Rows {
    let mut services: BTreeMap<i64, String> = BTreeMap::new();
    let batches = |table: Table| {
        files
            .iter()
            .filter(move |file| file.table == table)
            .flat_map(|file| {
                let file = File::open(root.join(&file.path)).unwrap();
                let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
                reader.build().unwrap().map(Result::unwrap)
            })
            .collect::<Vec<RecordBatch>>()
    };
    for batch in batches(Table::Series) {
        let names = batch.column(1).as_string::<i32>();
        for (row, id) in batch.column(0).as_primitive::<Int64Type>().values().iter().enumerate() {
            services.insert(*id, names.value(row).to_owned());
        }
    }
    let mut ranks: Vec<&String> = services.values().collect();
    ranks.sort();
    ranks.dedup();
    let mut rows = Rows::default();
    let mut kinds: Vec<String> = Vec::new();
    for batch in batches(Table::Samples) {
        let integers = |column: usize| batch.column(column).as_primitive::<Int64Type>().values().clone();
        let texts = batch.column(2).as_string::<i32>();
        rows.time
            .extend_from_slice(batch.column(0).as_primitive::<TimestampMicrosecondType>().values());
        for id in &integers(1) {
            rows.service.push(ranks.binary_search(&&services[id]).unwrap() as u16);
        }
        rows.series.extend_from_slice(&integers(1));
        rows.stack.extend_from_slice(&integers(3));
        rows.value.extend_from_slice(&integers(4));
        for row in 0..texts.len() {
            let text = texts.value(row);
            if kinds.last().is_none_or(|last| last != text) && !kinds.iter().any(|kind| kind == text) {
                kinds.push(text.to_owned());
            }
            rows.kind
                .push(kinds.iter().position(|kind| kind == text).unwrap() as u8);
        }
    }
    rows
}

fn measure(candidate: &Candidate, rows: &Rows) {
    let mut order: Vec<u32> = (0..rows.value.len() as u32).collect();
    order.sort_by_cached_key(|row| (candidate.order)(rows, *row as usize));
    let mut numbers: std::collections::HashMap<i64, i64> = std::collections::HashMap::new();
    let mut sorted = rows.stack.clone();
    sorted.sort_unstable();
    sorted.dedup();
    for (number, stack) in sorted.iter().enumerate() {
        numbers.insert(*stack, number as i64);
    }
    let properties = (candidate.change)(builder(Table::Samples, SETTLED).unwrap()).build();
    let schema = Table::Samples.file_schema();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties)).unwrap();
    for chunk in order.chunks(16 << 10) {
        let column = |values: &[i64]| chunk.iter().map(|row| values[*row as usize]).collect::<Vec<i64>>();
        let stacks: Vec<i64> = if candidate.numbered {
            column(&rows.stack).iter().map(|stack| numbers[stack]).collect()
        } else {
            column(&rows.stack)
        };
        let kinds: StringArray = chunk
            .iter()
            .map(|row| Some(format!("process_cpu:kind:{}:cpu:nanoseconds", rows.kind[*row as usize])))
            .collect();
        let null_column = || arrow::array::new_null_array(&DataType::Utf8, chunk.len());
        let columns: Vec<ArrayRef> = vec![
            Arc::new(TimestampMicrosecondArray::from(column(&rows.time)).with_timezone("UTC")),
            Arc::new(Int64Array::from(column(&rows.series))),
            Arc::new(kinds),
            Arc::new(Int64Array::from(stacks)),
            Arc::new(Int64Array::from(column(&rows.value))),
            null_column(),
            null_column(),
        ];
        let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
        writer.write(&batch).unwrap();
    }
    let bytes: Bytes = writer.into_inner().unwrap().into();
    let size = bytes.len() + if candidate.numbered { sorted.len() * 8 } else { 0 };
    let kind = "process_cpu:kind:0:cpu:nanoseconds";
    let service = rows.service[0];
    let mut series_ids: Vec<i64> = (0..rows.series.len())
        .filter(|row| rows.service[*row] == service)
        .map(|row| rows.series[row])
        .collect();
    series_ids.sort_unstable();
    series_ids.dedup();
    let last = *rows.time.iter().max().unwrap();
    let times = [
        question(&bytes, kind, None, None),
        question(&bytes, kind, Some(&series_ids), None),
        question(&bytes, kind, Some(&series_ids), Some(last - 300_000_000)),
    ];
    println!(
        "| {} | {:.4} | {:.1} | {:.2} | {:.2} |",
        candidate.name,
        size as f64 / rows.value.len() as f64,
        times[0],
        times[1],
        times[2],
    );
}

/// Returns the shortest time of five runs of a query, in milliseconds. The query sums values by stack and skips pages
/// by their statistics.
fn question(bytes: &Bytes, kind: &str, series: Option<&[i64]>, min_time: Option<i64>) -> f64 {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let metadata = ArrowReaderMetadata::load(bytes, options).unwrap();
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let selection = select(&metadata, kind, series, min_time);
        let mask = ProjectionMask::leaves(metadata.parquet_schema(), [0, 1, 3, 4]);
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes.clone(), metadata.clone())
            .with_projection(mask)
            .with_row_selection(selection)
            .with_batch_size(8192)
            .build()
            .unwrap();
        let mut sums: hashbrown::HashMap<i64, i64> = hashbrown::HashMap::new();
        for batch in reader {
            let batch = batch.unwrap();
            let time = batch.column(0).as_primitive::<TimestampMicrosecondType>().values();
            let ids = batch.column(1).as_primitive::<Int64Type>().values();
            let stack = batch.column(2).as_primitive::<Int64Type>().values();
            let value = batch.column(3).as_primitive::<Int64Type>().values();
            for row in 0..batch.num_rows() {
                if min_time.is_none_or(|min_time| time[row] >= min_time)
                    && series.is_none_or(|selected| selected.contains(&ids[row]))
                {
                    *sums.entry(stack[row]).or_default() += value[row];
                }
            }
        }
        assert!(!sums.is_empty());
        best = best.min(start.elapsed().as_secs_f64() * 1000.0);
    }
    best
}

/// Selects the pages that may contain matching rows, according to their statistics.
fn select(metadata: &ArrowReaderMetadata, kind: &str, series: Option<&[i64]>, min_time: Option<i64>) -> RowSelection {
    let file = metadata.metadata();
    let mut ranges: Vec<RowSelector> = Vec::new();
    for group in 0..file.num_row_groups() {
        let rows = file.row_group(group).num_rows() as usize;
        let mut keep = vec![true; rows];
        let mut prune = |column: usize, keeps: &dyn Fn(&ColumnIndexMetaData, usize) -> bool| {
            let index = &file.column_index().unwrap()[group][column];
            let pages = file.offset_index().unwrap()[group][column].page_locations();
            for (page, location) in pages.iter().enumerate() {
                let end = pages.get(page + 1).map_or(rows, |next| next.first_row_index as usize);
                if !keeps(index, page) {
                    keep[location.first_row_index as usize..end].fill(false);
                }
            }
        };
        prune(2, &|index, page| match index {
            ColumnIndexMetaData::BYTE_ARRAY(index) => {
                let bound = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec).unwrap_or_default();
                bound(index.min_value(page)).as_slice() <= kind.as_bytes()
                    && kind.as_bytes() <= bound(index.max_value(page)).as_slice()
            }
            _ => true,
        });
        if let Some(selected) = series {
            prune(1, &|index, page| match index {
                ColumnIndexMetaData::INT64(index) => {
                    let (low, high) = (index.min_value(page).copied(), index.max_value(page).copied());
                    selected
                        .iter()
                        .any(|id| low.is_none_or(|low| low <= *id) && high.is_none_or(|high| *id <= high))
                }
                _ => true,
            });
        }
        if let Some(min_time) = min_time {
            prune(0, &|index, page| match index {
                ColumnIndexMetaData::INT64(index) => index.max_value(page).is_none_or(|high| *high >= min_time),
                _ => true,
            });
        }
        for run in keep.chunk_by(|left, right| left == right) {
            ranges.push(if run[0] {
                RowSelector::select(run.len())
            } else {
                RowSelector::skip(run.len())
            });
        }
    }
    RowSelection::from(ranges)
}

/// Measures two layouts of the samples as lists. The first has one row per profile with lists of stacks and values, the
/// second one row per series and stack with lists of times and values.
fn lists(rows: &Rows) {
    for (name, order) in [
        ("lists for each profile", by_time as Order),
        ("lists for each series and stack", by_stack),
    ] {
        let mut sorted: Vec<u32> = (0..rows.value.len() as u32).collect();
        sorted.sort_by_cached_key(|row| order(rows, *row as usize));
        let key = |row: &u32| {
            let key = order(rows, *row as usize);
            (key.0, key.1, key.2)
        };
        let integers = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
        let mut writer: Option<ArrowWriter<Vec<u8>>> = None;
        let groups: Vec<&[u32]> = sorted.chunk_by(|left, right| key(left) == key(right)).collect();
        for chunk in groups.chunks(256) {
            let list = |value: &dyn Fn(usize) -> i64| -> ArrayRef {
                let values = chunk
                    .iter()
                    .flat_map(|group| group.iter().map(|row| value(*row as usize)));
                let offsets = OffsetBuffer::<i32>::from_lengths(chunk.iter().map(|group| group.len()));
                let field = Arc::new(Field::new("element", DataType::Int64, false));
                Arc::new(ListArray::new(field, offsets, integers(values.collect()), None))
            };
            let heads =
                |part: fn((u8, i64, i64)) -> i64| integers(chunk.iter().map(|group| part(key(&group[0]))).collect());
            let batch = RecordBatch::try_from_iter([
                ("kind", heads(|key| i64::from(key.0))),
                ("series", heads(|key| key.1)),
                ("head", heads(|key| key.2)),
                ("inner", list(&|row| order(rows, row).3)),
                ("value", list(&|row| rows.value[row])),
            ])
            .unwrap();
            let writer = writer.get_or_insert_with(|| {
                let properties = zstd(WriterProperties::builder(), 3).build();
                ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap()
            });
            writer.write(&batch).unwrap();
        }
        let size = writer.unwrap().into_inner().unwrap().len();
        println!("| {name} | {:.4} | | | |", size as f64 / rows.value.len() as f64);
    }
}
