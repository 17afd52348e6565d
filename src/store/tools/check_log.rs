//! Checks the write-ahead log of a data folder, and whether tables and log belong together. Changes nothing.

use std::path::Path;

use crate::store::common::error::StoreError;
use crate::store::common::schema::Table;
use crate::store::flush::commits;
use crate::store::flush::commits::Remembered;
use crate::store::flush::lineage::Lineage;
use crate::store::log::reader::UnreadableBytes;
use crate::store::log::{damaged, reader, record, wal};
use crate::store::rules::relabel_rules::KnownRules;
use crate::store::tables::delta::DeltaTable;
use crate::store::tables::root::Root;
use crate::store::tools::findings::{Checked, Severity};

/// Number of times that tables and log are read before a contradiction is reported, because a running server changes
/// both.
const MAX_ATTEMPTS: usize = 10;

/// Checks the segments of the log, and reports the damaged records that were moved to files of their own.
pub(crate) fn check_log(dir: &Path, checked: &mut Checked) -> Result<(), StoreError> {
    let folder = dir.join("wal");
    if !folder.exists() {
        return Ok(());
    }
    for path in damaged::list(&folder)? {
        let detail = format!("a record of the log cannot be used: {}", damaged::reason(&path));
        checked.add(Severity::Error, "record-aside", dir, &path, detail);
    }
    for number in wal::segments(&folder)? {
        let path = wal::segment_path(&folder, number);
        let Some(mut segment) = Segment::read(&path)? else {
            continue;
        };
        if wal::segments(&folder)?.last().is_some_and(|last| *last > number) {
            // A running server may have ended the segment since it was read.
            if segment.ending.torn_bytes > 0 {
                let Some(reread) = Segment::read(&path)? else {
                    continue;
                };
                segment = reread;
            }
            segment.ending = segment.ending.of_closed_segment();
        }
        checked.segments += 1;
        checked.records += segment.records;
        for reason in segment.reasons {
            checked.add(Severity::Error, "record", dir, &path, reason);
        }
        let UnreadableBytes {
            torn_bytes,
            damaged_bytes,
        } = segment.ending;
        if damaged_bytes > 0 {
            let detail = format!(
                "{damaged_bytes} bytes are damaged: acknowledged profiles may be lost; the other records are readable"
            );
            checked.add(Severity::Error, "segment-damaged", dir, &path, detail);
        }
        if torn_bytes > 0 {
            let detail = format!("{torn_bytes} bytes at the end are an unfinished write that was never acknowledged");
            checked.add(Severity::Warning, "segment-torn", dir, &path, detail);
        }
    }
    Ok(())
}

/// The contents of a segment of the log.
struct Segment {
    ending: UnreadableBytes,
    records: u64,
    /// The reasons why records cannot be used.
    reasons: Vec<String>,
}

impl Segment {
    /// Reads a segment. Returns `None` if a running server has flushed it since the listing.
    fn read(path: &Path) -> Result<Option<Self>, StoreError> {
        let mut reasons = Vec::new();
        let mut records = 0;
        let mut rules = KnownRules::default();
        let read = reader::read(path, |payload| {
            records += 1;
            if let Err(error) = record::decode(&payload, &mut rules) {
                reasons.push(error.to_string());
            }
        });
        match read {
            Ok(ending) => Ok(Some(Self {
                ending,
                records,
                reasons,
            })),
            Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Checks whether tables and log contain the commits that the file `COMMITS` of the folder names, and whether another
/// folder has committed as the same writer.
pub(crate) fn check_lineage(dir: &Path, root: &Root, writer: &str, checked: &mut Checked) -> Result<(), StoreError> {
    let errors = match contradictions(dir, root, writer) {
        Ok(errors) => errors,
        Err(error @ StoreError::Damaged { .. }) => {
            let path = dir.join(commits::FILE);
            // The check of the tables reports damage in a table's log.
            if Remembered::read(dir, writer).is_err() {
                checked.add(Severity::Error, "folder", dir, &path, error.to_string());
            }
            return Ok(());
        }
        Err(StoreError::Table { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    for error in errors {
        let (kind, path) = match &error {
            StoreError::MissingEntry { location, .. } => ("entry-missing", location.join("_delta_log")),
            StoreError::CopiedFolder { table, .. } => ("copied", root.name(table.name())),
            _ => ("records-missing", dir.join("wal")),
        };
        checked.add(Severity::Error, kind, dir, &path, error.to_string());
    }
    Ok(())
}

/// Returns the contradictions in a folder to which a server may be writing. A commit of the server during the check is
/// not reported as a contradiction.
pub(crate) fn contradictions(dir: &Path, root: &Root, writer: &str) -> Result<Vec<StoreError>, StoreError> {
    let open = || -> Result<(Vec<DeltaTable>, Vec<Option<i64>>), StoreError> {
        let mut tables = Vec::new();
        for kind in Table::ALL {
            if root.has_log(kind)? {
                tables.push(DeltaTable::open(root, kind)?);
            }
        }
        let versions = tables.iter().map(|table| table.committed(writer));
        let versions = versions.collect::<Result<_, _>>()?;
        Ok((tables, versions))
    };
    let mut errors = Vec::new();
    for _ in 0..MAX_ATTEMPTS {
        let before = Remembered::read(dir, writer)?;
        let (tables, versions) = open()?;
        let remembered = Remembered {
            flushed: before.flushed,
            ..Remembered::read(dir, writer)?
        };
        let lineage = Lineage {
            log: &dir.join("wal"),
            root,
            tables: &tables,
            writer,
            remembered: &remembered,
        };
        let result = lineage.contradictions();
        if matches!(&result, Ok(list) if list.is_empty()) {
            return Ok(Vec::new());
        }
        // A segment may have been deleted while it was read, because a flush has ended since.
        let is_still = open()?.1 == versions;
        match result {
            Err(error) if is_still => return Err(error),
            Err(_) => {}
            Ok(some) if is_still => return Ok(some),
            Ok(some) => errors = some,
        }
    }
    Ok(errors)
}
