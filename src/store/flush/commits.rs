//! The memory that a data folder has of its own commits, in the file `COMMITS`.
//!
//! It holds the last segment of the log that all tables have, and random numbers of the processes that committed from
//! this folder. A table that lacks the segment has lost an entry of its log; a commit of another process comes from a
//! copy of the folder. Both are durable before anything relies on them: the segment before a segment is deleted, the
//! process before its first commit. Folders of older programs have no such file until then.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::base::file::replace_by;
use crate::store::common::error::StoreError;
use crate::store::common::fault::{Faults, Place};

/// Name of the file in the data folder.
pub(crate) const FILE: &str = "COMMITS";

/// Number of processes that are remembered beside those that the tables name. A request of a process that was killed
/// may reach a bucket after a few more have started.
const PROCESSES: usize = 64;

/// The contents of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Remembered {
    /// The writer of the commits; a folder that gets another one begins anew.
    pub(crate) writer: String,
    /// Last segment that all tables have; segments up to it may have been deleted.
    pub(crate) flushed: u64,
    /// Processes that committed from this folder, oldest first.
    pub(crate) processes: Vec<u64>,
    /// Up to this segment, the user has accepted that tables or log lack something.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) accepted: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The memory of a folder that this process writes to.
#[derive(Debug)]
pub(crate) struct Commits {
    dir: PathBuf,
    remembered: Remembered,
    /// Random number of this process.
    process: u64,
    faults: Faults,
}

impl Remembered {
    /// Reads what a folder remembers of the commits of `writer`; empty when that is nothing.
    pub(crate) fn read(dir: &Path, writer: &str) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let none = || Self {
            writer: writer.to_owned(),
            ..Self::default()
        };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(none()),
            Err(error) => return Err(StoreError::io("read", &path)(error)),
        };
        let found: Self = serde_json::from_slice(&text).map_err(|error| StoreError::Damaged {
            path,
            reason: format!("it must hold what was committed from the folder ({error}); a backup has it"),
        })?;
        Ok(if found.writer == writer { found } else { none() })
    }

    /// Writes the memory of a folder; durable when it returns.
    pub(crate) fn write(&self, dir: &Path, faults: &Faults) -> Result<(), StoreError> {
        let path = dir.join(FILE);
        let mut text = serde_json::to_vec(self).map_err(|error| StoreError::io("write", &path)(error.into()))?;
        text.push(b'\n');
        replace_by(&path, &text, &mut |step| faults.run(Place::FolderWrite, step))
            .map_err(StoreError::io("write", &path))
    }
}

impl Commits {
    /// Reads the memory of a folder, for a process that begins.
    pub(crate) fn open(dir: &Path, writer: &str, faults: Faults) -> Result<Self, StoreError> {
        Ok(Self {
            dir: dir.to_owned(),
            remembered: Remembered::read(dir, writer)?,
            // Exact in the numbers of any reader of JSON.
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

    /// True for this process and those that committed from this folder before.
    pub(crate) fn is_ours(&self, process: u64) -> bool {
        process == self.process || self.remembered.processes.contains(&process)
    }

    /// True once this process is remembered.
    pub(crate) fn has_process(&self) -> bool {
        self.remembered.processes.contains(&self.process)
    }

    /// Remembers this process before its first commit. `named` are the processes of the tables' last transactions.
    pub(crate) fn before_commit(&mut self, named: &[u64]) -> Result<(), StoreError> {
        if self.has_process() {
            return Ok(());
        }
        let mut new = self.remembered.clone();
        let mut excess = new.processes.len().saturating_sub(PROCESSES);
        new.processes.retain(|process| {
            let goes = excess > 0 && !named.contains(process);
            excess -= usize::from(goes);
            !goes
        });
        new.processes.push(self.process);
        match (self.write(new), self.remembered.processes.last()) {
            // A full disk does not keep a flush to a bucket from making room. A copy of the folder may take its commits
            // for its own.
            (Err(error), Some(last)) if error.is_full() => {
                tracing::warn!(error = %error, "cannot remember this process, its commits carry the number of an \
                    earlier one");
                self.process = *last;
                Ok(())
            }
            (result, _) => result,
        }
    }

    /// Remembers that all tables have the segments up to `segment`, before these are deleted.
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
            assert!(next.is_ours(named) && (last == 0 || next.is_ours(last)));
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
