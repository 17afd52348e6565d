//! Writes a frozen head to the tables: writes the files of all tables, commits them, and deletes the log segments. The
//! flush thread publishes the committed files before it deletes the segments.
//!
//! A generation is a frozen head and the last log segment that it covers. The number of that segment is the transaction
//! version of the commit to each table. So a retry after a failure or a crash does only the missing work. Segments are
//! deleted after all four tables are durable, never before.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::store::common::error::StoreError;
use crate::store::common::fault::{FaultPoint, Faults};
use crate::store::common::lifecycle::{Lifecycle, catch_panic};
use crate::store::common::schema::Table;
use crate::store::flush::commits::Commits;
use crate::store::flush::files;
use crate::store::flush::files::{FileName, Uncommitted};
use crate::store::flush::lineage::Lineage;
use crate::store::head::Head;
use crate::store::log::cut;
use crate::store::log::wal;
use crate::store::tables::delta::{DeltaTable, FlushStamp, NewFile};
use crate::store::tables::root::Root;
use crate::store::tables::snapshot::FileEntry;
use alluvium_base::file::sync_parent;

/// A frozen head and the log segments that it covers.
#[derive(Clone)]
pub(crate) struct Generation {
    pub(crate) head: Arc<Head>,
    /// Last segment of the log that has records of the head.
    pub(crate) last_segment: u64,
}

/// The tables of a folder, open for writing, and the identity of their writer.
pub(crate) struct Tables {
    /// The tables in the order of [`Table::ALL`].
    pub(crate) tables: Vec<DeltaTable>,
    /// Identity of the writer in transactions and file names.
    pub(crate) writer: String,
    /// The file `COMMITS`: the record of the commits that were made from this folder.
    pub(crate) commits: Commits,
    /// The last segment committed to each table, if a process of this folder is known to have committed it.
    own: BTreeMap<Table, i64>,
    /// Counts the attempts of this process, so that file names do not repeat.
    pub(crate) attempt: u32,
    /// First value of `attempt`.
    first_attempt: u32,
    /// True after an attempt that failed and may have left files behind.
    pub(crate) failed: bool,
    pub(crate) faults: Faults,
    /// Stops a commit when the store stops.
    pub(crate) lifecycle: Arc<Lifecycle>,
}

/// Result of committing a generation to a table.
pub(crate) enum CommitOutcome {
    Added(Vec<FileEntry>),
    /// An earlier attempt had already committed, so the files of the table must be listed again.
    Unknown,
}

/// The outcome for each table to which a generation is committed already. It is kept between attempts.
pub(crate) type Progress = BTreeMap<Table, CommitOutcome>;

/// All live files of some tables.
pub(crate) type Lists = Vec<(Table, Vec<FileEntry>)>;

impl Tables {
    /// Opens or creates the four tables in `root`.
    pub(crate) fn open(
        root: &Root,
        (writer, commits): (String, Commits),
        checkpoints: u64,
        faults: Faults,
    ) -> Result<Self, StoreError> {
        let tables = Table::ALL
            .into_iter()
            .map(|table| {
                let opened = DeltaTable::open_or_create(root, table, faults.clone())?;
                Ok(opened.with_checkpoint_interval(checkpoints))
            })
            .collect::<Result<_, StoreError>>()?;
        // Two processes must not write a file of the same name, even if one of them runs on a copy of the folder.
        let attempt = rand::random_range(0..1 << 30);
        Ok(Self {
            tables,
            writer,
            commits,
            own: BTreeMap::new(),
            attempt,
            first_attempt: attempt,
            failed: false,
            faults,
            lifecycle: Arc::default(),
        })
    }

    /// Returns the last segment committed to each table, 0 if there is none.
    pub(crate) fn committed(&self) -> Result<Vec<u64>, StoreError> {
        self.tables
            .iter()
            .map(|table| table.last_segment(&self.writer))
            .collect()
    }

    /// Fails if the tables and the log in the folder `log` do not belong together.
    pub(crate) fn check_lineage(&self, log: &Path) -> Result<(), StoreError> {
        let Some(table) = self.tables.first() else {
            return Ok(());
        };
        let lineage = Lineage {
            log,
            root: table.root(),
            tables: &self.tables,
            writer: &self.writer,
            remembered: self.commits.remembered(),
        };
        lineage.check()
    }

    /// Returns the live files of all tables.
    pub(crate) fn files(&self) -> Result<Vec<FileEntry>, StoreError> {
        let mut files = Vec::new();
        for table in &self.tables {
            files.extend(table.files()?);
        }
        Ok(files)
    }

    /// Lists the files of the tables whose outcome is unknown.
    pub(crate) fn lists(&mut self, progress: &Progress) -> Result<Lists, StoreError> {
        let mut lists = Lists::new();
        for table in &mut self.tables {
            let kind = table.table();
            if matches!(progress.get(&kind), Some(CommitOutcome::Unknown)) {
                table.reload()?;
                lists.push((kind, table.files()?));
            }
        }
        Ok(lists)
    }

    /// Commits a generation to every table without an outcome in `progress`. After an error, `progress` contains the
    /// outcomes so far.
    pub(crate) fn commit(&mut self, generation: &Generation, progress: &mut Progress) -> Result<(), StoreError> {
        let result = catch_panic(|| self.try_commit(generation, progress))
            .unwrap_or_else(|panic| Err(StoreError::Panicked(panic.to_string())));
        self.failed = result.is_err();
        result
    }

    /// Writes the files of all tables, then commits them. Rows that cannot be encoded are therefore found before any
    /// table contains a part of the generation.
    fn try_commit(&mut self, generation: &Generation, progress: &mut Progress) -> Result<(), StoreError> {
        self.attempt += 1;
        let name = FileName {
            segment: generation.last_segment,
            attempt: self.attempt,
            writer: self.writer.clone(),
        };
        let version = generation.last_segment as i64;
        let mut written: BTreeMap<Table, Vec<NewFile>> = BTreeMap::new();
        for table in &mut self.tables {
            let kind = table.table();
            if progress.contains_key(&kind) {
                continue;
            }
            table.reload()?;
            let committed = table.committed(&self.writer)?;
            must_be_own(table, committed, &self.writer, &self.commits, &mut self.own)?;
            if committed < Some(version) {
                if self.failed {
                    // The files of failed attempts are removed before the next attempt. Otherwise the half-written
                    // files of each attempt would take more and more space of a full disk.
                    let committed = committed.map_or(0, |version| version.max(0) as u64);
                    let own = Uncommitted::Attempts(self.first_attempt..=self.attempt);
                    files::remove_uncommitted(table.root(), kind, (&self.writer, committed), &own)?;
                }
                self.faults
                    .check(FaultPoint::FilesWrite(kind))
                    .map_err(StoreError::io("flush to", &table.location()))?;
                let files = files::write_table(
                    &generation.head,
                    kind,
                    table.root(),
                    &name,
                    (&self.faults, &self.lifecycle),
                )?;
                written.insert(kind, files);
            }
        }
        self.remember_process()?;
        let stamp = FlushStamp {
            process: self.commits.process(),
            profiles: generation.head.profiles(),
        };
        for table in &mut self.tables {
            let kind = table.table();
            if progress.contains_key(&kind) {
                continue;
            }
            let location = table.location();
            let fault = |place_of: FaultPoint| {
                self.faults
                    .check(place_of)
                    .map_err(StoreError::io("flush to", &location))
            };
            let transaction = (self.writer.as_str(), version);
            if let Some(files) = written.remove(&kind) {
                fault(FaultPoint::Commit(kind))?;
                if table.append(transaction, Some(stamp), &files)? {
                    let added = files.iter().map(|file| file.entry(kind)).collect();
                    progress.insert(kind, CommitOutcome::Added(added));
                    self.own.insert(kind, version);
                    fault(FaultPoint::Committed(kind))?;
                    table.checkpoint_if_due();
                    continue;
                }
            }
            // An earlier attempt wrote the entry, but its name may not be durable. This append only syncs the folder.
            table.append(transaction, Some(stamp), &[])?;
            let committed = table.committed(&self.writer)?;
            must_be_own(table, committed, &self.writer, &self.commits, &mut self.own)?;
            progress.insert(kind, CommitOutcome::Unknown);
        }
        Ok(())
    }

    /// Records this process in the folder before its first commit.
    fn remember_process(&mut self) -> Result<(), StoreError> {
        if self.commits.has_process() {
            return Ok(());
        }
        let mut named = Vec::new();
        for table in &self.tables {
            named.extend(table.process(&self.writer)?);
        }
        self.commits.before_commit(&named)
    }

    /// Deletes the log segments up to `last`, whose profiles all tables contain.
    pub(crate) fn delete_segments(&mut self, log: &Path, last: u64) -> Result<(), StoreError> {
        match self.commits.flushed(last) {
            // The segments may be the reason that the disk is full, so they are deleted first.
            Err(error) if error.is_full() => {
                delete_segments(log, last, &self.faults)?;
                self.commits.flushed(last)
            }
            result => result.and_then(|()| delete_segments(log, last, &self.faults)),
        }
    }
}

/// Fails if the last commit of a writer is by a process of another folder. A success is cached in `own`, so that the
/// same commit is not checked again.
fn must_be_own(
    table: &DeltaTable,
    committed: Option<i64>,
    writer: &str,
    commits: &Commits,
    own: &mut BTreeMap<Table, i64>,
) -> Result<(), StoreError> {
    let kind = table.table();
    let Some(committed) = committed.filter(|committed| own.get(&kind) != Some(committed)) else {
        return Ok(());
    };
    if table.process(writer)?.is_some_and(|process| !commits.is_own(process)) {
        return Err(StoreError::CopiedFolder {
            table: kind,
            writer: writer.to_owned(),
        });
    }
    own.insert(kind, committed);
    Ok(())
}

/// Deletes the log segments up to `last`.
fn delete_segments(folder: &Path, last: u64, faults: &Faults) -> Result<(), StoreError> {
    for number in wal::segments(folder)? {
        if number <= last {
            let path = wal::segment_path(folder, number);
            faults
                .run(FaultPoint::LogDelete, || {
                    fs::remove_file(&path)?;
                    cut::remove(&path)
                })
                .map_err(StoreError::io("remove", &path))?;
        }
    }
    // The sync is not needed for safety: if a crash makes a segment reappear, the next start deletes the segment.
    // With the sync, the next start has less work.
    faults
        .run(FaultPoint::LogDeleteSync, || sync_parent(&folder.join("x")))
        .map_err(StoreError::io("sync", folder))
}
