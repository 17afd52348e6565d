//! Replaces files of a table with other files: commits the exchange to the table and publishes it to queries in one
//! step. If the outcome of a commit is unknown, the table is read again. Files that this store wrote and that the table
//! does not list are then removed from the disk. In a bucket such files stay, because the commit that adds them may
//! still become visible.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::store::common::error::StoreError;
use crate::store::common::fault::Faults;
use crate::store::common::schema::Table;
use crate::store::flush::files::FileName;
use crate::store::flush::published::Published;
use crate::store::maintenance::merge::rewrite::{Change, Job, MergedName};
use crate::store::maintenance::report::Vacuumed;
use crate::store::maintenance::retention::vacuum;
use crate::store::maintenance::retention::vacuum::Removals;
use crate::store::tables::delta::{DeltaTable, NewFile, Operation, ReplaceOutcome};
use crate::store::tables::root::Root;
use crate::store::tables::snapshot::FileEntry;

/// Maximum number of attempts to commit an exchange of files.
const COMMIT_ATTEMPTS: usize = 3;

/// Files to remove from a table, and the files that replace them.
pub(super) struct Exchange {
    pub(super) table: Table,
    pub(super) removed: Vec<FileEntry>,
    pub(super) added: Vec<NewFile>,
    pub(super) operation: Operation,
}

impl Exchange {
    pub(super) fn of(job: &Job, added: Vec<NewFile>) -> Self {
        Self {
            table: job.table,
            removed: job.inputs.clone(),
            added,
            operation: match &job.change {
                Change { drop: Some(_), .. } => Operation::Delete,
                Change { interval_us: 1.., .. } => Operation::Downsample,
                Change { .. } => Operation::Merge,
            },
        }
    }

    /// Returns true if the new files have as many rows as the old files.
    pub(super) fn keeps_rows(&self) -> bool {
        let removed: u64 = self.removed.iter().map(|file| file.rows).sum();
        removed == self.added.iter().map(|file| file.stats.rows).sum::<u64>()
    }

    /// Removes the new files of an exchange that is not committed. Must not be called after an attempt of unknown
    /// outcome, because that attempt may have been committed.
    pub(super) fn discard(&self, root: &Root) {
        for file in &self.added {
            let path = format!("{}/{}", self.table.name(), file.path);
            if let Err(error) = root.remove(&path) {
                tracing::debug!(error = %error, path, "cannot remove a file that is not needed");
            }
        }
    }
}

/// The tables whose files are exchanged. In this process, only the maintenance thread removes files from them.
pub(super) struct Exchanger {
    published: Arc<Published>,
    faults: Faults,
    tables: Vec<DeltaTable>,
    /// Tables with a commit of unknown outcome, which must be read again.
    uncertain: BTreeSet<Table>,
}

impl Exchanger {
    pub(super) fn open(published: Arc<Published>, checkpoints: u64, faults: Faults) -> Result<Self, StoreError> {
        let open = |table| {
            let opened = DeltaTable::open(&published.root, table)?;
            Ok(opened.with_checkpoint_interval(checkpoints).with_faults(faults.clone()))
        };
        let tables = Table::ALL.into_iter().map(open).collect::<Result<_, StoreError>>()?;
        Ok(Self {
            published,
            faults,
            tables,
            uncertain: BTreeSet::new(),
        })
    }

    /// Returns an iterator over the tables.
    pub(super) fn tables_mut(&mut self) -> impl Iterator<Item = &mut DeltaTable> {
        self.tables.iter_mut()
    }

    /// Commits exchanges one after the other, and publishes all of them in one step for every reader.
    pub(super) fn exchange(&mut self, exchanges: &[Exchange]) -> Result<(), StoreError> {
        let published = self.published.clone();
        let publication = published.begin();
        let mut left = exchanges.iter();
        while let Some(exchange) = left.next() {
            if let Err(error) = self.commit(exchange) {
                // Earlier exchanges are committed but not published. `resolve_uncertain` publishes their files.
                self.uncertain.extend(exchanges.iter().map(|exchange| exchange.table));
                left.for_each(|untried| untried.discard(&published.root));
                return Err(error);
            }
        }
        let removed = exchanges.iter().flat_map(|exchange| &exchange.removed);
        let removed = removed.map(|file| file.path.as_str()).collect();
        let added = exchanges
            .iter()
            .flat_map(|exchange| exchange.added.iter().map(|file| file.entry(exchange.table)));
        publication.exchanged(&removed, added);
        Ok(())
    }

    fn commit(&mut self, exchange: &Exchange) -> Result<(), StoreError> {
        let table = exchange.table;
        let removed: HashSet<String> = exchange.removed.iter().map(|file| file.path.clone()).collect();
        let Some(delta) = self.tables.iter_mut().find(|delta| delta.table() == table) else {
            return Err(StoreError::Closed);
        };
        let mut attempt = 1;
        let replaced = loop {
            match delta.replace(&removed, &exchange.added, exchange.operation) {
                Ok(replaced) => break replaced,
                Err(error) if attempt < COMMIT_ATTEMPTS => {
                    tracing::warn!(error = %error, attempt, "cannot commit an exchange of files, trying again");
                    attempt += 1;
                }
                Err(error) => {
                    // The commit may have become visible. The next round reads the table and keeps or removes the
                    // files.
                    self.uncertain.insert(table);
                    return Err(error);
                }
            }
        };
        delta.checkpoint_if_due();
        match replaced {
            ReplaceOutcome::Done => return Ok(()),
            ReplaceOutcome::Stale if attempt == 1 => exchange.discard(&self.published.root),
            // An earlier attempt may have been committed. Then its files are live, or another server has replaced them
            // and readers still use them.
            ReplaceOutcome::Stale | ReplaceOutcome::Overtaken => {}
        }
        // A server that replaced files of one table has usually replaced files of other tables too.
        self.uncertain.extend(Table::ALL);
        Err(StoreError::Outdated(table))
    }

    /// Resolves commits of unknown outcome. Publishes the files that the table lists. Removes files that this store
    /// wrote and the table does not list, unless they are in a bucket.
    pub(super) fn resolve_uncertain(&mut self) -> Result<(), StoreError> {
        let published = self.published.clone();
        for table in self.uncertain.clone() {
            let publication = published.begin();
            let Some(delta) = self.tables.iter_mut().find(|delta| delta.table() == table) else {
                continue;
            };
            delta.reload()?;
            delta.make_durable()?;
            let live = delta.files()?;
            let known = published.files();
            let known: HashSet<&str> = known.iter().map(|file| file.path.as_str()).collect();
            // `flush::sync` publishes the flushes of other servers once they are complete.
            let is_shown = |file: &&FileEntry| {
                known.contains(file.path.as_str())
                    || FileName::parse(&file.path).is_none_or(|flushed| flushed.writer == published.writer)
            };
            publication.listed([(table, live.iter().filter(is_shown).cloned().collect())]);
            let live = live.iter().map(|file| file.path.as_str()).collect();
            remove_unnamed(&published.root, table, &published.writer, &live, &self.faults)?;
            self.uncertain.remove(&table);
        }
        Ok(())
    }

    /// Makes the log entries of some tables durable, because an earlier process may have been killed before it synced
    /// them.
    pub(super) fn make_durable(&self, tables: &[Table]) -> Result<(), StoreError> {
        let mut selected = self.tables.iter().filter(|delta| tables.contains(&delta.table()));
        selected.try_for_each(DeltaTable::make_durable)
    }

    /// Returns the real cause of a failed job. If a file is missing and the table no longer lists it, the cause is
    /// [`StoreError::Outdated`]: another server has replaced the file.
    pub(super) fn explained(&mut self, table: Table, error: StoreError) -> StoreError {
        let missing = match &error {
            StoreError::Io { path, source, .. } if source.kind() == io::ErrorKind::NotFound => path,
            _ => return error,
        };
        let root = &self.published.root;
        let Some(delta) = self.tables.iter_mut().find(|delta| delta.table() == table) else {
            return error;
        };
        let live = delta.reload().and_then(|()| delta.files());
        if live.is_ok_and(|live| !live.iter().any(|file| root.name(&file.path) == *missing)) {
            self.uncertain.extend(Table::ALL);
            return StoreError::Outdated(table);
        }
        error
    }

    /// Returns the last segment of the store's own log that is committed to all tables.
    pub(super) fn committed(&mut self) -> Result<u64, StoreError> {
        let mut min = u64::MAX;
        for delta in &mut self.tables {
            delta.reload()?;
            let version = delta.committed(&self.published.writer)?;
            min = min.min(version.map_or(0, |version| version.max(0) as u64));
        }
        Ok(min)
    }
}

/// Removes merged files of `writer` that were never committed: they are not live, and the table's log contains no
/// removal of them. A crash leaves such files. In a bucket they stay until the vacuum deletes them by their age,
/// because a commit that adds them may still appear
/// ([`remove_uncommitted`](crate::store::flush::files::remove_uncommitted)).
pub(crate) fn remove_unnamed(
    root: &Root,
    table: Table,
    writer: &str,
    live: &HashSet<&str>,
    faults: &Faults,
) -> Result<u64, StoreError> {
    if root.bucket().is_some() {
        return Ok(0);
    }
    let mut vacuumed = Vacuumed::default();
    let is_uncommitted =
        |file: &vacuum::DeadFile| file.removed.is_none() && MergedName::is_written_by(&file.path, writer);
    let mut dead = vacuum::dead_files(root, table, live, &mut Removals::default())?;
    dead.retain(is_uncommitted);
    for file in &mut dead {
        file.modified = SystemTime::UNIX_EPOCH;
    }
    vacuum::delete(
        root,
        &dead,
        table,
        (SystemTime::now(), Duration::ZERO),
        faults,
        &mut vacuumed,
    )?;
    Ok(vacuumed.files)
}
