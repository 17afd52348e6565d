//! The jobs of deletions: taking a request, carrying it out, and finishing at the next round or start what a crash or an error has left.
//!
//! In: a [`Deletion`]. Out: files without such profiles, exchanged for the others of all tables in one step for readers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::store::StoreError;
use crate::store::fault::Place;
use crate::store::files::FileName;
use crate::store::maintenance::Report;
use crate::store::maintenance::deletion::{self, Deletion};
use crate::store::maintenance::exchange::Exchange;
use crate::store::maintenance::runner::{Maintainer, graver};
use crate::store::schema::Table;
use crate::store::snapshot::FileEntry;

impl Maintainer {
    /// Writes the request down and carries it out.
    pub(super) fn take_deletion(&mut self, deletion: &Deletion) -> Result<Report, StoreError> {
        deletion.check().map_err(StoreError::Request)?;
        // What was acknowledged before is in files afterwards, and the request covers these and no later ones.
        self.flush()?;
        let deletion = deletion.clone().up_to(self.committed()?, self.flushed_by_others()?);
        let config = &self.shared.config;
        let request = deletion.write(&config.dir, &config.faults)?;
        let mut report = Report::default();
        self.again(|own| own.delete(&deletion, &request, &mut report))?;
        Ok(report)
    }

    /// Carries out the requests for deletions that an earlier attempt has left.
    pub(super) fn finish_deletions(&mut self, report: &mut Report) -> Result<(), StoreError> {
        let mut result = Ok(());
        for request in deletion::pending(&self.shared.config.dir)? {
            tracing::info!(request = %request.display(), "finishing a deletion");
            let deletion = match Deletion::read(&request) {
                Ok(deletion) => deletion,
                // Nobody can say what it was for; `alluvium store check` names it.
                Err(error @ StoreError::Damaged { .. }) => {
                    tracing::error!(error = %error, "a request for a deletion is passed over");
                    continue;
                }
                Err(error) => return Err(error),
            };
            result = graver(result, self.delete(&deletion, &request, report));
        }
        result
    }

    /// The last segment of the log of which the tables have everything.
    fn committed(&mut self) -> Result<u64, StoreError> {
        let mut least = u64::MAX;
        for delta in &mut self.tables {
            delta.reload()?;
            let version = delta
                .committed(&self.writer)?
                .map_or(0, |version| version.max(0) as u64);
            least = least.min(version);
        }
        Ok(least)
    }

    /// The last segment of which a flushed file is live, for each other writer: merged files are covered as they are.
    fn flushed_by_others(&mut self) -> Result<BTreeMap<String, u64>, StoreError> {
        let mut others: BTreeMap<String, u64> = BTreeMap::new();
        for delta in &self.tables {
            for file in delta.files()? {
                let name = file.path.rsplit('/').next().unwrap_or_default();
                if let Some(flushed) = FileName::parse(name).filter(|flushed| flushed.writer != self.writer) {
                    let last = others.entry(flushed.writer).or_default();
                    *last = flushed.segment.max(*last);
                }
            }
        }
        Ok(others)
    }

    /// Carries a request out: files with such profiles are written again without them, and all tables change in one step for readers.
    fn delete(&mut self, deletion: &Deletion, request: &Path, report: &mut Report) -> Result<(), StoreError> {
        let shared = self.shared.clone();
        let start = Instant::now();
        self.settle()?;
        self.begin("delete")?;
        let mut exchanges: Vec<Exchange> = Vec::new();
        let files = self.files();
        let covered = files.iter().filter(|file| deletion.covers(&file.path, &self.writer));
        let covered: Vec<FileEntry> = covered.cloned().collect();
        let jobs = deletion.jobs(&shared.root, &covered);
        for job in jobs.map_err(|error| self.explained(Table::Series, error))? {
            let result = self
                .rewrite(&job, 1.0)
                .map_err(|error| self.explained(job.table, error));
            let added = match self.counted("delete", result) {
                Ok(added) => added,
                Err(error) => {
                    exchanges.iter().for_each(|exchange| exchange.discard(&shared.root));
                    return Err(error);
                }
            };
            let exchange = Exchange::of(&job, added);
            // Statistics let a file through that has no such row.
            if exchange.keeps_rows() {
                exchange.discard(&shared.root);
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
            let result = self.exchange(&exchanges);
            self.counted("delete", result)?;
            for exchange in &exchanges {
                self.count(exchange, "delete", start, report);
            }
        }
        shared
            .config
            .faults
            .run(Place::RequestRemove, || fs::remove_file(request))
            .map_err(StoreError::io("remove", request))
    }
}
