//! The files of the write-ahead log: their names, and the segment that is being written.
//!
//! In: framed records. Out: a segment with a known durable length, so that refused records can be cut off again.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::store::common::error::StoreError;
use crate::store::common::fault::{FaultPoint, Faults};
use crate::store::log::cut;
use alluvium_base::segment::{KEYED_HEADER_BYTES, Key};

/// Whether the log is synced before a profile is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMode {
    /// Every acknowledgement follows an `fdatasync`.
    #[default]
    Full,
    /// The log is written but not synced. Data survives a crash of the process, but not of the machine.
    Off,
}

/// The segment that is being written.
pub(crate) struct Segment {
    pub(crate) number: u64,
    file: File,
    durable_bytes: u64,
    /// False for the placeholder of a log that has no segment yet.
    pub(crate) exists: bool,
}

impl Segment {
    pub(crate) fn create(
        folder: &Path,
        number: u64,
        (key, sync): (Key, SyncMode),
        faults: &Faults,
    ) -> io::Result<Self> {
        let path = segment_path(folder, number);
        let created = faults
            .run(FaultPoint::LogCreate, || {
                // An earlier segment with this number may have left a `.cut` file. The sync of the folder makes the
                // removal of that file durable together with the name of the new segment.
                cut::remove(&path)?;
                key.create(&path)
            })
            .and_then(|file| {
                if sync == SyncMode::Full {
                    faults.run(FaultPoint::LogCreateSync, || file.sync_all())?;
                    faults.run(FaultPoint::LogCreateSync, || File::open(folder)?.sync_all())?;
                }
                Ok(file)
            });
        let file = match created {
            Ok(file) => file,
            Err(error) => {
                // A half-created file must not block the next attempt. A file that existed before stays.
                if error.kind() != io::ErrorKind::AlreadyExists {
                    let _ = std::fs::remove_file(&path);
                }
                return Err(error);
            }
        };
        Ok(Self {
            number,
            file,
            durable_bytes: KEYED_HEADER_BYTES as u64,
            exists: true,
        })
    }

    /// Creates a placeholder with `number`, for a log whose next segment could not be created. The log never writes to
    /// the placeholder.
    pub(crate) fn placeholder(number: u64) -> io::Result<Self> {
        Ok(Self {
            number,
            file: File::open("/dev/null")?,
            durable_bytes: 0,
            exists: false,
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8], appends: usize, sync: SyncMode, faults: &Faults) -> io::Result<()> {
        if let Err(error) = faults.check(FaultPoint::LogWrite) {
            // A simulated fault writes a part of the bytes, as failing disks often do.
            let _ = self.file.write_all(&bytes[..bytes.len() / 2]);
            return Err(error);
        }
        self.file.write_all(bytes)?;
        faults.done(FaultPoint::LogWrite);
        faults.logged(appends);
        match sync {
            SyncMode::Full => faults.run(FaultPoint::LogSync, || self.file.sync_data())?,
            SyncMode::Off => faults.check(FaultPoint::LogSync)?,
        }
        self.durable_bytes += bytes.len() as u64;
        Ok(())
    }

    pub(crate) fn truncate(&mut self, faults: &Faults) -> io::Result<()> {
        self.cut_to(self.durable_bytes, faults)
    }

    /// Records the durable length of the segment in a file beside the segment.
    pub(crate) fn mark(&self, folder: &Path, faults: &Faults) -> io::Result<()> {
        let path = segment_path(folder, self.number);
        faults.run(FaultPoint::LogMark, || cut::write(&path, self.durable_bytes))
    }

    pub(crate) fn cut_to(&mut self, length: u64, faults: &Faults) -> io::Result<()> {
        faults.run(FaultPoint::LogCut, || self.file.set_len(length))?;
        faults.run(FaultPoint::LogCut, || self.file.sync_all())?;
        self.durable_bytes = length;
        Ok(())
    }
}

/// Returns the path of segment `number`.
pub(crate) fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:012}.seg"))
}

/// Returns the numbers of the segments in `folder` in ascending order. Files with other names are ignored.
pub(crate) fn segments(folder: &Path) -> Result<Vec<u64>, StoreError> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(StoreError::io("list", folder))? {
        let entry = entry.map_err(StoreError::io("list", folder))?;
        if let Some(number) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.strip_suffix(".seg"))
            .and_then(|stem| stem.parse().ok())
        {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}
