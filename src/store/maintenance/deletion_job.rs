//! Runs deletions: takes a request, carries it out, and at the next round or start finishes what a crash or an error
//! interrupted.
//!
//! In: a [`Deletion`]. Out: files without the profiles, which replace the others in all tables in one step for readers.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::sync::oneshot::error::TryRecvError;

use crate::store::StoreError;
use crate::store::fault::Place;
use crate::store::flushes::Flushes;
use crate::store::maintenance::deletion::{self, Deletion};
use crate::store::maintenance::exchange::Exchange;
use crate::store::maintenance::report::Report;
use crate::store::maintenance::worker::{Worker, worse};
use crate::store::schema::Table;
use crate::store::snapshot::FileEntry;

/// Writes the request down and carries it out.
pub(super) fn take(worker: &mut Worker, flushes: &Flushes, deletion: &Deletion) -> Result<Report, StoreError> {
    deletion.check().map_err(StoreError::Request)?;
    // Everything acknowledged before is in files after this, and the request covers these files and no later ones.
    flush(worker, flushes)?;
    let covered = (worker.tables.committed()?, worker.tables.flushed_by_others()?);
    let deletion = deletion.clone().up_to(covered.0, covered.1);
    let request = deletion.write(&worker.config.dir, &worker.config.faults)?;
    let mut report = Report::default();
    worker.again(|worker| delete(worker, &deletion, &request, &mut report))?;
    Ok(report)
}

/// Carries out the requests for deletions that an earlier attempt has left.
pub(super) fn finish(worker: &mut Worker, report: &mut Report) -> Result<(), StoreError> {
    let mut result = Ok(());
    for request in deletion::pending(&worker.config.dir)? {
        tracing::info!(request = %request.display(), "finishing a deletion");
        let deletion = match Deletion::read(&request) {
            Ok(deletion) => deletion,
            // The request is unreadable; `alluvium store check` reports it.
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::error!(error = %error, "a request for a deletion is passed over");
                continue;
            }
            Err(error) => return Err(error),
        };
        result = worse(result, delete(worker, &deletion, &request, report));
    }
    result
}

/// Flushes the head and waits for the result.
fn flush(worker: &Worker, flushes: &Flushes) -> Result<(), StoreError> {
    let mut answer = flushes.ask();
    loop {
        match answer.try_recv() {
            Ok(result) => return result,
            Err(TryRecvError::Closed) => return Err(StoreError::Closed),
            // A stopped flusher does not answer.
            Err(TryRecvError::Empty) if worker.lifecycle.is_stopped() => return Err(StoreError::Closed),
            Err(TryRecvError::Empty) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Carries out a request: rewrites the files that hold such profiles without them, and replaces them in all tables in
/// one step for readers.
fn delete(worker: &mut Worker, deletion: &Deletion, request: &Path, report: &mut Report) -> Result<(), StoreError> {
    let start = Instant::now();
    worker.tables.settle()?;
    worker.begin("delete")?;
    let published = worker.published.clone();
    let root = &published.root;
    let mut exchanges: Vec<Exchange> = Vec::new();
    let files = published.files();
    let covered = files
        .iter()
        .filter(|file| deletion.covers(&file.path, &published.writer));
    let covered: Vec<FileEntry> = covered.cloned().collect();
    let jobs = deletion.jobs(root, &covered);
    for job in jobs.map_err(|error| worker.tables.explained(Table::Series, error))? {
        let result = worker.rewrite(&job, 1.0);
        let result = result.map_err(|error| worker.tables.explained(job.table, error));
        let added = match worker.counted("delete", result) {
            Ok(added) => added,
            Err(error) => {
                exchanges.iter().for_each(|exchange| exchange.discard(root));
                return Err(error);
            }
        };
        let exchange = Exchange::of(&job, added);
        // The statistics selected a file that has no such row.
        if exchange.keeps_rows() {
            exchange.discard(root);
            continue;
        }
        match exchanges.iter_mut().find(|other| other.table == job.table) {
            Some(other) => {
                other.removed.extend(exchange.removed);
                other.added.extend(exchange.added);
            }
            None => exchanges.push(exchange),
        }
    }
    if !exchanges.is_empty() {
        let result = worker.tables.exchange(&exchanges);
        worker.counted("delete", result)?;
        for exchange in &exchanges {
            worker.count(exchange, "delete", start, report);
        }
    }
    // Also when there was nothing left to do: an attempt that failed may have been committed.
    worker.repeats.forget(&deletion.tenant);
    let faults = &worker.config.faults;
    faults
        .run(Place::RequestRemove, || fs::remove_file(request))
        .map_err(StoreError::io("remove", request))
}
