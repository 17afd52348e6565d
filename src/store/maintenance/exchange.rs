//! Files for files: an exchange is committed to its table and published to queries, under the lock that a flush holds too. After a commit of unknown outcome the
//! table is read, and files of ours that it does not name are removed.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use crate::store::delta::{NewFile, Replaced, UpdateTableOperation};
use crate::store::fault::Faults;
use crate::store::files::FileName;
use crate::store::maintenance::rewrite::{Job, MergedName};
use crate::store::maintenance::runner::Maintainer;
use crate::store::maintenance::vacuum::{self, Removals, Vacuumed};
use crate::store::root::Root;
use crate::store::schema::Table;
use crate::store::snapshot::FileEntry;
use crate::store::{StoreError, sync};

/// Attempts to commit an exchange of files.
const COMMIT_ATTEMPTS: usize = 3;

/// Files that leave a table and files that come for them.
pub(super) struct Exchange {
    pub(super) table: Table,
    pub(super) removed: Vec<FileEntry>,
    pub(super) added: Vec<NewFile>,
    pub(super) operation: UpdateTableOperation,
    pub(super) changes_data: bool,
}

impl Exchange {
    pub(super) fn of(job: &Job, added: Vec<NewFile>) -> Self {
        Self {
            table: job.table,
            removed: job.inputs.clone(),
            added,
            operation: match job.reason {
                "delete" => UpdateTableOperation::Delete,
                _ => UpdateTableOperation::Optimize,
            },
            changes_data: job.change.drop.is_some() || job.change.interval_us > 0,
        }
    }

    /// Whether as many rows come as leave.
    pub(super) fn keeps_rows(&self) -> bool {
        let removed: u64 = self.removed.iter().map(|file| file.rows).sum();
        removed == self.added.iter().map(|file| file.stats.rows).sum::<u64>()
    }

    /// Removes the files that were to come.
    pub(super) fn discard(&self, root: &Root) {
        for file in &self.added {
            let path = format!("{}/{}", self.table.name(), file.path);
            if let Err(error) = root.remove(&path) {
                tracing::debug!(error = %error, path, "cannot remove a file that is not needed");
            }
        }
    }
}

impl Maintainer {
    /// Commits exchanges one after the other and publishes them in one step for every reader.
    pub(super) fn exchange(&mut self, exchanges: &[Exchange]) -> Result<(), StoreError> {
        let shared = self.shared.clone();
        let _committing = shared.committing.lock();
        if let Err(error) = exchanges.iter().try_for_each(|exchange| self.commit(exchange)) {
            // What is committed and not published is found by reading the tables.
            self.unsure.extend(exchanges.iter().map(|exchange| exchange.table));
            return Err(error);
        }
        let mut published = shared.published.write();
        let gone: HashSet<&str> = exchanges
            .iter()
            .flat_map(|exchange| exchange.removed.iter().map(|file| file.path.as_str()))
            .collect();
        let added = exchanges
            .iter()
            .flat_map(|exchange| exchange.added.iter().map(|file| file.entry(exchange.table)));
        let files: Vec<FileEntry> = published
            .files
            .iter()
            .filter(|file| !gone.contains(file.path.as_str()))
            .cloned()
            .chain(added)
            .collect();
        shared.metrics.files.set(files.len() as i64);
        published.files = files.into();
        Ok(())
    }

    fn commit(&mut self, exchange: &Exchange) -> Result<(), StoreError> {
        let table = exchange.table;
        let gone: HashSet<String> = exchange.removed.iter().map(|file| file.path.clone()).collect();
        let Some(delta) = self.tables.iter_mut().find(|delta| delta.table() == table) else {
            return Err(StoreError::Closed);
        };
        let mut attempt = 1;
        let replaced = loop {
            match delta.replace(
                &gone,
                &exchange.added,
                exchange.operation.clone(),
                exchange.changes_data,
            ) {
                Ok(replaced) => break replaced,
                Err(error) if attempt < COMMIT_ATTEMPTS => {
                    tracing::warn!(error = %error, attempt, "cannot commit an exchange of files, trying again");
                    attempt += 1;
                }
                Err(error) => {
                    // It may have become visible: the next round reads the table and keeps or removes the files.
                    self.unsure.insert(table);
                    return Err(error);
                }
            }
        };
        delta.checkpoint_if_due();
        if replaced == Replaced::Stale {
            exchange.discard(&self.shared.root);
            self.unsure.insert(table);
            return Err(StoreError::Outdated(table));
        }
        Ok(())
    }

    /// After a commit of unknown outcome: publishes what the table says and removes our files that it does not name.
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        let shared = self.shared.clone();
        for table in self.unsure.clone() {
            let _committing = shared.committing.lock();
            let Some(delta) = self.tables.iter_mut().find(|delta| delta.table() == table) else {
                continue;
            };
            delta.reload()?;
            let live = delta.files()?;
            let paths: HashSet<&str> = live.iter().map(|file| file.path.as_str()).collect();
            {
                let mut published = shared.published.write();
                let known: HashSet<String> = published.files.iter().map(|file| file.path.clone()).collect();
                // What other servers have flushed is published when all of it is there, by the look for it.
                let shown = live.iter().filter(|file| {
                    let name = file.path.rsplit('/').next().unwrap_or_default();
                    known.contains(&file.path)
                        || FileName::parse(name).is_none_or(|flushed| flushed.writer == self.writer)
                });
                let shown = shown.cloned().collect();
                sync::publish(&mut published, table, shown, &self.writer);
            }
            remove_unnamed(&shared.root, table, &self.writer, &paths, &shared.config.faults)?;
            self.unsure.remove(&table);
        }
        Ok(())
    }
}

/// Removes merged files of `writer` that the table does not name and whose removal its log does not know either: what a crash left.
pub fn remove_unnamed(
    root: &Root,
    table: Table,
    writer: &str,
    live: &HashSet<&str>,
    faults: &Faults,
) -> Result<u64, StoreError> {
    let mut done = Vacuumed::default();
    let ours = |file: &vacuum::Dead| {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        file.removed.is_none() && MergedName::is_of(name, writer)
    };
    let mut dead = vacuum::dead_files(root, table, live, &mut Removals::default())?;
    dead.retain(ours);
    for file in &mut dead {
        file.modified = SystemTime::UNIX_EPOCH;
    }
    vacuum::delete(
        root,
        &dead,
        table,
        (SystemTime::now(), Duration::ZERO),
        faults,
        &mut done,
    )?;
    Ok(done.files)
}
