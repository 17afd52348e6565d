//! Runs jobs one after the other, and merges until none is due. Unreadable files are left out for a while, and files
//! that a waiting deletion covers until it is done, so that the files beside them are still merged.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use crate::store::common::error::StoreError;
use crate::store::maintenance::deletion::request::{folder_of, is_foreign};
use crate::store::maintenance::merge::rewrite::Job;
use crate::store::maintenance::plan::{self, Policy};
use crate::store::maintenance::report::Report;
use crate::store::maintenance::worker::{Worker, worse};
use crate::store::tables::snapshot::FileEntry;

/// How long an unreadable file is left out.
pub(super) const UNREADABLE_WAIT: Duration = Duration::from_mins(10);

/// Files that other jobs must leave as they are, because requests wait.
#[derive(Debug, Default)]
pub(super) enum Held {
    Only(HeldFiles),
    /// All: a request cannot be read at the moment.
    #[default]
    All,
}

/// Files that the requests cover, and those that may hold rows of covered files.
#[derive(Debug, Default)]
pub(super) struct HeldFiles {
    /// Paths of covered files, as in the list of live files.
    pub(super) covered: HashSet<String>,
    /// Folders of covered files, live or not. Here other servers may merge covered files at any time. If this server
    /// merged the result, it would look like a file that has nothing of them.
    pub(super) folders: HashSet<String>,
    /// Identity of this store.
    pub(super) writer: String,
}

impl HeldFiles {
    fn has(&self, path: &str) -> bool {
        let is_in_folder = || folder_of(path).is_some_and(|folder| self.folders.contains(folder));
        self.covered.contains(path) || is_foreign(path, &self.writer) && is_in_folder()
    }
}

/// Runs jobs on files that can be read.
#[derive(Default)]
pub(super) struct Jobs {
    /// Files that a job could not read, and when that may be tried again.
    unreadable: HashMap<String, Instant>,
    /// Files that waiting deletions need; all of them before the first look at the requests.
    held: Held,
}

impl Jobs {
    /// Tries unreadable files again: they may have been repaired.
    pub(super) fn forget_unreadable(&mut self) {
        self.unreadable.clear();
    }

    /// Leaves files to the deletions that cover them.
    pub(super) fn hold(&mut self, held: Held) {
        self.held = held;
    }

    /// Runs the merges that are due under `policy`.
    pub(super) fn compact(
        &mut self,
        worker: &mut Worker,
        policy: &Policy,
        cpu_share: f64,
        report: &mut Report,
    ) -> Result<(), StoreError> {
        let mut result = Ok(());
        // A merge can make another one due; each leaves fewer files.
        loop {
            let left_out = self.unreadable.len();
            let jobs = plan::compactions(&self.rewritable(worker), worker.now_us(), policy);
            match self.run(worker, jobs, cpu_share, report) {
                Ok(0) => return result,
                Ok(_) => {}
                // Other merges may be due without the files that were left out.
                Err(error) if self.unreadable.len() > left_out && !matches!(error, StoreError::Closed) => {
                    result = worse(result, Err(error));
                }
                Err(error) => return worse(result, Err(error)),
            }
        }
    }

    /// Runs jobs that share no files, and returns their number. A failed job does not stop the others; the returned
    /// error is the first that is worse than giving way.
    pub(super) fn run(
        &mut self,
        worker: &mut Worker,
        jobs: Vec<Job>,
        cpu_share: f64,
        report: &mut Report,
    ) -> Result<usize, StoreError> {
        let count = jobs.len();
        let mut result = Ok(count);
        for (index, job) in jobs.into_iter().enumerate() {
            worker.metrics.jobs_waiting.set((count - index) as i64);
            match worker.run(&job, cpu_share, report) {
                Ok(()) => {}
                Err(error) if matches!(error, StoreError::Closed) => return Err(error),
                Err(error) => {
                    self.leave_out(worker, &job, &error);
                    result = worse(result, Err(error));
                }
            }
        }
        worker.metrics.jobs_waiting.set(0);
        result
    }

    /// The live files that a job may rewrite.
    pub(super) fn rewritable(&self, worker: &Worker) -> Vec<FileEntry> {
        let files = worker.published.files();
        files.iter().filter(|file| self.may_rewrite(file)).cloned().collect()
    }

    /// Whether a file is readable and no deletion needs it as it is.
    pub(super) fn may_rewrite(&self, file: &FileEntry) -> bool {
        let is_held = match &self.held {
            Held::Only(held) => held.has(&file.path),
            Held::All => true,
        };
        let until = self.unreadable.get(&file.path);
        !is_held && until.is_none_or(|until| Instant::now() >= *until)
    }

    /// Leaves an unreadable input out of further jobs for a while, so that the files beside it are still merged. A
    /// bucket that does not answer proves nothing about the file.
    fn leave_out(&mut self, worker: &Worker, job: &Job, error: &StoreError) {
        let path = match error {
            StoreError::Damaged { path, .. } => path,
            StoreError::Io { path, source, .. }
                if worker.published.root.bucket().is_none() || source.kind() == io::ErrorKind::NotFound =>
            {
                path
            }
            _ => return,
        };
        let input = job
            .inputs
            .iter()
            .find(|file| worker.published.root.name(&file.path) == *path);
        if let Some(file) = input {
            // A damaged file was logged when it was found.
            if !matches!(error, StoreError::Damaged { .. }) {
                tracing::error!(error = %error, path = file.path, "a file cannot be read, it is left as it is");
            }
            self.unreadable
                .insert(file.path.clone(), Instant::now() + UNREADABLE_WAIT);
        }
    }
}
