//! Copies a data folder, even while a server writes to it.
//!
//! In: the folder, and the path of a new folder. Out: a folder on which a server can start. It contains every profile
//! that was acknowledged before the copy began, exactly once.
//!
//! The server is not involved, and nothing is locked or changed. Files of tables and entries of their logs never
//! change, so the last copied entry of a table's log determines which files the copy needs. All tables must end with
//! the same flush. The write-ahead log is copied before the tables, so the tables contain the profiles of every
//! segment that a flush removes from the log meanwhile. If a file disappears before it is copied, or if the parts of
//! the copy disagree, the copy starts another attempt.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::store::common::error::StoreError;
use crate::store::common::fault::Faults;
use crate::store::common::schema::Table;
use crate::store::flush::commits::Remembered;
use crate::store::log::{cut, reader, wal};
use crate::store::maintenance::deletion::request;
use crate::store::open::folder;
use crate::store::tables::delta::DeltaTable;
use crate::store::tables::delta::log_files::{version_of, version_of_hint};
use crate::store::tables::root::{DataLocation, Root, log_of};
use crate::store::tables::snapshot::FileEntry;
use crate::store::tools::check_log::contradictions;
use crate::store::tools::inspect::run_on_thread;
use alluvium_base::file::{create_folders, sync_parent, temporary_name};

/// Maximum number of attempts before the copy fails.
const MAX_ATTEMPTS: usize = 60;
/// Number of attempts after which the copy accepts a flush that only some tables contain, because such a flush may
/// never end.
const COMPLETE_FLUSH_ATTEMPTS: usize = 30;
/// Wait before another attempt. A flush of a busy server ends within seconds.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// Small files at the top of a data folder.
const SMALL_FILES: [&str; 4] = ["VERSION", "WRITER", "CLOCK", "tokens.json"];

/// Counts of the parts that were copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Backup {
    /// Number of segments of the write-ahead log.
    pub(crate) segments: u64,
    /// Number of Parquet files of the tables.
    pub(crate) files: u64,
    /// Number of bytes of the segments and files.
    pub(crate) bytes: u64,
    /// Number of attempts that the copy needed.
    pub(crate) attempts: u64,
}

/// The reason why an attempt to copy failed.
enum Failure {
    /// The server has changed the folder during the attempt.
    Changed(String),
    Store(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Copies the data folder of `location` to the new folder `to`. Tables in a bucket are not copied.
pub(crate) fn backup<'a>(location: impl Into<DataLocation<'a>>, to: &Path) -> Result<Backup, StoreError> {
    let location = location.into();
    run_on_thread(|| copy_data(location, to))
}

fn copy_data(location: DataLocation<'_>, to: &Path) -> Result<Backup, StoreError> {
    let dir = location.dir;
    fs::read_dir(dir).map_err(StoreError::io("read the data folder", dir))?;
    folder::check_version(dir)?;
    let Some(writer) = folder::writer_of(dir)? else {
        return Err(StoreError::Request(format!(
            "{} is not a data folder: it has no file WRITER",
            dir.display()
        )));
    };
    if to.exists() {
        return Err(StoreError::Request(format!(
            "{} already exists: a backup needs a new folder",
            to.display()
        )));
    }
    let partial = temporary_name(to);
    let mut copy = BackupCopy {
        from: dir,
        to: partial.clone(),
        root: location.root()?,
        writer,
        files: BTreeSet::new(),
        totals: Backup::default(),
    };
    let copied = copy.run().and_then(|backup| {
        fs::rename(&partial, to)
            .and_then(|()| sync_parent(to))
            .map_err(StoreError::io("rename the complete copy to", to))?;
        Ok(backup)
    });
    if copied.is_err() {
        let _ = fs::remove_dir_all(&partial);
    }
    copied
}

struct BackupCopy<'a> {
    from: &'a Path,
    to: PathBuf,
    root: Root,
    writer: String,
    /// Parquet files that are copied already, with paths as in [`FileEntry`]. The files never change, so another
    /// attempt keeps them.
    files: BTreeSet<String>,
    totals: Backup,
}

/// The version of a table at which its copy ends.
struct EndVersion {
    table: Table,
    /// The last version of the table's log that the copy contains.
    version: u64,
    /// The last of the writer's segments whose profiles the table contains.
    committed: Option<i64>,
    files: Vec<FileEntry>,
}

impl BackupCopy<'_> {
    fn run(&mut self) -> Result<Backup, StoreError> {
        let mut last = String::new();
        for attempt in 0..MAX_ATTEMPTS {
            self.totals.attempts += 1;
            match self.attempt(attempt >= COMPLETE_FLUSH_ATTEMPTS) {
                Ok(()) => return Ok(self.totals),
                Err(Failure::Store(error)) => return Err(error),
                Err(Failure::Changed(reason)) => last = reason,
            }
            std::thread::sleep(RETRY_DELAY);
        }
        Err(StoreError::Request(format!(
            "cannot make a consistent copy of {} in {MAX_ATTEMPTS} attempts: {last}; try again when the \
                server has less to do",
            self.from.display()
        )))
    }

    /// Copies the whole folder. If `partial_flush` is true, some of the tables may contain a flush that other tables
    /// lack, for example because the flush fails again and again. In that case, the log still contains the whole flush.
    fn attempt(&mut self, partial_flush: bool) -> Result<(), Failure> {
        for name in ["wal", "deletions", "kept"] {
            let folder = self.to.join(name);
            if folder.exists() {
                fs::remove_dir_all(&folder).map_err(StoreError::io("empty", &folder))?;
            }
        }
        create_folders(&self.to).map_err(StoreError::io("create", &self.to))?;
        self.copy_log()?;
        let requests = request::pending(self.from)?;
        let ends = self.ends()?;
        // A deletion request that arrived or was carried out meanwhile may have changed only some of the tables.
        if request::pending(self.from)? != requests {
            return Err(Failure::Changed("profiles were being deleted".to_owned()));
        }
        if !partial_flush && ends.windows(2).any(|two| two[0].committed != two[1].committed) {
            return Err(Failure::Changed("a flush was in progress".to_owned()));
        }
        for request in requests {
            self.copy_needed(&request)?;
        }
        for end in &ends {
            self.copy_table(end)?;
        }
        for name in SMALL_FILES {
            self.copy_file(&self.from.join(name))?;
        }
        let kept = self.from.join("kept");
        if kept.exists() {
            self.copy_folder(&kept)?;
        }
        let committed = |end: &EndVersion| end.committed.map_or(0, |version| version.max(0) as u64);
        let mut remembered = Remembered::read(self.from, &self.writer)?;
        if let Some(min) = ends.iter().map(committed).min() {
            remembered.flushed = remembered.flushed.min(min);
        }
        remembered.write(&self.to, &Faults::default())?;
        if let Root::Folder(_) = self.root {
            self.verify(&ends)?;
        }
        Ok(())
    }

    /// Copies the segments of the log, oldest first, and the damaged records beside it.
    fn copy_log(&mut self) -> Result<(), Failure> {
        let (log, copy) = (self.from.join("wal"), self.to.join("wal"));
        create_folders(&copy).map_err(StoreError::io("create", &copy))?;
        (self.totals.segments, self.totals.bytes) = (0, 0);
        let numbers = wal::segments(&log)?;
        for number in &numbers {
            let path = wal::segment_path(&log, *number);
            // If a flush has removed the segment, the tables contain its profiles. The tables are copied after the log.
            if let Some(bytes) = self.copy_file(&path)? {
                self.copy_file(&cut::path_of(&path))?;
                self.totals.segments += 1;
                self.totals.bytes += bytes;
            }
        }
        // A record that is being written to the last segment is not acknowledged yet.
        if let Some(number) = numbers.last() {
            let path = wal::segment_path(&copy, *number);
            if path.exists() {
                let ending = reader::read(&path, |_| {})?;
                if ending.torn_bytes > 0 {
                    reader::cut(&path, ending.torn_bytes)?;
                }
            }
        }
        for entry in fs::read_dir(&log).map_err(StoreError::io("list", &log))? {
            let path = entry.map_err(StoreError::io("list", &log))?.path();
            let name = path.to_string_lossy();
            if name.ends_with(".damaged") || name.ends_with(".damaged.txt") {
                self.copy_file(&path)?;
            }
        }
        sync_parent(&copy.join("x")).map_err(StoreError::io("sync", &copy))?;
        Ok(())
    }

    /// Returns the present end of each table, stacks and series first. Returns no ends if the tables are in a bucket.
    fn ends(&self) -> Result<Vec<EndVersion>, StoreError> {
        let mut ends = Vec::new();
        for table in Table::ALL {
            if self.root.folder().is_none() || !self.root.has_log(table)? {
                continue;
            }
            let opened = DeltaTable::open(&self.root, table)?;
            ends.push(EndVersion {
                table,
                version: opened.version(),
                committed: opened.committed(&self.writer)?,
                files: opened.files()?,
            });
        }
        Ok(ends)
    }

    fn copy_table(&mut self, end: &EndVersion) -> Result<(), Failure> {
        let tables = self.from.join("tables");
        let log = tables.join(log_of(end.table));
        let copy = self.to.join("tables").join(log_of(end.table));
        if copy.exists() {
            fs::remove_dir_all(&copy).map_err(StoreError::io("empty", &copy))?;
        }
        create_folders(&copy).map_err(StoreError::io("create", &copy))?;
        for entry in fs::read_dir(&log).map_err(StoreError::io("list", &log))? {
            let entry = entry.map_err(StoreError::io("list", &log))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_meant = match version_of(&name) {
                Some(version) => version <= end.version,
                None if name == "_last_checkpoint" => fs::read(entry.path())
                    .ok()
                    .and_then(|text| version_of_hint(&text))
                    .is_some_and(|version| version <= end.version),
                None => false,
            };
            // If an entry is gone, the server has trimmed the log meanwhile. Either a checkpoint covers it, or `verify`
            // rejects the copy.
            if is_meant {
                self.copy_file(&entry.path())?;
            }
        }
        sync_parent(&copy.join("x")).map_err(StoreError::io("sync", &copy))?;
        for file in &end.files {
            if !self.files.contains(&file.path) {
                self.copy_needed(&tables.join(&file.path))?;
                self.files.insert(file.path.clone());
            }
        }
        Ok(())
    }

    /// Checks that the copied tables equal the original tables at `ends`, and that the copied log belongs to the
    /// tables.
    fn verify(&mut self, ends: &[EndVersion]) -> Result<(), Failure> {
        let changed = |subject: &str| Failure::Changed(format!("{subject} while it was copied"));
        let root = Root::Folder(self.to.join("tables"));
        let paths = |files: &[FileEntry]| files.iter().map(|file| file.path.clone()).collect::<BTreeSet<_>>();
        let mut live = BTreeSet::new();
        self.totals.files = 0;
        for end in ends {
            let copied = DeltaTable::open(&root, end.table).map_err(|_| changed("the log of a table was trimmed"))?;
            let files = paths(&copied.files()?);
            if copied.committed(&self.writer)? != end.committed || files != paths(&end.files) {
                return Err(changed("the log of a table has changed"));
            }
            self.totals.files += end.files.len() as u64;
            self.totals.bytes += end.files.iter().map(|file| file.size).sum::<u64>();
            live.extend(files);
        }
        if let Some(error) = contradictions(&self.to, &root, &self.writer)?.first() {
            return Err(Failure::Changed(error.to_string()));
        }
        // Earlier attempts copied these files, which the tables no longer contain.
        for path in self.files.difference(&live) {
            let path = self.to.join("tables").join(path);
            fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
        }
        Ok(())
    }

    fn copy_folder(&self, folder: &Path) -> Result<(), Failure> {
        for entry in fs::read_dir(folder).map_err(StoreError::io("list", folder))? {
            let path = entry.map_err(StoreError::io("list", folder))?.path();
            if path.is_dir() {
                self.copy_folder(&path)?;
            } else {
                self.copy_file(&path)?;
            }
        }
        Ok(())
    }

    /// Copies a file that must exist.
    fn copy_needed(&self, path: &Path) -> Result<(), Failure> {
        match self.copy_file(path)? {
            Some(_) => Ok(()),
            None => Err(Failure::Changed(format!("{} was deleted", path.display()))),
        }
    }

    /// Copies a file of the folder to its place in the copy, durably, and returns its size. Returns `None` if the file
    /// does not exist.
    fn copy_file(&self, path: &Path) -> Result<Option<u64>, StoreError> {
        let target = self.to.join(path.strip_prefix(self.from).unwrap_or(path));
        let copied = || -> io::Result<u64> {
            let mut from = File::open(path)?;
            if let Some(folder) = target.parent() {
                create_folders(folder)?;
            }
            let mut to = File::create(&target)?;
            let bytes = io::copy(&mut from, &mut to)?;
            to.sync_all()?;
            sync_parent(&target)?;
            Ok(bytes)
        };
        match copied() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io("copy", path)(error)),
        }
    }
}
