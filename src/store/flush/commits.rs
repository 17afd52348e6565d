//! The file `COMMITS` of a data folder: a record of the commits that were made from this folder.
//!
//! The file holds the number of the last log segment that all tables contain, and the random numbers of the processes
//! that committed from this folder. If a table lacks that segment, the table's log has lost an entry. If a table has a
//! commit of a process that is not in the file, that commit comes from a copy of the folder.
//!
//! The segment number is durable before any segment is deleted. The number of a process is durable before the first
//! commit of the process. A folder of an older program has no such file until its first flush.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::store::common::error::StoreError;
use crate::store::common::fault::{FaultPoint, Faults};
use alluvium_base::file::replace_by;

/// Name of the file in the data folder.
pub(crate) const FILE: &str = "COMMITS";

/// Number of processes to remember. Processes that the tables name are always remembered. A request of a killed process
/// may still reach a bucket after a few more processes have started, so earlier processes are remembered too.
const PROCESSES: usize = 64;

/// The contents of the file, called the folder's memory of its commits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Remembered {
    /// The writer of the commits. A new writer of the folder starts with an empty memory.
    pub(crate) writer: String,
    /// Last segment that all tables contain. This segment and earlier ones may have been deleted.
    pub(crate) flushed: u64,
    /// Processes that committed from this folder, oldest first.
    pub(crate) processes: Vec<u64>,
    /// Last segment for which the user has accepted that the tables or the log lack profiles.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) accepted: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The file `COMMITS` of the folder that this process writes to.
#[derive(Debug)]
pub(crate) struct Commits {
    dir: PathBuf,
    remembered: Remembered,
    /// Random number of this process.
    process: u64,
    faults: Faults,
}

impl Remembered {
    /// Reads the file of a folder. Returns an empty memory if the folder has no file, or a file of another writer.
    pub(crate) fn read(dir: &Path, writer: &str) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let empty = || Self {
            writer: writer.to_owned(),
            ..Self::default()
        };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(empty()),
            Err(error) => return Err(StoreError::io("read", &path)(error)),
        };
        let commits: Self = serde_json::from_slice(&text).map_err(|error| StoreError::Damaged {
            path,
            reason: format!("it does not hold the record of commits ({error}); restore it from a backup"),
        })?;
        Ok(if commits.writer == writer { commits } else { empty() })
    }

    /// Writes the memory to the file of a folder. The file is durable when the function returns.
    pub(crate) fn write(&self, dir: &Path, faults: &Faults) -> Result<(), StoreError> {
        let path = dir.join(FILE);
        let mut text = serde_json::to_vec(self).map_err(|error| StoreError::io("write", &path)(error.into()))?;
        text.push(b'\n');
        replace_by(&path, &text, &mut |step| faults.run(FaultPoint::FolderWrite, step))
            .map_err(StoreError::io("write", &path))
    }
}

impl Commits {
    /// Reads the memory of a folder and draws a number for this process.
    pub(crate) fn open(dir: &Path, writer: &str, faults: Faults) -> Result<Self, StoreError> {
        Ok(Self {
            dir: dir.to_owned(),
            remembered: Remembered::read(dir, writer)?,
            // The number is below 2^53, so that every JSON reader represents it exactly.
            process: rand::random_range(1..1 << 53),
            faults,
        })
    }

    pub(crate) fn remembered(&self) -> &Remembered {
        &self.remembered
    }

    /// Random number of this process.
    pub(crate) fn process(&self) -> u64 {
        self.process
    }

    /// True if `process` is this process, or a process that committed from this folder before.
    pub(crate) fn is_own(&self, process: u64) -> bool {
        process == self.process || self.remembered.processes.contains(&process)
    }

    /// True once the folder remembers this process.
    pub(crate) fn has_process(&self) -> bool {
        self.remembered.processes.contains(&self.process)
    }

    /// Adds this process to the memory before its first commit. `named` contains the processes of the tables' last
    /// transactions.
    pub(crate) fn before_commit(&mut self, named: &[u64]) -> Result<(), StoreError> {
        if self.has_process() {
            return Ok(());
        }
        let mut new = self.remembered.clone();
        let mut excess = new.processes.len().saturating_sub(PROCESSES);
        new.processes.retain(|process| {
            let is_removed = excess > 0 && !named.contains(process);
            excess -= usize::from(is_removed);
            !is_removed
        });
        new.processes.push(self.process);
        match (self.write(new), self.remembered.processes.last()) {
            // A flush to a bucket frees space on a full disk, so it must not fail. This process therefore uses the
            // number of an earlier one. The price: a copy of the folder may contain that number too, and then a server
            // on the copy mistakes the commits of this process for commits of its own folder.
            (Err(error), Some(last)) if error.is_full() => {
                tracing::warn!(error = %error, "cannot remember this process, so its commits carry the number of \
                    an earlier process");
                self.process = *last;
                Ok(())
            }
            (result, _) => result,
        }
    }

    /// Records that all tables contain the segments up to `segment`. The caller may then delete these segments.
    pub(crate) fn flushed(&mut self, segment: u64) -> Result<(), StoreError> {
        if self.remembered.flushed >= segment {
            return Ok(());
        }
        self.write(Remembered {
            flushed: segment,
            ..self.remembered.clone()
        })
    }

    fn write(&mut self, new: Remembered) -> Result<(), StoreError> {
        new.write(&self.dir, &self.faults)?;
        self.remembered = new;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_the_tables_name_are_remembered_however_many_follow() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Commits::open(dir.path(), "w", Faults::default()).unwrap();
        let mut first = open();
        first.before_commit(&[]).unwrap();
        first.flushed(7).unwrap();
        let named = first.process();
        let mut last = 0;
        for _ in 0..PROCESSES * 2 {
            let mut next = open();
            assert!(next.is_own(named) && (last == 0 || next.is_own(last)));
            next.before_commit(&[named]).unwrap();
            last = next.process();
        }
        let end = Remembered::read(dir.path(), "w").unwrap();
        assert!(end.processes.len() <= PROCESSES + 2, "{}", end.processes.len());
        assert_eq!((end.flushed, end.accepted), (7, 0));
        // A folder with a new writer has committed nothing.
        assert_eq!(Remembered::read(dir.path(), "other").unwrap().flushed, 0);
    }

    #[test]
    fn a_memory_that_cannot_be_read_is_damage_and_none_is_an_older_folder() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Remembered::read(dir.path(), "").unwrap(), Remembered::default());
        fs::write(dir.path().join(FILE), "{\"flushed\":3,\"pro").unwrap();
        let error = Remembered::read(dir.path(), "").unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    }
}
