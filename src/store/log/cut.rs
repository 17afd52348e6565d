//! The durable length of a segment of the log, recorded if the bytes of refused records could not be cut off the
//! segment.
//!
//! If a sync fails and the segment cannot be cut afterwards, the segment may hold whole records that were refused. A
//! small file beside the segment (`NNNNNNNNNNNN.cut`) records where the acknowledged records end. Readers of the log
//! stop there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use alluvium_base::file::replace;

/// Returns the path of the `.cut` file for the segment at `segment`.
pub(crate) fn path_of(segment: &Path) -> PathBuf {
    segment.with_extension("cut")
}

/// Writes the `.cut` file of a segment. The file is durable when the function returns.
pub(crate) fn write(segment: &Path, durable_bytes: u64) -> io::Result<()> {
    replace(&path_of(segment), text(durable_bytes).as_bytes())
}

/// Returns the durable length in the `.cut` file of a segment. A damaged `.cut` file is treated as absent.
pub(crate) fn read(segment: &Path) -> io::Result<Option<u64>> {
    let path = path_of(segment);
    let content = match fs::read_to_string(&path) {
        Ok(content) => content,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = content.split(' ').next().and_then(|length| length.parse().ok());
    let valid = length.filter(|length| text(*length) == content);
    if valid.is_none() {
        tracing::warn!(file = %path.display(), "the durable length of a segment of the log is damaged: refused \
            profiles may reappear");
    }
    Ok(valid)
}

/// Removes the `.cut` file of a segment. Called before a segment of the same number is created, and after a segment is
/// deleted.
pub(crate) fn remove(segment: &Path) -> io::Result<()> {
    match fs::remove_file(path_of(segment)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn text(durable_bytes: u64) -> String {
    format!(
        "{durable_bytes} {:08x}\n",
        crc32fast::hash(&durable_bytes.to_le_bytes())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_read_as_it_was_written_and_a_damaged_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let segment = folder.path().join("000000000007.seg");
        assert_eq!(read(&segment).unwrap(), None);
        write(&segment, 1234).unwrap();
        assert_eq!(read(&segment).unwrap(), Some(1234));
        fs::write(path_of(&segment), text(1234).replacen("12", "13", 1)).unwrap();
        assert_eq!(read(&segment).unwrap(), None);
        fs::write(path_of(&segment), [0xff, 0]).unwrap();
        assert_eq!(read(&segment).unwrap(), None);
        remove(&segment).unwrap();
        remove(&segment).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
