//! Writes the Parquet files of one head: sorted, compressed, synced.
//!
//! In: a partition of a head, and a table. Out: a file in the table's folder, and the description of the file for the
//! Delta log. A file that is not committed is harmless garbage. The name of a file contains its writer ([`FileName`]).

use std::fs::{self, File};
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::store::common::error::StoreError;
use crate::store::common::fault::{FaultPoint, Faults};
use crate::store::common::lifecycle::Lifecycle;
use crate::store::common::schema::Table;
use crate::store::flush::unsynced_files::UnsyncedFiles;
use crate::store::head::Head;
use crate::store::head::sorted::BatchError;
use crate::store::tables::bucket::Bucket;
use crate::store::tables::checksums::ChecksumWriter;
use crate::store::tables::delta::{NewFile, day_text};
use crate::store::tables::root::Root;
use crate::store::tables::stats::FileStats;
use alluvium_base::file;
use alluvium_profile::TenantId;

/// Size limit of the dictionary of profile ids in a row group, in bytes.
const ID_DICTIONARY_BYTES: usize = 16 << 20;

/// Name of a file that a flush writes: `<last segment>-<attempt>-<writer>.parquet`.
#[derive(Debug, Clone)]
pub(crate) struct FileName {
    /// Number of the last segment of the log that the flushed head covers.
    pub(crate) segment: u64,
    /// Number of the attempt. It differs for each attempt, so that no file is ever written twice.
    pub(crate) attempt: u32,
    /// Identity of the writer.
    pub(crate) writer: String,
}

impl FileName {
    fn text(&self) -> String {
        format!("{:012}-{}-{}.parquet", self.segment, self.attempt, self.writer)
    }

    /// Returns the segment in the name of a file that `writer` flushed; `None` for any other file.
    pub(crate) fn segment_of(path: &str, writer: &str) -> Option<u64> {
        let (segment, rest) = name_of(path).strip_suffix(".parquet")?.split_once('-')?;
        let (_, owner) = rest.split_once('-')?;
        if owner == writer { segment.parse().ok() } else { None }
    }

    /// Parses the name of a file. Returns `None` if no flush wrote the file.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let (segment, rest) = name_of(path).strip_suffix(".parquet")?.split_once('-')?;
        let (attempt, writer) = rest.split_once('-')?;
        uuid::Uuid::parse_str(writer).ok()?;
        Some(Self {
            segment: segment.parse().ok()?,
            attempt: attempt.parse().ok()?,
            writer: writer.to_owned(),
        })
    }
}

/// Returns the last part of a path.
pub(crate) fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Writes all files of a table for a head. The files are durable when the function returns. If the store is stopped
/// meanwhile, the function fails with `Closed`.
pub(crate) fn write_table(
    head: &Head,
    table: Table,
    root: &Root,
    name: &FileName,
    (faults, lifecycle): (&Faults, &Lifecycle),
) -> Result<Vec<NewFile>, StoreError> {
    let mut files = Vec::new();
    let mut unsynced = UnsyncedFiles::new(root, table, faults);
    for (tenant, day) in head.days() {
        if lifecycle.is_stopped() {
            return Err(StoreError::Closed);
        }
        let target = Target {
            table,
            root,
            tenant: &tenant,
            day,
        };
        files.extend(write_partition(head, target, name, faults, &mut unsynced)?);
    }
    unsynced.sync(|| lifecycle.is_stopped())?;
    Ok(files)
}

/// Writes the file of a partition. If the disk is full, a file for a bucket is built in memory instead; flushed files
/// are small enough for that.
fn write_partition(
    head: &Head,
    target: Target<'_>,
    name: &FileName,
    faults: &Faults,
    unsynced: &mut UnsyncedFiles<'_>,
) -> Result<Option<NewFile>, StoreError> {
    match write_by(head, target, (name, faults), Bucket::scratch, unsynced) {
        Err(error) if error.is_full() && target.root.bucket().is_some() => {
            tracing::warn!(error = %error, "the disk has no room for uploads to the bucket, using memory");
            write_by(head, target, (name, faults), |_| file::in_memory(), unsynced)
        }
        result => result,
    }
}

fn write_by(
    head: &Head,
    target: Target<'_>,
    (name, faults): (&FileName, &Faults),
    scratch: Scratch,
    unsynced: &mut UnsyncedFiles<'_>,
) -> Result<Option<NewFile>, StoreError> {
    let mut output: Option<Output> = None;
    let result = head.sorted(target.table, target.tenant, target.day, |batch| {
        let output = match output.as_mut() {
            Some(output) => output,
            None => output.insert(Output::create_by(target, &name.text(), FLUSHED, faults, scratch)?),
        };
        faults.encode(target.table, batch);
        output.write(batch)
    });
    let stats = result.map_err(|error| match error {
        BatchError::Receiver(error) => error,
        BatchError::Arrow(error) => StoreError::Parquet {
            path: target.root.name(&format!("{}/{}", target.table.name(), name.text())),
            reason: error.to_string(),
        },
    })?;
    output.map(|output| output.finish_later(stats, unsynced)).transpose()
}

/// The reason why a table of a head cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EncodeError {
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    /// Rows cannot be collected or written.
    #[error(transparent)]
    Rows(#[from] BatchError<ParquetError>),
}

/// Encodes all tables of a head and discards the output.
pub(crate) fn encode_nowhere(head: &Head, faults: &Faults) -> Result<(), EncodeError> {
    for (tenant, day) in head.days() {
        for table in Table::ALL {
            let properties = builder(table, FLUSHED)?.build();
            let mut writer: Option<ArrowWriter<std::io::Sink>> = None;
            let mut properties = Some(properties);
            head.sorted(table, &tenant, day, |batch| {
                let writer = if let Some(writer) = writer.as_mut() {
                    writer
                } else {
                    let new = ArrowWriter::try_new(std::io::sink(), batch.schema(), properties.take());
                    writer.insert(new?)
                };
                faults.encode(table, batch);
                writer.write(batch)
            })?;
            if let Some(writer) = writer {
                writer.close()?;
            }
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) table: Table,
    pub(crate) root: &'a Root,
    pub(crate) tenant: &'a TenantId,
    /// Partition: days since 1970.
    pub(crate) day: i32,
}

/// The effort that the writer spends on a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Compression level of zstd.
    pub(crate) zstd: i32,
    /// Maximum number of rows in a page. Longer pages compress better; shorter pages let readers skip in smaller steps.
    pub(crate) page_rows: usize,
    /// Maximum number of rows in a row group of the samples table. Many readers can skip only whole row groups, and
    /// each row group has its own dictionary.
    pub(crate) group_rows: usize,
    /// If true, the stacks of a series in the samples table are ordered by their number of rows, largest first, instead
    /// of by id. A row group ends where a series ends. A dictionary lists values in the order of their first
    /// occurrence. The first stack of a series occurs at the most times, in ascending order. So the dictionary of times
    /// of a row group is mostly in ascending order, and the dictionary indexes of one series in an hour fit in a byte.
    /// Both effects improve compression, at the cost of a second pass over the rows.
    pub(crate) stacks_by_rows: bool,
}

/// Effort for flushed files, which are merged soon.
pub(crate) const FLUSHED: Effort = Effort {
    zstd: 3,
    page_rows: 20_000,
    group_rows: 1 << 20,
    stacks_by_rows: false,
};
/// Effort for files that are merged from flushed files. They are merged again when their hour is over.
pub(crate) const MERGED: Effort = Effort {
    zstd: 3,
    page_rows: 20_000,
    group_rows: 64 << 10,
    stacks_by_rows: false,
};
/// Effort for files that stay: stacks, series, profiles, and samples of hours that are over. They are rarely written
/// and often read.
pub(crate) const SETTLED: Effort = Effort {
    zstd: 14,
    page_rows: 20_000,
    group_rows: 256 << 10,
    stacks_by_rows: true,
};

/// Creates the local file that is uploaded to a bucket when it is complete.
type Scratch = fn(&Bucket) -> io::Result<File>;

/// A Parquet file that is being written.
pub(crate) struct Output {
    path: PathBuf,
    relative: String,
    root: Root,
    table: Table,
    tenant: TenantId,
    day: i32,
    writer: ArrowWriter<ChecksumWriter>,
    faults: Faults,
}

impl Output {
    /// Creates a file. If the tables are in a folder, fails if the file exists already.
    pub(crate) fn create(target: Target<'_>, name: &str, effort: Effort, faults: &Faults) -> Result<Self, StoreError> {
        Self::create_by(target, name, effort, faults, Bucket::scratch)
    }

    fn create_by(
        target: Target<'_>,
        name: &str,
        effort: Effort,
        faults: &Faults,
        scratch: Scratch,
    ) -> Result<Self, StoreError> {
        let (table, tenant, day) = (target.table, target.tenant.clone(), target.day);
        let relative = format!("tenant={tenant}/day={}/{name}", day_text(day));
        let path = target.root.name(&format!("{}/{relative}", table.name()));
        let file = faults
            .run(FaultPoint::FileCreate(table), || match target.root {
                Root::Folder(_) => {
                    if let Some(folder) = path.parent() {
                        fs::create_dir_all(folder)?;
                    }
                    File::options().write(true).read(true).create_new(true).open(&path)
                }
                // The file is uploaded to the bucket when it is complete.
                Root::Bucket(bucket) => scratch(bucket),
            })
            .map_err(StoreError::io("create", &path))?;
        let full = table.schema();
        let columns: Vec<usize> = (2..full.fields().len()).collect();
        let writer = full
            .project(&columns)
            .map_err(|error| error.to_string())
            .and_then(|schema| {
                let properties = builder(table, effort).map_err(|error| error.to_string())?.build();
                ArrowWriter::try_new(ChecksumWriter::new(file), Arc::new(schema), Some(properties))
                    .map_err(|error| error.to_string())
            })
            .map_err(|reason| StoreError::Parquet {
                path: path.clone(),
                reason,
            })?;
        Ok(Self {
            path,
            relative,
            root: target.root.clone(),
            table,
            tenant,
            day,
            writer,
            faults: faults.clone(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds rows, which have the table's schema without the partition columns.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), StoreError> {
        self.faults
            .check(FaultPoint::FileWrite(self.table))
            .map_err(StoreError::io("write", &self.path))?;
        self.writer
            .write(batch)
            .map_err(|error| parquet_error(&self.path, &error))
    }

    /// Returns the memory, in bytes, of the rows that are not in the file yet.
    pub(crate) fn held_bytes(&self) -> usize {
        self.writer.memory_size()
    }

    /// Writes the rows that are not in the file yet. Later rows go to another row group.
    pub(crate) fn end_group(&mut self) -> Result<(), StoreError> {
        self.writer.flush().map_err(|error| parquet_error(&self.path, &error))
    }

    /// Ends the file. The file and its name are durable when the function returns.
    pub(crate) fn finish(self, stats: FileStats) -> Result<NewFile, StoreError> {
        let faults = self.faults.clone();
        let mut unsynced = UnsyncedFiles::new(&self.root.clone(), self.table, &faults);
        let file = self.finish_later(stats, &mut unsynced)?;
        unsynced.sync(|| false)?;
        Ok(file)
    }

    /// Ends the file. The file and its name are durable once `unsynced` is synced.
    fn finish_later(self, stats: FileStats, unsynced: &mut UnsyncedFiles<'_>) -> Result<NewFile, StoreError> {
        let (path, faults, table) = (self.path, self.faults, self.table);
        faults
            .check(FaultPoint::FileWrite(table))
            .map_err(StoreError::io("write", &path))?;
        let summed = ChecksumWriter::finish(self.writer).map_err(|error| parquet_error(&path, &error))?;
        let (file, size, checksum) = summed.into_parts();
        faults.done(FaultPoint::FileWrite(table));
        unsynced.add(&self.relative, file, size)?;
        Ok(NewFile {
            path: self.relative,
            size,
            modified_ms: chrono::Utc::now().timestamp_millis(),
            tenant: self.tenant,
            day: self.day,
            stats,
            checksum: Some(checksum),
        })
    }
}

/// Converts an error of the Parquet writer. An error of the disk is not the fault of the data, so it becomes an I/O
/// error. Otherwise each flush to a full disk would search its records for a record that cannot be encoded.
fn parquet_error(path: &Path, error: &ParquetError) -> StoreError {
    if let ParquetError::External(source) = error
        && let Some(source) = source.downcast_ref::<io::Error>()
    {
        return StoreError::io("write", path)(io::Error::new(source.kind(), source.to_string()));
    }
    StoreError::Parquet {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

/// Returns the Parquet writer properties for a table. All columns use dictionary encoding, the default. It is the
/// smallest encoding for every column of the samples; `layout_tests.rs` measures this.
pub(crate) fn builder(table: Table, effort: Effort) -> Result<WriterPropertiesBuilder, ParquetError> {
    let schema = table.schema();
    // Partition columns are not in the files.
    let index = |name: &str| {
        schema
            .fields()
            .iter()
            .position(|field| field.name() == name)
            .map(|index| index as i32 - 2)
    };
    // The profiles table has few rows. With small row groups, the dictionaries of profile ids would be most of the
    // file.
    let group_rows = match table {
        Table::Samples => effort.group_rows,
        _ => FLUSHED.group_rows,
    };
    let sorted: &[&str] = match table {
        Table::Samples if effort.stacks_by_rows => &["profile_type", "series"],
        Table::Samples => &["profile_type", "series", "stack", "time"],
        Table::Profiles => &["profile_type", "series", "time"],
        Table::Stacks => &["stack"],
        Table::Series => &["series"],
    };
    let order = sorted
        .iter()
        .filter_map(|name| index(name))
        .map(|column_idx| SortingColumn {
            column_idx,
            descending: false,
            nulls_first: false,
        })
        .collect();
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("alluvium ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(effort.zstd)?))
        .set_max_row_group_row_count(Some(group_rows))
        .set_data_page_row_count_limit(effort.page_rows)
        .set_sorting_columns(Some(order))
        .set_statistics_enabled(EnabledStatistics::None);
    // Every profile has an id of its own, and all its types share the id. A dictionary stores each id once, however
    // large the dictionary becomes.
    if index("profile_id").is_some() {
        builder = builder.set_column_dictionary_page_size_limit(ColumnPath::from("profile_id"), ID_DICTIONARY_BYTES);
    }
    for name in ["time", "series", "profile_type", "stack"] {
        if index(name).is_some() {
            builder = builder.set_column_statistics_enabled(ColumnPath::from(name), EnabledStatistics::Page);
        }
    }
    Ok(builder)
}

/// Selects uncommitted files of flushes.
#[derive(Debug)]
pub(crate) enum Uncommitted {
    /// Files of these attempts of this process.
    Attempts(RangeInclusive<u32>),
    /// Files that earlier processes of the data folder wrote.
    Earlier,
}

/// Removes files of `table` that `writer` wrote but never committed, that is, files of segments after `committed`.
/// Returns the number of removed files.
///
/// In a bucket these files stay until the vacuum deletes them by their age, because a commit that adds them may still
/// appear. A put sometimes succeeds after its client has given up. The files may also belong to another process that
/// runs on a copy of the data folder, because that process has the same writer identity.
pub(crate) fn remove_uncommitted(
    root: &Root,
    table: Table,
    (writer, committed): (&str, u64),
    selection: &Uncommitted,
) -> Result<usize, StoreError> {
    if root.bucket().is_some() {
        return Ok(0);
    }
    let uncommitted = |path: &str| {
        FileName::parse(path).is_some_and(|name| {
            let is_meant = match selection {
                Uncommitted::Attempts(attempts) => attempts.contains(&name.attempt),
                Uncommitted::Earlier => true,
            };
            is_meant && name.writer == writer && name.segment > committed
        })
    };
    let files = root.parquet_files(table, uncommitted)?;
    for file in &files {
        root.remove(&file.path)
            .map_err(StoreError::io("remove", &root.name(&file.path)))?;
    }
    Ok(files.len())
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod layout;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_segment_to_its_writer_only() {
        let writer = uuid::Uuid::new_v4().to_string();
        let name = FileName {
            segment: 42,
            attempt: 3,
            writer: writer.clone(),
        };
        assert_eq!(FileName::segment_of(&name.text(), &writer), Some(42));
        assert_eq!(FileName::segment_of(&name.text(), "other"), None);
        assert_eq!(FileName::segment_of("part-00000.parquet", &writer), None);
        assert_eq!(FileName::parse(&name.text()).map(|name| name.segment), Some(42));
        assert!(FileName::parse(&format!("c1-0-abc-{writer}.parquet")).is_none());
    }
}
