//! Runs jobs one after the other, and merges until none is due. Unreadable files are left out for a while, so that the
//! files beside them are still merged.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use crate::store::StoreError;
use crate::store::maintenance::plan::{self, Policy};
use crate::store::maintenance::report::Report;
use crate::store::maintenance::rewrite::Job;
use crate::store::maintenance::worker::{Worker, worse};
use crate::store::snapshot::FileEntry;

/// How long an unreadable file is left out.
const UNREADABLE_WAIT: Duration = Duration::from_mins(10);

/// Runs jobs on files that can be read.
#[derive(Default)]
pub(super) struct Jobs {
    /// Files that a job could not read, and when that may be tried again.
    unreadable: HashMap<String, Instant>,
}

impl Jobs {
    /// Tries unreadable files again: they may have been repaired.
    pub(super) fn forget_unreadable(&mut self) {
        self.unreadable.clear();
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
            let jobs = plan::compactions(&self.readable(worker), worker.now_us(), policy);
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

    /// The live files without the unreadable ones.
    pub(super) fn readable(&self, worker: &Worker) -> Vec<FileEntry> {
        let files = worker.published.files();
        files.iter().filter(|file| self.is_readable(file)).cloned().collect()
    }

    pub(super) fn is_readable(&self, file: &FileEntry) -> bool {
        let until = self.unreadable.get(&file.path);
        until.is_none_or(|until| Instant::now() >= *until)
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
