//! The data folder: its lock, its layout version and the identity of its writer.
//!
//! `VERSION` holds the layout version. `LOCK` is locked while a process writes. `WRITER` names the writer in the
//! tables' transactions. Other modules manage `wal/` and `tables/`. A folder of a newer program is refused before
//! anything in it is changed. In a folder of an older program, `VERSION` is set to this program's version.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::store::common::error::StoreError;
use crate::store::common::fault::{FaultPoint, Faults};
use crate::store::common::schema::LAYOUT_VERSION;
use alluvium_base::file::{create_folders, replace_by, sync_parent, warn_of_open_folder};

/// A data folder that this process may write to.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) log: PathBuf,
    pub(crate) tables: PathBuf,
    /// Identity of the writer: a UUID that is kept in the folder.
    pub(crate) writer: String,
    /// The file `LOCK`. Its lock prevents other processes from writing.
    lock: File,
}

impl Folder {
    /// Creates or opens the folder and locks it.
    pub(crate) fn open(dir: &Path, faults: &Faults) -> Result<Self, StoreError> {
        faults
            .run(FaultPoint::FolderWrite, || create_folders(dir))
            .map_err(StoreError::io("create the data folder", dir))?;
        let lock_path = dir.join("LOCK");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(StoreError::io("write", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Locked(dir.to_owned())),
            Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", &lock_path)(error)),
        }
        // The version is written before any other data of this layout. From here on, older programs refuse the folder.
        let version_path = dir.join("VERSION");
        if check_version(dir)? < Some(LAYOUT_VERSION) {
            write_whole(&version_path, &format!("{LAYOUT_VERSION}\n"), faults)?;
        }
        let writer_path = dir.join("WRITER");
        if !writer_path.exists() {
            write_whole(&writer_path, &format!("{}\n", uuid::Uuid::new_v4()), faults)?;
        }
        let writer = writer_of(dir)?.unwrap_or_default();
        let (log, tables) = (dir.join("wal"), dir.join("tables"));
        for path in [&log, &tables] {
            faults
                .run(FaultPoint::FolderWrite, || fs::create_dir_all(path))
                .map_err(StoreError::io("create", path))?;
        }
        for path in [dir, &log] {
            faults
                .run(FaultPoint::FolderWrite, || sync_parent(path))
                .map_err(StoreError::io("sync the folder of", path))?;
        }
        warn_of_open_folder(dir).map_err(StoreError::io("read the permissions of", dir))?;
        Ok(Self {
            log,
            tables,
            writer,
            lock,
        })
    }

    /// Keeps the folder locked until this process has ended.
    pub(crate) fn keep_locked(&self) {
        std::mem::forget(self.lock.try_clone());
    }

    /// Unlocks the folder for other processes. The caller must not write to the folder afterwards.
    pub(crate) fn release(&self) {
        if let Err(error) = self.lock.unlock() {
            tracing::debug!(error = %error, "cannot unlock the data folder, the end of the process will unlock it");
        }
    }
}

/// Returns the layout version of a folder, if it has one. Fails if this program does not know the version yet.
pub(crate) fn check_version(dir: &Path) -> Result<Option<u32>, StoreError> {
    let path = dir.join("VERSION");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io("read", &path)(error)),
    };
    let version: u32 = text.trim().parse().map_err(|_| StoreError::Damaged {
        path: path.clone(),
        reason: format!("`{}` is not a layout version", text.trim()),
    })?;
    if version > LAYOUT_VERSION {
        return Err(StoreError::NewerLayout {
            path: dir.to_owned(),
            version,
            known: LAYOUT_VERSION,
        });
    }
    Ok(Some(version))
}

/// Returns the writer's identity, if the folder has one.
pub(crate) fn writer_of(dir: &Path) -> Result<Option<String>, StoreError> {
    let path = dir.join("WRITER");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io("read", &path)(error)),
    };
    match uuid::Uuid::parse_str(text.trim()) {
        Ok(writer) => Ok(Some(writer.to_string())),
        Err(_) => Err(StoreError::Damaged {
            path,
            reason: "it does not hold the UUID of the writer, which identifies the commits of this folder".to_owned(),
        }),
    }
}

/// Writes a small file atomically.
fn write_whole(path: &Path, text: &str, faults: &Faults) -> Result<(), StoreError> {
    replace_by(path, text.as_bytes(), &mut |step| {
        faults.run(FaultPoint::FolderWrite, step)
    })
    .map_err(StoreError::io("write", path))
}
