//! Polls the tables of a bucket for the commits of other servers, and publishes them.
//!
//! In: the tables. Out: the list of files that queries see. Another server commits a flush to one table after the
//! other. The samples of the flush are published once its profiles are committed, so that no query sees a part of a
//! flush.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::store::common::error::StoreError;
use crate::store::common::schema::Table;
use crate::store::flush::files::FileName;
use crate::store::flush::published::Published;
use crate::store::flush::write::Tables;
use crate::store::tables::delta::DeltaTable;
use crate::store::tables::root::Root;
use crate::store::tables::snapshot::FileEntry;

/// The order in which tables are read, the reverse of the order of a flush. Profiles and samples are read before the
/// series and stacks to which they refer, so that each reference that is read has its target.
pub(crate) const ORDER: [Table; 4] = [Table::Profiles, Table::Samples, Table::Series, Table::Stacks];

/// The time of the next poll, and the results of the last poll.
pub(crate) struct Sync {
    interval: Option<Duration>,
    next: Instant,
    /// Versions of the tables at the last poll.
    versions: HashMap<Table, u64>,
    /// True if the last poll left out files that the next poll may publish.
    partial: bool,
    is_failing: bool,
}

impl Sync {
    /// Creates the state of the polls. Tables in a folder have no other writer, so they are never polled.
    pub(crate) fn new(root: &Root) -> Self {
        let interval = root.bucket().map(|bucket| bucket.sync_interval());
        Self {
            interval,
            next: Instant::now() + interval.unwrap_or_default(),
            versions: HashMap::new(),
            partial: false,
            is_failing: false,
        }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.interval.is_some() && Instant::now() >= self.next
    }

    /// Polls the tables and publishes new files. A failure is logged once; the next poll tries again.
    pub(crate) fn run(&mut self, published: &Published, tables: &mut Tables) -> Result<(), StoreError> {
        let Some(interval) = self.interval else {
            return Ok(());
        };
        let result = self.poll(published, tables);
        // The time is set after the work, so that there is a pause between polls of a slow bucket.
        self.next = Instant::now() + interval;
        match &result {
            Ok(()) => self.is_failing = false,
            Err(error) => {
                if let Some(bucket) = published.root.bucket() {
                    bucket.metrics().sync_failures.inc();
                }
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(error = %error, "cannot read the commits of other servers, trying again");
                }
            }
        }
        result
    }

    fn poll(&mut self, published: &Published, tables: &mut Tables) -> Result<(), StoreError> {
        let publication = published.begin();
        let is_new = |table: &DeltaTable| self.partial || self.versions.get(&table.table()) != Some(&table.version());
        let (lists, partial) = whole_flushes(tables, &published.files(), is_new)?;
        if lists.is_empty() {
            return Ok(());
        }
        self.partial = partial;
        publication.listed(lists);
        for table in &tables.tables {
            self.versions.insert(table.table(), table.version());
        }
        Ok(())
    }
}

/// Returns the files that a store publishes when it starts. The samples of incomplete flushes of other servers are left
/// out. A later poll publishes them once the flush is complete.
pub(crate) fn files_at_start(root: &Root, tables: &mut Tables) -> Result<Vec<FileEntry>, StoreError> {
    if root.bucket().is_none() {
        return tables.files();
    }
    let (lists, _) = whole_flushes(tables, &[], |_| true)?;
    Ok(lists.into_values().flatten().collect())
}

/// Reads the tables and lists the files of the tables that `is_meant` chooses. Leaves out the samples of incomplete
/// flushes of other writers, unless their files are in `known`. The returned flag is true if any file was left out.
fn whole_flushes(
    tables: &mut Tables,
    known: &[FileEntry],
    is_meant: impl Fn(&DeltaTable) -> bool,
) -> Result<(BTreeMap<Table, Vec<FileEntry>>, bool), StoreError> {
    let mut lists = BTreeMap::new();
    for kind in ORDER {
        if let Some(table) = tables.tables.iter_mut().find(|table| table.table() == kind) {
            table.reload()?;
            if is_meant(table) {
                lists.insert(kind, table.files()?);
            }
        }
    }
    let profiles = tables.tables.iter().find(|table| table.table() == Table::Profiles);
    let mut is_partial = false;
    if let (Some(profiles), Some(samples)) = (profiles, lists.get_mut(&Table::Samples)) {
        let known: HashSet<&str> = known.iter().map(|file| file.path.as_str()).collect();
        is_partial = remove_partial_flushes(samples, profiles, |file, name| {
            name.writer == tables.writer || known.contains(file.path.as_str())
        })?;
    }
    Ok((lists, is_partial))
}

/// Removes from `samples` the files of flushes that have not committed their profiles yet, except the files that
/// `is_kept` chooses. Returns true if any file was removed.
pub(crate) fn remove_partial_flushes(
    samples: &mut Vec<FileEntry>,
    profiles: &DeltaTable,
    is_kept: impl Fn(&FileEntry, &FileName) -> bool,
) -> Result<bool, StoreError> {
    let mut committed: HashMap<String, u64> = HashMap::new();
    let before = samples.len();
    let mut kept = Vec::with_capacity(before);
    for file in samples.drain(..) {
        let flushed = FileName::parse(&file.path).filter(|name| !is_kept(&file, name));
        let Some(flushed) = flushed else {
            kept.push(file);
            continue;
        };
        let last = if let Some(last) = committed.get(&flushed.writer) {
            *last
        } else {
            let last = profiles.last_segment(&flushed.writer)?;
            committed.insert(flushed.writer.clone(), last);
            last
        };
        if flushed.segment <= last {
            kept.push(file);
        }
    }
    *samples = kept;
    Ok(samples.len() < before)
}
