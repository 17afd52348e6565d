//! Runs jobs (rewrites of files) one after the other, and merges until no merge is due. Jobs skip an unreadable file
//! for a while. While a deletion waits, jobs also skip the files that it covers. All other files are still merged.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use crate::store::common::error::StoreError;
use crate::store::maintenance::deletion::request::{folder_of, is_foreign};
use crate::store::maintenance::merge::rewrite::Job;
use crate::store::maintenance::plan::{self, Policy};
use crate::store::maintenance::report::Report;
use crate::store::maintenance::worker::{Worker, worse_result};
use crate::store::tables::snapshot::FileEntry;

/// How long jobs skip an unreadable file.
pub(super) const UNREADABLE_RETRY_DELAY: Duration = Duration::from_mins(10);

/// Files that jobs must leave unchanged because waiting deletions need them.
#[derive(Debug, Default)]
pub(super) enum FileHold {
    Only(HeldFiles),
    /// All files, because a request cannot be read at the moment.
    #[default]
    All,
}

/// Files that the requests cover, and files that may hold rows of covered files.
#[derive(Debug, Default)]
pub(super) struct HeldFiles {
    /// Paths of covered files, as in the list of live files.
    pub(super) covered: HashSet<String>,
    /// Folders of covered files, live or not. Other servers may merge covered files in these folders at any time.
    /// Therefore jobs skip all files in these folders that another server has merged. If this server merged such a file
    /// again, the new file would carry this server's identity, and jobs would no longer skip it.
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
    /// Files that a job could not read, and when the next attempt is allowed.
    unreadable: HashMap<String, Instant>,
    /// Files that waiting deletions need. Until the requests are read for the first time, these are all files.
    hold: FileHold,
}

impl Jobs {
    /// Lets the next jobs try unreadable files again, because the files may have been repaired.
    pub(super) fn forget_unreadable(&mut self) {
        self.unreadable.clear();
    }

    /// Sets the files that jobs must leave unchanged because waiting deletions need them.
    pub(super) fn hold(&mut self, hold: FileHold) {
        self.hold = hold;
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
        // A merge can make another merge due. The loop ends because each merge leaves fewer files.
        loop {
            let left_out = self.unreadable.len();
            let jobs = plan::compactions(&self.rewritable(worker), worker.now_us(), policy);
            match self.run(worker, jobs, cpu_share, report) {
                Ok(0) => return result,
                Ok(_) => {}
                // Without the files that were left out, other merges may be due.
                Err(error) if self.unreadable.len() > left_out && !matches!(error, StoreError::Closed) => {
                    result = worse_result(result, Err(error));
                }
                Err(error) => return worse_result(result, Err(error)),
            }
        }
    }

    /// Runs jobs that share no files, and returns their number. A failed job does not stop the other jobs. If jobs
    /// fail, returns their first error, but [`StoreError::Outdated`] only if no other error occurred.
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
                    self.exclude_input(worker, &job, &error);
                    result = worse_result(result, Err(error));
                }
            }
        }
        worker.metrics.jobs_waiting.set(0);
        result
    }

    /// Returns the live files that a job may rewrite.
    pub(super) fn rewritable(&self, worker: &Worker) -> Vec<FileEntry> {
        let files = worker.published.files();
        files.iter().filter(|file| self.may_rewrite(file)).cloned().collect()
    }

    /// Returns true if a file is readable and no deletion needs it unchanged.
    pub(super) fn may_rewrite(&self, file: &FileEntry) -> bool {
        let is_held = match &self.hold {
            FileHold::Only(files) => files.has(&file.path),
            FileHold::All => true,
        };
        let retry_time = self.unreadable.get(&file.path);
        !is_held && retry_time.is_none_or(|retry_time| Instant::now() >= *retry_time)
    }

    /// Excludes an unreadable input from further jobs for a while, so that other files are still merged. If a bucket
    /// returns an error other than a missing file, the file itself may be readable, so it is not excluded.
    fn exclude_input(&mut self, worker: &Worker, job: &Job, error: &StoreError) {
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
                tracing::error!(error = %error, path = file.path, "cannot read a file, it stays unchanged");
            }
            self.unreadable
                .insert(file.path.clone(), Instant::now() + UNREADABLE_RETRY_DELAY);
        }
    }
}
