//! A read-only snapshot of a data folder, without a lock. `alluvium sql --data` uses it, with or without a running
//! server.
//!
//! The log is read before the tables. If a segment is flushed in between, its profiles come from the tables and are
//! omitted from the heads. If only some tables contain a flush, the rows for the other tables come from the log. If
//! another server made a flush, or if a flush covers a later segment than the last segment that was read, its samples
//! are left out unless its profiles are committed.

use std::collections::BTreeSet;
use std::sync::Arc;

use object_store::ObjectStore;

use crate::store::common::error::StoreError;
use crate::store::common::schema::Table;
use crate::store::flush::commits::Remembered;
use crate::store::flush::sync;
use crate::store::head::batch::Batch;
use crate::store::head::{Head, HeadView};
use crate::store::log::{reader, wal};
use crate::store::open::folder;
use crate::store::tables::delta::DeltaTable;
use crate::store::tables::root::DataLocation;
use crate::store::tables::snapshot::{HeadScan, Receive, ScanFilter, Snapshot, SnapshotSource};

/// A snapshot of a data folder.
pub struct ReadOnlyStore {
    snapshot: Arc<Snapshot>,
}

impl ReadOnlyStore {
    /// Reads the folder, which must exist. A missing log or table is treated as empty.
    pub fn open(location: DataLocation<'_>) -> Result<Self, StoreError> {
        let dir = location.dir;
        std::fs::read_dir(dir).map_err(StoreError::io("read the data folder", dir))?;
        folder::check_version(dir)?;
        let writer = folder::writer_of(dir)?.unwrap_or_default();
        let (log, root) = (dir.join("wal"), location.root()?);
        let mut segments = Vec::new();
        if log.exists() {
            for number in wal::segments(&log)? {
                let mut records = Vec::new();
                match reader::read(&wal::segment_path(&log, number), |record| records.push(record)) {
                    Ok(_) => segments.push((number, records)),
                    // The segment was flushed and deleted after the listing, so the tables contain it.
                    Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let last_read = segments.iter().map(|(number, _)| *number).max().unwrap_or(0);
        let (mut files, mut committed, mut processes) = (Vec::new(), Vec::new(), Vec::new());
        let mut profiles = None;
        for table in sync::ORDER {
            let mut version = 0;
            if root.has_log(table)? {
                let opened = DeltaTable::open(&root, table)?;
                version = opened.last_segment(&writer)?;
                processes.extend(opened.process(&writer)?.map(|process| (table, process)));
                let mut listed = opened.files()?;
                if let (Table::Samples, Some(profiles)) = (table, &profiles) {
                    sync::remove_partial_flushes(&mut listed, profiles, |_, name| {
                        name.writer == writer && name.segment <= last_read
                    })?;
                }
                files.extend(listed);
                if table == Table::Profiles {
                    profiles = Some(opened);
                }
            }
            committed.push((table, version));
        }
        // The file `COMMITS` is read after the tables. It then names every process of this folder that the tables name,
        // because a process is added to the file before its first commit.
        let remembered = Remembered::read(dir, &writer)?;
        for (table, process) in processes {
            if !remembered.processes.contains(&process) {
                return Err(StoreError::CopiedFolder { table, writer });
            }
        }
        let mut heads: Vec<(Vec<Table>, Arc<Head>)> = Vec::new();
        for (number, records) in segments {
            let missing: Vec<Table> = committed
                .iter()
                .filter(|(_, version)| number > *version)
                .map(|(table, _)| *table)
                .collect();
            if missing.is_empty() {
                continue;
            }
            let index = if let Some(index) = heads.iter().position(|(tables, _)| *tables == missing) {
                index
            } else {
                heads.push((missing, Arc::new(Head::new(Arc::default()))));
                heads.len() - 1
            };
            let skipped = BTreeSet::new();
            let mut batch = Batch::new(number, &heads[index].1, &skipped);
            let applied = records.into_iter().try_for_each(|record| batch.push(record));
            applied.and_then(|()| batch.apply())?;
            for record in &batch.unreadable {
                tracing::warn!(
                    segment = number,
                    reason = record.reason,
                    "cannot read a record of the log, leaving it out"
                );
            }
        }
        let heads = heads
            .into_iter()
            .map(|(tables, head)| {
                Arc::new(Partial {
                    tables,
                    view: head.view(),
                }) as Arc<dyn HeadScan>
            })
            .collect();
        Ok(Self {
            snapshot: Arc::new(Snapshot {
                root,
                files: files.into(),
                heads,
            }),
        })
    }
}

impl SnapshotSource for ReadOnlyStore {
    fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.clone()
    }

    fn object_store(&self) -> Option<Arc<dyn ObjectStore>> {
        self.snapshot.root.object_store()
    }
}

/// A head that returns rows only for `tables`. The other tables already contain their rows in files.
struct Partial {
    tables: Vec<Table>,
    view: HeadView,
}

impl HeadScan for Partial {
    fn scan_with(&self, table: Table, filter: &ScanFilter, receive: &mut Receive<'_>) {
        if self.tables.contains(&table) {
            self.view.scan_with(table, filter, receive);
        }
    }
}
