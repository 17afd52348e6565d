//! Runs deletions: accepts a request and carries it out. The next round or start finishes a deletion that a crash or an
//! error has interrupted.
//!
//! In: a [`Deletion`]. Out: new files without the selected profiles. For readers, the new files replace the old files
//! in all tables in one step. If one file that the request covers cannot be read, nothing is deleted and the request
//! waits, so that the tables always agree.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::sync::oneshot::error::TryRecvError;

use crate::store::common::error::StoreError;
use crate::store::common::fault::FaultPoint;
use crate::store::common::schema::Table;
use crate::store::flush::flushes::Flushes;
use crate::store::maintenance::deletion::request;
use crate::store::maintenance::deletion::request::Deletion;
use crate::store::maintenance::exchange::Exchange;
use crate::store::maintenance::jobs::{FileHold, HeldFiles, UNREADABLE_RETRY_DELAY};
use crate::store::maintenance::report::Report;
use crate::store::maintenance::worker::{Worker, worse_result};
use crate::store::tables::snapshot::FileEntry;
use alluvium_base::file::sync_parent;

/// The state of waiting requests, kept from round to round.
#[derive(Default)]
pub(in crate::store::maintenance) struct Deletions {
    /// Requests that failed because of their files, and when they are tried again.
    retry_times: HashMap<PathBuf, Instant>,
}

impl Deletions {
    /// Stores the request on disk and carries it out.
    pub(in crate::store::maintenance) fn take(
        worker: &mut Worker,
        flushes: &Flushes,
        requested: &Deletion,
    ) -> Result<Report, StoreError> {
        requested.check()?;
        // The flush publishes every profile that was acknowledged before the flush. It also reads and publishes the
        // flushes of other servers.
        flush(worker, flushes)?;
        let mut report = Report::default();
        let mut request: Option<PathBuf> = None;
        worker.retry(|worker| {
            // If the outcome of an earlier commit is unknown, the table of that commit is read again first.
            worker.tables.resolve_uncertain()?;
            // Another server may have replaced files of the request since the last attempt. So each attempt, while the
            // caller waits, limits the request to the files that are live now.
            let stored_request = requested
                .clone()
                .limit_to_live(worker.tables.committed()?, &worker.published.files())?;
            let path = match &request {
                Some(path) => {
                    stored_request.replace(path, &worker.config.faults)?;
                    path.clone()
                }
                None => request
                    .insert(stored_request.write(&worker.config.dir, &worker.config.faults)?)
                    .clone(),
            };
            delete(worker, &stored_request, &path, &mut report)
        })?;
        // This deletion has also carried out earlier requests for the same profiles.
        for path in request::pending(&worker.config.dir)? {
            if Deletion::read(&path).is_ok_and(|earlier| requested.repeats(&earlier)) {
                remove(worker, &path)?;
            }
        }
        Ok(report)
    }

    /// Carries out the requests that an earlier attempt has left. Returns the files that must not change while requests
    /// still wait. A request that failed because of its files is tried again after [`UNREADABLE_RETRY_DELAY`], or at
    /// once if `requested` is true, that is, if a caller has asked for the work.
    pub(in crate::store::maintenance) fn finish(
        &mut self,
        worker: &mut Worker,
        requested: bool,
        report: &mut Report,
    ) -> (FileHold, Result<(), StoreError>) {
        let requests = match request::pending(&worker.config.dir) {
            Ok(requests) => requests,
            Err(error) => return (FileHold::All, Err(error)),
        };
        self.retry_times.retain(|request, _| requests.contains(request));
        let mut result = Ok(());
        for request in &requests {
            if !requested && self.retry_times.get(request).is_some_and(|time| Instant::now() < *time) {
                continue;
            }
            match Deletion::read(request) {
                Ok(deletion) => {
                    tracing::info!(request = %request.display(), "finishing a deletion");
                    let deleted = delete(worker, &deletion, request, report);
                    if let Err(StoreError::Damaged { .. } | StoreError::Unfinished { .. }) = &deleted {
                        self.retry_times
                            .insert(request.clone(), Instant::now() + UNREADABLE_RETRY_DELAY);
                    }
                    result = worse_result(result, deleted);
                }
                // `alluvium store check` also reports a damaged request.
                Err(error @ StoreError::Damaged { .. }) => {
                    self.retry_times
                        .insert(request.clone(), Instant::now() + UNREADABLE_RETRY_DELAY);
                    tracing::error!(%error, "ignoring a damaged request for a deletion");
                }
                Err(error) => result = worse_result(result, Err(error)),
            }
        }
        match read_held_files(worker) {
            Ok(hold) => (hold, result),
            Err(error) => (FileHold::All, worse_result(result, Err(error))),
        }
    }
}

/// Returns the files that must not change while requests wait.
fn read_held_files(worker: &Worker) -> Result<FileHold, StoreError> {
    let files = worker.published.files();
    let mut held_files = HeldFiles {
        writer: worker.published.writer.clone(),
        ..HeldFiles::default()
    };
    let requests = request::pending(&worker.config.dir)?;
    worker.metrics.deletions_waiting.set(requests.len() as i64);
    for request in requests {
        let deletion = match Deletion::read(&request) {
            Ok(deletion) => deletion,
            Err(StoreError::Damaged { .. }) => continue,
            Err(error) => return Err(error),
        };
        let covered = files
            .iter()
            .filter(|file| deletion.holds(file, &worker.published.writer));
        held_files.covered.extend(covered.map(|file| file.path.clone()));
        held_files.folders.extend(deletion.folders().map(str::to_owned));
    }
    Ok(FileHold::Only(held_files))
}

/// Removes a request that is carried out. If the sync fails, the request may reappear after a power cut, but then it
/// selects no remaining profile.
fn remove(worker: &Worker, request: &Path) -> Result<(), StoreError> {
    let faults = &worker.config.faults;
    let ignore_missing = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    };
    faults
        .run(FaultPoint::RequestRemove, || {
            fs::remove_file(request).or_else(ignore_missing)
        })
        .map_err(StoreError::io("remove", request))?;
    if let Err(error) = faults.run(FaultPoint::RequestRemoveSync, || sync_parent(request)) {
        tracing::warn!(%error, request = %request.display(), "cannot sync the removal of a finished request");
    }
    Ok(())
}

/// Flushes the head, reads the commits of other servers, and waits for the result.
fn flush(worker: &Worker, flushes: &Flushes) -> Result<(), StoreError> {
    let mut receiver = flushes.request_with_sync();
    loop {
        match receiver.try_recv() {
            Ok(result) => return result,
            Err(TryRecvError::Closed) => return Err(StoreError::Closed),
            // A stopped flush thread sends no result.
            Err(TryRecvError::Empty) if worker.lifecycle.is_stopped() => return Err(StoreError::Closed),
            Err(TryRecvError::Empty) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Carries out a request: rewrites the files that hold selected profiles, without these profiles, and replaces the
/// files in all tables in one step for readers.
fn delete(worker: &mut Worker, deletion: &Deletion, request: &Path, report: &mut Report) -> Result<(), StoreError> {
    let start = Instant::now();
    worker.tables.resolve_uncertain()?;
    worker.begin("delete")?;
    let published = worker.published.clone();
    let root = &published.root;
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut replaced: Vec<(FileEntry, Vec<String>)> = Vec::new();
    let files = published.files();
    let covered = deletion.covered_files(&files, &published.writer);
    let covered = covered.map_err(|error| StoreError::Unfinished {
        request: request.to_owned(),
        reason: error.to_string(),
    });
    let jobs = covered.and_then(|covered| deletion.jobs(root, &files, &covered));
    let jobs = jobs.map_err(|error| worker.tables.explained(Table::Series, error));
    let jobs = jobs.inspect_err(|error| worker.report_damage(error));
    for job in worker.count_failure("delete", jobs)? {
        let result = worker.rewrite(&job, 1.0);
        let result = result.map_err(|error| worker.tables.explained(job.table, error));
        let result = result.inspect_err(|error| worker.report_damage(error));
        let added = match worker.count_failure("delete", result) {
            Ok(added) => added,
            Err(error) => {
                exchanges.iter().for_each(|exchange| exchange.discard(root));
                return Err(error);
            }
        };
        let exchange = Exchange::of(&job, added);
        // The statistics of the file matched, but none of its rows did.
        if exchange.keeps_rows() {
            exchange.discard(root);
            continue;
        }
        let added = exchange.added.iter().map(|file| file.entry(job.table).path).collect();
        replaced.extend(job.inputs.iter().map(|file| (file.clone(), Vec::clone(&added))));
        match exchanges.iter_mut().find(|other| other.table == job.table) {
            Some(other) => {
                other.removed.extend(exchange.removed);
                other.added.extend(exchange.added);
            }
            None => exchanges.push(exchange),
        }
    }
    if !exchanges.is_empty() {
        if let Err(error) = transfer(worker, request, &replaced) {
            exchanges.iter().for_each(|exchange| exchange.discard(root));
            return worker.count_failure("delete", Err(error));
        }
        let result = worker.tables.exchange(&exchanges);
        worker.count_failure("delete", result)?;
        for exchange in &exchanges {
            worker.count(exchange, "delete", start, report);
        }
    }
    // These steps also run if no file had to be replaced, because an earlier attempt may have been committed although
    // it returned an error.
    worker.repeats.forget(&deletion.tenant);
    let durable = worker.tables.make_durable(&[Table::Samples, Table::Profiles]);
    worker.count_failure("delete", durable)?;
    remove(worker, request)
}

/// Updates the other requests: a request that covers a replaced file then also covers the new files.
fn transfer(worker: &Worker, request: &Path, replaced: &[(FileEntry, Vec<String>)]) -> Result<(), StoreError> {
    let live = worker.published.files();
    for path in request::pending(&worker.config.dir)? {
        if path == request {
            continue;
        }
        let mut other = match Deletion::read(&path) {
            Ok(other) => other,
            Err(StoreError::Damaged { .. }) => continue,
            Err(error) => return Err(error),
        };
        let mut is_changed = false;
        for (removed, added) in replaced {
            is_changed |= other.transfer(removed, added, &live, &worker.published.writer);
        }
        if is_changed {
            other.replace(&path, &worker.config.faults)?;
        }
    }
    Ok(())
}
