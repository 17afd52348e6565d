//! Files in the Delta log: add actions with statistics, and the list of live files read back from the log.
//!
//! Statistics are written for the columns by which readers can skip files. The protocol requires times as text with
//! millisecond resolution. The smallest time is rounded down and the largest up, so that no reader skips a file that it
//! needs.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, MapBuilder, MapFieldNames, StringArray, StringBuilder, StructArray,
};
use arrow::datatypes::{Field, Fields, Int64Type, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use chrono::{DateTime, NaiveDate, SecondsFormat};

use crate::store::common::schema::Table;
use crate::store::common::schema::column::{PROFILE_TYPE, SERIES, STACK, TIME};
use crate::store::tables::snapshot::{Checksum, FileEntry, Tail};
use crate::store::tables::stats::{Bounds, FileStats};
use alluvium_profile::{SeriesId, TenantError, TenantId};

/// Statistics member that holds the XXH3 of the file's bytes as 16 hexadecimal digits. Other readers skip unknown
/// members.
const CHECKSUM: &str = "alluviumXxh3";
/// Statistics member that holds the start of the file's tail, and the XXH3 of the tail as 16 hexadecimal digits.
const TAIL_STATISTIC: &str = "alluviumTail";

/// A file that was written and is about to be committed.
#[derive(Debug, Clone)]
pub(crate) struct NewFile {
    /// Path relative to the table's folder.
    pub(crate) path: String,
    pub(crate) size: u64,
    /// Time of the last modification in milliseconds since 1970.
    pub(crate) modified_ms: i64,
    pub(crate) tenant: TenantId,
    /// Partition: days since 1970.
    pub(crate) day: i32,
    /// Row count and bounds of the columns.
    pub(crate) stats: FileStats,
    /// Checksums of the file's bytes, if they were computed during writing.
    pub(crate) checksum: Option<Checksum>,
}

impl NewFile {
    /// Returns the file as readers see it.
    pub(crate) fn entry(&self, table: Table) -> FileEntry {
        FileEntry {
            table,
            path: format!("{}/{}", table.name(), self.path),
            size: self.size,
            rows: self.stats.rows,
            tenant: self.tenant.clone(),
            day: self.day,
            time: self.stats.time,
            profile_type: self.stats.profile_type.clone(),
            series: self.stats.series,
            checksum: self.checksum,
        }
    }
}

/// The reason why the metadata of a scan cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScanError {
    #[error("the scan has no text column `{0}`")]
    NoTextColumn(&'static str),
    #[error("the scan has no column `{0}`")]
    NoColumn(&'static str),
    #[error("`{column}` is not {expected}")]
    Type {
        column: &'static str,
        /// The expected type, with its article.
        expected: &'static str,
    },
    #[error("file `{0}` has no tenant")]
    NoTenant(String),
    #[error("file `{file}`: {source}")]
    Tenant { file: String, source: TenantError },
    #[error("file `{0}` has no day")]
    NoDay(String),
}

/// Returns a flag for each row of a batch: true if the row is a live file with a path in `paths`. The batch is scan
/// metadata of delta_kernel. The paths have the form of [`FileEntry::path`].
pub(crate) fn select(
    table: Table,
    batch: &RecordBatch,
    selected: &[bool],
    paths: &HashSet<String>,
) -> Result<Vec<bool>, ScanError> {
    let path = batch
        .column_by_name("path")
        .and_then(|column| column.as_string_opt::<i32>())
        .ok_or(ScanError::NoTextColumn("path"))?;
    Ok((0..batch.num_rows())
        .map(|row| {
            selected.get(row).copied().unwrap_or(true)
                && paths.contains(&format!("{}/{}", table.name(), unescape(path.value(row))))
        })
        .collect())
}

/// Returns the metadata of one file in the form that `Transaction::add_files` accepts.
pub(crate) fn add_batch(file: &NewFile) -> Result<RecordBatch, ArrowError> {
    let names = MapFieldNames {
        entry: "key_value".to_owned(),
        key: "key".to_owned(),
        value: "value".to_owned(),
    };
    let mut partition = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    for (name, value) in [("tenant", file.tenant.to_string()), ("day", day_text(file.day))] {
        partition.keys().append_value(name);
        partition.values().append_value(value);
    }
    partition.append(true)?;
    let partition: ArrayRef = Arc::new(partition.finish());
    let stats: ArrayRef = Arc::new(stats_array(&file.stats, file.checksum)?);
    let integer = |value: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("path", Arc::new(StringArray::from(vec![file.path.as_str()])), false),
        ("partitionValues", partition, false),
        ("size", integer(file.size as i64), false),
        ("modificationTime", integer(file.modified_ms), false),
        ("stats", stats, true),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array, nullable)| Field::new(*name, array.data_type().clone(), *nullable))
        .collect();
    let arrays = columns.into_iter().map(|(_, array, _)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

fn stats_array(stats: &FileStats, checksum: Option<Checksum>) -> Result<StructArray, ArrowError> {
    let mut columns: Vec<(&str, ArrayRef, ArrayRef)> = Vec::new();
    let integers = |value: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
    let texts = |value: String| -> ArrayRef { Arc::new(StringArray::from(vec![value])) };
    if let Some(time) = stats.time {
        let min = time.min.div_euclid(1_000);
        let max = time.max.saturating_add(999).div_euclid(1_000);
        columns.push((TIME, texts(time_text(min)), texts(time_text(max))));
    }
    if let Some(types) = &stats.profile_type {
        columns.push((PROFILE_TYPE, texts(types.min.to_string()), texts(types.max.to_string())));
    }
    if let Some(series) = stats.series {
        columns.push((SERIES, integers(series.min.0), integers(series.max.0)));
    }
    if let Some(stacks) = stats.stack {
        columns.push((STACK, integers(stacks.min.0), integers(stacks.max.0)));
    }
    let zeros = columns.iter().map(|(name, ..)| (*name, integers(0))).collect();
    let low = columns.iter().map(|(name, low, _)| (*name, low.clone())).collect();
    let high = columns.iter().map(|(name, _, high)| (*name, high.clone())).collect();
    let mut parts: Vec<(&str, ArrayRef)> = vec![
        ("numRecords", integers(stats.rows as i64)),
        ("nullCount", Arc::new(structure(zeros)?)),
        ("minValues", Arc::new(structure(low)?)),
        ("maxValues", Arc::new(structure(high)?)),
    ];
    if let Some(checksum) = checksum {
        parts.push((CHECKSUM, texts(format!("{:016x}", checksum.file))));
        if let Some(tail) = checksum.tail {
            parts.push((TAIL_STATISTIC, texts(format!("{}-{:016x}", tail.start, tail.hash))));
        }
    }
    structure(parts)
}

fn structure(columns: Vec<(&str, ArrayRef)>) -> Result<StructArray, ArrowError> {
    let fields: Fields = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
        .collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    StructArray::try_new_with_length(fields, arrays, None, 1)
}

/// Returns the live files from the rows that `selected` marks. The batch is scan metadata of delta_kernel with the
/// columns `path`, `size`, `stats` and `fileConstantValues`.
pub(crate) fn entries(table: Table, batch: &RecordBatch, selected: &[bool]) -> Result<Vec<FileEntry>, ScanError> {
    let column = |name: &'static str| batch.column_by_name(name).ok_or(ScanError::NoColumn(name));
    let type_error = |column: &'static str, expected: &'static str| ScanError::Type { column, expected };
    let text = |name: &'static str| {
        let column = column(name)?.as_string_opt::<i32>();
        column.ok_or_else(|| type_error(name, "text"))
    };
    let path = text("path")?;
    let size = column("size")?
        .as_primitive_opt::<Int64Type>()
        .ok_or_else(|| type_error("size", "a number"))?;
    let stats = text("stats")?;
    let constants = column("fileConstantValues")?
        .as_struct_opt()
        .ok_or_else(|| type_error("fileConstantValues", "a struct"))?;
    let partition = constants
        .column_by_name("partitionValues")
        .and_then(|array| array.as_map_opt())
        .ok_or_else(|| type_error("partitionValues", "a map"))?;
    let mut files = Vec::new();
    for row in 0..batch.num_rows() {
        if !selected.get(row).copied().unwrap_or(true) {
            continue;
        }
        let values = partition.value(row);
        let value_of = |name: &str| {
            let keys = values.column(0).as_string_opt::<i32>()?;
            let texts = values.column(1).as_string_opt::<i32>()?;
            (0..values.len())
                .find(|index| keys.value(*index) == name)
                .map(|index| texts.value(index).to_owned())
        };
        let name = path.value(row);
        let file = || name.to_owned();
        let tenant = value_of("tenant").ok_or_else(|| ScanError::NoTenant(file()))?;
        let tenant = tenant
            .parse()
            .map_err(|source| ScanError::Tenant { file: file(), source })?;
        let day = value_of("day")
            .and_then(|day| parse_day(&day))
            .ok_or_else(|| ScanError::NoDay(file()))?;
        let mut entry = FileEntry {
            table,
            path: format!("{}/{}", table.name(), unescape(name)),
            size: size.value(row).max(0) as u64,
            rows: 0,
            tenant,
            day,
            time: None,
            profile_type: None,
            series: None,
            checksum: None,
        };
        if !stats.is_null(row) {
            read_stats(stats.value(row), &mut entry);
        }
        files.push(entry);
    }
    Ok(files)
}

/// Adds the statistics of a file. Statistics are optional, so unreadable statistics are ignored.
fn read_stats(text: &str, entry: &mut FileEntry) {
    let Ok(stats) = serde_json::from_str::<serde_json::Value>(text) else {
        return;
    };
    let range = |name: &str| Some((stats.get("minValues")?.get(name)?, stats.get("maxValues")?.get(name)?));
    entry.rows = stats.get("numRecords").and_then(serde_json::Value::as_u64).unwrap_or(0);
    let text = |name: &str| stats.get(name).and_then(serde_json::Value::as_str);
    let tail = || {
        let (start, hash) = text(TAIL_STATISTIC)?.split_once('-')?;
        Some(Tail {
            start: start.parse().ok()?,
            hash: u64::from_str_radix(hash, 16).ok()?,
        })
    };
    let file_hash = text(CHECKSUM).and_then(|text| u64::from_str_radix(text, 16).ok());
    entry.checksum = file_hash.map(|file| Checksum { file, tail: tail() });
    entry.series =
        range(SERIES).and_then(|(min, max)| Some(Bounds::new(SeriesId(min.as_i64()?), SeriesId(max.as_i64()?))));
    entry.profile_type =
        range(PROFILE_TYPE).and_then(|(min, max)| Some(Bounds::new(min.as_str()?.into(), max.as_str()?.into())));
    // Another writer may have truncated the largest time to milliseconds.
    let micros = |value: &serde_json::Value| {
        DateTime::parse_from_rfc3339(value.as_str()?)
            .ok()
            .map(|time| time.timestamp_micros())
    };
    entry.time = range(TIME).and_then(|(min, max)| Some(Bounds::new(micros(min)?, micros(max)?.saturating_add(999))));
}

/// Returns a day in the form of paths, such as `2026-11-21`.
pub(crate) fn day_text(day: i32) -> String {
    // The fallback is for days that chrono cannot represent, about 262,000 years away. They do not occur in practice.
    NaiveDate::from_epoch_days(day).map_or_else(|| day.to_string(), |date| date.to_string())
}

fn parse_day(text: &str) -> Option<i32> {
    text.parse::<NaiveDate>().ok().map(|date| date.to_epoch_days())
}

fn time_text(time_ms: i64) -> String {
    DateTime::from_timestamp_millis(time_ms).map_or_else(
        || time_ms.to_string(),
        |time| time.to_rfc3339_opts(SecondsFormat::Millis, true),
    )
}

/// Decodes a path of the log, where paths are URL-encoded.
pub(crate) fn unescape(path: &str) -> String {
    percent_encoding::percent_decode_str(path)
        .decode_utf8_lossy()
        .into_owned()
}
