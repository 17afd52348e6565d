//! Checks whether the tables and the log of a data folder belong together. The tables must contain the commits that the
//! folder's file `COMMITS` records. The log must contain the profiles that some tables still lack. No other folder may
//! have committed as the same writer.
//!
//! In: the tables, the log and the file `COMMITS` of a folder. Out: an error for each contradiction. The check changes
//! nothing. A start, a repair and `alluvium store check` run this check first.

use std::path::Path;

use crate::store::common::error::StoreError;
use crate::store::common::schema::Table;
use crate::store::flush::commits::Remembered;
use crate::store::log::reader;
use crate::store::log::wal;
use crate::store::tables::delta::DeltaTable;
use crate::store::tables::root::Root;

/// The parts of a data folder that must agree.
pub(crate) struct Lineage<'a> {
    /// The folder of the write-ahead log.
    pub(crate) log: &'a Path,
    pub(crate) root: &'a Root,
    /// The tables that can be opened. A missing table is treated as a table without a commit.
    pub(crate) tables: &'a [DeltaTable],
    pub(crate) writer: &'a str,
    pub(crate) remembered: &'a Remembered,
}

impl Lineage<'_> {
    /// Returns all contradictions. A start fails with the first one.
    pub(crate) fn contradictions(&self) -> Result<Vec<StoreError>, StoreError> {
        let mut errors = Vec::new();
        let mut committed = Vec::new();
        for kind in Table::ALL {
            let table = self.tables.iter().find(|table| table.table() == kind);
            let version = match table {
                Some(table) => table.last_segment(self.writer)?,
                None => 0,
            };
            committed.push(version);
            let (flushed, accepted) = (self.remembered.flushed, self.remembered.accepted);
            if version < flushed && flushed > accepted {
                errors.push(StoreError::MissingEntry {
                    table: kind,
                    location: self.root.name(kind.name()),
                    committed: version,
                    flushed,
                });
            }
            if let Some(table) = table
                && let Some(process) = table.process(self.writer)?
                && !self.remembered.processes.contains(&process)
            {
                errors.push(StoreError::CopiedFolder {
                    table: kind,
                    writer: self.writer.to_owned(),
                });
            }
        }
        let low = committed.iter().copied().min().unwrap_or(0);
        let high = committed.iter().copied().max().unwrap_or(0);
        if errors.is_empty() && low < high && high > self.remembered.accepted {
            errors.extend(self.missing_records(low + 1, high)?);
        }
        Ok(errors)
    }

    /// Fails on the first contradiction.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.contradictions()?.into_iter().next().map_or(Ok(()), Err)
    }

    /// Checks whether the log contains the flush of segments `first` to `last`, which some tables lack. If the log is
    /// damaged, missing profiles are no contradiction, because the replay keeps and counts the damaged bytes.
    fn missing_records(&self, first: u64, last: u64) -> Result<Option<StoreError>, StoreError> {
        let mut expected = None;
        for table in self.tables {
            expected = expected.max(table.profiles(self.writer, last as i64)?);
        }
        let mut logged = 0;
        let mut damaged_bytes = 0;
        let numbers = if self.log.exists() {
            wal::segments(self.log)?
        } else {
            Vec::new()
        };
        for number in numbers.into_iter().filter(|number| (first..=last).contains(number)) {
            // The flush has ended these segments, so none of them may have an unfinished record.
            let ending = reader::read(&wal::segment_path(self.log, number), |_| logged += 1)?;
            damaged_bytes += ending.damaged_bytes + ending.torn_bytes;
        }
        // Entries of older programs do not contain the number of profiles, but a flush has at least one profile.
        if logged >= expected.unwrap_or(1) || damaged_bytes > 0 {
            return Ok(None);
        }
        Ok(Some(StoreError::MissingRecords {
            log: self.log.to_owned(),
            first,
            last,
            expected,
            logged,
        }))
    }
}
