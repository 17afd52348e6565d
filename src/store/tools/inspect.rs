//! Checks a data folder for damage and leftovers, and measures its size. Locks and changes nothing.
//!
//! In: the folder, which a running server may use. Out: findings, each with the file and a severity, or sizes. The
//! check compares each file with its checksum in the log of its table. A file without a checksum is decoded completely
//! instead. The stacks and series to which rows refer must exist.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::ChunkReader;

use crate::store::common::error::StoreError;
use crate::store::common::lifecycle;
use crate::store::common::schema::Table;
use crate::store::flush::files::name_of;
use crate::store::log::wal;
use crate::store::maintenance::deletion::request;
use crate::store::maintenance::deletion::request::Deletion;
use crate::store::maintenance::merge::rewrite::MergedName;
use crate::store::maintenance::retention::vacuum;
use crate::store::maintenance::retention::vacuum::Removals;
use crate::store::open::folder;
use crate::store::tables::checksums::hash_of;
use crate::store::tables::delta::log_files::is_temporary;
use crate::store::tables::delta::sums::Extent;
use crate::store::tables::delta::{DeltaTable, sums};
use crate::store::tables::references;
use crate::store::tables::root::{DataLocation, Root};
use crate::store::tables::snapshot::FileEntry;
use crate::store::tools::check_log::{check_lineage, check_log};

pub use crate::store::tools::findings::{Checked, Finding, Severity};

/// Number and sizes of files, for example of one table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of files that were counted.
    pub files: u64,
    /// Number of rows of the files; 0 for files that are not live and for the log.
    pub rows: u64,
    /// Number of bytes of the files.
    pub bytes: u64,
}

/// Sizes of a data folder.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Sizes by the name of the table.
    pub tables: BTreeMap<&'static str, Size>,
    /// Sizes over all tables, by tenant and day.
    pub days: BTreeMap<(String, String), Size>,
    /// Sizes by the merge level of the files.
    pub levels: BTreeMap<u8, Size>,
    /// Sizes of the files that are not live and not deleted yet.
    pub dead: Size,
    /// Number and bytes of the segments of the log.
    pub log: Size,
    /// Version of the layout of the data folder.
    pub layout: u32,
}

impl Stats {
    /// Returns the bytes of all live files per row of the samples table; `None` if that table has no rows.
    pub(crate) fn bytes_per_value(&self) -> Option<f64> {
        let values = self.tables.get(Table::Samples.name())?.rows;
        let bytes: u64 = self.tables.values().map(|size| size.bytes).sum();
        (values > 0).then(|| bytes as f64 / values as f64)
    }
}

impl Size {
    fn add(&mut self, file: &FileEntry) {
        self.files += 1;
        self.rows += file.rows;
        self.bytes += file.size;
    }
}

/// Checks every file of a data folder.
pub fn check<'a>(location: impl Into<DataLocation<'a>>) -> Result<Checked, StoreError> {
    let location = location.into();
    run_on_thread(|| check_location(location))
}

/// Measures the sizes of the tables and of the log in a data folder.
pub fn stats<'a>(location: impl Into<DataLocation<'a>>) -> Result<Stats, StoreError> {
    let location = location.into();
    run_on_thread(|| read_stats(location))
}

/// Runs `work` on a thread outside of any runtime. Inside a runtime, `object_store` would move its work to that
/// runtime.
pub(crate) fn run_on_thread<T: Send>(work: impl FnOnce() -> Result<T, StoreError> + Send) -> Result<T, StoreError> {
    std::thread::scope(|threads| {
        let result = threads.spawn(work).join();
        result.unwrap_or_else(|panic| Err(StoreError::Panicked(lifecycle::message(panic.as_ref()))))
    })
}

fn check_location(location: DataLocation<'_>) -> Result<Checked, StoreError> {
    let dir = location.dir;
    fs::read_dir(dir).map_err(StoreError::io("read the data folder", dir))?;
    let mut checked = Checked::default();
    let writer = match folder::check_version(dir).and_then(|_| folder::writer_of(dir)) {
        Ok(writer) => writer.unwrap_or_default(),
        Err(error) => {
            checked.add(Severity::Error, "folder", dir, dir, error.to_string());
            return Ok(checked);
        }
    };
    check_log(dir, &mut checked)?;
    let root = location.root()?;
    check_lineage(dir, &root, &writer, &mut checked)?;
    let mut live = LiveFiles::default();
    for table in Table::ALL {
        check_table(dir, &root, table, &writer, &mut live, &mut checked)?;
    }
    check_references(dir, &root, &live, &mut checked)?;
    for path in request::pending(dir)? {
        // Any other error means that a running server has carried out the request meanwhile.
        if let Err(error @ StoreError::Damaged { .. }) = Deletion::read(&path) {
            checked.add(Severity::Error, "request", dir, &path, error.to_string());
        }
    }
    for path in leftovers(dir)? {
        let detail = "it is an unfinished write; nothing refers to it".to_owned();
        checked.add(Severity::Info, "leftover", dir, &path, detail);
    }
    checked.findings.sort_by_key(|finding| finding.severity);
    Ok(checked)
}

/// Live files, by the result of their check.
#[derive(Default)]
struct LiveFiles {
    intact: Vec<FileEntry>,
    damaged: HashSet<String>,
}

fn check_table(
    dir: &Path,
    root: &Root,
    table: Table,
    writer: &str,
    live_files: &mut LiveFiles,
    checked: &mut Checked,
) -> Result<(), StoreError> {
    let folder = root.name(table.name());
    if !root.has_log(table)? {
        if !root.parquet_files(table, |_| true)?.is_empty() || folder.exists() {
            let detail = "the table has no log".to_owned();
            checked.add(Severity::Error, "table-log", dir, &folder, detail);
        }
        return Ok(());
    }
    // Logs in a bucket have no checksums of this store.
    if let Root::Folder(_) = root {
        for fault in sums::check_log_files(&folder.join("_delta_log"), Extent::Whole)?.faults {
            let severity = if fault.is_needed {
                Severity::Error
            } else {
                Severity::Warning
            };
            checked.add(severity, "table-log", dir, &fault.path, fault.reason);
        }
    }
    let open = || DeltaTable::open(root, table).and_then(|opened| Ok((opened.files()?, opened)));
    let (files, mut opened) = match open() {
        Ok(live_files) => live_files,
        Err(error) => {
            // `sums::check_log_files` has already reported a damaged file of the log.
            if !matches!(error, StoreError::Damaged { .. }) {
                checked.add(Severity::Error, "table-log", dir, &folder, error.to_string());
            }
            return Ok(());
        }
    };
    let mut live: HashSet<String> = files.iter().map(|file| file.path.clone()).collect();
    for file in &files {
        checked.files += 1;
        checked.bytes += file.size;
        let Some((kind, detail)) = find_fault(root, file) else {
            live_files.intact.push(file.clone());
            continue;
        };
        live_files.damaged.insert(file.path.clone());
        // A running server may have replaced and deleted the file meanwhile.
        opened.reload()?;
        live = opened.files()?.into_iter().map(|file| file.path).collect();
        if live.contains(&file.path) {
            checked.add(Severity::Error, kind, dir, &root.name(&file.path), detail);
        }
    }
    let live: HashSet<&str> = live.iter().map(String::as_str).collect();
    for dead in vacuum::dead_files(root, table, &live, &mut Removals::default())? {
        let is_own = name_of(&dead.path).contains(writer) && !writer.is_empty();
        let (kind, detail) = match dead.removed {
            Some(_) => ("replaced", "the table removed it; it waits for deletion".to_owned()),
            None if is_own => ("uncommitted", "it was never committed".to_owned()),
            None => ("orphan", "no table lists it".to_owned()),
        };
        checked.add(Severity::Info, kind, dir, &root.name(&dead.path), detail);
    }
    Ok(())
}

/// Checks that the names (stacks and series) to which rows refer exist. The tables of names are listed after the tables
/// of rows, because a running server writes names before the rows that need them, and removes names after these rows.
fn check_references(dir: &Path, root: &Root, live: &LiveFiles, checked: &mut Checked) -> Result<(), StoreError> {
    let files_of = |table| {
        if root.has_log(table)? {
            DeltaTable::open(root, table)?.files()
        } else {
            Ok(Vec::new())
        }
    };
    let mut names = Vec::new();
    for (table, _) in references::NAMES {
        // `check_table` has reported the damage of the table's log.
        let Ok(files) = files_of(table) else {
            return Ok(());
        };
        names.extend(files);
    }
    for fault in references::follow(root, &live.intact, &names, &live.damaged) {
        // A running server may have replaced the file meanwhile.
        if files_of(fault.file.table)?
            .iter()
            .any(|file| file.path == fault.file.path)
        {
            let path = root.name(&fault.file.path);
            checked.add(Severity::Error, fault.kind, dir, &path, fault.detail);
        }
    }
    Ok(())
}

/// Returns the kind and the description of a fault of a live file, if any.
fn find_fault(root: &Root, file: &FileEntry) -> Option<(&'static str, String)> {
    let wrong_size = |size: u64| {
        let kind = if size < file.size {
            "file-truncated"
        } else {
            "file-damaged"
        };
        (size != file.size).then(|| (kind, format!("it has {size} bytes, but the table says {}", file.size)))
    };
    let missing = || ("file-missing", "the table names it, but it does not exist".to_owned());
    match root {
        Root::Folder(folder) => match File::open(folder.join(&file.path)) {
            Ok(open) => {
                let size = open.metadata().map_or(0, |metadata| metadata.len());
                wrong_size(size).or_else(|| find_content_fault(file, &open, open.try_clone()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(missing()),
            Err(error) => Some(("file-unreadable", error.to_string())),
        },
        Root::Bucket(_) => match root.read(&file.path) {
            Ok(bytes) => {
                wrong_size(bytes.len() as u64).or_else(|| find_content_fault(file, bytes.as_ref(), Ok(bytes.clone())))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(missing()),
            Err(error) => Some(("file-unreadable", error.to_string())),
        },
    }
}

/// Compares the bytes of a file with their checksum. Without a checksum, decodes the file instead.
fn find_content_fault<C: ChunkReader + 'static>(
    file: &FileEntry,
    bytes: impl Read,
    chunks: std::io::Result<C>,
) -> Option<(&'static str, String)> {
    let damaged = |reason: String| Some(("file-damaged", reason));
    if let Some(expected) = file.checksum {
        return match hash_of(bytes) {
            Ok(hash) if hash == expected.file => None,
            Ok(_) => damaged("its bytes differ from the bytes that were written".to_owned()),
            Err(error) => Some(("file-unreadable", error.to_string())),
        };
    }
    let chunks = match chunks {
        Ok(chunks) => chunks,
        Err(error) => return Some(("file-unreadable", error.to_string())),
    };
    let opened =
        ParquetRecordBatchReaderBuilder::try_new(chunks).and_then(|builder| builder.with_batch_size(1024).build());
    let reader = match opened {
        Ok(reader) => reader,
        Err(error) => return damaged(error.to_string()),
    };
    let mut rows = 0;
    for batch in reader {
        match batch {
            Ok(batch) => rows += batch.num_rows() as u64,
            Err(error) => return damaged(error.to_string()),
        }
    }
    (rows != file.rows).then(|| {
        (
            "file-damaged",
            format!("it has {rows} rows, but the table says {}", file.rows),
        )
    })
}

/// Returns the files that have temporary names.
pub(crate) fn leftovers(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut folders = vec![dir.to_owned(), dir.join("deletions")];
    folders.extend(
        Table::ALL
            .iter()
            .map(|table| dir.join("tables").join(table.name()).join("_delta_log")),
    );
    let mut paths = Vec::new();
    for folder in folders.iter().filter(|folder| folder.exists()) {
        for entry in fs::read_dir(folder).map_err(StoreError::io("list", folder))? {
            let entry = entry.map_err(StoreError::io("list", folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_temporary(&name) {
                paths.push(entry.path());
            }
        }
    }
    paths.sort();
    Ok(paths)
}

fn read_stats(location: DataLocation<'_>) -> Result<Stats, StoreError> {
    let dir = location.dir;
    fs::read_dir(dir).map_err(StoreError::io("read the data folder", dir))?;
    let layout = folder::check_version(dir)?.unwrap_or(0);
    let root = location.root()?;
    let mut stats = Stats {
        layout,
        ..Stats::default()
    };
    for table in Table::ALL {
        if !root.has_log(table)? {
            continue;
        }
        let opened = DeltaTable::open(&root, table)?;
        stats.layout = stats.layout.max(opened.layout_version().unwrap_or(0));
        let files = opened.files()?;
        let size = stats.tables.entry(table.name()).or_default();
        files.iter().for_each(|file| size.add(file));
        for file in &files {
            let day = crate::store::tables::delta::day_text(file.day);
            stats.days.entry((file.tenant.to_string(), day)).or_default().add(file);
            stats
                .levels
                .entry(MergedName::of(&file.path).level)
                .or_default()
                .add(file);
        }
        let live: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        for dead in vacuum::dead_files(&root, table, &live, &mut Removals::default())? {
            stats.dead.files += 1;
            stats.dead.bytes += dead.size;
        }
    }
    let log = dir.join("wal");
    if log.exists() {
        for number in wal::segments(&log)? {
            if let Ok(metadata) = fs::metadata(wal::segment_path(&log, number)) {
                stats.log.files += 1;
                stats.log.bytes += metadata.len();
            }
        }
    }
    Ok(stats)
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
