//! Parquet files of one head: sorted, compressed, synced.
//!
//! In: a head's partition and table. Out: a file under the table's folder and what the Delta log needs to know of it. A file that is
//! not committed is garbage without harm; its name tells whose it is ([`FileName`]).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::Schema;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::store::StoreError;
use crate::store::delta::{NewFile, commit, day_text};
use crate::store::head::Head;
use crate::store::schema::Table;

/// Rows of a row group: large enough for long runs, small enough that pruning by row group skips something.
const ROW_GROUP_ROWS: usize = 1 << 20;
/// Compression level: what follows 3 costs time and gains a few percent.
const ZSTD_LEVEL: i32 = 3;

/// Name of a file that a flush writes: `<last segment>-<attempt>-<writer>.parquet`.
#[derive(Debug, Clone)]
pub struct FileName {
    /// Last segment of the log that the file covers.
    pub segment: u64,
    /// Distinguishes attempts, so that no file is ever written twice.
    pub attempt: u32,
    /// Identity of the writer.
    pub writer: String,
}

impl FileName {
    fn text(&self) -> String {
        format!("{:012}-{}-{}.parquet", self.segment, self.attempt, self.writer)
    }

    /// The segment of a file name, when `writer` wrote the file.
    pub fn segment_of(name: &str, writer: &str) -> Option<u64> {
        let (segment, rest) = name.strip_suffix(".parquet")?.split_once('-')?;
        let (_, owner) = rest.split_once('-')?;
        if owner == writer { segment.parse().ok() } else { None }
    }
}

/// Writes all files of a table for a head; durable when it returns.
pub fn write_table(head: &Head, table: Table, folder: &Path, name: &FileName) -> Result<Vec<NewFile>, StoreError> {
    let mut files = Vec::new();
    for (tenant, day) in head.days() {
        files.extend(write_partition(head, table, folder, name, tenant, day)?);
    }
    Ok(files)
}

fn write_partition(
    head: &Head,
    table: Table,
    folder: &Path,
    name: &FileName,
    tenant: Arc<str>,
    day: i32,
) -> Result<Option<NewFile>, StoreError> {
    let relative = format!("tenant={tenant}/day={}/{}", day_text(day), name.text());
    let path = folder.join(&relative);
    let mut writer: Option<ArrowWriter<File>> = None;
    let failed = |reason: String| StoreError::Parquet {
        path: path.clone(),
        reason,
    };
    let stats = head
        .sorted(table, &tenant, day, |batch| {
            if writer.is_none() {
                writer = Some(create(&path, table, batch.schema())?);
            }
            match writer.as_mut() {
                Some(writer) => writer.write(batch).map_err(|error| error.to_string()),
                None => Ok(()),
            }
        })
        .map_err(|error| failed(error.to_string()))?;
    let Some(writer) = writer else {
        return Ok(None);
    };
    let file = writer.into_inner().map_err(|error| failed(error.to_string()))?;
    file.sync_all().map_err(StoreError::io("sync", &path))?;
    sync_folders(&path, folder).map_err(StoreError::io("sync the folder of", &path))?;
    let metadata = file.metadata().map_err(StoreError::io("read", &path))?;
    Ok(Some(NewFile {
        path: relative,
        size: metadata.len(),
        modified_ms: chrono::Utc::now().timestamp_millis(),
        tenant,
        day,
        stats,
    }))
}

fn create(path: &Path, table: Table, schema: Arc<Schema>) -> Result<ArrowWriter<File>, String> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    }
    let file = File::options()
        .write(true)
        .read(true)
        .create_new(true)
        .open(path)
        .map_err(|error| error.to_string())?;
    let properties = builder(table).map_err(|error| error.to_string())?.build();
    ArrowWriter::try_new(file, schema, Some(properties)).map_err(|error| error.to_string())
}

/// How a table's files are written. Dictionaries, the default, are smallest for every column of the samples (`layout_tests.rs` measures).
fn builder(table: Table) -> Result<WriterPropertiesBuilder, parquet::errors::ParquetError> {
    let schema = table.schema();
    // Partition columns are not in the files.
    let index = |name: &str| {
        schema
            .fields()
            .iter()
            .position(|field| field.name() == name)
            .map(|index| index as i32 - 2)
    };
    let sorted: &[&str] = match table {
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
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_sorting_columns(Some(order))
        .set_statistics_enabled(EnabledStatistics::None);
    for name in ["time", "series", "profile_type", "stack"] {
        if index(name).is_some() {
            builder = builder.set_column_statistics_enabled(ColumnPath::from(name), EnabledStatistics::Page);
        }
    }
    Ok(builder)
}

/// Syncs the folders from that of `path` up to `root`, so that the names of new partitions are durable.
fn sync_folders(path: &Path, root: &Path) -> std::io::Result<()> {
    let mut current: PathBuf = path.to_owned();
    while current != root {
        commit::sync_parent(&current)?;
        if !current.pop() {
            break;
        }
    }
    Ok(())
}

/// Removes files that `writer` wrote into `folder` but never committed: those of segments after `committed`. Returns how many.
pub fn remove_uncommitted(folder: &Path, writer: &str, committed: u64) -> Result<usize, StoreError> {
    let mut removed = 0;
    for tenant in folders(folder)? {
        for day in folders(&tenant)? {
            for entry in fs::read_dir(&day).map_err(StoreError::io("list", &day))? {
                let entry = entry.map_err(StoreError::io("list", &day))?;
                let name = entry.file_name();
                if name
                    .to_str()
                    .and_then(|name| FileName::segment_of(name, writer))
                    .is_some_and(|segment| segment > committed)
                {
                    fs::remove_file(entry.path()).map_err(StoreError::io("remove", &entry.path()))?;
                    removed += 1;
                }
            }
        }
    }
    Ok(removed)
}

/// Partition folders (`name=value`) in `folder`.
fn folders(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(StoreError::io("list", folder))? {
        let entry = entry.map_err(StoreError::io("list", folder))?;
        if entry.file_name().to_string_lossy().contains('=') && entry.path().is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
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
    }
}
