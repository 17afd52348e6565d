//! The state that readers see: the live files of the tables, the active head, and the head that is being flushed.
//!
//! A generation is a frozen head with the last log segment that it covers. Code that commits to a table and publishes
//! the result holds a [`Publication`] from before the commit until after the publication. So an older list of files
//! never replaces a newer one.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::store::common::metrics::Metrics;
use crate::store::common::schema::Table;
use crate::store::flush::files::FileName;
use crate::store::flush::write::{CommitOutcome, Generation, Lists, Progress};
use crate::store::head::{Head, KnownStacks};
use crate::store::tables::root::Root;
use crate::store::tables::snapshot::{FileEntry, HeadScan, Snapshot};
use alluvium_profile::TenantId;

/// State shared by readers and publishers.
pub(crate) struct Published {
    pub(crate) root: Root,
    /// Identity of this store in transactions and file names.
    pub(crate) writer: String,
    known: Arc<KnownStacks>,
    metrics: Metrics,
    view: RwLock<View>,
    committing: Mutex<()>,
}

struct View {
    files: Arc<[FileEntry]>,
    /// The head that receives new profiles.
    active: Arc<Head>,
    /// The generation that is being flushed.
    frozen: Option<Generation>,
}

/// A guard that is held from before a commit until after its publication.
pub(crate) struct Publication<'a> {
    published: &'a Published,
    _committing: MutexGuard<'a, ()>,
}

impl Published {
    /// Creates the state of a store with `files`. The log of the store was replayed into `head`. `known` contains the
    /// stacks in committed files.
    pub(crate) fn new(
        root: Root,
        writer: String,
        known: Arc<KnownStacks>,
        metrics: Metrics,
        files: Vec<FileEntry>,
        head: Head,
    ) -> Self {
        metrics.files.set(files.len() as i64);
        metrics.head_bytes.set(head.bytes() as i64);
        let view = View {
            files: files.into(),
            active: Arc::new(head),
            frozen: None,
        };
        Self {
            root,
            writer,
            known,
            metrics,
            view: RwLock::new(view),
            committing: Mutex::default(),
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let view = self.view.read();
        let mut heads: Vec<Arc<dyn HeadScan>> = vec![Arc::new(view.active.view())];
        if let Some(frozen) = &view.frozen {
            heads.push(Arc::new(frozen.head.view()));
        }
        Snapshot {
            root: self.root.clone(),
            files: view.files.clone(),
            heads,
        }
    }

    /// Returns the live files of all tables.
    pub(crate) fn files(&self) -> Arc<[FileEntry]> {
        self.view.read().files.clone()
    }

    /// Returns the head that receives new profiles.
    pub(crate) fn active(&self) -> Arc<Head> {
        self.view.read().active.clone()
    }

    /// Returns the generation that is being flushed.
    pub(crate) fn frozen(&self) -> Option<Generation> {
        self.view.read().frozen.clone()
    }

    /// Returns the stacks in committed files.
    pub(crate) fn known(&self) -> &Arc<KnownStacks> {
        &self.known
    }

    /// Returns the tenants with stored profiles.
    pub(crate) fn tenants(&self) -> HashSet<TenantId> {
        let view = self.view.read();
        let mut tenants: HashSet<TenantId> = view.files.iter().map(|file| file.tenant.clone()).collect();
        tenants.extend(view.active.tenants());
        tenants.extend(view.frozen.iter().flat_map(|frozen| frozen.head.tenants()));
        tenants
    }

    /// Returns those of `files` that may be removed, because their tenant has no rows of that day in files or in
    /// memory. `files` are files of stacks or series. Heads omit the frames of stacks that they know to be in files, so
    /// this call forgets the stacks in `files`: heads that receive these stacks again store their frames.
    pub(crate) fn unneeded_names(&self, mut files: Vec<FileEntry>) -> Vec<FileEntry> {
        // Some of `files` may belong to a flush that is being published and has not yet remembered their stacks.
        let _publication = self.begin();
        for file in &files {
            self.known.forget(&file.tenant, file.day);
        }
        let view = self.view.read();
        let has_rows = |file: &&FileEntry| matches!(file.table, Table::Samples | Table::Profiles);
        let rows = view.files.iter().filter(has_rows);
        let mut needed: HashSet<(TenantId, i32)> = rows.map(|file| (file.tenant.clone(), file.day)).collect();
        needed.extend(view.active.days());
        needed.extend(view.frozen.iter().flat_map(|frozen| frozen.head.days()));
        files.retain(|file| !needed.contains(&(file.tenant.clone(), file.day)));
        files
    }

    pub(crate) fn head_bytes(&self) -> u64 {
        let view = self.view.read();
        view.active.bytes() + view.frozen.as_ref().map_or(0, |frozen| frozen.head.bytes())
    }

    /// Freezes the head and starts an empty head. `last_segment` contains the last records of the frozen head.
    pub(crate) fn freeze(&self, last_segment: u64) {
        let mut view = self.view.write();
        let next = Arc::new(Head::new(self.known.clone()));
        let head = std::mem::replace(&mut view.active, next);
        view.frozen = Some(Generation { head, last_segment });
    }

    /// Sets `rest` as the generation that is being flushed.
    pub(crate) fn replace_frozen(&self, rest: Generation) {
        self.view.write().frozen = Some(rest);
    }

    /// Waits until no other publication is in progress, and begins a new one.
    pub(crate) fn begin(&self) -> Publication<'_> {
        Publication {
            published: self,
            _committing: self.committing.lock(),
        }
    }

    /// Forgets the stacks of days that have no live file any more, because another server has removed the files.
    fn forget_removed(&self, before: &[FileEntry], live: &[FileEntry]) {
        let day_of = |file: &FileEntry| (file.tenant.clone(), file.day);
        let left: HashSet<(TenantId, i32)> = live.iter().map(day_of).collect();
        let stacks = before.iter().filter(|file| file.table == Table::Stacks);
        for (tenant, day) in stacks.map(day_of).filter(|day| !left.contains(day)) {
            self.known.forget(&tenant, day);
        }
    }

    fn set_files(&self, view: &mut View, files: Vec<FileEntry>) {
        self.metrics.files.set(files.len() as i64);
        view.files = files.into();
    }
}

impl Publication<'_> {
    /// Publishes an exchange: removes the files in `removed` and adds `added`.
    pub(crate) fn exchanged(&self, removed: &HashSet<&str>, added: impl Iterator<Item = FileEntry>) {
        let mut view = self.published.view.write();
        let kept = view.files.iter().filter(|file| !removed.contains(file.path.as_str()));
        let files = kept.cloned().chain(added).collect();
        self.published.set_files(&mut view, files);
    }

    /// Publishes a flush. Replaces the frozen generation with the files in `progress`. `lists` contains all files of
    /// the tables whose outcome in `progress` is unknown.
    pub(crate) fn flushed(&self, progress: &mut Progress, lists: Lists) {
        let mut view = self.published.view.write();
        let mut files = view.files.to_vec();
        for (table, all) in lists {
            files.retain(|file| file.table != table);
            files.extend(all);
        }
        for outcome in std::mem::take(progress).into_values() {
            if let CommitOutcome::Added(added) = outcome {
                files.extend(added);
            }
        }
        self.published.set_files(&mut view, files);
        view.frozen = None;
    }

    /// Publishes the live files of some tables. Omits the files of a flush of this store that is not published yet,
    /// because queries still read the rows of these files from the frozen head.
    pub(crate) fn listed(&self, lists: impl IntoIterator<Item = (Table, Vec<FileEntry>)>) {
        let mut view = self.published.view.write();
        let frozen = view.frozen.as_ref().map(|generation| generation.last_segment);
        let in_a_head =
            |file: &FileEntry| frozen.is_some() && FileName::segment_of(&file.path, &self.published.writer) == frozen;
        let mut files = view.files.to_vec();
        for (table, live) in lists {
            if table == Table::Stacks {
                self.published.forget_removed(&files, &live);
            }
            files.retain(|file| file.table != table);
            files.extend(live.into_iter().filter(|file| !in_a_head(file)));
        }
        self.published.set_files(&mut view, files);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_profile::StackId;
    use alluvium_telemetry::metrics::Scope;
    use alluvium_testing::tenant_id;

    #[test]
    fn stacks_that_another_server_has_taken_out_are_not_known_any_more() {
        let tenant = tenant_id("t");
        let file = |day: i32| FileEntry {
            table: Table::Stacks,
            path: format!("stacks/tenant=t/{day}.parquet"),
            size: 10,
            rows: 1,
            tenant: tenant.clone(),
            day,
            time: None,
            profile_type: None,
            series: None,
            checksum: None,
        };
        let known = Arc::<KnownStacks>::default();
        for day in [1, 2] {
            known.add(&tenant, day, [(StackId(7), false)].into_iter());
        }
        let published = Published::new(
            Root::default(),
            "writer".to_owned(),
            known.clone(),
            Metrics::new(&Scope::new()),
            vec![file(1), file(2)],
            Head::new(known.clone()),
        );
        published.begin().listed([(Table::Stacks, vec![file(2)])]);
        let lookup = |day| known.day(&tenant, day).read().get(StackId(7));
        assert_eq!((lookup(1), lookup(2)), (None, Some(false)));
    }
}
